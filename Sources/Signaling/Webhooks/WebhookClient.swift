import Access
internal import AsyncHTTPClient
import Base
import ChannelTypes
package import JSON
internal import NIOCore
internal import NIOHTTP1
import Telemetry
package import Web

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Why a request to an operator's server failed.
package enum WebhookFailure: Error, Hashable {
    case timeout
    /// The connection failed, with the error's text.
    case connection(String)
    /// The status of the response is not 2xx.
    case status(Int)
    case tooLong
    case notJSON

    /// For the log.
    package var message: String {
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
package protocol WebhookTransport: Sendable {
    /// - Parameter headers: Additional header fields.
    /// - Returns: The body of a 2xx response.
    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8]
}

extension WebhookTransport {
    /// Posts the body and parses the answer; an empty answer counts as an empty object.
    package func exchange(
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
package final class WebhookClient: WebhookTransport {
    private let client: HTTPClient
    private let bytesMax: Int
    private let access: Replaceable<Access>

    /// What ``change(_:)`` changes.
    private struct Access {
        /// For one request, up to the last byte of the answer.
        var timeout: Duration
        var authorization: String?
        var signer: WebhookSigner?

        init(_ configuration: WebhookConfiguration) {
            timeout = configuration.timeout
            signer = configuration.signer
            authorization = configuration.credentials.map { credentials in
                "Basic " + Data("\(credentials.user):\(credentials.password)".utf8).base64EncodedString()
            }
        }
    }

    /// Call ``shutdown()`` at the end.
    package init(_ configuration: WebhookConfiguration, trusting authorities: TrustedAuthorities = .system) {
        var settings = HTTPClient.Configuration(trusting: authorities)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.limits.connectionsMax
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
        bytesMax = configuration.limits.responseBytesMax
        access = Replaceable(Access(configuration))
    }

    /// Changes the time limit, the credentials and the signer of later requests.
    package func change(_ configuration: WebhookConfiguration) { access.current = Access(configuration) }

    /// Closes all connections. Call it once, at the end.
    package func shutdown() async { try? await client.shutdown() }

    package func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure)
        -> [UInt8]
    {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: "Nagare")
        let access = access.current
        if let signer = access.signer {
            let value = signer.value(of: body, at: Int64(Date().timeIntervalSince1970))
            request.headers.add(name: WebhookSigner.header, value: value)
        }
        if let authorization = access.authorization { request.headers.add(name: "Authorization", value: authorization) }
        if let context = TraceContext.current { request.headers.add(name: "traceparent", value: context.traceparent) }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body))
        return try await client.answer(to: request, within: access.timeout, bytesMax: bytesMax).body
    }
}
