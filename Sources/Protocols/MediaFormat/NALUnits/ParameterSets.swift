import Base

/// The parameter sets of a stream by type and identifier, the newest first: at most ``FormatLimits/parameterSetsMax`` of each
/// type, of which the oldest makes room, and ``FormatLimits/parameterSetsBytesMax`` in all.
struct ParameterSets: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        let id: Int
        let bytes: [UInt8]
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
        switch unit.byte(at: 0) & 0x1F {
        case 7: return try store(unit, id: try H264SequenceParameters(unit).id, in: \.sequence)
        case 8: break
        default: throw .invalid("the NAL unit type of a parameter set")
        }
        let payload = removeEmulationPrevention(unit, bytesMax: 16)
        var reader = BitReader(unsafe payload.span.bytes, "an H.264 PPS")
        try reader.skip(8)
        return try store(unit, id: try reader.unsigned(max: 255, "pic_parameter_set_id"), in: \.picture)
    }

    /// Stores a set.
    /// - Returns: whether it is not stored as it is already.
    mutating func store(h265 unit: RawSpan) throws(FormatError) -> Bool {
        guard unit.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        guard unit.byteCount >= 3 else { throw .truncated("a parameter set") }
        switch unit.byte(at: 0) >> 1 & 0x3F {
        case 32: return try store(unit, id: Int(unit.byte(at: 2) >> 4), in: \.video)
        case 33:
            let parameters = try H265SequenceParameters(unit)
            subLayers = parameters.subLayers
            return try store(unit, id: parameters.id, in: \.sequence)
        default:
            let parameters = try H265PictureParameters(unit)
            let isNew = try store(unit, id: parameters.id, in: \.picture)
            extraSliceBits[parameters.id] = parameters.extraSliceBits
            return isNew
        }
    }

    private mutating func store(
        _ unit: RawSpan,
        id: Int,
        in list: WritableKeyPath<Self, [Entry]>
    ) throws(FormatError) -> Bool {
        var entries = self[keyPath: list]
        let before = entries.first { $0.id == id }
        if let before, Self.isEqual(before.bytes, unit) { return false }
        entries.removeAll { $0.id == id }
        if entries.count >= FormatLimits.parameterSetsMax { entries.removeLast() }
        entries.insert(Entry(id: id, bytes: unit.array()), at: 0)
        var changed = self
        changed[keyPath: list] = entries
        guard changed.byteCount <= FormatLimits.parameterSetsBytesMax else { throw .limit("bytes of parameter sets") }
        self = changed
        return true
    }

    private var byteCount: Int { (video + sequence + picture).reduce(0) { $0 + $1.bytes.count } }

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
