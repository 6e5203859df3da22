import Base

/// The general part of profile_tier_level() (H.265 §7.3.3), as `hvcC` and the codecs parameter repeat it.
package struct H265ProfileTierLevel: Hashable, Sendable {
    /// general_profile_space, 0…3.
    package var profileSpace: UInt8
    /// general_tier_flag: whether the tier is High.
    package var isHighTier: Bool
    /// general_profile_idc, 0…31.
    package var profile: UInt8
    /// general_profile_compatibility_flag, the first flag in the highest bit.
    package var compatibility: UInt32
    /// The 48 bits from general_progressive_source_flag on, in the low bits.
    package var constraints: UInt64
    /// general_level_idc, thirty times the level.
    package var level: UInt8

    init(_ reader: inout BitReader) throws(FormatError) {
        profileSpace = UInt8(truncatingIfNeeded: try reader.bits(2))
        isHighTier = try reader.flag()
        profile = UInt8(truncatingIfNeeded: try reader.bits(5))
        compatibility = try reader.bits(32)
        constraints = UInt64(try reader.bits(16)) << 32
        constraints |= UInt64(try reader.bits(32))
        level = UInt8(truncatingIfNeeded: try reader.bits(8))
    }

    /// Moves past the parts of the sub-layers.
    /// - Parameter count: sps_max_sub_layers_minus1, 0…6.
    static func skipSubLayers(_ reader: inout BitReader, count: Int) throws(FormatError) {
        guard count > 0 else { return }
        var bits = 0
        for _ in 0..<count {
            if try reader.flag() { bits += 88 }
            if try reader.flag() { bits += 8 }
        }
        try reader.skip(2 * (8 - count) + bits)
    }
}

