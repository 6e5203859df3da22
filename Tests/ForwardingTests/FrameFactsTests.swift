import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Layers, frame boundaries and decode targets: what a packet says of its frame.
@Suite struct FrameFactsTests {
    private static let descriptorID: UInt8 = 5

    private static let extensions = {
        var map = HeaderExtensionMap()
        map[.dependencyDescriptor] = HeaderExtensionID(rawValue: descriptorID)
        return map
    }()

    private func parse(
        _ codec: CodecName,
        _ payload: [UInt8],
        marker: Bool = false,
        descriptor: [UInt8]? = nil,
        sequence: Int64 = 7,
        _ templates: DependencyTemplates? = nil
    ) throws -> PacketDescription {
        let bytes = makePacket(
            marker: marker,
            extensions: descriptor.map { [(Self.descriptorID, $0)] } ?? [],
            payload: payload
        )
        let view = try RTPPacketView(unsafe bytes.span.bytes)
        let description = PacketDescription(
            view,
            sequence: ExtendedSequenceNumber(rawValue: sequence),
            codec: codec,
            extensions: Self.extensions,
            templates: templates.map(Unretained.init),
            at: .ms(0)
        )
        return try #require(description)
    }

    @Test func `a description fills one cache line`() {
        #expect(MemoryLayout<PacketDescription>.size <= 64)
        #expect(MemoryLayout<PacketDescription>.stride == 64)
    }

    @Test(
        arguments: [
            ("key frame", [0x90, 0xE0, 0x81, 0x23, 9, 0x00, 0x00], false, 0, [.startsFrame]),
            (
                "layer 2 with Y", [0x90, 0xE0, 0x81, 0x23, 9, 0xA0, 0x01], true, 2,
                [.startsFrame, .endsFrame, .switchesUp]
            ),
            (
                "layer 1, not referred to", [0xB0, 0xE0, 0x81, 0x23, 9, 0x40, 0x01], false, 1,
                [.startsFrame, .isDiscardable]
            ),
            ("second packet", [0x80, 0xE0, 0x81, 0x23, 9, 0x40, 0x01], true, 1, [.endsFrame]),
            ("second partition", [0x91, 0xE0, 0x81, 0x23, 9, 0x40, 0x01], false, 1, []),
        ] as [(String, [UInt8], Bool, UInt8, FrameFacts)]
    )
    func `a VP8 packet names its layer and frame`(
        name: String,
        payload: [UInt8],
        marker: Bool,
        temporalID: UInt8,
        facts: FrameFacts
    ) throws {
        let found = try parse(.vp8, payload, marker: marker)
        #expect(found.temporalID == temporalID, "\(name)")
        #expect(found.spatialID == 0, "\(name)")
        #expect(found.frame == facts.union(.closesPictureIDs), "\(name)")
    }

    @Test(
        arguments: [
            // I, L, B; TID 0, SID 0.
            ("key picture", [0xA8, 0x80, 0x01, 0x00, 5, 0], 0, 0, [.startsFrame]),
            // I, P, L, B, E, Z; TID 2, U, SID 1, D.
            (
                "upper layers", [0xED, 0x80, 0x01, 0x53, 5, 0], 1, 2,
                [.startsFrame, .endsFrame, .switchesUp, .refersToEarlier, .refersToLowerLayer, .isUnusedAbove]
            ),
            // I, P, L, F; TID 1, SID 2; one P_DIFF and no TL0PICIDX.
            ("flexible", [0xF0, 0x80, 0x01, 0x24, 0x02, 0], 2, 1, [.refersToEarlier, .isFlexible]),
            ("no layers", [0x88, 0x05, 0], 0, 0, [.startsFrame]),
        ] as [(String, [UInt8], UInt8, UInt8, FrameFacts)]
    )
    func `a VP9 packet names its layers and frame`(
        name: String,
        payload: [UInt8],
        spatialID: UInt8,
        temporalID: UInt8,
        facts: FrameFacts
    ) throws {
        let found = try parse(.vp9, payload, marker: true)
        #expect(found.spatialID == spatialID, "\(name)")
        #expect(found.temporalID == temporalID, "\(name)")
        #expect(found.frame == facts, "\(name)")
    }

    @Test(
        arguments: [
            ("IDR slice", .h264, [0x65, 0x88], 0, [.startsFrame]),
            ("first slice", .h264, [0x61, 0x80], 0, [.startsFrame]), ("a later slice", .h264, [0x61, 0x40], 0, []),
            ("not referred to", .h264, [0x01, 0x80], 0, [.startsFrame, .isDiscardable]),
            ("parameter set", .h264, [0x67, 0x42], 0, [.startsFrame]),
            ("STAP-A", .h264, [0x78, 0, 2, 0x67, 0x42], 0, [.startsFrame]),
            ("FU-A start", .h264, [0x7C, 0x85, 0x80], 0, [.startsFrame]),
            ("FU-A middle", .h264, [0x7C, 0x05, 0x80], 0, []), ("too short", .h264, [0x78, 0, 2], 0, []),
            ("first slice", .h265, [0x02, 0x01, 0x80], 0, [.startsFrame]),
            ("TSA in layer 2", .h265, [0x04, 0x03, 0x80], 2, [.startsFrame, .switchesUp]),
            ("a later slice", .h265, [0x02, 0x02, 0x00], 1, []),
            ("parameter set", .h265, [0x40, 0x01, 0], 0, [.startsFrame]),
            ("FU start", .h265, [0x62, 0x01, 0x93, 0x80], 0, [.startsFrame]),
            ("FU middle", .h265, [0x62, 0x01, 0x13, 0x80], 0, []), ("FU too short", .h265, [0x62, 0x01, 0x93], 0, []),
            ("sequence start", .av1, [0x18, 0x0A, 0x01], 0, [.startsFrame]),
        ] as [(String, CodecName, [UInt8], UInt8, FrameFacts)]
    )
    func `other payloads show where a frame starts`(
        name: String,
        codec: CodecName,
        payload: [UInt8],
        temporalID: UInt8,
        facts: FrameFacts
    ) throws {
        let found = try parse(codec, payload)
        #expect(found.frame == facts, "\(codec) \(name)")
        #expect(found.temporalID == temporalID, "\(codec) \(name)")
        #expect(try parse(codec, payload, marker: true).frame == facts.union(.endsFrame), "\(codec) \(name)")
    }

