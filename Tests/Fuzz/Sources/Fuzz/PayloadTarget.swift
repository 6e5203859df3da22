import Base
import Wire

/// A payload in every format: the first byte chooses the codec that is checked in detail.
func fuzzPayload(_ bytes: RawSpan) {
    guard bytes.byteCount >= 1 else { return }
    let codec = CodecName.allCases[Int(bytes.byte(at: 0)) % CodecName.allCases.count]
    let payload = bytes.extracting(1..<bytes.byteCount)
    let starts = isKeyFrameStart(codec: codec, payload: payload)
    _ = isKeyFrameStart(codec: codec, payload: payload, descriptor: DependencyDescriptorHeader(payload))
    switch codec {
    case .vp8:
        guard let descriptor = VP8PayloadDescriptor(payload) else { return require(!starts, "malformed says no") }
        require(descriptor.isKeyFrameStart == starts, "both say the same")
        require(descriptor.headerLength < payload.byteCount, "something follows the descriptor")
        check(descriptor.pictureID, descriptor.tl0PictureIndex, payload, headerLength: descriptor.headerLength)
    case .vp9:
        guard let descriptor = VP9PayloadDescriptor(payload) else { return require(!starts, "malformed says no") }
        require(descriptor.isKeyFrameStart == starts, "both say the same")
        require(descriptor.headerLength < payload.byteCount, "something follows the descriptor")
        check(descriptor.pictureID, descriptor.tl0PictureIndex, payload, headerLength: descriptor.headerLength)
    case .red: walkRED(payload)
    case .opus, .av1, .h264, .h265: break
    }
}

/// The fields that the SFU overwrites are inside the descriptor and have the values that were read.
private func check(
    _ picture: PictureIDField?,
    _ tl0: TL0PictureIndexField?,
    _ payload: RawSpan,
    headerLength: Int
) {
    if let picture {
        require(picture.bits == 7 || picture.bits == 15, "7 or 15 bits")
        require(picture.offset + (picture.bits == 15 ? 2 : 1) <= headerLength, "the picture id is in the descriptor")
        let value =
            picture.bits == 15
            ? payload.bigEndianUInt16(at: picture.offset) & 0x7FFF : UInt16(payload.byte(at: picture.offset))
        require(picture.value == value, "the picture id is where it is said to be")
    }
    if let tl0 {
        require(tl0.offset < headerLength, "TL0PICIDX is in the descriptor")
        require(tl0.value == payload.byte(at: tl0.offset), "TL0PICIDX is where it is said to be")
    }
}

private func walkRED(_ payload: RawSpan) {
    guard var cursor = REDBlockCursor(payload) else { return }
    var count = 0
    var end: Int?
    var sawPrimary = false
    while let block = cursor.next() {
        count += 1
        require(!sawPrimary, "the primary block is the last")
        sawPrimary = block.isPrimary
        require(block.headerOffset < payload.byteCount, "the header is inside")
        require(block.range.upperBound <= payload.byteCount, "the block is inside")
        require(end == nil || end == block.range.lowerBound, "blocks follow each other")
        end = block.range.upperBound
        _ = payload.extracting(block.range)
    }
    require(sawPrimary && end == payload.byteCount, "the primary block ends the payload")
    require(count <= REDBlockCursor.blocksMax, "blocks are bounded")
}

/// Payloads by codec, several of each.
let samplePayloads: [(codec: CodecName, name: String, bytes: [UInt8])] = [
    (.opus, "opus", [0x78, 0x01, 0x02, 0x03]),
    (.red, "red", [0x80 | 111, 0x0F, 0x00, 0x03, 0x80 | 111, 0x07, 0x80, 0x02, 111, 1, 2, 3, 4, 5, 6, 7]),
    (.red, "red-primary", [111, 1, 2, 3]),
    (.vp8, "vp8-key", [0x90, 0xE0, 0x81, 0x23, 0x10, 0x20, 0x00, 0x9D, 0x01, 0x2A]),
    (.vp8, "vp8-delta", [0x80, 0xF0, 0x12, 0x11, 0x60, 0x01, 0x02]),
    (.vp8, "vp8-bare", [0x10, 0x00]),
    (
        .vp9, "vp9-structure",
        [0x8A, 0x81, 0x02, 0x38, 0x01, 0x40, 0x00, 0xF0, 0x02, 0x80, 0x01, 0xE0, 0x02, 0x04, 0x01, 0x08, 0x01, 2, 0x82]
    ),
    (.vp9, "vp9-flexible", [0xFC, 0x81, 0x03, 0x22, 0x03, 0x04, 0x86]),
    (.vp9, "vp9-layers", [0xAC, 0x05, 0x10, 0x07, 0x49]),
    (.av1, "av1-key", [0x18, 0x02, 0x12, 0x00, 0x0A, 0x0B, 0x00, 0x00]),
    (.av1, "av1-lengths", [0x08, 0x02, 0x12, 0x00, 0x03, 0x0A, 0x0B, 0x00]),
    (.h264, "h264-stap", [0x78, 0x00, 0x04, 0x67, 0x42, 0xE0, 0x1F, 0x00, 0x02, 0x68, 0xCE]),
    (.h264, "h264-fu", [0x7C, 0x85, 0x88, 0x84]),
    (.h264, "h264-single", [0x65, 0x88, 0x84]),
    (.h265, "h265-ap", [0x60, 0x01, 0x00, 0x03, 0x40, 0x01, 0x0C, 0x00, 0x03, 0x42, 0x01, 0x01]),
    (.h265, "h265-fu", [0x62, 0x01, 0x93, 0xAF]),
    (.h265, "h265-single", [0x26, 0x01, 0xAF]),
]

func seedsPayload() -> [(name: String, bytes: [UInt8])] {
    samplePayloads.map { sample in
        let index = CodecName.allCases.firstIndex(of: sample.codec) ?? 0
        return (sample.name, [UInt8(index)] + sample.bytes)
    }
}
