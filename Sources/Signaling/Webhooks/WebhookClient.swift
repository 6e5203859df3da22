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

/// Why a webhook's server gave no usable answer.
enum WebhookFailure: Error, Hashable {
    case timeout
    /// The connection failed; the text says how.
    case connection(String)
    /// It answered, but not with a status of success.
    case status(Int)
    case tooLong
    case notJSON

    /// For the log.
    var sentence: String {
        switch self {
        case .timeout: "It did not answer in time."
        case .connection(let text): "The connection failed: \(text)."
        case .status(let code): "It answered with the status \(code); only 2xx counts."
        case .tooLong: "Its answer is too long."
        case .notJSON: "Its answer is no JSON object."
        }
    }
}

/// Posts JSON to an operator's server.
protocol WebhookTransport: Sendable {
    /// - Parameter headers: beside those that every request has.
    /// - Returns: the body of an answer with a status of 2xx.
    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8]
}

extension WebhookTransport {
    /// The answer as a JSON object; an empty body counts as an empty one.
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

/// HTTP/1.1 over TCP or TLS to the webhooks' servers. Redirects are not followed: they would take credentials elsewhere.
public final class WebhookClient: WebhookTransport {
    private let client: HTTPClient
    private let timeout: Duration
    private let bytesMax: Int
    private let authorization: String?

    /// - Throws: a sentence that names the file when the certificates cannot be used.
    public init(_ configuration: WebhookConfiguration) throws(ServerStartError) {
        var settings = HTTPClient.Configuration()
        settings.httpVersion = .http1Only
        settings.redirectConfiguration = .disallow
        settings.timeout.connect = TimeAmount(configuration.timeout)
        settings.timeout.read = TimeAmount(configuration.timeout)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.limits.connectionsMax
        // A server that is not there is told at once; who asks tries again by its own rules.
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

    /// Closes the connections. To be called once, at the end.
    public func shutdown() async { try? await client.shutdown() }

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: "Nagare")
        if let authorization { request.headers.add(name: "Authorization", value: authorization) }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body))
        return try await withDeadline(request).get()
    }

    /// The answer, or the end of the time for it, whichever comes first: a server that sends its answer byte by byte keeps
    /// every single read short.
    private func withDeadline(_ request: HTTPClientRequest) async -> Result<[UInt8], WebhookFailure> {
        let (client, timeout, bytesMax) = (client, timeout, bytesMax)
        return await withTaskGroup(of: Result<[UInt8], WebhookFailure>.self) { group in
            group.addTask { await Self.answer(to: request, client, timeout, bytesMax) }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return .failure(.timeout)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(.timeout)
        }
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
