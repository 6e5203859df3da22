/// `a=candidate` (RFC 8839 §5.1), with the TCP candidates of RFC 6544 §4.5.
public struct ICECandidateAttribute: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable { case host, srflx, prflx, relay }

    /// Who opens the connection of a TCP candidate (RFC 6544 §4.1).
    public enum TCPType: String, Hashable, Sendable, CaseIterable {
        case active, passive
        case simultaneousOpen = "so"
    }

    /// 1…32 characters; equal for candidates of the same type, base and protocol.
    public var foundation: String
    /// 1 for RTP, and for everything with `a=rtcp-mux`.
    public var component: UInt16
    /// Lower case: `udp`, `tcp`, …
    public var transport: String
    public var priority: UInt32
    /// An IP address, or a name such as the mDNS name of a browser's host candidate.
    public var host: String
    public var port: UInt16
    public var kind: Kind
    /// `nil` for UDP, and for a TCP candidate that does not tell.
    public var tcpType: TCPType?

    /// A UDP host candidate of component 1.
    ///
    /// - Parameter preference: the local preference; 65535 for the most preferred address (RFC 8445 §5.1.2.1).
    public init(hostAddress address: TransportAddress, preference: UInt16) {
        let typePreference: UInt32 = 126
        foundation = address.ip.isV4 ? "1" : "2"
        component = 1
        transport = "udp"
        priority = typePreference << 24 | UInt32(preference) << 8 | 255
        host = address.ip.description
        port = address.port
        kind = .host
    }

    /// A TCP host candidate of component 1 that accepts connections (RFC 6544 §4.2).
    ///
    /// - Parameter preference: 0...8191; 8191 for the most preferred address.
    public init(passiveTCPAddress address: TransportAddress, preference: UInt16) {
        // libwebrtc's type preference for TCP host candidates, so that UDP is preferred to TCP.
        let typePreference: UInt32 = 90
        // RFC 6544 §4.2: for a host candidate, active is 6, passive is 4.
        let directionPreference: UInt32 = 4
        let localPreference = directionPreference << 13 | UInt32(preference & 0x1FFF)
        foundation = address.ip.isV4 ? "3" : "4"
        component = 1
        transport = "tcp"
        priority = typePreference << 24 | localPreference << 8 | 255
        host = address.ip.description
        port = address.port
        kind = .host
        tcpType = .passive
    }

    /// From the attribute's value, with or without the prefix `candidate:`; `nil` when it is malformed. Of what
    /// follows the type, only `tcptype` is read.
    public init?(_ value: String) {
        let body = value.hasPrefix("candidate:") ? value.dropFirst(10) : value[...]
        let fields = body.parts(separatedBy: " ", maxSplits: Self.fieldsMax)
        guard fields.count >= 8, (1...32).contains(fields[0].utf8.count), let component = UInt16(fields[1]),
            let priority = UInt32(fields[3]), (1...255).contains(fields[4].utf8.count), let port = UInt16(fields[5]),
            fields[6] == "typ", let kind = Kind(rawValue: fields[7].lowercased())
        else { return nil }
        foundation = String(fields[0])
        self.component = component
        transport = fields[2].lowercased()
        self.priority = priority
        host = String(fields[4])
        self.port = port
        self.kind = kind
        guard transport == "tcp" else { return }
        // Names and values alternate (RFC 8839 §5.1).
        for index in stride(from: 8, to: fields.count - 1, by: 2) where fields[index] == "tcptype" {
            tcpType = TCPType(rawValue: fields[index + 1].lowercased())
            return
        }
    }

    /// More fields than any browser writes.
    private static let fieldsMax = 32

    /// The address of a UDP candidate; `nil` for another transport or component, or when the candidate has a name.
    public var address: TransportAddress? {
        guard transport == "udp", component == 1, port != 0, let ip = IPAddress(host), !ip.isUnspecified else {
            return nil
        }
        return TransportAddress(ip: ip, port: port)
    }

    /// The attribute's value.
    public var text: String {
        let type = tcpType.map { " tcptype \($0.rawValue)" } ?? ""
        return "\(foundation) \(component) \(transport) \(priority) \(host) \(port) typ \(kind.rawValue)\(type)"
    }
}
