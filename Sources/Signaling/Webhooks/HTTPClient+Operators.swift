internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
package import Web

// Requests to the servers of operators.

extension HTTPClient.Configuration {
    /// No request takes longer, whatever its own limit is.
    private static let timeoutMax = TimeAmount.seconds(60)

    /// HTTP/1.1 without redirects, which could take credentials or questions to another server.
    package init(trusting authorities: TrustedAuthorities) {
        self.init()
        httpVersion = .http1Only
        redirectConfiguration = .disallow
        timeout.connect = Self.timeoutMax
        timeout.read = Self.timeoutMax
        // A missing server fails at once. The callers have their own retries.
        connectionPool.retryConnectionEstablishment = false
        guard let certificates = authorities.certificates else { return }
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(certificates)
        tlsConfiguration = tls
    }
}

extension HTTPClient {
    /// Sends a request.
    /// - Parameters:
    ///   - timeout: Up to the last byte of the answer.
    ///   - bytesMax: The maximum length of the answer's body.
    /// - Returns: A 2xx answer.
    func answer(
        to request: HTTPClientRequest,
        within timeout: Duration,
        bytesMax: Int
    ) async throws(WebhookFailure) -> (headers: HTTPHeaders, body: [UInt8]) {
        // The client's read timeout does not detect a server that sends its answer byte by byte.
        let answer = try? await withDeadline(after: timeout, late: .failure(.timeout)) { [self] in
            await result(of: request, timeout, bytesMax)
        }
        return try (answer ?? .failure(.timeout)).get()
    }

    @concurrent private func result(
        of request: HTTPClientRequest,
        _ timeout: Duration,
        _ bytesMax: Int
    ) async -> Result<(headers: HTTPHeaders, body: [UInt8]), WebhookFailure> {
        do {
            let response = try await execute(request, timeout: TimeAmount(timeout))
            let body = try await response.body.collect(upTo: bytesMax)
            let code = Int(response.status.code)
            guard (200..<300).contains(code) else { return .failure(.status(code)) }
            return .success((response.headers, Array(body.readableBytesView)))
        } catch is NIOTooManyBytesError {
            return .failure(.tooLong)
        } catch let error as HTTPClientError where error == .deadlineExceeded || error == .readTimeout {
            return .failure(.timeout)
        } catch let error as HTTPClientError where error == .connectTimeout {
            return .failure(.timeout)
        } catch is CancellationError {
            return .failure(.timeout)
        } catch {
            return .failure(.connection("\(error)"))
        }
    }
}
