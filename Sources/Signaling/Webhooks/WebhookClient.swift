import Access
internal import AsyncHTTPClient
import JSON
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Why a webhook request failed.
enum WebhookFailure: Error, Hashable {
    case timeout
    /// The connection failed, with the error's text.
    case connection(String)
    /// The status of the response is not 2xx.
    case status(Int)
    case tooLong
    case notJSON

    /// For the log.
    var sentence: String {
        switch self {
        case .timeout: "The server did not answer in time."
        case .connection(let text): "The connection failed: \(text)."
        case .status(let code): "The server answered with status \(code) instead of 2xx."
        case .tooLong: "The answer is too long."
        case .notJSON: "The answer is not a JSON object."
        }
    }
}

/// Posts JSON to an operator's server.
protocol WebhookTransport: Sendable {
    /// - Parameter headers: Additional header fields.
    /// - Returns: The body of a 2xx response.
    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8]
}

extension WebhookTransport {
    /// Posts the body and parses the answer; an empty answer counts as an empty object.
    func exchange(
        _ body: JSONValue,
        with url: String,
        headers: [(String, String)] = []
    ) async throws(WebhookFailure) -> [String: JSONValue] {
        let answer = try await post(body.bytes, to: url, headers: headers)
        if answer.allSatisfy({ $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }) { return [:] }
        guard let object = (try? JSONValue(parsing: answer))?.object else { throw .notJSON }
        return object
    }
}

/// Posts webhooks over HTTP/1.1. It follows no redirects, which could forward the credentials to another server.
public final class WebhookClient: WebhookTransport {
    private let client: HTTPClient
    private let timeout: Duration
    private let bytesMax: Int
    private let authorization: String?

    /// - Throws: When the certificates are unusable; the error names the file.
    public init(_ configuration: WebhookConfiguration) throws(ServerStartError) {
        var settings = HTTPClient.Configuration()
        settings.httpVersion = .http1Only
        settings.redirectConfiguration = .disallow
        settings.timeout.connect = TimeAmount(configuration.timeout)
        settings.timeout.read = TimeAmount(configuration.timeout)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.limits.connectionsMax
        // A missing server fails at once. The callers have their own retries.
        settings.connectionPool.retryConnectionEstablishment = false
        if let path = configuration.certificateAuthorityPath {
            var tls = TLSConfiguration.makeClientConfiguration()
            do {
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(path))
            } catch {
                throw ServerStartError(sentence: "The certificates for webhooks, \(path), cannot be read: \(error).")
            }
            settings.tlsConfiguration = tls
        }
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
        timeout = configuration.timeout
        bytesMax = configuration.limits.responseBytesMax
        authorization = configuration.credentials.map { credentials in
            "Basic " + Data("\(credentials.user):\(credentials.password)".utf8).base64EncodedString()
        }
    }

    /// Closes all connections. Call it once, at the end.
    public func shutdown() async { try? await client.shutdown() }

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: "Nagare")
        if let authorization { request.headers.add(name: "Authorization", value: authorization) }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body))
        let (client, timeout, bytesMax) = (client, timeout, bytesMax)
        // The client's read timeout does not detect a server that sends its answer byte by byte.
        let answer = try? await withDeadline(after: timeout, late: .failure(.timeout)) { [request] in
            await Self.answer(to: request, client, timeout, bytesMax)
        }
        return try (answer ?? .failure(.timeout)).get()
    }

    @concurrent private static func answer(
        to request: HTTPClientRequest,
        _ client: HTTPClient,
        _ timeout: Duration,
        _ bytesMax: Int
    ) async -> Result<[UInt8], WebhookFailure> {
        do {
            let response = try await client.execute(request, timeout: TimeAmount(timeout))
            let body = try await response.body.collect(upTo: bytesMax)
            let code = Int(response.status.code)
            return (200..<300).contains(code) ? .success(Array(body.readableBytesView)) : .failure(.status(code))
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
