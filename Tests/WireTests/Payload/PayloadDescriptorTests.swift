import Testing
import Wire

struct PayloadVP8Tests {
    /// A libvpx key frame's payload header: frame tag of a key frame, start code, 640x360.
    static let keyPayload: [UInt8] = [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01]

    @Test func `the whole descriptor is read`() throws {
        let payload: [UInt8] = [0x90, 0xE0, 0x92, 0x34, 0x56, 0x60] + Self.keyPayload
        let descriptor = try #require(VP8PayloadDescriptor(unsafe payload.span.bytes))
        #expect(descriptor.headerLength == 6)
        #expect(descriptor.startsPartition && descriptor.partition == 0 && !descriptor.nonReference)
        #expect(descriptor.pictureID?.value == 0x1234 && descriptor.pictureID?.bits == 15)
        #expect(descriptor.pictureID?.offset == 2)
        #expect(descriptor.tl0PictureIndex?.value == 0x56 && descriptor.tl0PictureIndex?.offset == 4)
        #expect(descriptor.temporalID == 1 && descriptor.layerSync)
        #expect(descriptor.isKeyFrameStart)
    }

    @Test(
        arguments: [
            ("no extension", [0x10] + keyPayload, 1, true),
            ("delta frame", [0x10, 0x11, 0, 0], 1, false),
            ("key frame, later packet", [0x00] + keyPayload, 1, false),
            ("key frame, second partition", [0x11] + keyPayload, 1, false),
            ("7-bit picture id", [0x90, 0x80, 0x17] + keyPayload, 3, true),
            ("non-reference", [0x30, 0x11, 0, 0], 1, false),
            ("key index only", [0x90, 0x10, 0x1F] + keyPayload, 3, true),
            ("extension with nothing", [0x90, 0x00] + keyPayload, 2, true),
        ] as [(String, [UInt8], Int, Bool)]
    )
    func `descriptor forms`(name: String, payload: [UInt8], headerLength: Int, isKey: Bool) throws {
        let descriptor = try #require(VP8PayloadDescriptor(unsafe payload.span.bytes))
        #expect(descriptor.headerLength == headerLength)
        #expect(descriptor.isKeyFrameStart == isKey)
        #expect(isKeyFrameStart(codec: .vp8, payload: unsafe payload.span.bytes) == isKey)
    }

    @Test func `the size is read from key frames only`() {
        // 640 × 720 with a horizontal scale of 1, after a descriptor of one byte and the frame tag.
        let keyFrame: [UInt8] = [0x10, 0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x42, 0xD0, 0x02]
        let size = VP8PayloadDescriptor.keyFrameSize(unsafe keyFrame.span.bytes)
        #expect(size?.width == 640)
        #expect(size?.height == 720)
        var delta = keyFrame
        delta[1] |= 1
        #expect(VP8PayloadDescriptor.keyFrameSize(unsafe delta.span.bytes) == nil)
        for count in 0..<keyFrame.count {
            let part = Array(keyFrame.prefix(count))
            #expect(VP8PayloadDescriptor.keyFrameSize(unsafe part.span.bytes) == nil)
        }
    }

    @Test func `a descriptor without a payload is refused`() {
        let valid: [UInt8] = [0x90, 0xE0, 0x92, 0x34, 0x56, 0x60]
        for length in 0...valid.count {
            let payload = Array(valid.prefix(length))
            #expect(VP8PayloadDescriptor(unsafe payload.span.bytes) == nil)
        }
    }
}

struct PayloadVP9Tests {
    /// Non-flexible mode, first packet of a key picture: structure of two spatial layers and a group of one picture.
    static let keyPayload: [UInt8] = [
        0xAA, 0x81, 0x02, 0x00, 0x07, 0x38, 0x01, 0x40, 0x00, 0xB4, 0x02, 0x80, 0x01, 0x68, 0x01, 0x14, 0x01, 0x82,
    ]

    @Test func `a key picture's descriptor is read`() throws {
        let payload = Self.keyPayload
        let descriptor = try #require(VP9PayloadDescriptor(unsafe payload.span.bytes))
        #expect(descriptor.pictureID?.value == 0x0102 && descriptor.pictureID?.bits == 15)
        #expect(descriptor.tl0PictureIndex?.value == 7 && descriptor.tl0PictureIndex?.offset == 4)
        #expect(descriptor.spatialID == 0 && descriptor.temporalID == 0)
        #expect(descriptor.beginsFrame && !descriptor.endsFrame && !descriptor.interPicturePredicted)
        #expect(descriptor.scalabilityStructure?.spatialLayerCount == 2)
        #expect(descriptor.scalabilityStructure?.width == 640 && descriptor.scalabilityStructure?.height == 360)
        #expect(descriptor.headerLength == 17)
        #expect(descriptor.isKeyFrameStart)
    }

