/// `HOST:PORT`: a name or an IP address, and a port. An IPv6 address is in brackets.
package struct HostPort: Hashable, Sendable, CustomStringConvertible {
    /// A name or an IP address of 1 to 255 bytes, without brackets.
    package let host: String
    /// 1 to 65,535.
    package let port: Int

    /// `nil` for a host or port out of range.
    package init?(host: String, port: Int) {
        guard 1...255 ~= host.utf8.count, 1...65_535 ~= port else { return nil }
        self.host = host
        self.port = port
    }

    /// - Parameter defaultPort: of a text without a port; without it, the text has to have one.
    /// - Returns: `nil` for another form.
    package init?(_ text: some StringProtocol, defaultPort: Int? = nil) {
        let host: String
        var rest = text[...]
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = String(text[text.index(after: text.startIndex)..<end])
            rest = text[text.index(after: end)...]
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            host = String(text[..<end])
            rest = text[end...]
        }
        guard !rest.isEmpty else {
            guard let defaultPort else { return nil }
            self.init(host: host, port: defaultPort)
            return
        }
        guard rest.first == ":", let port = UInt16(rest.dropFirst()) else { return nil }
        self.init(host: host, port: Int(port))
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
