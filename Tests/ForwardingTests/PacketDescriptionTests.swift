import Testing
import Wire

@testable import Forwarding

@Suite struct PacketDescriptionTests {
    private func parse(
        _ bytes: [UInt8],
        _ codec: CodecName,
        _ extensions: HeaderExtensionMap = .init()
    ) throws -> PacketDescription {
        let view = try RTPPacketView(unsafe bytes.span.bytes)
        let description = PacketDescription(view, sequence: 7, codec: codec, extensions: extensions, at: .ms(3))
        return try #require(description)
    }

    @Test func `the header's fields and the payload's place are taken over`() throws {
        let bytes = makePacket(
            sequence: 9,
            timestamp: 77,
            payloadType: 100,
            marker: true,
            extensions: [(1, [1, 2, 3])],
            payload: [0x10, 0x01, 0]
        )
        let description = try parse(bytes, .vp8)
        #expect(description.sequence == 7)
        #expect(description.timestamp.rawValue == 77)
        #expect(description.payloadType.rawValue == 100)
        #expect(description.marker)
        #expect(description.payloadRange == 20..<23)
        #expect(description.receivedAt == .ms(3))
        #expect(!description.audioLevel.isPresent)
    }

    @Test func `padding is not payload`() throws {
        var bytes = makePacket(payload: [0, 0, 0, 4])
        bytes[0] |= 0x20
        let description = try parse(bytes, .vp8)
        #expect(description.payloadLength == 0)
        #expect(!description.startsKeyFrame)
    }

    @Test func `extensions are found under their negotiated ids and no others`() throws {
        var map = HeaderExtensionMap()
        map[.audioLevel] = HeaderExtensionID(rawValue: 1)
        map[.videoOrientation] = HeaderExtensionID(rawValue: 2)
        map[.playoutDelay] = HeaderExtensionID(rawValue: 3)
        let bytes = makePacket(extensions: [(1, [0x8A]), (2, [1]), (3, [0, 0x10, 0x20]), (4, [9])], payload: [1])
        let description = try parse(bytes, .opus, map)
        #expect(Array(bytes[description.audioLevel.range]) == [0x8A])
        #expect(Array(bytes[description.videoOrientation.range]) == [1])
        #expect(Array(bytes[description.playoutDelay.range]) == [0, 0x10, 0x20])
        #expect(!description.dependencyDescriptor.isPresent)
        #expect(!(try parse(bytes, .opus)).audioLevel.isPresent)
    }

    @Test(
        arguments: [([0], false), ([1], true), ([0x2A], false), ([0x2B], true), ([1, 9], true)] as [([UInt8], Bool)]
    )
    func `the lowest bit of the content type says that a packet is of a screen`(data: [UInt8], isScreen: Bool) throws {
        var map = HeaderExtensionMap()
        map[.videoContentType] = HeaderExtensionID(rawValue: 5)
        let bytes = makePacket(extensions: [(5, data)], payload: [0x90, 0xE0, 0x81, 0x23, 9, 0x20, 0x00])
        let description = try parse(bytes, .vp8, map)
        #expect(description.frame.contains(.isScreenContent) == isScreen)
        #expect(description.isPlain == !isScreen)
        #expect(description.frame.contains(.startsFrame))
        #expect(!(try parse(bytes, .vp8)).frame.contains(.isScreenContent), "it was not negotiated")
    }

    @Test func `audio has no key frames and no pictures`() throws {
        let description = try parse(makePacket(payload: [0x90, 0xE0, 0x81, 0x23, 9, 0x20, 0]), .opus)
        #expect(!description.startsKeyFrame)
        #expect(description.pictureIDBits == 0)
        #expect(description.tl0Offset == 0)
    }

    @Test func `a VP8 picture is found with 15 and 7 bits, and without`() throws {
        let long = try parse(makePacket(payload: [0x90, 0xE0, 0x81, 0x23, 9, 0x20, 0x00]), .vp8)
        #expect(long.pictureID == 0x0123)
        #expect(long.pictureIDBits == 15)
        #expect(long.pictureIDOffset == 2)
        #expect(long.tl0 == 9)
        #expect(long.tl0Offset == 4)
        #expect(long.startsKeyFrame)
        let short = try parse(makePacket(payload: [0x90, 0x80, 0x23, 0x01]), .vp8)
        #expect(short.pictureID == 0x23)
        #expect(short.pictureIDBits == 7)
        #expect(short.tl0Offset == 0)
        #expect(!short.startsKeyFrame)
        let none = try parse(makePacket(payload: [0x10, 0x00]), .vp8)
        #expect(none.pictureIDBits == 0)
        #expect(none.startsKeyFrame)
    }

