import Base
import MediaFormat
import Wire

/// H.264 (RFC 6184 §5) and H.265 (RFC 7798 §4.4, without decoding order numbers).
struct NALCollector: FrameCollector {
    private let codec: NALCodec
    private var builder: AccessUnitBuilder
    /// The NAL unit whose fragments come; empty between fragmented units.
    private var fragments: [UInt8] = []

    init(codec: NALCodec) {
        self.codec = codec
        builder = AccessUnitBuilder(codec: codec)
    }

    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool {
        switch codec {
        case .h264:
            try appendH264(payload)
            return NALUnitHeader(h264: payload)?.startsFrame ?? false
        case .h265:
            try appendH265(payload)
            return NALUnitHeader(h265: payload)?.startsFrame ?? false
        }
    }

    private mutating func appendH264(_ payload: RawSpan) throws(FormatError) {
        guard payload.byteCount >= 2 else { throw .truncated("an H.264 payload") }
        let header = payload.byte(at: 0)
        switch header & 0x1F {
        case 1...23: try appendUnit(payload)
        case 24: try appendAggregate(payload, from: 1)
        case 28:
            let fragment = payload.byte(at: 1)
            try appendFragment(
                payload.extracting(2...),
                header: [header & 0xE0 | fragment & 0x1F],
                isFirst: fragment & 0x80 != 0,
                isLast: fragment & 0x40 != 0
            )
        default: throw .unsupported("NAL units in another order than they are sent in")
        }
    }

    private mutating func appendH265(_ payload: RawSpan) throws(FormatError) {
        guard payload.byteCount >= 3 else { throw .truncated("an H.265 payload") }
        let (first, second) = (payload.byte(at: 0), payload.byte(at: 1))
        switch first >> 1 & 0x3F {
        case 48: try appendAggregate(payload, from: 2)
        case 49:
            let fragment = payload.byte(at: 2)
            try appendFragment(
                payload.extracting(3...),
                header: [first & 0x81 | (fragment & 0x3F) << 1, second],
                isFirst: fragment & 0x80 != 0,
                isLast: fragment & 0x40 != 0
            )
        case 50: throw .unsupported("PACI packets")
        default: try appendUnit(payload)
        }
    }

    /// A whole NAL unit. One that was begun has lost its end.
    private mutating func appendUnit(_ unit: RawSpan) throws(FormatError) {
        guard fragments.isEmpty else { throw .truncated("a fragmented NAL unit") }
        try builder.append(unit)
    }

    /// NAL units, each behind its length in two bytes.
    private mutating func appendAggregate(_ payload: RawSpan, from start: Int) throws(FormatError) {
        var offset = start
        while offset < payload.byteCount {
            guard payload.byteCount - offset >= 2 else { throw .truncated("an aggregated NAL unit") }
            let length = Int(payload.bigEndianUInt16(at: offset))
            offset += 2
            guard length <= payload.byteCount - offset else { throw .truncated("an aggregated NAL unit") }
            try appendUnit(payload.extracting(offset..<(offset + length)))
            offset += length
        }
    }

    private mutating func appendFragment(
        _ bytes: RawSpan,
        header: [UInt8],
        isFirst: Bool,
        isLast: Bool
    ) throws(FormatError) {
        guard isFirst == fragments.isEmpty else { throw .truncated("a fragmented NAL unit") }
        guard fragments.count + bytes.byteCount < FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        if isFirst { fragments = header }
        fragments += bytes.array()
        guard isLast else { return }
        let unit = fragments
        fragments = []
        try builder.append(unsafe unit.span.bytes)
    }

    mutating func finish() throws(FormatError) -> CollectedFrame? {
        guard fragments.isEmpty else { throw .truncated("a fragmented NAL unit") }
        guard let unit = builder.finish() else { return nil }
        return CollectedFrame(
            bytes: unit.bytes,
            references: FrameReferences(isKey: unit.isKey),
            isDiscardable: unit.isDiscardable,
            configuration: unit.isKey ? builder.configuration : nil
        )
    }

    mutating func reset() {
        fragments = []
        builder.reset()
    }
}
