import Base
package import MediaTypes

/// A channel's name as its users chose it: 1…255 bytes of UTF-8 without control characters.
///
/// Names that a URL cannot have as a path segment, `.` and `..`, are none, and neither are names of white space alone.
///
/// Names compare byte by byte, so two spellings of one character are two channels on every node.
package struct ChannelName: Hashable, Sendable, TextCodable, CustomStringConvertible {
    /// The longest name in bytes of UTF-8.
    package static let bytesMax = 255

    private let bytes: [UInt8]
    package var value: String { String(decoding: bytes, as: UTF8.self) }

    /// What a name has to be, to follow the name of a field or flag in an error message.
    package static let rule =
        "must not be blank, . or .., and must have 1 to \(bytesMax) bytes of UTF-8 without control characters"

    /// `nil` when the name is empty, blank, too long, `.` or `..`, or holds a control character (U+0000…U+001F,
    /// U+007F…U+009F).
    package init?(_ value: some StringProtocol) {
        guard (1...Self.bytesMax).contains(value.utf8.count), value != ".", value != "..",
            !value.unicodeScalars.contains(where: \.isControl),
            !value.unicodeScalars.allSatisfy(\.properties.isWhitespace)
        else { return nil }
        bytes = Array(value.utf8)
    }
    package var description: String { value }

    /// A hash that is the same in every process: FNV-1a with the finalizer of MurmurHash3.
    package var stableHash: UInt64 {
        var hash: UInt64 = bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        hash = (hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ (hash >> 33)
    }
}

/// A version 4 UUID in 26 symbols of Crockford's Base32.
struct CrockfordUUID: Hashable, Sendable, BitwiseCopyable {
    private let high: UInt64
    private let low: UInt64

    init?(_ text: some StringProtocol) {
        guard let value = Crockford.value(text) else { return nil }
        high = UInt64(truncatingIfNeeded: value >> 64)
        low = UInt64(truncatingIfNeeded: value)
    }
    /// 122 random bits (RFC 9562 §5.4).
    init(using generator: inout some RandomNumberGenerator) {
        high = generator.next() & ~0xF000 | 0x4000
        low = generator.next() & ~(3 << 62) | 2 << 62
    }
    var text: String { Crockford.text(high: high, low: low) }

    func precedes(_ other: Self) -> Bool { (high, low) < (other.high, other.low) }
}

/// A participant's identifier: a version 4 UUID in 26 symbols of Crockford's Base32. It is public and grants nothing.
package struct ParticipantID: Hashable, Sendable, TextCodable, BitwiseCopyable, CustomStringConvertible {
    private let uuid: CrockfordUUID
    package var value: String { uuid.text }

    /// `nil` unless `value` is 26 upper-case Crockford symbols that fit 128 bits.
    package init?(_ value: some StringProtocol) {
        guard let uuid = CrockfordUUID(value) else { return nil }
        self.uuid = uuid
    }

    /// A new identifier with 122 random bits (RFC 9562 §5.4).
    package init(using generator: inout some RandomNumberGenerator) { uuid = CrockfordUUID(using: &generator) }
    package var description: String { value }

    /// An arbitrary order, for deterministic iteration.
    package func precedes(_ other: Self) -> Bool { uuid.precedes(other.uuid) }
}

/// The identifier of a ``ChannelSession``, in the form of a ``ParticipantID``. It is public.
package struct ChannelSessionID: Hashable, Sendable, TextCodable, BitwiseCopyable, CustomStringConvertible {
    private let uuid: CrockfordUUID
    package var value: String { uuid.text }

    /// `nil` unless `value` is 26 upper-case Crockford symbols that fit 128 bits.
    package init?(_ value: some StringProtocol) {
        guard let uuid = CrockfordUUID(value) else { return nil }
        self.uuid = uuid
    }

    /// A new identifier with 122 random bits (RFC 9562 §5.4).
    package init(using generator: inout some RandomNumberGenerator) { uuid = CrockfordUUID(using: &generator) }
    package var description: String { value }
}

/// The secret part of a WHIP or WHEP resource's URL (RFC 9725's WHIP session URL). It permits to change and end the
/// participant, so it is never logged.
package struct ResourceID: Hashable, Sendable, CustomStringConvertible {
    /// The length of a secret, and of a node's tag before it, in symbols.
    private static let (secretLength, tagLength) = (52, 5)

    /// 52 Crockford symbols; in a cluster after 5 others, the tag of the node.
    package let value: String
    /// The run of the node that has the resource; `nil` outside of a cluster.
    package let node: NodeIncarnation?

    /// `nil` unless `value` is 52 upper-case Crockford symbols, or 57 that start with the tag of a node.
    package init?(_ value: some StringProtocol) {
        guard value.utf8.allSatisfy(Crockford.isSymbol) else { return nil }
        switch value.utf8.count {
        case Self.secretLength: node = nil
        case Self.secretLength + Self.tagLength:
            let tag = Crockford.shortValue(value.prefix(Self.tagLength))
            guard let node = tag.flatMap(NodeIncarnation.init(rawValue:)) else { return nil }
            self.node = node
        default: return nil
        }
        self.value = String(value)
    }

    /// A new identifier of 256 random bits; `generator` must be cryptographically secure.
    /// - Parameter node: the run of this node; `nil` outside of a cluster.
    package init(node: NodeIncarnation? = nil, using generator: inout some RandomNumberGenerator) {
        self.node = node
        value =
            (node.map { Crockford.shortText($0.rawValue) } ?? "")
            + Crockford.text(high: generator.next(), low: generator.next())
            + Crockford.text(high: generator.next(), low: generator.next())
    }
    package var description: String { "resource (hidden)" }
}

/// A client that reads a channel's event stream.
package struct ListenerID: RawRepresentable, Hashable, Sendable, Codable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A version of a participant's ICE credentials, sent as HTTP entity tag. Never reused.
package struct ICEVersion: Hashable, Sendable, CustomStringConvertible {
    /// 26 Crockford symbols.
    package let value: String
    package init(using generator: inout some RandomNumberGenerator) {
        value = Crockford.text(high: generator.next(), low: generator.next())
    }
    package var description: String { value }
}
