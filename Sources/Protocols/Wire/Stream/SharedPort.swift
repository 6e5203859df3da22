import Base

/// The protocol of a connection by its first bytes, where HTTPS, TURN and ICE share one port. The bytes are only looked
/// at, and left for whoever handles the connection.
public enum StreamProtocol: Hashable, Sendable {
    /// More bytes are needed.
    case undecided
    /// TURN over TCP (RFC 8656 §3.1).
    case turn
    /// ICE over TCP: a Binding request with an RFC 4571 length (RFC 6544 §7).
    case iceTCP
    case tls
    case http
    /// None of these: the connection is closed.
    case unknown

    /// Classifies the first bytes of a connection. At most eleven are needed.
    public init(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else {
            self = .undecided
            return
        }
        let first = bytes.byte(at: 0)
        let candidates: [(Self, [UInt8?])] = [
            // A TLS record with a handshake message (RFC 8446 §5.1).
            (.tls, [0x16, 0x03]),
            // STUN's cookie, after its type and length.
            (.turn, [nil, nil, nil, nil, 0x21, 0x12, 0xA4, 0x42]),
            // A packet of up to 2,047 bytes, a Binding request, its length, the cookie.
            (.iceTCP, [nil, nil, 0x00, 0x01, nil, nil, 0x21, 0x12, 0xA4, 0x42]),
        ]
        var isUndecided = false
        for (candidate, pattern) in candidates {
            guard candidate == .tls || first < 8 else { continue }
            let count = min(pattern.count, bytes.byteCount)
            guard Self.matches(bytes, pattern, count) else { continue }
            if count == pattern.count {
                self = candidate
                return
            }
            isUndecided = true
        }
        if isUndecided {
            self = .undecided
        } else {
            self = Self.isMethod(bytes)
        }
    }

    /// Whether the first `count` bytes are those of the pattern, where `nil` is any byte.
    private static func matches(_ bytes: RawSpan, _ pattern: [UInt8?], _ count: Int) -> Bool {
        for index in 0..<count {
            if let expected = pattern[index], bytes.byte(at: index) != expected { return false }
        }
        return true
    }

    /// An HTTP method in upper-case letters and the space after it (RFC 9110 §9.1).
    private static func isMethod(_ bytes: RawSpan) -> Self {
        for offset in 0..<min(bytes.byteCount, 11) {
            switch bytes.byte(at: offset) {
            case 0x41...0x5A: continue
            case 0x20 where offset >= 3: return .http
            default: return .unknown
            }
        }
        return bytes.byteCount < 11 ? .undecided : .unknown
    }
}

/// Where a connection to the shared port goes.
public enum SharedPortRoute: Hashable, Sendable {
    /// More bytes are needed.
    case undecided
    /// TURN over TCP.
    case turn
    /// TURN over TLS.
    case turnTLS
    case iceTCP
    /// HTTP or HTTPS.
    case web
    /// The connection is closed.
    case refused
}

/// Decides where a connection to the shared port goes, by its first bytes.
///
/// Over TLS these are the ClientHello. It is for TURN when it offers the protocol `stun.turn` (RFC 7443 §3), or when it names the
/// TURN server and offers no HTTP: browsers name the server in both cases, and offer application protocols for HTTPS only. So a
/// TURN server with a name of its own gets no HTTPS client, and one with the web server's name gets those that offer no protocol.
public struct SharedPortRouter: Hashable, Sendable {
    /// The bytes that decide at the latest. A connection that is undecided with so many is refused.
    public static let peekBytesMax = 16_384

    private let turnName: String
    /// No client names an address (RFC 6066 §3).
    private let isAddress: Bool

    /// - Parameter turnName: the host in the `turns:` URLs: a name, or an IPv4 address.
    public init(turnName: String) {
        self.turnName = turnName.lowercased()
        isAddress = IPAddress(turnName) != nil
    }

    /// - Parameter bytes: all bytes of the connection so far.
    public func route(_ bytes: RawSpan) -> SharedPortRoute {
        switch StreamProtocol(bytes) {
        case .undecided: return .undecided
        case .turn: return .turn
        case .iceTCP: return .iceTCP
        case .http: return .web
        case .unknown: return .refused
        case .tls: break
        }
        do throws(TLSClientHello.ParseError) {
            return isTURN(try TLSClientHello(bytes)) ? .turnTLS : .web
        } catch {
            switch error {
            case .incomplete: return bytes.byteCount < Self.peekBytesMax ? .undecided : .refused
            case .malformed: return .refused
            }
        }
    }

    private func isTURN(_ hello: TLSClientHello) -> Bool {
        if hello.applicationProtocols.contains("stun.turn") { return true }
        guard hello.serverName == turnName || hello.serverName == nil && isAddress else { return false }
        return !hello.applicationProtocols.contains { $0 == "h2" || $0.hasPrefix("http/") }
    }
}

/// The first bytes of a connection to the shared port, as they come, until they tell where it goes.
public struct SharedPortOpening: Sendable {
    /// How often bytes may come without telling it, so that a ClientHello in many small records costs little.
    private static let looksMax = 64

    private let router: SharedPortRouter
    /// All bytes so far.
    public private(set) var bytes: [UInt8] = []
    private var looks = 0

    public init(_ router: SharedPortRouter) { self.router = router }

    /// Takes the next bytes.
    /// - Returns: where the connection goes, by all bytes so far.
    public mutating func append(_ next: RawSpan) -> SharedPortRoute {
        bytes += next.array()
        if endsWithinFirstRecord { return .undecided }
        looks += 1
        let route = router.route(unsafe bytes.span.bytes)
        return route == .undecided && looks > Self.looksMax ? .refused : route
    }

    /// Whether more of a first record of TLS has to come, without the end of which nothing is of use.
    private var endsWithinFirstRecord: Bool {
        guard bytes.count >= 5, bytes[0] == 0x16 else { return false }
        let end = 5 + Int(bytes[3]) << 8 + Int(bytes[4])
        return bytes.count < end && end <= SharedPortRouter.peekBytesMax
    }
}
