/// Where clients reach a node: scheme, host and port, such as `https://n1.example.com:8443`, without a path.
package struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    /// Of the HTTP listener, without a slash at the end.
    package let url: String
    package var description: String { url }

    /// The longest address in bytes.
    private static let bytesMax = 255

    /// `nil` unless the text starts with `http://` or `https://` and has a host, at most a port after it, and nothing else.
    package init?(_ text: some StringProtocol) {
        let url = text.hasSuffix("/") ? String(text.dropLast()) : String(text)
        guard url.utf8.count <= Self.bytesMax,
            let scheme = ["http://", "https://"].first(where: { url.hasPrefix($0) })
        else { return nil }
        let authority = url.dropFirst(scheme.count)
        let isPlain = authority.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
                true
            default: false
            }
        }
        guard isPlain, let first = authority.utf8.first, first != UInt8(ascii: ":") else { return nil }
        self.url = url
    }

    /// The same address for WebSockets: `wss://…`, or `ws://…` for plain HTTP.
    package var webSocketURL: String { "ws" + url.dropFirst(4) }
}
