public import Base

/// The send time of a packet in 2⁻¹⁸ s modulo 64 s (http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time).
public struct AbsoluteSendTime: RawRepresentable, Hashable, Sendable {
    /// 24 bits.
    public let rawValue: UInt32
    /// Only the low 24 bits are kept.
    public init(rawValue: UInt32) { self.rawValue = rawValue & 0xFF_FFFF }

    /// From any clock: receivers use only differences.
    public init(at now: Instant) {
        let seconds = now.nanoseconds.floorDivided(by: 1_000_000_000)
        let rest = now.nanoseconds &- seconds &* 1_000_000_000
        self.init(rawValue: UInt32(truncatingIfNeeded: seconds << 18 &+ (rest << 18) / 1_000_000_000))
    }

    /// From a wall clock.
    public init(_ ntp: NTPTimestamp) { self.init(rawValue: UInt32(truncatingIfNeeded: ntp.rawValue >> 14)) }

    /// `nil` unless `data` has three bytes.
    public init?(_ data: RawSpan) {
        guard data.byteCount == 3 else { return nil }
        self.init(rawValue: data.bigEndianUInt24(at: 0))
    }

    /// Signed shortest distance, within ±32 s.
    public func distance(to other: Self) -> Interval {
        let units = Int64(Int32(bitPattern: (other.rawValue &- rawValue) << 8) >> 8)
        return Interval(nanoseconds: (units &* 1_000_000_000) >> 18)
    }
}

/// The audio level of a packet (RFC 6464 §3).
public struct AudioLevel: Hashable, Sendable {
    /// V: whether the encoder detected speech.
    public var voiceActivity: Bool
    /// In −dBov: 0 is the loudest, 127 is silence.
    public var level: UInt8

    /// A level above 127 becomes 127.
    public init(voiceActivity: Bool, level: UInt8) {
        self.voiceActivity = voiceActivity
        self.level = min(level, 127)
    }

    /// Reads the first byte; `nil` when `data` is empty.
    public init?(_ data: RawSpan) {
        guard data.byteCount >= 1 else { return nil }
        self.init(voiceActivity: data.byte(at: 0) & 0x80 != 0, level: data.byte(at: 0) & 0x7F)
    }
}

/// The video orientation, CVO (3GPP TS 26.114 §7.4.5).
public struct VideoOrientation: Hashable, Sendable {
    /// The clockwise rotation in degrees, which the receiver reverses.
    public enum Rotation: UInt8, Hashable, Sendable, CaseIterable {
        case none, by90, by180, by270
    }
    /// Applied after the flip.
    public var rotation: Rotation
    /// Mirrored left to right.
    public var isFlipped: Bool
    /// Whether the camera faces away from the user.
    public var isBackCamera: Bool

    /// Creates an orientation; upright by default.
    public init(rotation: Rotation = .none, isFlipped: Bool = false, isBackCamera: Bool = false) {
        self.rotation = rotation
        self.isFlipped = isFlipped
        self.isBackCamera = isBackCamera
    }

    /// `nil` when empty.
    public init?(_ data: RawSpan) {
        guard data.byteCount >= 1, let rotation = Rotation(rawValue: data.byte(at: 0) & 0x3) else { return nil }
        self.init(
            rotation: rotation,
            isFlipped: data.byte(at: 0) & 0x4 != 0,
            isBackCamera: data.byte(at: 0) & 0x8 != 0
        )
    }

    var wireValue: UInt8 { (isBackCamera ? 0x8 : 0) | (isFlipped ? 0x4 : 0) | rotation.rawValue }
}

/// The range of the playout delay of a receiver (http://www.webrtc.org/experiments/rtp-hdrext/playout-delay).
public struct PlayoutDelay: Hashable, Sendable {
    /// In units of 10 ms, 12 bits.
    public let minimumUnits: UInt16
    /// In units of 10 ms, 12 bits.
    public let maximumUnits: UInt16

    /// The longest delay, 40.95 s.
    public static let unitsMax: UInt16 = 0xFFF

    /// `nil` when a delay exceeds ``unitsMax`` or the minimum exceeds the maximum.
    public init?(minimumUnits: UInt16, maximumUnits: UInt16) {
        guard maximumUnits <= Self.unitsMax, minimumUnits <= maximumUnits else { return nil }
        self.minimumUnits = minimumUnits
        self.maximumUnits = maximumUnits
    }

    /// `nil` unless `data` has three bytes and the minimum does not exceed the maximum.
    public init?(_ data: RawSpan) {
        guard data.byteCount == 3 else { return nil }
        let value = data.bigEndianUInt24(at: 0)
        self.init(minimumUnits: UInt16(value >> 12), maximumUnits: UInt16(value & 0xFFF))
    }

