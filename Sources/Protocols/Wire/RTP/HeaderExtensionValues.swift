import Base

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
    fileprivate var text: String { unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }
}
