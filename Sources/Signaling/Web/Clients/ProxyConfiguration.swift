package import Wire

/// A range of addresses in CIDR notation (RFC 4632, RFC 4291 §2.3).
package struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    let address: IPAddress
    /// The number of significant leading bits: up to 32 for IPv4, up to 128 for IPv6.
    let prefixLength: Int

    /// Parses `ADDRESS` or `ADDRESS/LENGTH`; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first) else { return nil }
        let bits = address.isV4 ? 32 : 128
        self.address = address
        guard parts.count == 2 else {
            prefixLength = bits
            return
        }
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let length = Int(parts[1]), length <= bits
        else { return nil }
        prefixLength = length
    }

    package func contains(_ other: IPAddress) -> Bool {
        guard address.isV4 == other.isV4 else { return false }
        // An IPv4 address is in the last 32 of 128 bits.
        let length = address.isV4 ? prefixLength + 96 : prefixLength
        let highMask: UInt64 = length >= 64 ? .max : ~(.max >> UInt64(length))
        let lowMask: UInt64 = length <= 64 ? 0 : ~(length == 128 ? 0 : .max >> UInt64(length - 64))
        return (address.high ^ other.high) & highMask == 0 && (address.low ^ other.low) & lowMask == 0
    }

    package var description: String { "\(address)/\(prefixLength)" }
}

/// The trusted reverse proxies of the public listener, and how they name their clients.
///
/// The server ignores addresses that other clients claim.
package struct ProxyConfiguration: Hashable, Sendable {
    /// How a proxy names the client of a connection.
    package enum Header: String, Hashable, Sendable, CaseIterable {
        /// The field `X-Forwarded-For` of each request: the last address in it that is not a trusted proxy's.
        case forwardedFor = "x-forwarded-for"
        /// The header of the PROXY protocol, version 1 or 2, in front of everything else on the connection, TLS included.
        case proxyProtocol = "proxy-protocol"
    }

    /// The proxies' addresses. Without any, the connection's address is the client's.
    package var trusted: [AddressRange]
    package var header: Header

    package init(trusted: [AddressRange] = [], header: Header = .forwardedFor) {
        self.trusted = trusted
        self.header = header
    }

    func trusts(_ address: IPAddress) -> Bool { trusted.contains { $0.contains(address) } }

    /// The client address of a request.
    /// - Parameters:
    ///   - peer: The remote address of the connection.
    ///   - forwardedFor: The `X-Forwarded-For` fields in order.
    func client(peer: IPAddress, forwardedFor: [String]) -> IPAddress {
        guard header == .forwardedFor else { return peer }
        var client = peer
        var hops = 0
        for field in forwardedFor.reversed() {
            for hop in field.split(separator: ",", omittingEmptySubsequences: false).reversed() {
                hops += 1
                guard hops <= Self.hopsMax, trusts(client), let address = Self.address(hop) else { return client }
                client = address
            }
        }
        return client
    }

    /// The maximum number of proxies on a request's path.
    private static let hopsMax = 32

    /// Parses one hop. Some proxies add the port.
    private static func address(_ text: Substring) -> IPAddress? {
        let text = text.filter { $0 != " " && $0 != "\t" }
        if let address = IPAddress(text) { return address }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(text[text.index(after: text.startIndex)..<end])
        }
        return text.firstIndex(of: ":").flatMap { IPAddress(text[..<$0]) }
    }
}