    @Test(
        arguments: [
            ("delta", [0xE8, 0x05, 0x30, 0x07, 0x86], 4, false),
            ("flexible delta, two references", [0xF8, 0x05, 0x30, 0x03, 0x04, 0x86], 5, false),
            ("flexible key", [0xB8, 0x05, 0x00, 0x82], 3, true),
            ("key picture, upper spatial layer", [0xA8, 0x05, 0x03, 0x07, 0x86], 4, false),
            ("key, later packet", [0xA0, 0x05, 0x00, 0x07, 0x86], 4, false),
            ("no layers, key", [0x8C, 0x05, 0x82], 2, true),
            ("nothing optional", [0x0C, 0x82], 1, true),
        ] as [(String, [UInt8], Int, Bool)]
    )
    func `descriptor forms`(name: String, payload: [UInt8], headerLength: Int, isKey: Bool) throws {
        let descriptor = try #require(VP9PayloadDescriptor(unsafe payload.span.bytes))
        #expect(descriptor.headerLength == headerLength)
        #expect(isKeyFrameStart(codec: .vp9, payload: unsafe payload.span.bytes) == isKey)
    }

    @Test func `layer bits are read`() throws {
        let payload: [UInt8] = [0xA9, 0x05, 0x57, 0x07, 0x86]
        let descriptor = try #require(VP9PayloadDescriptor(unsafe payload.span.bytes))
        #expect(descriptor.temporalID == 2 && descriptor.switchingUp)
        #expect(descriptor.spatialID == 3 && descriptor.interLayerDependency)
        #expect(descriptor.notReferencedByUpperLayers)
    }

    @Test func `more than three references are refused`() {
        let payload: [UInt8] = [0xF8, 0x05, 0x30, 0x03, 0x03, 0x03, 0x02, 0x86]
        #expect(VP9PayloadDescriptor(unsafe payload.span.bytes) == nil)
    }

    @Test func `a truncated descriptor is refused`() {
        for length in 0..<Self.keyPayload.count {
            let payload = Array(Self.keyPayload.prefix(length))
            #expect(VP9PayloadDescriptor(unsafe payload.span.bytes) == nil)
        }
    }
}

struct PayloadKeyFrameTests {
    @Test(
        arguments: [
            // AV1: aggregation header, then OBU elements; 0x0A is a sequence header with a size, 0x08 without, 0x32 a frame.
            (
                "AV1 sequence header, two elements", CodecName.av1, [0x28, 0x04, 0x08, 0x00, 0x00, 0x00, 0x30, 0x10],
                true
            ),
            ("AV1 behind a temporal delimiter", .av1, [0x38, 0x01, 0x10, 0x02, 0x08, 0x00, 0x30], true),
            ("AV1 every element with a length", .av1, [0x08, 0x03, 0x08, 0x00, 0x00, 0x02, 0x30, 0x10], true),
            ("AV1 one element", .av1, [0x18, 0x0A, 0x0B, 0x00], true),
            ("AV1 delta frame", .av1, [0x10, 0x30, 0x10, 0x00], false),
            ("AV1 new sequence without its header", .av1, [0x18, 0x30, 0x10], false),
            ("AV1 continued element", .av1, [0x98, 0x0A, 0x0B], false),
            ("AV1 element past the end", .av1, [0x08, 0x7F, 0x08], false),
            ("AV1 length without end", .av1, [0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], false),
            ("H264 SPS", .h264, [0x67, 0x42, 0xE0, 0x1F], true),
            ("H264 PPS", .h264, [0x68, 0xCE, 0x06], false),
            ("H264 IDR", .h264, [0x65, 0xB8, 0x00], true),
            ("H264 slice", .h264, [0x41, 0x9A, 0x02], false),
            ("H264 STAP-A with SPS", .h264, [0x78, 0, 3, 0x67, 0x42, 0xE0, 0, 2, 0x68, 0xCE], true),
            ("H264 STAP-A with IDR last", .h264, [0x78, 0, 2, 0x09, 0xF0, 0, 2, 0x65, 0xB8], true),
            ("H264 STAP-A of slices", .h264, [0x78, 0, 2, 0x41, 0x9A, 0, 2, 0x41, 0x9A], false),
            ("H264 STAP-A past the end", .h264, [0x78, 0, 9, 0x67, 0x42], false),
            ("H264 FU-A start of IDR", .h264, [0x7C, 0x85, 0xB8], true),
            ("H264 FU-A middle of IDR", .h264, [0x7C, 0x05, 0xB8], false),
            ("H264 FU-A start of slice", .h264, [0x5C, 0x81, 0x9A], false),
            ("H265 VPS", .h265, [0x40, 0x01, 0x0C], true),
            ("H265 SPS", .h265, [0x42, 0x01, 0x01], true),
            ("H265 PPS", .h265, [0x44, 0x01, 0xC1], false),
            ("H265 IDR_W_RADL", .h265, [0x26, 0x01, 0xAF], true),
            ("H265 CRA", .h265, [0x2A, 0x01, 0xAF], true),
            ("H265 TRAIL_R", .h265, [0x02, 0x01, 0xD0], false),
            ("H265 aggregation with VPS", .h265, [0x60, 0x01, 0, 3, 0x40, 0x01, 0x0C, 0, 2, 0x42, 0x01], true),
            ("H265 aggregation of slices", .h265, [0x60, 0x01, 0, 3, 0x02, 0x01, 0xD0, 0, 3, 0x02, 0x01, 0xD0], false),
            ("H265 fragment start of IDR", .h265, [0x62, 0x01, 0x93, 0xAF], true),
            ("H265 fragment middle of IDR", .h265, [0x62, 0x01, 0x13, 0xAF], false),
            ("H265 fragment start of slice", .h265, [0x62, 0x01, 0x81, 0xD0], false),
            ("Opus", .opus, [0x78], true),
            ("RED", .red, [0x6F, 0x78], true),
        ] as [(String, CodecName, [UInt8], Bool)]
    )
    func `key frame starts are told`(name: String, codec: CodecName, payload: [UInt8], expected: Bool) {
        #expect(isKeyFrameStart(codec: codec, payload: unsafe payload.span.bytes) == expected)
    }