    @Test(
        arguments: [
            (codec: .vp8, payload: [0x10, 0x00], isKey: true), (codec: .vp8, payload: [0x10, 0x01], isKey: false),
            (codec: .vp8, payload: [0x00, 0x00], isKey: false), (codec: .vp8, payload: [0x90], isKey: false),
            // VP9: B and no P, then P, then not the beginning of a frame.
            (codec: .vp9, payload: [0x08, 0x00], isKey: true), (codec: .vp9, payload: [0x48, 0x00], isKey: false),
            (codec: .vp9, payload: [0x00, 0x00], isKey: false),
            (codec: .h264, payload: [0x67, 0x42, 0], isKey: true), (codec: .h264, payload: [0x65, 0, 0], isKey: true),
            (codec: .h264, payload: [0x61, 0, 0], isKey: false), (codec: .h264, payload: [0x7C, 0x85, 0], isKey: true),
            (codec: .h264, payload: [0x7C, 0x05, 0], isKey: false),
            (codec: .h264, payload: [0x78, 0, 2, 0x67, 0x42], isKey: true),
            (codec: .h265, payload: [0x40, 0x01, 0], isKey: true),
            (codec: .h265, payload: [0x26, 0x01, 0], isKey: true),
            (codec: .h265, payload: [0x02, 0x01, 0], isKey: false),
            (codec: .av1, payload: [0x18, 0x0A, 0x01], isKey: true),
            (codec: .av1, payload: [0x10, 0x32, 0x01], isKey: false),
        ] as [(codec: CodecName, payload: [UInt8], isKey: Bool)]
    )
    func `a key frame is told by its codec's own signs`(codec: CodecName, payload: [UInt8], isKey: Bool) throws {
        #expect(try parse(makePacket(payload: payload), codec).startsKeyFrame == isKey)
    }

    @Test func `a dependency descriptor decides for a payload that cannot be read`() throws {
        var map = HeaderExtensionMap()
        map[.dependencyDescriptor] = HeaderExtensionID(rawValue: 5)
        // First packet of frame 0x0102: with a template structure, then without.
        let structure = makePacket(extensions: [(5, [0x80, 0x01, 0x02, 0x80])], payload: [0x10, 0x32, 0x01])
        let key = try parse(structure, .av1, map)
        #expect(key.startsKeyFrame)
        #expect(key.dependencyDescriptor.length == 4)
        let plain = makePacket(extensions: [(5, [0x80, 0x01, 0x02])], payload: [0x18, 0x0A, 0x01])
        #expect(!(try parse(plain, .av1, map)).startsKeyFrame)
    }

    @Test func `no mutation of a packet traps, and what is found lies inside it`() throws {
        var map = HeaderExtensionMap()
        for (index, kind) in HeaderExtension.allCases.enumerated() {
            map[kind] = HeaderExtensionID(rawValue: UInt8(index + 1))
        }
        let seed = makePacket(
            extensions: [(6, [1]), (7, [1]), (8, [1, 2, 3]), (9, [0x80, 1, 2, 0x80])],
            payload: [0x90, 0xE0, 0x81, 0x23, 9, 0x20, 0, 1, 2, 3, 4, 5]
        )
        var state: UInt64 = 11
        for _ in 0..<20_000 {
            var bytes = seed
            for _ in 0..<3 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes[Int(state >> 40) % bytes.count] = UInt8(truncatingIfNeeded: state >> 32)
            }
            bytes.removeLast(Int(state >> 50) % 8)
            guard let view = try? RTPPacketView(unsafe bytes.span.bytes) else { continue }
            for codec in CodecName.allCases {
                guard let found = PacketDescription(view, sequence: 1, codec: codec, extensions: map, at: .ms(0))
                else { continue }
                #expect(found.payloadRange.upperBound <= bytes.count)
                #expect(found.dependencyDescriptor.range.upperBound <= bytes.count)
                if found.pictureIDBits != 0 {
                    let width = found.pictureIDBits == 15 ? 2 : 1
                    #expect(Int(found.pictureIDOffset) + width <= Int(found.payloadLength))
                }
                if found.tl0Offset != 0 { #expect(Int(found.tl0Offset) < Int(found.payloadLength)) }
            }
        }
    }
}
