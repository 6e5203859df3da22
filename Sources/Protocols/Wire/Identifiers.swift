public import Base

/// A synchronization source identifier (RFC 3550 §3).
public struct SSRC: RawRepresentable, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public var description: String { String(rawValue) }
}

/// A 16-bit RTP sequence number. Order is modular (RFC 1982 §3.2), so this is deliberately not `Comparable`.
public struct SequenceNumber: RawRepresentable, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
    /// Signed shortest distance; positive when `other` is newer.
    public func distance(to other: Self) -> Int { Int(Int16(bitPattern: other.rawValue &- rawValue)) }
    public func advanced(by count: Int) -> Self { Self(rawValue: rawValue &+ UInt16(truncatingIfNeeded: count)) }
    public var description: String { String(rawValue) }
}

/// A sequence number with its roll-overs counted, so that it orders and subtracts like an integer.
public struct ExtendedSequenceNumber: RawRepresentable, Hashable, Comparable, Sendable, BitwiseCopyable {
    public let rawValue: Int64
    public init(rawValue: Int64) { self.rawValue = rawValue }
    /// What goes on the wire: the low 16 bits.
    public var wire: SequenceNumber { SequenceNumber(rawValue: UInt16(truncatingIfNeeded: rawValue)) }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    public func distance(to other: Self) -> Int { Int(other.rawValue &- rawValue) }
    public func advanced(by count: Int) -> Self { Self(rawValue: rawValue &+ Int64(count)) }
}

/// Extends 16-bit sequence numbers to 64 bits by the shortest distance from the newest seen.
public struct SequenceUnwrapper: Sendable {
    /// The newest number seen; `nil` before the first.
    public private(set) var newest: ExtendedSequenceNumber?

    public init() {}

    /// The extended form of `number`, without remembering it. The first number is placed one cycle up so that
    /// packets reordered ahead of it do not become negative.
    public func peek(_ number: SequenceNumber) -> ExtendedSequenceNumber {
        guard let newest else { return ExtendedSequenceNumber(rawValue: 0x1_0000 + Int64(number.rawValue)) }
        return newest.advanced(by: newest.wire.distance(to: number))
    }

    /// The extended form of `number`, which becomes the newest if it is newer.
    public mutating func unwrap(_ number: SequenceNumber) -> ExtendedSequenceNumber {
        let extended = peek(number)
        if newest.map({ extended > $0 }) ?? true { newest = extended }
        return extended
    }
}

/// A 32-bit RTP timestamp in units of the codec's clock. Order is modular.
public struct RTPTimestamp: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Signed shortest distance in clock ticks; positive when `other` is later.
    public func distance(to other: Self) -> Int { Int(Int32(bitPattern: other.rawValue &- rawValue)) }
    public func advanced(by ticks: Int) -> Self { Self(rawValue: rawValue &+ UInt32(truncatingIfNeeded: ticks)) }
}

/// A 7-bit RTP payload type (RFC 3551 §6), 0…127.
public struct PayloadType: RawRepresentable, Hashable, Sendable, Codable, BitwiseCopyable, CustomStringConvertible {
    public let rawValue: UInt8
    /// `nil` above 127.
    public init?(rawValue: UInt8) {
        guard rawValue < 128 else { return nil }
        self.rawValue = rawValue
    }
    /// The low seven bits of a byte from the wire.
    public init(wire byte: UInt8) { rawValue = byte & 0x7F }
    public var description: String { String(rawValue) }
}

/// A header extension's local identifier (RFC 8285 §4): 1…14 fits both forms, 15…255 the two-byte form only.
public struct HeaderExtensionID: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt8
    /// `nil` for 0, which is padding.
    public init?(rawValue: UInt8) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }
    public var description: String { String(rawValue) }
}

/// A media identification tag, `a=mid` (RFC 5888) and the sdes:mid extension (RFC 9143): 1…32 token characters.
public struct MID: Hashable, Sendable, TextCodable, CustomStringConvertible {
    public let value: String
    /// `nil` when the text is empty, longer than 32 bytes, or not an RFC 4566 token.
    public init?(_ value: some StringProtocol) {
        let utf8 = value.utf8
        guard (1...32).contains(utf8.count), utf8.allSatisfy(isTokenCharacter) else { return nil }
        self.value = String(value)
    }
    public var description: String { value }
}

/// A restriction identifier, `a=rid` (RFC 8851 §10) and rtp-stream-id (RFC 8852): 1…32 of letters, digits, `-`, `_`.
public struct RID: Hashable, Sendable, TextCodable, CustomStringConvertible {
    public let value: String
    /// `nil` when the text is empty, longer than 32 bytes, or has another character.
    public init?(_ value: some StringProtocol) {
        let utf8 = value.utf8
        guard (1...32).contains(utf8.count), utf8.allSatisfy({ isAlphanumeric($0) || $0 == 0x2D || $0 == 0x5F })
        else { return nil }
        self.value = String(value)
    }
    public var description: String { value }
}

func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
}

/// RFC 8866 §9 `token-char`.
func isTokenCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x30...0x39, 0x41...0x5A, 0x5E...0x7E: true
    default: false
    }
}