    // MARK: - Dependency descriptor

    /// L1T2: template 10 is the key frame's, 11 the lower temporal layer's, 12 the upper one's.
    private static func keyFrame(number: UInt16) -> [UInt8] {
        // Structure with offset 10, two targets, layers T0 T0 T1, indications SS SS -D, references, one chain 0 2 1, no sizes.
        let bits =
            "10000" + "001010" + "00001" + "000111" + "1010" + "1010" + "0001" + "0" + "100010" + "100000" + "10"
            + "000000100001" + "0"
        var bytes: [UInt8] = [0xC0 | 10, UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
        var rest = (bits + String(repeating: "0", count: (8 - bits.count % 8) % 8))[...]
        while !rest.isEmpty {
            bytes.append(UInt8(rest.prefix(8), radix: 2) ?? 0)
            rest = rest.dropFirst(8)
        }
        return bytes
    }

    @Test func `a descriptor names layer, frame and decode targets by the key frame's templates`() throws {
        let templates = DependencyTemplates()
        let before = try parse(.av1, [0x10, 0x32], descriptor: [0x80 | 12, 0, 1], sequence: 99, templates)
        #expect(before.frame == [.startsFrame])
        #expect(before.dependencies.targetCount == 0)
        #expect(before.frameNumber == 1)

        let key = try parse(.av1, [0x10, 0x32], descriptor: Self.keyFrame(number: 0x102), sequence: 100, templates)
        #expect(templates.isKnown)
        #expect(key.startsKeyFrame)
        #expect(key.frame == [.startsFrame, .endsFrame])
        #expect(key.frameNumber == 0x102)
        #expect(key.dependencies.targetCount == 2)
        #expect(key.dependencies.chainCount == 1)
        #expect((0..<3).map { key.dependencies.indication(for: $0) } == [.switchable, .switchable, .notPresent])
        #expect(key.dependencies.chainDifference(0) == 0)

        let upper = try parse(.av1, [0x10, 0x32], descriptor: [0x40 | 12, 1, 3], sequence: 101, templates)
        #expect(upper.temporalID == 1)
        #expect(upper.frame == [.endsFrame, .isDiscardable])
        #expect(upper.dependencies.indication(for: 0) == .notPresent)
        #expect(upper.dependencies.indication(for: 1) == .discardable)
        #expect(upper.dependencies.chainDifference(0) == 1)
        #expect(upper.dependencies.chainDifference(1) == nil)

        let lower = try parse(.av1, [0x10, 0x32], descriptor: [0xC0 | 11, 1, 4], sequence: 102, templates)
        #expect(lower.temporalID == 0)
        #expect(lower.dependencies.indication(for: 1) == .switchable)
        #expect(lower.dependencies.chainDifference(0) == 2)
        #expect(!lower.frame.contains(.isDiscardable))
    }

    @Test func `what cannot be resolved is left unknown`() throws {
        let templates = DependencyTemplates()
        _ = try parse(.av1, [0x10], descriptor: Self.keyFrame(number: 1), sequence: 100, templates)
        // No such template; a packet of before the structure; custom fields that are cut short.
        for (descriptor, sequence) in [
            ([0x80 | 13, 0, 2], 101), ([0x80 | 12, 0, 0], 99), ([0x80 | 12, 0, 2, 0x08], 101),
        ]
            as [([UInt8], Int64)]
        {
            let found = try parse(.av1, [0x10], descriptor: descriptor, sequence: sequence, templates)
            #expect(found.dependencies.targetCount == 0)
            #expect(found.frame == [.startsFrame])
        }
    }

    @Test func `a late key frame does not bring an older structure back`() throws {
        let templates = DependencyTemplates()
        _ = try parse(.av1, [0x10], descriptor: Self.keyFrame(number: 9), sequence: 200, templates)
        let late = try parse(.av1, [0x10], descriptor: Self.keyFrame(number: 1), sequence: 100, templates)
        #expect(late.dependencies.targetCount == 2)
        let between = try parse(.av1, [0x10], descriptor: [0x80 | 12, 0, 2], sequence: 150, templates)
        #expect(between.dependencies.targetCount == 0)
    }

    @Test func `a descriptor that was damaged never traps`() throws {
        var generator = SeededGenerator(seed: 21)
        let seed = Self.keyFrame(number: 5)
        let templates = DependencyTemplates()
        for round in 0..<20_000 as Range<Int64> {
            var descriptor = seed
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                descriptor[Int.random(in: 0..<descriptor.count, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            descriptor.removeLast(Int.random(in: 0..<descriptor.count, using: &generator))
            let found = try parse(.av1, [0x10, 1], descriptor: descriptor, sequence: round, templates)
            #expect(found.dependencies.targetCount <= 16)
            #expect(found.spatialID < 4 && found.temporalID < 8)
            for target in -1...32 { _ = found.dependencies.indication(for: target) }
        }
    }
}
