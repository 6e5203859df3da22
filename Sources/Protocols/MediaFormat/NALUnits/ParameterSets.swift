import Base

/// The parameter sets of a stream by type and identifier, at most ``FormatLimits/parameterSetsMax`` of each type.
struct ParameterSets: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        let id: Int
        var bytes: [UInt8]
    }
    private var video: [Entry] = []
    private var sequence: [Entry] = []
    private var picture: [Entry] = []
    /// num_extra_slice_header_bits by the identifier of an H.265 picture parameter set.
    private var extraSliceBits: [Int: Int] = [:]
    /// The temporal sub-layers of the newest H.265 sequence parameter set.
    private(set) var subLayers = 1

    /// Stores a set.
    /// - Returns: whether it is not stored as it is already.
    mutating func store(h264 unit: RawSpan) throws(FormatError) -> Bool {
        guard unit.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        if unit.byte(at: 0) & 0x1F == 7 {
            return try Self.store(unit, id: try H264SequenceParameters(unit).id, in: &sequence)
        }
        let payload = removeEmulationPrevention(unit, bytesMax: 16)
        var reader = BitReader(unsafe payload.span.bytes, "an H.264 PPS")
        try reader.skip(8)
        return try Self.store(unit, id: try reader.unsigned(max: 255, "pic_parameter_set_id"), in: &picture)
    }

    /// Stores a set.
    /// - Returns: whether it is not stored as it is already.
    mutating func store(h265 unit: RawSpan) throws(FormatError) -> Bool {
        guard unit.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        guard unit.byteCount >= 3 else { throw .truncated("a parameter set") }
        switch unit.byte(at: 0) >> 1 & 0x3F {
        case 32: return try Self.store(unit, id: Int(unit.byte(at: 2) >> 4), in: &video)
        case 33:
            let parameters = try H265SequenceParameters(unit)
            subLayers = parameters.subLayers
            return try Self.store(unit, id: parameters.id, in: &sequence)
        default:
            let parameters = try H265PictureParameters(unit)
            let isNew = try Self.store(unit, id: parameters.id, in: &picture)
            extraSliceBits[parameters.id] = parameters.extraSliceBits
            return isNew
        }
    }

    private static func store(_ unit: RawSpan, id: Int, in entries: inout [Entry]) throws(FormatError) -> Bool {
        if let index = entries.firstIndex(where: { $0.id == id }) {
            guard !isEqual(entries[index].bytes, unit) else { return false }
            entries[index].bytes = unit.array()
            return true
        }
        guard entries.count < FormatLimits.parameterSetsMax else { throw .limit("parameter sets") }
        entries.append(Entry(id: id, bytes: unit.array()))
        entries.sort { $0.id < $1.id }
        return true
    }

    private static func isEqual(_ bytes: [UInt8], _ span: RawSpan) -> Bool {
        guard bytes.count == span.byteCount else { return false }
        for (offset, byte) in bytes.enumerated() where span.byte(at: offset) != byte { return false }
        return true
    }

    /// num_extra_slice_header_bits of an H.265 picture parameter set; 0 for one that is not stored.
    func extraBits(of set: Int) -> Int { extraSliceBits[set] ?? 0 }

    /// The configuration of the sets; `nil` before a sequence and a picture parameter set are there.
    func configuration(_ codec: NALCodec) -> CodecConfiguration? {
        guard !sequence.isEmpty, !picture.isEmpty else { return nil }
        switch codec {
        case .h264:
            // avcC counts sequence parameter sets in five bits.
            let record = try? H264Configuration(
                sequenceParameterSets: sequence.prefix(31).map(\.bytes),
                pictureParameterSets: picture.map(\.bytes)
            )
            return record.map { .h264($0) }
        case .h265:
            let record = try? H265Configuration(
                videoParameterSets: video.map(\.bytes),
                sequenceParameterSets: sequence.map(\.bytes),
                pictureParameterSets: picture.map(\.bytes)
            )
            return record.map { .h265($0) }
        }
    }
}
