import Base

/// The configuration record of VP8 and VP9, the payload of `vpcC` after version and flags (VP Codec ISO Media File
/// Format Binding, version 1). The size is not in the record: it comes from the key frame.
package struct VPConfiguration: Hashable, Sendable {
    /// 0…3; 0 for VP8.
    package var profile: UInt8
    /// Ten times the level; 0 is unknown.
    package var level: UInt8
    /// 8, 10 or 12.
    package var bitDepth: UInt8
    /// 0 and 1: 4:2:0; 2: 4:2:2; 3: 4:4:4.
    package var chroma: UInt8
    /// Whether black is 0 and white the greatest value.
    package var isFullRange: Bool
    /// Colour primaries, transfer characteristics and matrix coefficients (ISO/IEC 23001-8); 2 is unspecified.
    package var color: [3 of UInt8] = [2, 2, 2]
    /// The size of the pictures; `nil` in a record of which no key frame is known.
    package var size: PictureSize?

    /// Creates the configuration of a stream of this size.
    package init(
        profile: UInt8 = 0,
        level: UInt8? = nil,
        bitDepth: UInt8 = 8,
        chroma: UInt8 = 1,
        isFullRange: Bool = false,
        size: PictureSize?
    ) {
        self.profile = profile
        self.level = level ?? size.map(Self.level) ?? 0
        self.bitDepth = bitDepth
        self.chroma = chroma
        self.isFullRange = isFullRange
        self.size = size
    }

    /// Reads the record. Some writers put version and flags of the box before it, others leave them out.
    package init(_ record: RawSpan) throws(FormatError) {
        guard record.byteCount <= FormatLimits.configurationBytesMax else { throw .limit("bytes of a configuration") }
        var reader = ByteReader(record, "vpcC")
        // The record alone has 8 bytes, and a codecInitializationData of no bytes.
        if record.byteCount >= 12, record.bigEndianUInt32(at: 0) == 0x01_00_00_00 { try reader.skip(4) }
        profile = try reader.uint8()
        level = try reader.uint8()
        let packed = try reader.uint8()
        bitDepth = packed >> 4
        chroma = packed >> 1 & 0x07
        isFullRange = packed & 1 == 1
        color = [try reader.uint8(), try reader.uint8(), try reader.uint8()]
        guard profile <= 3, bitDepth == 8 || bitDepth == 10 || bitDepth == 12, chroma <= 3 else {
            throw .invalid("a field of vpcC")
        }
    }

    /// The record, without version and flags of its box.
    package var encoded: [UInt8] {
        let packed = bitDepth << 4 | (chroma & 7) << 1 | (isFullRange ? 1 : 0)
        return [profile, level, packed, color[0], color[1], color[2], 0, 0]
    }

    /// The codecs parameter's fields, as `00.31.08` (VP Codec ISO Media File Format Binding, Codecs Parameter String).
    var codecFields: String { "\(twoDigits(Int(profile))).\(twoDigits(Int(level))).\(twoDigits(Int(bitDepth)))" }

    /// The least level whose pictures may be as large; the rate is not known (VP9 levels, luma picture size).
    private static func level(of size: PictureSize) -> UInt8 {
        let table: [(pixels: Int, level: UInt8)] = [
            (36_864, 10), (73_728, 11), (122_880, 20), (245_760, 21), (552_960, 30), (983_040, 31), (2_228_224, 40),
            (8_912_896, 50),
        ]
        return table.first { size.width * size.height <= $0.pixels }?.level ?? 60
    }

    /// Whether record and size are the same.
    package static func == (left: Self, right: Self) -> Bool {
        left.encoded == right.encoded && left.size == right.size
    }

    /// Hashes record and size.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(encoded)
        hasher.combine(size)
    }
}

/// The header of a VP8 frame (RFC 6386 §9.1).
package struct VP8FrameHeader: Hashable, Sendable {
    /// Whether decoding can start with the frame.
    package let isKey: Bool
    /// show_frame.
    package let isShown: Bool
    /// The size of a key frame; `nil` for others.
    package let size: PictureSize?

    /// Reads the header at the start of a frame.
    package init(_ frame: RawSpan) throws(FormatError) {
        guard frame.byteCount >= 3 else { throw .truncated("a VP8 frame header") }
        let first = frame.byte(at: 0)
        isKey = first & 1 == 0
        isShown = first & 0x10 != 0
        guard isKey else {
            size = nil
            return
        }
        guard frame.byteCount >= 10 else { throw .truncated("a VP8 frame header") }
        guard frame.bigEndianUInt24(at: 3) == 0x9D_01_2A else { throw .invalid("the start code of a VP8 key frame") }
        // Little-endian; the two highest bits are the scale.
        let width = Int(frame.byte(at: 6)) | Int(frame.byte(at: 7) & 0x3F) << 8
        let height = Int(frame.byte(at: 8)) | Int(frame.byte(at: 9) & 0x3F) << 8
        guard let size = PictureSize(width: width, height: height) else { throw .invalid("the size of a VP8 frame") }
        self.size = size
    }

    /// The configuration of a key frame; `nil` for others.
    package var configuration: VPConfiguration? { size.map { VPConfiguration(size: $0) } }
}

/// The uncompressed header of a VP9 frame (VP9 §6.2), of a superframe that of its first frame.
package struct VP9FrameHeader: Hashable, Sendable {
    /// Whether decoding can start with the frame.
    package let isKey: Bool
    /// show_frame, or a frame that only shows one that is there.
    package let isShown: Bool
    /// The configuration of a key frame, with its size; `nil` for others.
    package let configuration: VPConfiguration?

    /// Reads the header at the start of a frame or superframe.
    package init(_ frame: RawSpan) throws(FormatError) {
        var reader = BitReader(frame, "a VP9 frame header")
        guard try reader.bits(2) == 2 else { throw .invalid("the frame marker of VP9") }
        let low = try reader.bits(1)
        let profile = UInt8(truncatingIfNeeded: try reader.bits(1) << 1 | low)
        if profile == 3 { try reader.skip(1) }
        let showsExisting = try reader.flag()
        guard !showsExisting else {
            (isKey, isShown, configuration) = (false, true, nil)
            return
        }
        isKey = try !reader.flag()
        isShown = try reader.flag()
        try reader.skip(1)
        configuration = isKey ? try Self.readKeyFrame(&reader, profile: profile) : nil
    }

    private static func readKeyFrame(
        _ reader: inout BitReader,
        profile: UInt8
    ) throws(FormatError) -> VPConfiguration {
        guard try reader.bits(24) == 0x49_83_42 else { throw .invalid("the sync code of a VP9 key frame") }
        var depth: UInt8 = 8
        if profile >= 2 { depth = try reader.flag() ? 12 : 10 }
        let space = try reader.bits(3)
        var isFullRange = true
        var chroma: UInt8 = 1
        let hasChromaBits = profile == 1 || profile == 3
        if space != 7 {
            isFullRange = try reader.flag()
            if hasChromaBits {
                let halvesWidth = try reader.flag()
                let halvesHeight = try reader.flag()
                chroma = halvesWidth ? (halvesHeight ? 1 : 2) : 3
                try reader.skip(1)
            }
        } else {
            chroma = 3
            if hasChromaBits { try reader.skip(1) }
        }
        let width = Int(try reader.bits(16)) + 1
        let height = Int(try reader.bits(16)) + 1
        guard let size = PictureSize(width: width, height: height) else { throw .invalid("the size of a VP9 frame") }
        return VPConfiguration(
            profile: profile,
            bitDepth: depth,
            chroma: chroma,
            isFullRange: isFullRange,
            size: size
        )
    }
}
