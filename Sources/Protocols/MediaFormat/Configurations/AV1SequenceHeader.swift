import Base

/// The fields of an AV1 sequence header that a container or a playlist tells (AV1 §5.5).
package struct AV1SequenceHeader: Hashable, Sendable {
    /// seq_profile, 0…2.
    package private(set) var profile: UInt8 = 0
    /// seq_level_idx of the first operating point, 0…31.
    package private(set) var level: UInt8 = 0
    /// seq_tier of the first operating point: whether the tier is High.
    package private(set) var isHighTier = false
    /// BitDepth: 8, 10 or 12.
    package private(set) var bitDepth: UInt8 = 8
    /// mono_chrome.
    package private(set) var isMonochrome = false
    /// subsampling_x: whether chroma has half the width.
    package private(set) var halvesChromaWidth = true
    /// subsampling_y: whether chroma has half the height.
    package private(set) var halvesChromaHeight = true
    /// chroma_sample_position, 0…3.
    package private(set) var chromaPosition: UInt8 = 0
    /// The greatest size of a frame.
    package private(set) var size: PictureSize
    /// reduced_still_picture_header: frame headers have no type.
    package private(set) var isReducedStill = false

    /// Reads the payload of an OBU of type 1, without its header and size.
    package init(_ payload: RawSpan) throws(FormatError) {
        guard let one = PictureSize(width: 1, height: 1) else { throw .invalid("a picture size") }
        size = one
        var reader = BitReader(payload, "an AV1 sequence header")
        profile = UInt8(truncatingIfNeeded: try reader.bits(3))
        guard profile <= 2 else { throw .invalid("seq_profile") }
        try reader.skip(1)
        isReducedStill = try reader.flag()
        if isReducedStill {
            level = UInt8(truncatingIfNeeded: try reader.bits(5))
        } else {
            try readOperatingPoints(&reader)
        }
        let widthBits = Int(try reader.bits(4)) + 1
        let heightBits = Int(try reader.bits(4)) + 1
        let width = Int(try reader.bits(widthBits)) + 1
        let height = Int(try reader.bits(heightBits)) + 1
        guard let size = PictureSize(width: width, height: height) else {
            throw .invalid("the size of an AV1 sequence")
        }
        self.size = size
        try skipTools(&reader)
        try readColor(&reader)
    }

    private mutating func readOperatingPoints(_ reader: inout BitReader) throws(FormatError) {
        var delayBits: Int?
        if try reader.flag() {
            try reader.skip(64)
            if try reader.flag() { _ = try reader.uvlc() }
            if try reader.flag() {
                delayBits = Int(try reader.bits(5)) + 1
                try reader.skip(32 + 5 + 5)
            }
        }
        let hasDisplayDelay = try reader.flag()
        for index in 0...(try reader.bits(5)) {
            try reader.skip(12)
            let pointLevel = UInt8(truncatingIfNeeded: try reader.bits(5))
            let isHigh = pointLevel > 7 ? try reader.flag() : false
            if index == 0 { (level, isHighTier) = (pointLevel, isHigh) }
            if let delayBits {
                if try reader.flag() { try reader.skip(2 * delayBits + 1) }
            }
            if hasDisplayDelay {
                if try reader.flag() { try reader.skip(4) }
            }
        }
    }

    /// The flags of coding tools between the size and the colors.
    private func skipTools(_ reader: inout BitReader) throws(FormatError) {
        if !isReducedStill {
            if try reader.flag() { try reader.skip(7) }
        }
        try reader.skip(3)
        if !isReducedStill {
            try reader.skip(4)
            let hasOrderHint = try reader.flag()
            if hasOrderHint { try reader.skip(2) }
            let choosesTools = try reader.flag()
            let forcesTools = choosesTools ? true : try reader.flag()
            if forcesTools {
                if try !reader.flag() { try reader.skip(1) }
            }
            if hasOrderHint { try reader.skip(3) }
        }
        try reader.skip(3)
    }

    /// color_config(), AV1 §5.5.2.
    private mutating func readColor(_ reader: inout BitReader) throws(FormatError) {
        let isHighDepth = try reader.flag()
        let isTwelve = profile == 2 && isHighDepth ? try reader.flag() : false
        bitDepth = isTwelve ? 12 : isHighDepth ? 10 : 8
        isMonochrome = profile == 1 ? false : try reader.flag()
        var description: (UInt32, UInt32, UInt32) = (2, 2, 2)
        if try reader.flag() {
            let primaries = try reader.bits(8)
            let transfer = try reader.bits(8)
            description = (primaries, transfer, try reader.bits(8))
        }
        if isMonochrome { return try reader.skip(1) }
        if description == (1, 13, 0) {
            (halvesChromaWidth, halvesChromaHeight) = (false, false)
            return
        }
        try reader.skip(1)
        switch profile {
        case 0: break
        case 1: (halvesChromaWidth, halvesChromaHeight) = (false, false)
        default:
            halvesChromaWidth = isTwelve ? try reader.flag() : true
            halvesChromaHeight = isTwelve && halvesChromaWidth ? try reader.flag() : false
        }
        if halvesChromaWidth, halvesChromaHeight { chromaPosition = UInt8(truncatingIfNeeded: try reader.bits(2)) }
    }
}
