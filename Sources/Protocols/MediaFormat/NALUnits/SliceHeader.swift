import Base

/// How a slice is predicted (H.264 table 7-6, H.265 table 7-7).
package enum SliceType: Hashable, Sendable { case predicted, bipredicted, intra }

/// The first fields of an H.264 slice (H.264 §7.3.3).
package struct H264SliceHeader: Hashable, Sendable {
    /// The bytes of a slice that are looked at.
    private static let bytesMax = 32

    /// Whether the slice is of an IDR picture.
    package let isIDR: Bool
    /// Whether other pictures may refer to this one: nal_ref_idc is not 0.
    package let isReference: Bool
    /// How the slice is predicted.
    package let type: SliceType

    /// Reads a NAL unit of type 1, 2 or 5, with its header.
    package init(_ unit: RawSpan) throws(FormatError) {
        guard unit.byteCount >= 2 else { throw .truncated("a slice header") }
        let header = unit.byte(at: 0)
        guard [1, 2, 5].contains(header & 0x1F) else { throw .invalid("the NAL unit type of a slice") }
        isIDR = header & 0x1F == 5
        isReference = header & 0x60 != 0
        let payload = removeEmulationPrevention(unit, bytesMax: Self.bytesMax)
        var reader = BitReader(unsafe payload.span.bytes, "a slice header")
        try reader.skip(8)
        // first_mb_in_slice.
        _ = try reader.unsigned()
        switch try reader.unsigned(max: 9, "slice_type") % 5 {
        case 1: type = .bipredicted
        case 2, 4: type = .intra
        default: type = .predicted
        }
    }
}

/// The fields of an H.265 picture parameter set that slice headers depend on (H.265 §7.3.2.3.1).
package struct H265PictureParameters: Hashable, Sendable {
    /// pps_pic_parameter_set_id, 0…63.
    package let id: Int
    /// num_extra_slice_header_bits, 0…7.
    package let extraSliceBits: Int

    /// Reads a NAL unit of type 34, with its header.
    package init(_ unit: RawSpan) throws(FormatError) {
        let payload = removeEmulationPrevention(unit, bytesMax: 32)
        var reader = BitReader(unsafe payload.span.bytes, "an H.265 PPS")
        try reader.skip(16)
        id = try reader.unsigned(max: 63, "pps_pic_parameter_set_id")
        _ = try reader.unsigned(max: 15, "pps_seq_parameter_set_id")
        try reader.skip(2)
        extraSliceBits = Int(try reader.bits(3))
    }
}

/// The first fields of an H.265 slice segment (H.265 §7.3.6.1).
package struct H265SliceHeader: Hashable, Sendable {
    /// The bytes of a slice that are looked at.
    private static let bytesMax = 32

    /// nal_unit_type, 0…31.
    package let unitType: UInt8
    /// nuh_temporal_id_plus1 − 1, 0…6.
    package let temporalID: UInt8
    /// first_slice_segment_in_pic_flag.
    package let isFirst: Bool
    /// `nil` in a segment that is not the first of its picture: its header cannot be read without more of the PPS.
    package let type: SliceType?

    /// Whether decoding can start with the picture: IDR, BLA or CRA (H.265 §3.76).
    package var isRandomAccess: Bool { (16...23).contains(unitType) }
    /// Whether no picture of the same temporal sub-layer refers to this one (H.265 table 7-1, types that end in _N).
    package var isSubLayerNonReference: Bool { unitType <= 14 && unitType & 1 == 0 }

    /// Reads a NAL unit of a slice segment, with its header.
    /// - Parameter extraSliceBits: num_extra_slice_header_bits of a picture parameter set by its identifier; 0 for one
    ///   that is not known.
    package init(_ unit: RawSpan, extraSliceBits: (Int) -> Int) throws(FormatError) {
        guard unit.byteCount >= 3 else { throw .truncated("a slice header") }
        unitType = unit.byte(at: 0) >> 1 & 0x3F
        guard unitType <= 31 else { throw .invalid("the NAL unit type of a slice") }
        let temporal = unit.byte(at: 1) & 0x07
        temporalID = temporal == 0 ? 0 : temporal - 1
        let payload = removeEmulationPrevention(unit, bytesMax: Self.bytesMax)
        var reader = BitReader(unsafe payload.span.bytes, "a slice header")
        try reader.skip(16)
        isFirst = try reader.flag()
        if (16...23).contains(unitType) { try reader.skip(1) }
        let set = try reader.unsigned(max: 63, "slice_pic_parameter_set_id")
        guard isFirst else {
            type = nil
            return
        }
        try reader.skip(min(max(extraSliceBits(set), 0), 7))
        switch try reader.unsigned(max: 2, "slice_type") {
        case 0: type = .bipredicted
        case 1: type = .predicted
        default: type = .intra
        }
    }
}
