import Foundation

/// A request for a WHIP or WHEP session, between the node that a client asked and the node that has the session.
///
/// The node that received it from the client has limited its rate. The node that has the session authorizes it. In its coding
/// the body is base64.
package struct ForwardedRequest: Hashable, Sendable, ForwardedMessage {
    /// A header field. Only those that sessions use are passed on.
    package struct Field: Hashable, Sendable, Codable {
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The longest body, in bytes.
    package static let bodyBytesMax = 64 * 1024
    /// The longest target, in bytes.
    package static let targetBytesMax = 8 * 1024

    /// `GET`, `HEAD`, `PATCH` or `DELETE`.
    package var method: String
    /// The path and query as the client sent them.
    package var target: String
    package var headers: [Field]
    package var body: [UInt8]

    package init(method: String, target: String, headers: [Field], body: [UInt8]) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }

    private enum CodingKeys: CodingKey { case method, target, headers, body }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        method = try container.decode(String.self, forKey: .method)
        target = try container.decode(String.self, forKey: .target)
        headers = try container.decode([Field].self, forKey: .headers)
        body = Array(try container.decode(Data.self, forKey: .body))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(method, forKey: .method)
        try container.encode(target, forKey: .target)
        try container.encode(headers, forKey: .headers)
        try container.encode(Data(body), forKey: .body)
    }
}

/// The response to a ``ForwardedRequest``. In its coding the body is base64.
package struct ForwardedResponse: Hashable, Sendable, ForwardedMessage {
    /// The longest body, in bytes: enough for the statistics of a session with the most tracks.
    package static let bodyBytesMax = 1 << 20

    /// 100 to 599.
    package var status: Int
    package var headers: [ForwardedRequest.Field]
    package var body: [UInt8]

    package init(status: Int, headers: [ForwardedRequest.Field], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    private enum CodingKeys: CodingKey { case status, headers, body }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        status = try container.decode(Int.self, forKey: .status)
        headers = try container.decode([ForwardedRequest.Field].self, forKey: .headers)
        body = Array(try container.decode(Data.self, forKey: .body))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(status, forKey: .status)
        try container.encode(headers, forKey: .headers)
        try container.encode(Data(body), forKey: .body)
    }
}

/// What goes from node to node as JSON.
package protocol ForwardedMessage: Codable {}

extension ForwardedMessage {
    /// `nil` for other bytes.
    package init?(encoded: [UInt8]) {
        guard let message = try? JSONDecoder().decode(Self.self, from: Data(encoded)) else { return nil }
        self = message
    }

    package var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }
}
