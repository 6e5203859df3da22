public import Base

/// An IPv4 or IPv6 address. IPv4-mapped IPv6 addresses are held as IPv4, so one peer has one address.
public struct IPAddress: Hashable, Sendable, Codable {
    /// The 16 network-order bytes as two big-endian halves; an IPv4 address is `::ffff:a.b.c.d`.
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// From the four network-order bytes of an IPv4 address, as one integer.
    public init(v4 address: UInt32) {
        high = 0
        low = 0x0000_FFFF_0000_0000 | UInt64(address)
    }

    public var isV4: Bool { high == 0 && low >> 32 == 0xFFFF }
    /// The IPv4 address as an integer; meaningful when `isV4`.
    public var v4: UInt32 { UInt32(truncatingIfNeeded: low) }

    public static let loopbackV4 = IPAddress(v4: 0x7F00_0001)
    public static let loopbackV6 = IPAddress(high: 0, low: 1)
    public static let anyV4 = IPAddress(v4: 0)
    public static let anyV6 = IPAddress(high: 0, low: 0)

    public var isLoopback: Bool { isV4 ? v4 >> 24 == 127 : self == .loopbackV6 }
    public var isUnspecified: Bool { self == .anyV4 || self == .anyV6 }
    /// What limits of an address count: an IPv4 address itself, and the /64 of an IPv6 address, in which one host may have any
    /// number of addresses (RFC 7421).
    public var network: IPAddress { isV4 ? self : IPAddress(high: high, low: 0) }
}

extension IPAddress: CustomStringConvertible {
    /// Parses dotted-quad IPv4 or RFC 4291 IPv6 text (no zone, no brackets); `nil` when it is neither.
    public init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8.prefix(46))
        guard bytes.count <= 45 else { return nil }
        if bytes.contains(0x3A) {
            guard let groups = Self.parseV6(bytes[...]) else { return nil }
            var high: UInt64 = 0
            var low: UInt64 = 0
            for index in 0..<4 { high = high << 16 | UInt64(groups[index]) }
            for index in 4..<8 { low = low << 16 | UInt64(groups[index]) }
            self.init(high: high, low: low)
        } else {
            guard let address = Self.parseV4(bytes[...]) else { return nil }
            self.init(v4: address)
        }
    }

    private static func parseV4(_ bytes: ArraySlice<UInt8>) -> UInt32? {
        let parts = bytes.split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let value = part.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            guard value < 256, part.count == 1 || part.first != 0x30 else { return nil }
            address = address << 8 | UInt32(value)
        }
        return address
    }

    private static func parseV6(_ bytes: ArraySlice<UInt8>) -> [UInt16]? {
        var head: [UInt16] = []
        var tail: [UInt16] = []
        var compressed = false
        var rest = bytes
        if rest.starts(with: [0x3A, 0x3A]) {
            compressed = true
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            let group = rest.prefix { $0 != 0x3A }
            var values: [UInt16] = []
            if group.contains(0x2E) {
                guard group.count == rest.count, let address = parseV4(group) else { return nil }
                values = [UInt16(address >> 16), UInt16(truncatingIfNeeded: address)]
            } else {
                guard (1...4).contains(group.count), let value = hexValue(group) else { return nil }
                values = [value]
            }
            if compressed { tail += values } else { head += values }
            guard head.count + tail.count <= 8 else { return nil }
            rest = rest.dropFirst(group.count)
            guard !rest.isEmpty else { break }
            rest = rest.dropFirst()
            if rest.first == 0x3A {
                guard !compressed else { return nil }
                compressed = true
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        let missing = 8 - head.count - tail.count
        guard compressed ? missing >= 1 : missing == 0 else { return nil }
        return head + Array(repeating: 0, count: missing) + tail
    }

    private static func hexValue(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        var value: UInt16 = 0
        for byte in bytes {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x41...0x46: digit = byte - 0x41 + 10
            case 0x61...0x66: digit = byte - 0x61 + 10
            default: return nil
            }
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    /// RFC 5952 text.
    public var description: String {
        if isV4 {
            return "\(v4 >> 24).\(v4 >> 16 & 0xFF).\(v4 >> 8 & 0xFF).\(v4 & 0xFF)"
        }
        var groups: [UInt16] = []
        for shift in stride(from: 48, through: 0, by: -16) { groups.append(UInt16(truncatingIfNeeded: high >> shift)) }
        for shift in stride(from: 48, through: 0, by: -16) { groups.append(UInt16(truncatingIfNeeded: low >> shift)) }
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = max(end, start + 1)
        }
        let text = { (range: Range<Int>) in groups[range].map { String($0, radix: 16) }.joined(separator: ":") }
        return longest.isEmpty ? text(0..<8) : "\(text(0..<longest.lowerBound))::\(text(longest.upperBound..<8))"
    }
}

/// An IP address and a port: one end of a path.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible {
    public let ip: IPAddress
    public let port: UInt16

    public init(ip: IPAddress, port: UInt16) {
        self.ip = ip
        self.port = port
    }

    /// Parses `1.2.3.4:80` or `[::1]:80`; `nil` when it is neither. Names are not resolved.
    public init?(_ text: some StringProtocol) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard let ip = IPAddress(host) else { return nil }
        self.init(ip: ip, port: port)
    }

    public var description: String { ip.isV4 ? "\(ip):\(port)" : "[\(ip)]:\(port)" }
}