    /// The element's data, 24 bits.
    public var wireValue: UInt32 { UInt32(minimumUnits) << 12 | UInt32(maximumUnits) }
}

/// What video shows (http://www.webrtc.org/experiments/rtp-hdrext/video-content-type). A packet without it says nothing.
public enum VideoContentType: UInt8, Hashable, Sendable {
    case unspecified, screenshare

    /// Reads the lowest bit of the first byte; the others are of experiments. `nil` when `data` is empty.
    public init?(_ data: RawSpan) {
        guard data.byteCount >= 1 else { return nil }
        self = data.byte(at: 0) & 1 == 0 ? .unspecified : .screenshare
    }
}

extension TransportSequenceNumber {
    /// Reads the first two bytes; `nil` when there are fewer. The feedback request of version 2 may follow.
    public init?(_ data: RawSpan) {
        guard data.byteCount >= 2 else { return nil }
        self.init(rawValue: data.bigEndianUInt16(at: 0))
    }
}

extension MID {
    /// From the data of an sdes:mid element (RFC 9143 §15.1); `nil` when it is not a valid MID.
    public init?(_ data: RawSpan) {
        guard (1...32).contains(data.byteCount) else { return nil }
        self.init(data.text)
    }
}

extension RID {
    /// From the data of an sdes:rtp-stream-id or repaired-rtp-stream-id element (RFC 8852 §3); `nil` when it is not a
    /// valid RID.
    public init?(_ data: RawSpan) {
        guard (1...32).contains(data.byteCount) else { return nil }
        self.init(data.text)
    }
}

extension RawSpan {
    /// Whether these are exactly the bytes of `text`. Does not allocate a string.
    public func equals(_ text: String) -> Bool {
        guard text.utf8.count == byteCount else { return false }
        var offset = 0
        for byte in text.utf8 {
            guard byte == self.byte(at: offset) else { return false }
            offset += 1
        }
        return true
    }

    var text: String { unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }
}

/// Methods that append one value as an element. All return `false`, with nothing written, when it does not fit.
extension HeaderExtensionWriter {
    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ value: AbsoluteSendTime,
        to packet: inout MutableRawSpan
    ) -> Bool {
        append(id, bigEndianUInt24: value.rawValue, to: &packet)
    }

    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ value: TransportSequenceNumber,
        to packet: inout MutableRawSpan
    ) -> Bool {
        guard let range = reserve(id, length: 2, in: &packet) else { return false }
        packet.store(bigEndian: value.rawValue, at: range.lowerBound)
        return true
    }

    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ value: AudioLevel,
        to packet: inout MutableRawSpan
    ) -> Bool {
        append(id, byte: (value.voiceActivity ? 0x80 : 0) | value.level, to: &packet)
    }

    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ value: VideoOrientation,
        to packet: inout MutableRawSpan
    ) -> Bool {
        append(id, byte: value.wireValue, to: &packet)
    }

    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(
        _ id: HeaderExtensionID,
        _ value: PlayoutDelay,
        to packet: inout MutableRawSpan
    ) -> Bool {
        append(id, bigEndianUInt24: value.wireValue, to: &packet)
    }

    /// Appends a MID.
    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(_ id: HeaderExtensionID, _ value: MID, to packet: inout MutableRawSpan) -> Bool {
        append(id, text: value.value, to: &packet)
    }

    /// Appends a RID.
    @discardableResult
    @_lifetime(packet: copy packet)
    public mutating func append(_ id: HeaderExtensionID, _ value: RID, to packet: inout MutableRawSpan) -> Bool {
        append(id, text: value.value, to: &packet)
    }

    @_lifetime(packet: copy packet)
    private mutating func append(_ id: HeaderExtensionID, byte: UInt8, to packet: inout MutableRawSpan) -> Bool {
        guard let range = reserve(id, length: 1, in: &packet) else { return false }
        packet.store(byte, at: range.lowerBound)
        return true
    }

    @_lifetime(packet: copy packet)
    private mutating func append(
        _ id: HeaderExtensionID,
        bigEndianUInt24 value: UInt32,
        to packet: inout MutableRawSpan
    ) -> Bool {
        guard let range = reserve(id, length: 3, in: &packet) else { return false }
        packet.store(UInt8(truncatingIfNeeded: value >> 16), at: range.lowerBound)
        packet.store(bigEndian: UInt16(truncatingIfNeeded: value), at: range.lowerBound + 1)
        return true
    }

    @_lifetime(packet: copy packet)
    private mutating func append(_ id: HeaderExtensionID, text: String, to packet: inout MutableRawSpan) -> Bool {
        guard let range = reserve(id, length: text.utf8.count, in: &packet) else { return false }
        var offset = range.lowerBound
        for byte in text.utf8 {
            packet.store(byte, at: offset)
            offset += 1
        }
        return true
    }
}
