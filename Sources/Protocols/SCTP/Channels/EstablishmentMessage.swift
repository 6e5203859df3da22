import Base

/// What a data channel is: the parameters of its opening (RFC 8832 §5.1).
public struct ChannelParameters: Hashable, Sendable {
    /// From this priority on, messages may take ``AssociationSettings/urgentBytesMax``.
    public static let urgentPriority: UInt16 = 1_024

    public var label: String
    /// The subprotocol; empty for none.
    public var subprotocol: String
    public var policy: SendPolicy
    /// 128 is below normal, 256 normal, 512 high, 1024 extra high (RFC 8831 §6.4).
    public var priority: UInt16

    public init(label: String, subprotocol: String = "", policy: SendPolicy = SendPolicy(), priority: UInt16 = 256) {
        self.label = label
        self.subprotocol = subprotocol
        self.policy = policy
        self.priority = priority
    }
}

/// A message of the Data Channel Establishment Protocol (RFC 8832 §5).
enum EstablishmentMessage: Equatable {
    case open(ChannelParameters)
    case ack

    private static let openType: UInt8 = 3
    private static let ackType: UInt8 = 2
    private static let unorderedFlag: UInt8 = 0x80

    /// - Returns: `nil` for what is not such a message, and for a text longer than `textBytesMax`.
    static func parse(_ bytes: RawSpan, textBytesMax: Int) -> Self? {
        guard bytes.byteCount >= 1 else { return nil }
        switch bytes.byte(at: 0) {
        case ackType: return .ack
        case openType: break
        default: return nil
        }
        guard bytes.byteCount >= 12 else { return nil }
        let type = bytes.byte(at: 1)
        let reliability = bytes.bigEndianUInt32(at: 4)
        let labelBytes = Int(bytes.bigEndianUInt16(at: 8))
        let subprotocolBytes = Int(bytes.bigEndianUInt16(at: 10))
        guard labelBytes <= textBytesMax, subprotocolBytes <= textBytesMax,
            bytes.byteCount == 12 + labelBytes + subprotocolBytes
        else { return nil }
        let limit: SendPolicy.Limit
        switch type & ~unorderedFlag {
        case 0: limit = .reliable
        case 1: limit = .retransmissions(Int(reliability))
        case 2: limit = .lifetime(.milliseconds(Int(reliability)))
        default: return nil
        }
        let label = bytes.extracting(12..<12 + labelBytes).array()
        let subprotocol = bytes.extracting(12 + labelBytes..<bytes.byteCount).array()
        guard let label = String(validating: label, as: UTF8.self),
            let subprotocol = String(validating: subprotocol, as: UTF8.self)
        else { return nil }
        return .open(
            ChannelParameters(
                label: label,
                subprotocol: subprotocol,
                policy: SendPolicy(isOrdered: type & unorderedFlag == 0, limit: limit),
                priority: bytes.bigEndianUInt16(at: 2)
            )
        )
    }

    func encoded() -> [UInt8] {
        guard case .open(let parameters) = self else { return [Self.ackType] }
        var type: UInt8 = parameters.policy.isOrdered ? 0 : Self.unorderedFlag
        var reliability: UInt32 = 0
        switch parameters.policy.limit {
        case .reliable: break
        case .retransmissions(let count):
            type |= 1
            reliability = UInt32(clamping: count)
        case .lifetime(let interval):
            type |= 2
            reliability = UInt32(clamping: interval.milliseconds)
        }
        var bytes = [Self.openType, type]
        bytes.append(bigEndian: parameters.priority)
        bytes.append(bigEndian: reliability)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: parameters.label.utf8.count))
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: parameters.subprotocol.utf8.count))
        bytes += parameters.label.utf8
        bytes += parameters.subprotocol.utf8
        return bytes
    }
}
