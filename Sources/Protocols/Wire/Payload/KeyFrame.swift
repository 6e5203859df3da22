import Base

/// Whether a key frame starts in this packet, so that a decoder can start here.
///
/// `false` for malformed payloads. Always `true` for audio, because every packet can be decoded on its own.
/// - Parameters:
///   - payload: the RTP payload, without padding.
///   - descriptor: the packet's dependency descriptor. If present, it alone decides, because the payload may be
///     encrypted.
public func isKeyFrameStart(
    codec: CodecName,
    payload: RawSpan,
    descriptor: DependencyDescriptorHeader? = nil
) -> Bool {
    if let descriptor, codec.kind == .video { return descriptor.startsKeyFrame }
    return switch codec {
    case .opus, .red: true
    case .vp8: VP8PayloadDescriptor(payload)?.isKeyFrameStart ?? false
    case .vp9: VP9PayloadDescriptor(payload)?.isKeyFrameStart ?? false
    case .av1: AV1Payload.isKeyFrameStart(payload)
    case .h264: H264Payload.isKeyFrameStart(payload)
    case .h265: H265Payload.isKeyFrameStart(payload)
    }
}

/// The AV1 payload format (AV1 RTP specification §4.4): `|Z|Y| W |N|-|-|-|`, then OBU elements.
enum AV1Payload {
    private static let sequenceHeader: UInt8 = 1
    /// The OBU elements that are checked: a sequence header comes first or after a temporal delimiter.
    private static let elementsMax = 8

    /// Whether the packet starts a coded video sequence and has its sequence header.
    static func isKeyFrameStart(_ payload: RawSpan) -> Bool {
        guard payload.byteCount >= 2 else { return false }
        let aggregation = payload.byte(at: 0)
        let startsSequence = aggregation & 0x08 != 0
        let continuesElement = aggregation & 0x80 != 0
        guard startsSequence, !continuesElement else { return false }
        let elementCount = Int(aggregation >> 4 & 0x03)
        var offset = 1
        for index in 1...Self.elementsMax {
            var length = payload.byteCount - offset
            // With a count W the last element has no length field; with W = 0 every element has one.
            if elementCount == 0 || index < elementCount {
                guard let read = readLEB128(payload, at: &offset), read <= payload.byteCount - offset else {
                    return false
                }
                length = read
            }
            if length > 0, payload.byte(at: offset) >> 3 & 0x0F == Self.sequenceHeader { return true }
            offset += length
            if offset >= payload.byteCount || index == elementCount { return false }
        }
        return false
    }

    /// leb128() (AV1 §4.10.5): up to 8 bytes with 7 bits each, least significant first; the value has at most 32 bits.
    static func readLEB128(_ bytes: RawSpan, at offset: inout Int) -> Int? {
        var value: UInt64 = 0
        for index in 0..<8 {
            guard offset < bytes.byteCount else { return nil }
            let byte = bytes.byte(at: offset)
            offset += 1
            value |= UInt64(byte & 0x7F) << UInt64(7 * index)
            if byte & 0x80 == 0 { return value <= UInt64(UInt32.max) ? Int(value) : nil }
        }
        return nil
    }
}

/// The H.264 payload format (RFC 6184 §5.2): one NAL unit, a STAP-A or an FU-A.
enum H264Payload {
    private static let idrSlice: UInt8 = 5
    private static let sequenceParameterSet: UInt8 = 7
    private static let stapA: UInt8 = 24
    private static let fuA: UInt8 = 28

    static func isKeyFrameStart(_ payload: RawSpan) -> Bool {
        guard payload.byteCount >= 2 else { return false }
        switch payload.byte(at: 0) & 0x1F {
        case stapA:
            var offset = 1
            while payload.byteCount - offset > 2 {
                let length = Int(payload.bigEndianUInt16(at: offset))
                offset += 2
                guard length <= payload.byteCount - offset else { return false }
                if length > 0, startsKeyFrame(payload.byte(at: offset) & 0x1F) { return true }
                offset += length
            }
            return false
        case fuA:
            let head = payload.byte(at: 1)
            return head & 0x80 != 0 && startsKeyFrame(head & 0x1F)
        case let type: return startsKeyFrame(type)
        }
    }

    private static func startsKeyFrame(_ type: UInt8) -> Bool { type == idrSlice || type == sequenceParameterSet }
}

/// The H.265 payload format (RFC 7798 §4.4) without decoding order numbers: one NAL unit, an aggregation packet or a
/// fragmentation unit.
enum H265Payload {
    /// BLA, IDR, CRA and the two reserved IRAP types.
    private static let randomAccess: ClosedRange<UInt8> = 16...23
    private static let videoParameterSet: UInt8 = 32
    private static let sequenceParameterSet: UInt8 = 33
    private static let aggregation: UInt8 = 48
    private static let fragmentation: UInt8 = 49

    static func isKeyFrameStart(_ payload: RawSpan) -> Bool {
        guard payload.byteCount >= 3 else { return false }
        switch type(payload.byte(at: 0)) {
        case aggregation:
            var offset = 2
            while payload.byteCount - offset > 2 {
                let length = Int(payload.bigEndianUInt16(at: offset))
                offset += 2
                guard length <= payload.byteCount - offset else { return false }
                if length > 0, startsKeyFrame(type(payload.byte(at: offset))) { return true }
                offset += length
            }
            return false
        case fragmentation:
            let head = payload.byte(at: 2)
            return head & 0x80 != 0 && startsKeyFrame(head & 0x3F)
        case let type: return startsKeyFrame(type)
        }
    }

    private static func type(_ firstByte: UInt8) -> UInt8 { firstByte >> 1 & 0x3F }

    private static func startsKeyFrame(_ type: UInt8) -> Bool {
        randomAccess.contains(type) || type == videoParameterSet || type == sequenceParameterSet
    }
}
