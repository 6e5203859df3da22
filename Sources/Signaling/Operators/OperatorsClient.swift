internal import AsyncHTTPClient
internal import Glibc
package import JSON
internal import NIOCore
internal import NIOHTTP1
package import Web
import Webhooks

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A client of the operators' API, for the command line.
package final class OperatorsClient: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case put = "PUT"
        case post = "POST"
        case delete = "DELETE"
    }

    /// One request.
    package struct Call: Hashable, Sendable {
        package let method: Method
        /// Below `/v1`, not percent-encoded.
        package let path: [String]
        package var query: [String: String]
        package var body: JSONValue?

        package init(_ method: Method, _ path: [String], query: [String: String] = [:], body: JSONValue? = nil) {
            self.method = method
            self.path = path
            self.query = query
            self.body = body
        }

        /// The path and query, percent-encoded.
        var target: String {
            let path = path.map { "/" + Self.encoded($0) }.joined()
            let query = query.sorted { $0.key < $1.key }
                .map { "\(Self.encoded($0.key))=\(Self.encoded($0.value))" }
                .joined(separator: "&")
            return "/v1\(path)\(query.isEmpty ? "" : "?\(query)")"
        }

        private static func encoded(_ text: String) -> String {
            text.utf8.map { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: String(UnicodeScalar(byte))
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"): String(UnicodeScalar(byte))
                default:
                    "%" + String(byte >> 4, radix: 16, uppercase: true) + String(byte & 15, radix: 16, uppercase: true)
                }
            }
            .joined()
        }
    }

    /// Why a request failed.
    package struct Failure: Error, Hashable, Sendable {
        /// The status of the answer; `nil` without one.
        package let status: Int?
        /// What is wrong and what to do.
        package let message: String

        package init(status: Int?, _ message: String) {
            self.status = status
            self.message = message
        }
    }

    private static let timeout = TimeAmount.seconds(10)
    private static let answerBytesMax = 16 << 20

    private let origin: String
    private let token: String?
    private let client: HTTPClient

    /// - Parameters:
    ///   - url: `http` or `https`, with a host and without a path; the initializer returns `nil` for others.
    ///   - token: The operators' token; `nil` for none.
    ///   - authority: The file of trusted certificates, PEM; `nil` for the system's.
    /// - Throws: When the certificates are unusable; the error names the file.
    package init?(url: String, token: String?, authority: String? = nil) throws(ServerStartError) {
        let origin = url.hasSuffix("/") ? String(url.dropLast()) : url
        guard let parsed = URL(string: origin), ["http", "https"].contains(parsed.scheme), parsed.host != nil,
            parsed.path.isEmpty, parsed.query == nil
        else { return nil }
        self.origin = origin
        self.token = token
        let authorities = try TrustedAuthorities(path: authority, for: "the node's API")
        var settings = HTTPClient.Configuration(trusting: authorities)
        settings.timeout.connect = Self.timeout
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    }

    /// Closes all connections. Call it once, at the end.
    package func shutdown() async { try? await client.shutdown() }

    /// The system's words for an error of a socket, which has the call and the number in its own description.
    private static func cause(of error: any Error) -> String {
        guard let code = (error as? IOError)?.errnoCode else { return "\(error)" }
        return unsafe String(cString: strerror(code))
    }

    /// - Returns: The body of the answer; `null` without one.
    package func send(_ call: Call) async throws(Failure) -> JSONValue {
        var request = HTTPClientRequest(url: origin + call.target)
        request.method = HTTPMethod(rawValue: call.method.rawValue)
        if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
        if let body = call.body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: body.bytes))
        }
        let status: Int
        let bytes: [UInt8]
        do {
            let response = try await client.execute(request, timeout: Self.timeout)
            status = Int(response.status.code)
            bytes = Array(try await response.body.collect(upTo: Self.answerBytesMax).readableBytesView)
        } catch {
            throw Failure(
                status: nil,
                "The node at \(origin) does not answer (\(Self.cause(of: error))); is --api its admin address, with https where that has TLS, and "
                    + "does --api-ca name the authority of its certificate?"
            )
        }
        let answer = bytes.isEmpty ? .null : try? JSONValue(parsing: bytes)
        guard (200..<300).contains(status), let answer else {
            let detail = answer?["detail"]?.string ?? "The node at \(origin) answered with status \(status)."
            throw Failure(status: status, detail)
        }
        return answer
    }
}