/// As its text.
extension TransportAddress: TextCodable {
    public var value: String { description }
    public init?(_ value: String) { self.init(value[...]) }
}

/// Which of a loop's UDP sockets a datagram came in on or leaves by: its index in the loop's list of sockets.
public struct SocketIndex: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}

/// The local end of a path, which ICE calls a base (RFC 8445 §5.1.1): what sends and receives for a local candidate.
public struct LocalEndpoint: Hashable, Sendable, CustomStringConvertible {
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// A UDP socket.
        case udp
        /// A TCP connection (RFC 6544). Each one is an endpoint of its own, so that what is sent to an earlier connection from
        /// the same remote address reaches no later one.
        case tcp
        /// A relayed transport address, allocated on a TURN server (RFC 8656 §2).
        case relayed
    }
    /// Endpoints of one kind on one loop.
    public static let indexMax = 0xFF_FFFF

    /// The kind above 24 bits of index, so that two paths are compared and hashed by one number.
    private let bits: UInt32

    /// - Parameter index: 0...`indexMax`, among the loop's endpoints of the kind.
    public init(_ kind: Kind, index: Int) {
        precondition((0...Self.indexMax).contains(index), "an index has 24 bits")
        bits = UInt32(kind.rawValue) << 24 | UInt32(index)
    }

    /// One of the loop's UDP sockets.
    public static func udp(_ socket: SocketIndex) -> Self { Self(.udp, index: Int(socket.rawValue)) }

    public var kind: Kind { Kind(rawValue: UInt8(bits >> 24)) ?? .udp }
    public var index: Int { Int(bits & UInt32(Self.indexMax)) }
    /// Kind and index as one number, different for each endpoint of a loop.
    public var rawValue: UInt32 { bits }
    /// `nil` unless it is a UDP socket.
    public var socket: SocketIndex? { UInt16(exactly: bits).map(SocketIndex.init(rawValue:)) }

    public var description: String { "\(kind) \(index)" }
}

/// One of our endpoints and one remote address: the pair that ICE validates and everything else is sent on.
public struct NetworkPath: Hashable, Sendable, CustomStringConvertible {
    public let local: LocalEndpoint
    public let remote: TransportAddress

    public init(local: LocalEndpoint, remote: TransportAddress) {
        self.local = local
        self.remote = remote
    }

    /// The path from one of the loop's UDP sockets.
    public init(socket: SocketIndex, remote: TransportAddress) {
        self.init(local: .udp(socket), remote: remote)
    }

    public var description: String { "\(remote) on \(local)" }
}
