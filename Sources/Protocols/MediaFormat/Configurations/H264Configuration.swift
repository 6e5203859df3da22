import Base

/// The decoder configuration record of H.264, the payload of `avcC` (ISO/IEC 14496-15 §5.3.3.1).
package struct H264Configuration: Hashable, Sendable {
    /// Sequence parameter sets, NAL units without start code; at least one.
    package let sequenceParameterSets: [[UInt8]]
    /// Picture parameter sets, NAL units without start code.
    package let pictureParameterSets: [[UInt8]]
    /// Sequence parameter set extensions (NAL units of type 13), in High profiles only.
    package let extensions: [[UInt8]]
    /// The bytes of a NAL unit's length in the source's frames: 1, 2 or 4. ``MediaFrame/bytes`` always has 4.
    package let lengthBytes: Int
    /// The first sequence parameter set, read; `nil` when it cannot be read.
    package let parameters: H264SequenceParameters?

    /// Creates the record of parameter sets from the bitstream.
    package init(
        sequenceParameterSets: [[UInt8]],
        pictureParameterSets: [[UInt8]],
        extensions: [[UInt8]] = []
    ) throws(FormatError) {
        try self.init(
            sequenceParameterSets: sequenceParameterSets,
            pictureParameterSets: pictureParameterSets,
            extensions: extensions,
            lengthBytes: 4
        )
    }

    private init(
        sequenceParameterSets: [[UInt8]],
        pictureParameterSets: [[UInt8]],
        extensions: [[UInt8]],
        lengthBytes: Int
    ) throws(FormatError) {
        guard let first = sequenceParameterSets.first, first.count >= 4 else { throw .invalid("the SPS of avcC") }
        guard sequenceParameterSets.count <= 31, pictureParameterSets.count <= FormatLimits.parameterSetsMax else {
            throw .limit("parameter sets")
        }
        let bytes = (sequenceParameterSets + pictureParameterSets).reduce(0) { $0 + $1.count }
        guard bytes <= FormatLimits.parameterSetsBytesMax else { throw .limit("bytes of parameter sets") }
        self.sequenceParameterSets = sequenceParameterSets
        self.pictureParameterSets = pictureParameterSets
        self.extensions = extensions
        self.lengthBytes = lengthBytes
        parameters = try? H264SequenceParameters(unsafe first.span.bytes)
    }

    /// Reads the record. What follows the parameter sets may be missing, as some encoders leave it out.
    package init(_ record: RawSpan) throws(FormatError) {
        guard record.byteCount <= FormatLimits.configurationBytesMax else { throw .limit("bytes of a configuration") }
        var reader = ByteReader(record, "avcC")
        guard try reader.uint8() == 1 else { throw .invalid("configurationVersion of avcC") }
        let profile = try reader.uint8()
        try reader.skip(2)
        let lengthBytes = Int(try reader.uint8() & 0x03) + 1
        guard lengthBytes != 3 else { throw .invalid("lengthSizeMinusOne of avcC") }
        let sequenceSets = try Self.readUnits(&reader, count: Int(try reader.uint8() & 0x1F))
        let pictureSets = try Self.readUnits(&reader, count: Int(try reader.uint8()))
        var extensions: [[UInt8]] = []
        if H264SequenceParameters.isHigh(profile: profile), reader.remaining >= 4 {
            try reader.skip(3)
            extensions = try Self.readUnits(&reader, count: Int(try reader.uint8()))
        }
        try self.init(
            sequenceParameterSets: sequenceSets,
            pictureParameterSets: pictureSets,
            extensions: extensions,
            lengthBytes: lengthBytes
        )
    }

    private static func readUnits(_ reader: inout ByteReader, count: Int) throws(FormatError) -> [[UInt8]] {
        guard count <= FormatLimits.parameterSetsMax else { throw .limit("parameter sets") }
        var units: [[UInt8]] = []
        for _ in 0..<count {
            let length = Int(try reader.uint16())
            guard length <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
            let unit = try reader.span(length)
            // Some encoders write empty units, which say nothing.
            if length > 0 { units.append(unit.array()) }
        }
        return units
    }

    /// The size of the pictures after cropping.
    package var size: PictureSize? { parameters?.size }

    /// AVCProfileIndication, profile_compatibility and AVCLevelIndication: bytes 1…3 of the first SPS.
    private var profileBytes: ArraySlice<UInt8> { sequenceParameterSets.first?.dropFirst().prefix(3) ?? [] }

    /// The record with lengths of four bytes.
    package var encoded: [UInt8] {
        var record: [UInt8] = [1]
        record += profileBytes
        record.append(0xFC | 3)
        record.append(0xE0 | UInt8(truncatingIfNeeded: sequenceParameterSets.count))
        for unit in sequenceParameterSets { record.append(unit: unit) }
        record.append(UInt8(truncatingIfNeeded: pictureParameterSets.count))
        for unit in pictureParameterSets { record.append(unit: unit) }
        guard let parameters, H264SequenceParameters.isHigh(profile: parameters.profile) else { return record }
        record.append(0xFC | parameters.chromaFormat)
        record.append(0xF8 | (parameters.lumaBits - 8))
        record.append(0xF8 | (parameters.chromaBits - 8))
        record.append(UInt8(truncatingIfNeeded: extensions.count))
        for unit in extensions { record.append(unit: unit) }
        return record
    }

    /// The codecs parameter, as `avc1.64001f` (RFC 6381 §3.3).
    package var codecs: String { "avc1." + profileBytes.map(hexadecimal).joined() }
}

extension [UInt8] {
    /// Appends the length in two bytes, then the unit.
    mutating func append(unit: [UInt8]) {
        append(bigEndian: UInt16(truncatingIfNeeded: unit.count))
        self += unit
    }
}

/// Two lower-case hexadecimal digits.
func hexadecimal(_ byte: UInt8) -> String {
    let text = String(byte, radix: 16)
    return text.count == 1 ? "0" + text : text
}
