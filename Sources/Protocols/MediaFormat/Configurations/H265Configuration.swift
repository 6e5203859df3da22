import Base

/// The decoder configuration record of H.265, the payload of `hvcC` (ISO/IEC 14496-15 §8.3.3.1).
package struct H265Configuration: Hashable, Sendable {
    /// Video parameter sets, NAL units without start code.
    package let videoParameterSets: [[UInt8]]
    /// Sequence parameter sets, NAL units without start code; at least one.
    package let sequenceParameterSets: [[UInt8]]
    /// Picture parameter sets, NAL units without start code.
    package let pictureParameterSets: [[UInt8]]
    /// The bytes of a NAL unit's length in the source's frames: 1, 2 or 4. ``MediaFrame/bytes`` always has 4.
    package let lengthBytes: Int
    /// The first sequence parameter set, read; `nil` when it cannot be read.
    package let parameters: H265SequenceParameters?

    /// The NAL unit types of the parameter sets (H.265 table 7-1), in the order of the arrays.
    private static let types: [UInt8] = [32, 33, 34]

    /// Creates the record of parameter sets from the bitstream.
    package init(
        videoParameterSets: [[UInt8]],
        sequenceParameterSets: [[UInt8]],
        pictureParameterSets: [[UInt8]]
    ) throws(FormatError) {
        try self.init([videoParameterSets, sequenceParameterSets, pictureParameterSets], lengthBytes: 4)
    }

    /// - Parameter sets: of VPS, SPS and PPS.
    private init(_ sets: [[[UInt8]]], lengthBytes: Int) throws(FormatError) {
        guard sets.count == 3, let first = sets[1].first else { throw .invalid("the SPS of hvcC") }
        guard sets.allSatisfy({ $0.count <= FormatLimits.parameterSetsMax }) else { throw .limit("parameter sets") }
        let bytes = sets.joined().reduce(0) { $0 + $1.count }
        guard bytes <= FormatLimits.parameterSetsBytesMax else { throw .limit("bytes of parameter sets") }
        videoParameterSets = sets[0]
        sequenceParameterSets = sets[1]
        pictureParameterSets = sets[2]
        self.lengthBytes = lengthBytes
        parameters = try? H265SequenceParameters(unsafe first.span.bytes)
    }

    /// Reads the record.
    package init(_ record: RawSpan) throws(FormatError) {
        guard record.byteCount <= FormatLimits.configurationBytesMax else { throw .limit("bytes of a configuration") }
        var reader = ByteReader(record, "hvcC")
        // Deviation: FFmpeg before 2.8 and some encoders write version 0.
        guard try reader.uint8() <= 1 else { throw .invalid("configurationVersion of hvcC") }
        try reader.skip(20)
        let lengthBytes = Int(try reader.uint8() & 0x03) + 1
        guard lengthBytes != 3 else { throw .invalid("lengthSizeMinusOne of hvcC") }
        var sets: [[[UInt8]]] = [[], [], []]
        for _ in 0..<(try reader.uint8()) {
            let type = try reader.uint8() & 0x3F
            for _ in 0..<(try reader.uint16()) {
                let unit = try reader.span(Int(try reader.uint16()))
                guard let index = Self.types.firstIndex(of: type), unit.byteCount > 0 else { continue }
                guard unit.byteCount <= FormatLimits.parameterSetBytesMax else {
                    throw .limit("bytes of a parameter set")
                }
                guard sets[index].count < FormatLimits.parameterSetsMax else { throw .limit("parameter sets") }
                sets[index].append(unit.array())
            }
        }
        try self.init(sets, lengthBytes: lengthBytes)
    }

    /// The size of the pictures after cropping.
    package var size: PictureSize? { parameters?.size }

    /// The record with lengths of four bytes. Each array is marked complete: frames have no parameter sets.
    package var encoded: [UInt8] {
        var record: [UInt8] = [1]
        let general = parameters?.general
        let head =
            (general?.profileSpace ?? 0) << 6 | (general?.isHighTier == true ? 0x20 : 0) | (general?.profile ?? 1)
        record.append(head)
        record.append(bigEndian: general?.compatibility ?? 0)
        record.append(bigEndian: UInt16(truncatingIfNeeded: (general?.constraints ?? 0) >> 32))
        record.append(bigEndian: UInt32(truncatingIfNeeded: general?.constraints ?? 0))
        record.append(general?.level ?? 0)
        // min_spatial_segmentation_idc and parallelismType: unknown.
        record += [0xF0, 0x00, 0xFC]
        record.append(0xFC | (parameters?.chromaFormat ?? 1))
        record.append(0xF8 | ((parameters?.lumaBits ?? 8) &- 8))
        record.append(0xF8 | ((parameters?.chromaBits ?? 8) &- 8))
        // avgFrameRate and constantFrameRate: unspecified.
        record += [0, 0]
        let layers = UInt8(truncatingIfNeeded: parameters?.subLayers ?? 1)
        record.append(layers << 3 | (parameters?.isNested == true ? 0x04 : 0) | 3)
        let arrays = zip(Self.types, [videoParameterSets, sequenceParameterSets, pictureParameterSets])
            .filter { !$0.1.isEmpty }
        record.append(UInt8(truncatingIfNeeded: arrays.count))
        for (type, units) in arrays {
            record.append(0x80 | type)
            record.append(bigEndian: UInt16(truncatingIfNeeded: units.count))
            for unit in units { record.append(unit: unit) }
        }
        return record
    }

    /// The codecs parameter, as `hvc1.1.6.L93.B0` (ISO/IEC 14496-15 annex E.3).
    package var codecs: String {
        guard let general = parameters?.general else { return "hvc1" }
        let space = general.profileSpace == 0 ? "" : ["", "A", "B", "C"][Int(general.profileSpace & 3)]
        var reversed: UInt32 = 0
        for bit in 0..<32 where general.compatibility >> UInt32(bit) & 1 == 1 { reversed |= 1 << UInt32(31 - bit) }
        var text = "hvc1.\(space)\(general.profile).\(String(reversed, radix: 16, uppercase: true))"
        text += ".\(general.isHighTier ? "H" : "L")\(general.level)"
        var constraints = (0..<6).map { UInt8(truncatingIfNeeded: general.constraints >> UInt64(40 - 8 * $0)) }
        while constraints.last == 0 { constraints.removeLast() }
        for byte in constraints { text += "." + String(byte, radix: 16, uppercase: true) }
        return text
    }
}
