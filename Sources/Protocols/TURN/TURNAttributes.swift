import Base
import Wire

/// The attributes of RFC 8656 in one message.
struct TURNAttributes {
    /// Unknown types that a 420 lists.
    private static let unknownMax = 8

    /// A value has a length or form that its type forbids.
    private(set) var isMalformed = false
    /// Seconds.
    private(set) var lifetime: UInt32?
    /// The protocol number: 17 is UDP.
    private(set) var transport: UInt8?
    /// 1 is IPv4, 2 is IPv6.
    private(set) var family: UInt8?
    private(set) var channel: UInt16?
    private(set) var data: Range<Int>?
    /// All XOR-PEER-ADDRESS; CreatePermission may have several.
    private(set) var peers: [TransportAddress] = []
    /// EVEN-PORT.
    private(set) var asksForEvenPort = false
    /// EVEN-PORT with the next port kept for another allocation, or RESERVATION-TOKEN.
    private(set) var asksForReservation = false
    /// Comprehension-required types that this server does not know.
    private(set) var unknown: [STUNAttributeType] = []

    init(_ message: borrowing STUNMessageView) {
        var cursor = message.attributes
        while let (type, value) = cursor.next() {
            let start = value.lowerBound
            switch type {
            case .lifetime:
                guard expect(value.count == 4), lifetime == nil else { continue }
                lifetime = message.bytes.bigEndianUInt32(at: start)
            case .requestedTransport:
                guard expect(value.count == 4), transport == nil else { continue }
                transport = message.bytes.byte(at: start)
            case .requestedAddressFamily:
                guard expect(value.count == 4), family == nil else { continue }
                family = message.bytes.byte(at: start)
            case .channelNumber:
                guard expect(value.count == 4), channel == nil else { continue }
                channel = message.bytes.bigEndianUInt16(at: start)
            case .xorPeerAddress:
                let address = message.xorAddress(at: value)
                if expect(address != nil), let address { peers.append(address) }
            case .data: if data == nil { data = value }
            case .evenPort:
                guard expect(value.count == 1) else { continue }
                asksForEvenPort = true
                if message.bytes.byte(at: start) & 0x80 != 0 { asksForReservation = true }
            case .reservationToken: asksForReservation = true
            case .username, .realm, .nonce, .messageIntegrity: break
            default:
                if type.isComprehensionRequired, unknown.count < Self.unknownMax { unknown.append(type) }
            }
        }
    }

    private mutating func expect(_ isWellFormed: Bool) -> Bool {
        if !isWellFormed { isMalformed = true }
        return isWellFormed
    }
}
