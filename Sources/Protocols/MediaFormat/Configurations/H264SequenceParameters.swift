import Base

/// The fields of an H.264 sequence parameter set that a container or a playlist tells (H.264 §7.3.2.1.1, Annex E).
package struct H264SequenceParameters: Hashable, Sendable {
    /// seq_parameter_set_id, 0…31.
    package private(set) var id = 0
    /// profile_idc.
    package private(set) var profile: UInt8 = 0
    /// level_idc, ten times the level.
    package private(set) var level: UInt8 = 0
    /// chroma_format_idc: 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    package private(set) var chromaFormat: UInt8 = 1
    /// Bits of a luma sample, 8…14.
    package private(set) var lumaBits: UInt8 = 8
    /// Bits of a chroma sample, 8…14.
    package private(set) var chromaBits: UInt8 = 8
    /// The size after cropping.
    package private(set) var size: PictureSize
    /// Pictures each second by the timing in the VUI (H.264 §E.2.1); `nil` where it tells nothing, or nothing
    /// plausible.
    package private(set) var frameRate: Double?
    /// separate_colour_plane_flag: a slice header has two bits more.
    package private(set) var hasSeparatePlanes = false

    /// Profiles whose parameter sets have chroma and scaling fields (H.264 §7.3.2.1.1).
    private static let highProfiles: Set<UInt8> = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]

    /// Whether the profile's avcC has the fields of chroma format and depth (ISO/IEC 14496-15 §5.3.3.1.2).
    package static func isHigh(profile: UInt8) -> Bool { highProfiles.contains(profile) }

    /// Reads a NAL unit of type 7, with its header and without start code.
    package init(_ unit: RawSpan) throws(FormatError) {
        guard unit.byteCount >= 4 else { throw .truncated("an H.264 SPS") }
        guard unit.byte(at: 0) & 0x1F == 7 else { throw .invalid("the NAL unit type of an H.264 SPS") }
        guard unit.byteCount <= FormatLimits.parameterSetBytesMax else { throw .limit("bytes of a parameter set") }
        let payload = removeEmulationPrevention(unit, bytesMax: FormatLimits.parameterSetBytesMax)
        var reader = BitReader(unsafe payload.span.bytes, "an H.264 SPS")
        guard let one = PictureSize(width: 1, height: 1) else { throw .invalid("a picture size") }
        size = one
        try reader.skip(8)
        profile = UInt8(truncatingIfNeeded: try reader.bits(8))
        // The constraint flags.
        try reader.skip(8)
        level = UInt8(truncatingIfNeeded: try reader.bits(8))
        id = try reader.unsigned(max: 31, "seq_parameter_set_id")
        if Self.isHigh(profile: profile) { try readHighFields(&reader) }
        _ = try reader.unsigned(max: 12, "log2_max_frame_num_minus4")
        try Self.skipPictureOrder(&reader)
        _ = try reader.unsigned(max: 16, "max_num_ref_frames")
        try reader.skip(1)
        try readSize(&reader)
        // Encoders that cut the VUI short are not refused: nothing needs its frame rate.
        frameRate = try? Self.readFrameRate(&reader)
    }

    private mutating func readHighFields(_ reader: inout BitReader) throws(FormatError) {
        chromaFormat = UInt8(try reader.unsigned(max: 3, "chroma_format_idc"))
        if chromaFormat == 3 { hasSeparatePlanes = try reader.flag() }
        lumaBits = UInt8(try reader.unsigned(max: 6, "bit_depth_luma_minus8") + 8)
        chromaBits = UInt8(try reader.unsigned(max: 6, "bit_depth_chroma_minus8") + 8)
        try reader.skip(1)
        guard try reader.flag() else { return }
        for index in 0..<(chromaFormat == 3 ? 12 : 8) {
            if try reader.flag() { try Self.skipScalingList(&reader, count: index < 6 ? 16 : 64) }
        }
    }

    /// scaling_list(), H.264 §7.3.2.1.1.1.
    private static func skipScalingList(_ reader: inout BitReader, count: Int) throws(FormatError) {
        var last = 8
        var next = 8
        for _ in 0..<count {
            if next != 0 { next = (last &+ (try reader.signed())) & 0xFF }
            if next != 0 { last = next }
        }
    }

    private static func skipPictureOrder(_ reader: inout BitReader) throws(FormatError) {
        switch try reader.unsigned(max: 2, "pic_order_cnt_type") {
        case 0: _ = try reader.unsigned(max: 12, "log2_max_pic_order_cnt_lsb_minus4")
        case 1:
            try reader.skip(1)
            _ = try reader.signed()
            _ = try reader.signed()
            let count = try reader.unsigned(max: 255, "num_ref_frames_in_pic_order_cnt_cycle")
            for _ in 0..<count { _ = try reader.signed() }
        default: break
        }
    }

    private mutating func readSize(_ reader: inout BitReader) throws(FormatError) {
        // 512 macroblocks are FormatLimits.pixelsMax.
        let columns = try reader.unsigned(max: 511, "pic_width_in_mbs_minus1") + 1
        let rows = try reader.unsigned(max: 511, "pic_height_in_map_units_minus1") + 1
        let isFrameOnly = try reader.flag()
        if !isFrameOnly { try reader.skip(1) }
        try reader.skip(1)
        var width = 16 * columns
        var height = 16 * rows * (isFrameOnly ? 1 : 2)
        if try reader.flag() {
            // CropUnitX and CropUnitY (H.264 equations 7-19…7-22).
            let isSubsampled = !hasSeparatePlanes && (chromaFormat == 1 || chromaFormat == 2)
            let unitX = isSubsampled ? 2 : 1
            let unitY = (chromaFormat == 1 ? 2 : 1) * (isFrameOnly ? 1 : 2)
            for _ in 0..<2 { width -= unitX * (try reader.unsigned(max: 8_192, "frame_crop_offset")) }
            for _ in 0..<2 { height -= unitY * (try reader.unsigned(max: 8_192, "frame_crop_offset")) }
        }
        guard let size = PictureSize(width: width, height: height) else { throw .invalid("the size of an H.264 SPS") }
        self.size = size
    }

    /// vui_parameters() up to the timing (H.264 §E.1.1). A tick is a field: two are a frame.
    private static func readFrameRate(_ reader: inout BitReader) throws(FormatError) -> Double? {
        guard try reader.flag() else { return nil }
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
        guard try reader.flag() else { return nil }
        let units = try reader.bits(32)
        let scale = try reader.bits(32)
        return plausibleRate(scale: scale, units: units, ticksPerFrame: 2)
    }
}

/// The frames each second of a clock of `scale` ticks each second, `units` of which are one step; `nil` outside 1…240.
func plausibleRate(scale: UInt32, units: UInt32, ticksPerFrame: Double) -> Double? {
    guard units > 0 else { return nil }
    let rate = Double(scale) / (ticksPerFrame * Double(units))
    return (1...240).contains(rate) ? rate : nil
}
