import Base
import MediaFormat
import Wire

/// Splits the frames of one codec into RTP payloads.
protocol PayloadFormat {
    /// The payloads of a frame, each at most `most` bytes long.
    /// - Parameters:
    ///   - configuration: the one in force, which goes before key frames where the format carries it in band.
    ///   - most: 64 at least.
    mutating func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]]
}

extension MediaCodec {
    /// How RTP carries the codec; `nil` for codecs that it does not carry here.
    func makePayloadFormat() -> (any PayloadFormat)? {
        switch self {
        case .h264: NALPayloads(codec: .h264)
        case .h265: NALPayloads(codec: .h265)
        case .av1: AV1Payloads()
        case .vp8: VP8Payloads()
        case .vp9: VP9Payloads()
        case .opus: OpusPayloads()
        case .aac, .mp3, .speex, .pcma, .pcmu: nil
        }
    }

    /// Ticks of the RTP clock each second.
    var clockRate: Int { kind == .video ? 90_000 : OpusConfiguration.sampleRate }
}

extension RawSpan {
    /// The bytes in pieces of at most `most`.
    fileprivate func pieces(from start: Int = 0, most: Int) -> [(bytes: [UInt8], isFirst: Bool, isLast: Bool)] {
        var pieces: [(bytes: [UInt8], isFirst: Bool, isLast: Bool)] = []
        var offset = start
        while offset < byteCount {
            let end = Swift.min(offset + most, byteCount)
            pieces.append((extracting(offset..<end).array(), offset == start, end == byteCount))
            offset = end
        }
        return pieces
    }
}

/// H.264 (RFC 6184 §5.7, packetization mode 1) and H.265 (RFC 7798 §4.4).
struct NALPayloads: PayloadFormat {
    let codec: NALCodec

    func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        if frame.isKey { appendSets(of: configuration, most: most, to: &payloads) }
        var cursor = LengthPrefixedCursor(unsafe frame.bytes.span.bytes, lengthBytes: 4)
        while let unit = try cursor.next() { append(unit, most: most, to: &payloads) }
        return payloads
    }

    /// Decoders need the parameter sets with each key frame: viewers join at any of them.
    private func appendSets(of configuration: CodecConfiguration?, most: Int, to payloads: inout [[UInt8]]) {
        let sets: [[UInt8]]
        var aggregate: [UInt8]
        switch configuration {
        case .h264(let record) where codec == .h264:
            sets = record.sequenceParameterSets + record.pictureParameterSets
            // STAP-A, with the importance of a reference.
            aggregate = [0x60 | 24]
        case .h265(let record) where codec == .h265:
            sets = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
            // An aggregation packet of the lowest layers.
            aggregate = [48 << 1, 1]
        default: return
        }
        let length = aggregate.count + sets.reduce(0) { $0 + $1.count + 2 }
        guard sets.count > 1, length <= most else {
            for set in sets { append(unsafe set.span.bytes, most: most, to: &payloads) }
            return
        }
        for set in sets {
            aggregate.append(UInt8(truncatingIfNeeded: set.count >> 8))
            aggregate.append(UInt8(truncatingIfNeeded: set.count))
            aggregate += set
        }
        payloads.append(aggregate)
    }

    private func append(_ unit: RawSpan, most: Int, to payloads: inout [[UInt8]]) {
        let headerBytes = codec == .h264 ? 1 : 2
        guard unit.byteCount > headerBytes else { return }
        guard unit.byteCount > most else { return payloads.append(unit.array()) }
        let first = unit.byte(at: 0)
        for piece in unit.pieces(from: headerBytes, most: most - headerBytes - 1) {
            let ends: UInt8 = (piece.isFirst ? 0x80 : 0) | (piece.isLast ? 0x40 : 0)
            switch codec {
            case .h264: payloads.append([first & 0xE0 | 28, ends | first & 0x1F] + piece.bytes)
            case .h265:
                payloads.append([first & 0x81 | 49 << 1, unit.byte(at: 1), ends | first >> 1 & 0x3F] + piece.bytes)
            }
        }
    }
}

