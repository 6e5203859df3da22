/// The path and query of a request target (RFC 9112 §3.2), percent-encoded.
package struct RequestTarget: Hashable, Sendable {
    /// The path as sent.
    package let path: Substring
    /// The path segments; none for `/`.
    package let segments: [Substring]
    package let query: Substring?

    package init(_ target: String) {
        var rest = target[...]
        // Absolute form, which proxies send: the authority is ignored.
        if rest.first != "/", let scheme = rest.firstRange(of: "://") {
            rest = rest[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        }
        rest = rest.prefix { $0 != "#" }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        query = parts.count == 2 ? parts[1] : nil
        path = parts.first ?? ""
        segments =
            path.isEmpty || path == "/"
            ? [] : (path.first == "/" ? path.dropFirst() : path).split(separator: "/", omittingEmptySubsequences: false)
    }

    /// The path and query as sent.
    package var text: String { String(path) + (query.map { "?\($0)" } ?? "") }

    /// The first value of a query parameter; `nil` without one or when it is not valid UTF-8.
    package func queryValue(_ name: String) -> String? {
        for pair in query?.split(separator: "&") ?? [] {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.first.flatMap({ percentDecoded($0, plusIsSpace: true) }) == name else { continue }
            return percentDecoded(parts.count == 2 ? parts[1] : "", plusIsSpace: true)
        }
        return nil
    }
}

/// Percent-decodes (RFC 3986 §2.1). `nil` when two hexadecimal digits do not follow a `%`, or the bytes are not UTF-8.
package func percentDecoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
    var bytes: [UInt8] = []
    var iterator = text.utf8.makeIterator()
    while let byte = iterator.next() {
        switch byte {
        case UInt8(ascii: "%"):
            guard let high = iterator.next().flatMap(hexadecimalValue),
                let low = iterator.next().flatMap(hexadecimalValue)
            else { return nil }
            bytes.append(high << 4 | low)
        case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
        default: bytes.append(byte)
        }
    }
    return String(validating: bytes, as: UTF8.self)
}

private func hexadecimalValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
}