/// The fields of an H.265 sequence parameter set that a container or a playlist tells (H.265 §7.3.2.2, Annex E).
package struct H265SequenceParameters: Hashable, Sendable {
    /// sps_seq_parameter_set_id, 0…15.
    package private(set) var id = 0
    /// Profile, tier and level of the whole stream.
    package let general: H265ProfileTierLevel
    /// Temporal sub-layers, 1…7.
    package let subLayers: Int
    /// sps_temporal_id_nesting_flag.
    package let isNested: Bool
    /// chroma_format_idc: 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    package private(set) var chromaFormat: UInt8 = 1
    /// Bits of a luma sample, 8…16.
    package private(set) var lumaBits: UInt8 = 8
    /// Bits of a chroma sample, 8…16.
    package private(set) var chromaBits: UInt8 = 8
    /// The size after cropping.
    package private(set) var size: PictureSize
    /// Pictures each second by the timing in the VUI (H.265 §E.3.1); `nil` where it tells nothing, or nothing
    /// plausible.
    package private(set) var frameRate: Double?

    /// Reads a NAL unit of type 33, with its header and without start code.
    package init(_ unit: RawSpan) throws(FormatError) {
        guard unit.byteCount >= 4 else { throw .truncated("an H.265 SPS") }
        guard unit.byte(at: 0) >> 1 & 0x3F == 33 else { throw .invalid("the NAL unit type of an H.265 SPS") }
        guard unit.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        let payload = removeEmulationPrevention(unit, bytesMax: FormatLimits.parameterSetBytesMax)
        var reader = BitReader(unsafe payload.span.bytes, "an H.265 SPS")
        guard let one = PictureSize(width: 1, height: 1) else { throw .invalid("a picture size") }
        size = one
        try reader.skip(16 + 4)
        let subLayersMinus1 = Int(try reader.bits(3))
        guard subLayersMinus1 < 7 else { throw .invalid("sps_max_sub_layers_minus1") }
        subLayers = subLayersMinus1 + 1
        isNested = try reader.flag()
        general = try H265ProfileTierLevel(&reader)
        try H265ProfileTierLevel.skipSubLayers(&reader, count: subLayersMinus1)
        id = try reader.unsigned(max: 15, "sps_seq_parameter_set_id")
        try readSize(&reader)
        lumaBits = UInt8(try reader.unsigned(max: 8, "bit_depth_luma_minus8") + 8)
        chromaBits = UInt8(try reader.unsigned(max: 8, "bit_depth_chroma_minus8") + 8)
        // What follows is needed for the frame rate only, so a strange extension refuses nothing.
        frameRate = try? Self.readFrameRate(&reader, subLayers: subLayers)
    }

    private mutating func readSize(_ reader: inout BitReader) throws(FormatError) {
        chromaFormat = UInt8(try reader.unsigned(max: 3, "chroma_format_idc"))
        let hasSeparatePlanes = chromaFormat == 3 ? try reader.flag() : false
        var width = try reader.unsigned(max: 8_192, "pic_width_in_luma_samples")
        var height = try reader.unsigned(max: 8_192, "pic_height_in_luma_samples")
        if try reader.flag() {
            // SubWidthC and SubHeightC (H.265 table 6-1).
            let isSubsampled = !hasSeparatePlanes && (chromaFormat == 1 || chromaFormat == 2)
            let (unitX, unitY) = (isSubsampled ? 2 : 1, chromaFormat == 1 ? 2 : 1)
            for _ in 0..<2 { width -= unitX * (try reader.unsigned(max: 8_192, "conf_win_offset")) }
            for _ in 0..<2 { height -= unitY * (try reader.unsigned(max: 8_192, "conf_win_offset")) }
        }
        guard let size = PictureSize(width: width, height: height) else { throw .invalid("the size of an H.265 SPS") }
        self.size = size
    }

    /// The rest of the parameter set, up to the timing of the VUI.
    private static func readFrameRate(_ reader: inout BitReader, subLayers: Int) throws(FormatError) -> Double? {
        let orderBits = try reader.unsigned(max: 12, "log2_max_pic_order_cnt_lsb_minus4") + 4
        let hasOrderingPerLayer = try reader.flag()
        for _ in 0..<(hasOrderingPerLayer ? subLayers : 1) {
            for _ in 0..<3 { _ = try reader.unsigned() }
        }
        for _ in 0..<6 { _ = try reader.unsigned() }
        if try reader.flag() {
            if try reader.flag() { try skipScalingLists(&reader) }
        }
        try reader.skip(2)
        if try reader.flag() {
            try reader.skip(8)
            _ = try reader.unsigned()
            _ = try reader.unsigned()
            try reader.skip(1)
        }
        try skipReferenceSets(&reader)
        if try reader.flag() {
            let count = try reader.unsigned(max: 32, "num_long_term_ref_pics_sps")
            try reader.skip(count * (orderBits + 1))
        }
        try reader.skip(2)
        guard try reader.flag() else { return nil }
        return try readTiming(&reader)
    }

    /// scaling_list_data(), H.265 §7.3.4.
    private static func skipScalingLists(_ reader: inout BitReader) throws(FormatError) {
        for size in 0..<4 {
            for _ in stride(from: 0, to: 6, by: size == 3 ? 3 : 1) {
                guard try reader.flag() else {
                    _ = try reader.unsigned()
                    continue
                }
                if size > 1 { _ = try reader.signed() }
                for _ in 0..<min(64, 1 << (4 + size << 1)) { _ = try reader.signed() }
            }
        }
    }

    /// The short-term reference picture sets (H.265 §7.3.7).
    private static func skipReferenceSets(_ reader: inout BitReader) throws(FormatError) {
        let count = try reader.unsigned(max: 64, "num_short_term_ref_pic_sets")
        var previous = 0
        for index in 0..<count {
            let isPredicted = index > 0 ? try reader.flag() : false
            if isPredicted {
                try reader.skip(1)
                _ = try reader.unsigned()
                var deltas = 0
                for _ in 0...previous {
                    let isUsed = try reader.flag()
                    let usesDelta = isUsed ? true : try reader.flag()
                    if usesDelta { deltas += 1 }
                }
                previous = deltas
            } else {
                let negative = try reader.unsigned(max: 16, "num_negative_pics")
                let positive = try reader.unsigned(max: 16, "num_positive_pics")
                for _ in 0..<(negative + positive) {
                    _ = try reader.unsigned()
                    try reader.skip(1)
                }
                previous = negative + positive
            }
            guard previous <= 32 else { throw .invalid("a reference picture set") }
        }
    }

    /// vui_parameters() up to the timing (H.265 §E.2.1).
    private static func readTiming(_ reader: inout BitReader) throws(FormatError) -> Double? {
        if try reader.flag() {
            if try reader.bits(8) == 255 { try reader.skip(32) }
        }
        if try reader.flag() { try reader.skip(1) }
        if try reader.flag() {
            try reader.skip(4)
            if try reader.flag() { try reader.skip(24) }
        }
        if try reader.flag() {
            _ = try reader.unsigned()
            _ = try reader.unsigned()
        }
        try reader.skip(3)
        if try reader.flag() {
            for _ in 0..<4 { _ = try reader.unsigned() }
        }
        guard try reader.flag() else { return nil }
        let units = try reader.bits(32)
        let scale = try reader.bits(32)
        return plausibleRate(scale: scale, units: units, ticksPerFrame: 1)
    }
}
