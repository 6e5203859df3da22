import Base

/// The decoder configuration record of AV1, the payload of `av1C` (AV1-ISOBMFF §2.3.3).
package struct AV1Configuration: Hashable, Sendable {
    /// The sequence header OBU with its header and size, and what OBUs came with it; empty when the source has none
    /// yet.
    package let obus: [UInt8]
    /// The sequence header, read; `nil` when there is none.
    package let header: AV1SequenceHeader?
    /// Bytes 1…3 of the record, as they came.
    private let fields: [UInt8]

    /// Creates the record of a sequence header.
    /// - Parameter payload: the payload of an OBU of type 1, without its header and size.
    package init(sequenceHeader payload: RawSpan) throws(FormatError) {
        guard payload.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        let header = try AV1SequenceHeader(payload)
        var obus: [UInt8] = [OBUType.sequenceHeader << 3 | 0x02]
        obus.append(leb128: payload.byteCount)
        obus.append(payload)
        self.obus = obus
        self.header = header
        var depth: UInt8 = header.isHighTier ? 0x80 : 0
        depth |= (header.bitDepth > 8 ? 0x40 : 0) | (header.bitDepth == 12 ? 0x20 : 0)
        depth |= (header.isMonochrome ? 0x10 : 0) | (header.halvesChromaWidth ? 0x08 : 0)
        depth |= (header.halvesChromaHeight ? 0x04 : 0) | header.chromaPosition
        fields = [header.profile << 5 | header.level, depth, 0]
    }

    /// Reads the record.
    package init(_ record: RawSpan) throws(FormatError) {
        guard record.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a configuration") }
        var reader = ByteReader(record, "av1C")
        guard try reader.uint8() == 0x81 else { throw .invalid("marker and version of av1C") }
        fields = try reader.span(3).array()
        let obus = reader.rest()
        self.obus = obus.array()
        var header: AV1SequenceHeader?
        var cursor = OBUCursor(obus)
        while let obu = try cursor.next() {
            if obu.type == OBUType.sequenceHeader { header = try AV1SequenceHeader(obu.payload) }
        }
        self.header = header
    }

    /// The greatest size of a frame.
    package var size: PictureSize? { header?.size }

    /// The record.
    package var encoded: [UInt8] { [0x81] + fields + obus }

    /// The codecs parameter, as `av01.0.08M.08` (AV1-ISOBMFF §5).
    package var codecs: String {
        let first = fields.first ?? 0
        let depth = fields.dropFirst().first ?? 0
        let tier = depth & 0x80 == 0 ? "M" : "H"
        let bits = depth & 0x40 == 0 ? 8 : depth & 0x20 == 0 ? 10 : 12
        return "av01.\(first >> 5).\(twoDigits(Int(first & 0x1F)))\(tier).\(twoDigits(bits))"
    }
}

/// Two decimal digits, as codecs parameters have them.
func twoDigits(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