/// AV1 (RTP Payload Format for AV1 §4): OBU elements without size fields.
struct AV1Payloads: PayloadFormat {
    func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]] {
        var elements: [[UInt8]] = []
        var hasHeader = false
        var cursor = OBUCursor(unsafe frame.bytes.span.bytes)
        while let obu = try cursor.next() {
            if obu.type == OBUType.sequenceHeader { hasHeader = true }
            elements.append(Self.element(obu))
        }
        if frame.isKey, !hasHeader, case .av1(let record) = configuration {
            var headers: [[UInt8]] = []
            var cursor = OBUCursor(unsafe record.obus.span.bytes)
            while let obu = try cursor.next() { headers.append(Self.element(obu)) }
            elements = headers + elements
        }
        var payloads: [[UInt8]] = []
        for element in elements { Self.append(element, most: most, to: &payloads) }
        // N: a new coded video sequence.
        if frame.isKey, !payloads.isEmpty { payloads[0][0] |= 0x08 }
        return payloads
    }

    private static func element(_ obu: borrowing OBU) -> [UInt8] {
        var bytes = [obu.header.byte(at: 0) & ~0x02]
        if obu.header.byteCount > 1 { bytes.append(obu.header.byte(at: 1)) }
        return bytes + obu.payload.array()
    }

    /// Small elements share a packet, each behind its length (W = 0). One that is too long for that takes packets of its own (W = 1).
    private static func append(_ element: [UInt8], most: Int, to payloads: inout [[UInt8]]) {
        // A length of two bytes is enough for any packet.
        let counted = element.count + 2
        if let last = payloads.indices.last, payloads[last][0] & 0xF0 == 0, payloads[last].count + counted <= most {
            payloads[last] += length(element.count) + element
            return
        }
        guard 1 + counted > most else {
            payloads.append([0] + length(element.count) + element)
            return
        }
        for piece in unsafe element.span.bytes.pieces(most: most - 1) {
            payloads.append([0x10 | (piece.isFirst ? 0 : 0x80) | (piece.isLast ? 0 : 0x40)] + piece.bytes)
        }
    }

    /// leb128() of a length below 2^14.
    private static func length(_ count: Int) -> [UInt8] {
        count < 0x80
            ? [UInt8(truncatingIfNeeded: count)]
            : [UInt8(truncatingIfNeeded: count & 0x7F) | 0x80, UInt8(truncatingIfNeeded: count >> 7)]
    }
}

/// VP8 (RFC 7741 §4.2) with picture ids of 15 bits, by which receivers tell a lost frame from one that is left out.
struct VP8Payloads: PayloadFormat {
    private var pictureID: UInt16 = 0

    mutating func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]] {
        let id = pictureID
        pictureID = (pictureID &+ 1) & 0x7FFF
        return unsafe frame.bytes.span.bytes.pieces(most: most - 4).map { piece in
            [
                0x80 | (piece.isFirst ? 0x10 : 0), 0x80, 0x80 | UInt8(truncatingIfNeeded: id >> 8),
                UInt8(truncatingIfNeeded: id),
            ] + piece.bytes
        }
    }
}

/// VP9 (RFC 9628 §4.2) in flexible mode: one layer, and each picture refers to the one before, which a receiver has in any case.
struct VP9Payloads: PayloadFormat {
    private var pictureID: UInt16 = 0

    mutating func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]] {
        let id = pictureID
        pictureID = (pictureID &+ 1) & 0x7FFF
        // I and F, and P of a picture that refers to another one.
        let flags: UInt8 = 0x90 | (frame.isKey ? 0 : 0x40)
        var rest = [0x80 | UInt8(truncatingIfNeeded: id >> 8), UInt8(truncatingIfNeeded: id)]
        // One reference, one picture back.
        if !frame.isKey { rest.append(0x02) }
        return unsafe frame.bytes.span.bytes.pieces(most: most - 4).map { piece in
            [flags | (piece.isFirst ? 0x08 : 0) | (piece.isLast ? 0x04 : 0)] + rest + piece.bytes
        }
    }
}

/// Opus (RFC 7587 §4.2).
struct OpusPayloads: PayloadFormat {
    func payloads(
        of frame: MediaFrame,
        _ configuration: CodecConfiguration?,
        most: Int
    ) throws(FormatError) -> [[UInt8]] {
        guard frame.bytes.count <= most else { throw .limit("bytes of an Opus packet") }
        return [frame.bytes]
    }
}
