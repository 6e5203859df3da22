import Base

/// The fields of the first NAL unit of an H.264 or H.265 payload that describe its frame.
public struct NALUnitHeader: BitwiseCopyable, Hashable, Sendable {
    /// Whether a frame starts here: with a parameter set, a delimiter, a prefix SEI message, or the first slice of a
    /// picture.
    public let startsFrame: Bool
    /// H.264: whether the frame is not a reference (nal_ref_idc 0, H.264 §7.4.1).
    public let isDiscardable: Bool
    /// H.265: nuh_temporal_id_plus1 − 1 (H.265 §7.4.2.2), 0…6. H.264 has none: 0.
    public let temporalID: UInt8
    /// H.265: whether a receiver can switch up to this temporal layer here (TSA and STSA pictures).
    public let switchesUp: Bool

    private static let firstSliceBit: UInt8 = 0x80

    /// Reads an H.264 payload (RFC 6184 §5): one NAL unit, a STAP-A or an FU-A.
    /// - Returns: `nil` when the payload is too short.
    public init?(h264 payload: RawSpan) {
        guard payload.byteCount >= 2 else { return nil }
        let head = payload.byte(at: 0)
        var type = head & 0x1F
        var sliceOffset = 1
        var isStart = true
        switch type {
        case 24:
            guard payload.byteCount >= 5 else { return nil }
            type = payload.byte(at: 3) & 0x1F
            sliceOffset = 4
        case 28:
            guard payload.byteCount >= 3 else { return nil }
            type = payload.byte(at: 1) & 0x1F
            isStart = payload.byte(at: 1) & 0x80 != 0
            sliceOffset = 2
        default: break
        }
        let isSlice = type == 1 || type == 2 || type == 5
        // first_mb_in_slice is 0 when its Exp-Golomb code is the single bit 1 (H.264 §7.3.3, §9.1).
        let isFirst = isSlice ? payload.byte(at: sliceOffset) & Self.firstSliceBit != 0 : (6...9).contains(type)
        startsFrame = isStart && isFirst
        isDiscardable = type == 1 && head & 0x60 == 0
        temporalID = 0
        switchesUp = false
    }

    /// Reads an H.265 payload (RFC 7798 §4.4) without decoding order numbers.
    /// - Returns: `nil` when the payload is too short.
    public init?(h265 payload: RawSpan) {
        guard payload.byteCount >= 3 else { return nil }
        var type = payload.byte(at: 0) >> 1 & 0x3F
        let temporal = payload.byte(at: 1) & 0x07
        var sliceOffset = 2
        var isStart = true
        switch type {
        case 48:
            guard payload.byteCount >= 7 else { return nil }
            type = payload.byte(at: 4) >> 1 & 0x3F
            sliceOffset = 6
        case 49:
            guard payload.byteCount >= 4 else { return nil }
            type = payload.byte(at: 2) & 0x3F
            isStart = payload.byte(at: 2) & 0x80 != 0
            sliceOffset = 3
        default: break
        }
        let isFirst =
            type < 32
            ? payload.byte(at: sliceOffset) & Self.firstSliceBit != 0 : (32...35).contains(type) || type == 39
        startsFrame = isStart && isFirst
        isDiscardable = false
        temporalID = temporal == 0 ? 0 : temporal &- 1
        switchesUp = (2...5).contains(type)
    }
}