    @Test func `a dependency descriptor takes precedence over the payload`() throws {
        let encrypted: [UInt8] = [0xFF, 0xFF]
        let key: [UInt8] = [0x80, 0, 1, 0x80]
        let delta: [UInt8] = [0x80, 0, 1]
        let keyHead = try #require(DependencyDescriptorHeader(unsafe key.span.bytes))
        let deltaHead = try #require(DependencyDescriptorHeader(unsafe delta.span.bytes))
        #expect(isKeyFrameStart(codec: .av1, payload: unsafe encrypted.span.bytes, descriptor: keyHead))
        let plain: [UInt8] = [0x18, 0x0A, 0x0B, 0x00]
        #expect(!isKeyFrameStart(codec: .av1, payload: unsafe plain.span.bytes, descriptor: deltaHead))
    }

    @Test(
        arguments: [
            [0x90, 0xE0, 0x92, 0x34, 0x56, 0x60, 0x10, 0x02], PayloadVP9Tests.keyPayload,
            [0x08, 0x03, 0x08, 0x00, 0x00, 0x02, 0x30, 0x10], [0x78, 0, 2, 0x09, 0xF0, 0, 2, 0x65, 0xB8],
            [0x60, 0x01, 0, 3, 0x02, 0x01, 0x0C, 0, 2, 0x42, 0x01],
            [0xEF, 0x1E, 0x00, 0x02, 0x6F, 1, 2, 3],
        ] as [[UInt8]]
    )
    func `damaged payloads never trap`(valid: [UInt8]) {
        forEachDamage(of: valid, seed: 7, rounds: 30_000) { payload in
            for codec in CodecName.allCases { _ = isKeyFrameStart(codec: codec, payload: unsafe payload.span.bytes) }
            if let descriptor = VP9PayloadDescriptor(unsafe payload.span.bytes) {
                #expect(descriptor.headerLength < payload.count)
            }
            if let descriptor = VP8PayloadDescriptor(unsafe payload.span.bytes) {
                #expect(descriptor.headerLength < payload.count)
            }
            guard var cursor = REDBlockCursor(unsafe payload.span.bytes) else { return }
            var count = 0
            var end = 0
            while let block = cursor.next() {
                count += 1
                end = block.range.upperBound
            }
            #expect(count <= REDBlockCursor.blocksMax && end == payload.count)
        }
    }
}

struct PayloadREDTests {
    static func blocks(_ payload: [UInt8]) -> [REDBlock]? {
        guard var cursor = REDBlockCursor(unsafe payload.span.bytes) else { return nil }
        var found: [REDBlock] = []
        while let block = cursor.next() { found.append(block) }
        return found
    }

    @Test func `redundant blocks come before the primary one`() throws {
        // Two redundant Opus blocks, 1920 and 960 ticks old, of 2 and 3 bytes.
        let payload: [UInt8] = [0xEF, 0x1E, 0x00, 0x02, 0xEF, 0x0F, 0x00, 0x03, 0x6F, 1, 2, 3, 4, 5, 6, 7]
        let found = try #require(Self.blocks(payload))
        #expect(found.map(\.payloadType.rawValue) == [111, 111, 111])
        #expect(found.map(\.headerOffset) == [0, 4, 8])
        #expect(found.map(\.timestampOffset) == [1920, 960, 0])
        #expect(found.map(\.range) == [9..<11, 11..<14, 14..<16])
        #expect(found.map(\.isPrimary) == [false, false, true])
    }

    @Test func `a single primary block is read`() {
        #expect(Self.blocks([0x6F, 9, 9])?.map(\.range) == [1..<3])
        #expect(Self.blocks([0x6F])?.map(\.range) == [1..<1])
    }

    @Test(
        arguments: [
            [], [0xEF], [0xEF, 0, 0, 1], [0xEF, 0, 0, 1, 0x6F], Array(repeating: 0x80, count: 200),
        ] as [[UInt8]]
    )
    func `what reaches past the payload is refused`(payload: [UInt8]) {
        #expect(Self.blocks(payload) == nil)
    }
}
