import Base
import Testing
import Wire

@testable import Forwarding

@Suite struct RTPRewriterTests {
    private static let first = StreamID(rawValue: 1)
    private static let second = StreamID(rawValue: 2)

    /// Begins a stream at a packet and sends it.
    private func begin(
        _ rewriter: inout RTPRewriter,
        _ stream: StreamID,
        _ packet: PacketDescription,
        aligned: RTPTimestamp? = nil,
        at now: Instant
    ) {
        rewriter.begin(stream, at: packet, alignedTimestamp: aligned, now: now)
        _ = send(&rewriter, stream, packet, at: now)
    }

    /// Sends a packet on.
    /// - Returns: the number that it went out with; `nil` when it could not.
    private func send(
        _ rewriter: inout RTPRewriter,
        _ stream: StreamID,
        _ packet: PacketDescription,
        at now: Instant = .ms(0)
    ) -> Int64? {
        guard let segment = rewriter.segment(of: packet.sequence, in: stream) else { return nil }
        rewriter.sent(packet, in: segment, at: now)
        return segment.sequence(packet.sequence).rawValue
    }

    @Test(arguments: [0, 1, 0x7FFF_FFFF_FFFF_FFFF, UInt64.max] as [UInt64])
    func `the first number leaves room before the wrap`(seed: UInt64) throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: seed)
        #expect(rewriter.newestSequence == nil)
        #expect(rewriter.origin(of: SequenceNumber(rawValue: 0)) == nil)
        begin(&rewriter, Self.first, describe(5), at: .ms(0))
        let newest = try #require(rewriter.newestSequence)
        #expect(newest.wire.rawValue < 0x8000)
        #expect(rewriter.newestTimestamp?.timestamp.rawValue == UInt32(truncatingIfNeeded: seed >> 32))
    }

    @Test func `numbers keep their distances, through the wrap and out of order`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(65_530), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        for number in [65_531, 65_535, 65_536, 65_533, 65_540, 131_072] as [Int64] {
            #expect(send(&rewriter, Self.first, describe(number)) == base + number - 65_530)
        }
        #expect(rewriter.newestSequence?.rawValue == base + 131_072 - 65_530)
    }

    @Test func `a late packet does not move what was sent last`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100, timestamp: 1_000), at: .ms(0))
        _ = send(&rewriter, Self.first, describe(103, timestamp: 4_000), at: .ms(10))
        let newest = rewriter.newestSequence
        let timestamp = try #require(rewriter.newestTimestamp)
        _ = send(&rewriter, Self.first, describe(101, timestamp: 2_000), at: .ms(50))
        #expect(rewriter.newestSequence == newest)
        #expect(rewriter.newestTimestamp?.timestamp == timestamp.timestamp)
        #expect(rewriter.newestTimestamp?.sentAt == .ms(10))
    }

    @Test func `a packet from before the stream began to play is not sent`() {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        #expect(send(&rewriter, Self.first, describe(99)) == nil)
        #expect(send(&rewriter, Self.second, describe(100)) == nil)
    }

    @Test func `another source continues the numbers and the time`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100, timestamp: 1_000), at: .ms(0))
        _ = send(&rewriter, Self.first, describe(110, timestamp: 1_000), at: .ms(0))
        let last = try #require(rewriter.newestSequence).rawValue
        let time = try #require(rewriter.newestTimestamp).timestamp
        begin(&rewriter, Self.second, describe(40_000, timestamp: 0xFFFF_FF00), at: .ms(500))
        #expect(rewriter.newestSequence?.rawValue == last + 1)
        #expect(try #require(rewriter.newestTimestamp).timestamp == time.advanced(by: 45_000))
        #expect(rewriter.currentStream == Self.second)
        // Late packets of the first one have no number any more.
        #expect(send(&rewriter, Self.first, describe(111)) == nil)
        #expect(send(&rewriter, Self.second, describe(40_001)) == last + 2)
    }

    @Test func `template identifiers of another source follow those before`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        func begin(_ stream: UInt64, first: UInt8, count: UInt8) throws -> UInt8 {
            let packet = describe(7, frameNumber: 9)
            let ids = TemplateIDs(first: first, count: count)
            let stream = StreamID(rawValue: stream)
            rewriter.begin(stream, at: packet, alignedTimestamp: nil, templateIDs: ids, now: .ms(0))
            let segment = try #require(rewriter.currentSegment)
            rewriter.sent(packet, in: segment, at: .ms(0))
            return (first &+ segment.templateIDOffset) & 0x3F
        }
        // The first source keeps its own.
        #expect(try begin(1, first: 60, count: 6) == 60)
        #expect(try begin(2, first: 0, count: 5) == 2)
        #expect(try begin(1, first: 60, count: 6) == 7)
        // A source that changed its structure since: 2 goes out as 13.
        rewriter.noteTemplateIDs(TemplateIDs(first: 2, count: 20))
        #expect(try begin(2, first: 0, count: 5) == 33)
        // A jump of the same source changes nothing.
        let offset = try #require(rewriter.currentSegment).templateIDOffset
        rewriter.followJump(to: describe(90_000, timestamp: 0x8000_0000), packetsSent: 9, at: .ms(5))
        #expect(rewriter.currentSegment?.templateIDOffset == offset)
    }

    @Test(arguments: [
        (offset: 3_000, used: true), (offset: 1, used: true), (offset: 90_000, used: true), (offset: 0, used: false),
        (offset: -3_000, used: false), (offset: 200_000, used: false),
    ])
    func `the media's own timing is used where it is plausible`(offset: Int, used: Bool) throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100, timestamp: 1_000), at: .ms(0))
        let time = try #require(rewriter.newestTimestamp).timestamp
        begin(
            &rewriter,
            Self.second,
            describe(7, timestamp: 77),
            aligned: time.advanced(by: offset),
            at: .ms(40)
        )
        let next = try #require(rewriter.newestTimestamp).timestamp
        #expect(time.distance(to: next) == (used ? offset : 3_600))
    }

    @Test func `a switch in the same instant still moves the time`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let time = try #require(rewriter.newestTimestamp).timestamp
        begin(&rewriter, Self.second, describe(7), at: .ms(0))
        #expect(time.distance(to: try #require(rewriter.newestTimestamp).timestamp) == 900)
    }

    @Test func `a packet that is left out leaves no gap`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        #expect(rewriter.drop(describe(101)) == true)
        #expect(rewriter.drop(describe(102)) == true)
        #expect(send(&rewriter, Self.first, describe(103)) == base + 1)
        // The number 102's would be is 103's now.
        #expect(send(&rewriter, Self.first, describe(102)) == nil)
        #expect(send(&rewriter, Self.first, describe(101)) == nil)
        #expect(rewriter.origin(of: ExtendedSequenceNumber(rawValue: base + 1).wire)?.source == 103)
        #expect(rewriter.origin(of: ExtendedSequenceNumber(rawValue: base).wire)?.source == 100)
    }

    @Test func `a packet is not left out when later ones were sent`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        #expect(rewriter.drop(describe(1)) == false)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        _ = send(&rewriter, Self.first, describe(103))
        for number in [99, 100, 101, 102, 103] as [Int64] { #expect(rewriter.drop(describe(number)) == false) }
        let base = try #require(rewriter.newestSequence).rawValue
        #expect(send(&rewriter, Self.first, describe(102)) == base - 1)
    }

    @Test func `a packet that is missing before one that is left out keeps its number`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        #expect(rewriter.drop(describe(102, timestamp: 3_000)) == true)
        #expect(send(&rewriter, Self.first, describe(103, timestamp: 6_000)) == base + 2)
        #expect(send(&rewriter, Self.first, describe(101)) == base + 1)
        #expect(send(&rewriter, Self.first, describe(102, timestamp: 3_000)) == nil)
        #expect(rewriter.origin(of: ExtendedSequenceNumber(rawValue: base + 1).wire)?.source == 101)
        #expect(rewriter.origin(of: ExtendedSequenceNumber(rawValue: base + 2).wire)?.source == 103)
    }

    @Test func `what is missing inside a picture that is left out is left out too`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        #expect(rewriter.drop(describe(101, timestamp: 3_000)) == true)
        #expect(rewriter.drop(describe(104, timestamp: 3_000)) == true)
        #expect(send(&rewriter, Self.first, describe(105, timestamp: 6_000)) == base + 1)
        #expect(send(&rewriter, Self.first, describe(102, timestamp: 3_000)) == nil)
    }

    @Test func `a number that is given up resolves to nothing`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        #expect(rewriter.leaveUnused(1) == nil)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        _ = send(&rewriter, Self.first, describe(106))
        #expect(rewriter.leaveUnused(103)?.rawValue == base + 3)
        #expect(rewriter.leaveUnused(102)?.rawValue == base + 2)
        #expect(rewriter.leaveUnused(105)?.rawValue == base + 5)
        #expect(rewriter.leaveUnused(103) == nil)
        #expect(rewriter.leaveUnused(99) == nil)
        for number in 101...106 as ClosedRange<Int64> {
            let isGone = [102, 103, 105].contains(number)
            let wire = ExtendedSequenceNumber(rawValue: base + number - 100).wire
            #expect(rewriter.origin(of: wire)?.source.rawValue == (isGone ? nil : number))
            #expect(send(&rewriter, Self.first, describe(number)) == (isGone ? nil : base + number - 100))
        }
        #expect(send(&rewriter, Self.first, describe(107)) == base + 7)
    }

    @Test func `picture ids close over VP8 pictures that are left out and over no others`() throws {
        for closes in [true, false] {
            var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
            func picture(_ number: Int64, of id: UInt16, tl0: UInt8, layer: UInt8) -> PacketDescription {
                var packet = describe(number, timestamp: UInt32(id) * 3_000, pictureID: id, tl0: tl0, frameNumber: id)
                packet.temporalID = layer
                if closes { packet.frame = .closesPictureIDs }
                return packet
            }
            begin(&rewriter, Self.first, picture(100, of: 1, tl0: 1, layer: 0), at: .ms(0))
            // Two packets of an upper layer's picture, then one of the base layer.
            #expect(rewriter.drop(picture(101, of: 2, tl0: 1, layer: 2)) == true)
            #expect(rewriter.drop(picture(102, of: 2, tl0: 1, layer: 2)) == true)
            let upper = try #require(rewriter.currentSegment)
            #expect(upper.pictureID(3, bits: 15) == (closes ? 2 : 3))
            #expect(upper.tl0(2) == 2)
            #expect(rewriter.drop(picture(103, of: 3, tl0: 2, layer: 0)) == true)
            let base = try #require(rewriter.currentSegment)
            #expect(base.pictureID(4, bits: 15) == (closes ? 2 : 4))
            #expect(base.tl0(3) == (closes ? 2 : 3))
            #expect(base.frameNumber(4) == 4)
        }
    }

    @Test func `a picture of which something went out keeps its id`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        func picture(_ number: Int64, of id: UInt16) -> PacketDescription {
            var packet = describe(number, timestamp: UInt32(id) * 3_000, pictureID: id, tl0: UInt8(id), frameNumber: id)
            packet.frame = .closesPictureIDs
            return packet
        }
        begin(&rewriter, Self.first, picture(100, of: 1), at: .ms(0))
        _ = send(&rewriter, Self.first, picture(101, of: 2))
        // Its rest, and a whole picture.
        for packet in [picture(102, of: 2), picture(103, of: 2), picture(104, of: 3)] {
            #expect(rewriter.drop(packet) == true)
        }
        let segment = try #require(rewriter.currentSegment)
        #expect(segment.pictureID(4, bits: 15) == 3 && segment.tl0(4) == 3)
    }

    @Test(arguments: [
        (step: 89_000, isJump: false), (step: 11 * 90_000, isJump: false), (step: 13 * 90_000, isJump: true),
        (step: -89_000, isJump: false), (step: -91_000, isJump: true), (step: 1 << 30, isJump: true),
    ])
    func `a source whose timestamps jump goes on like another source`(step: Int, isJump: Bool) throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100, timestamp: 5_000, pictureID: 70, tl0: 7, frameNumber: 9), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        let time = try #require(rewriter.newestTimestamp).timestamp
        let next = describe(
            101,
            timestamp: UInt32(truncatingIfNeeded: 5_000 + step),
            pictureID: 900,
            tl0: 90,
            frameNumber: 500
        )
        rewriter.followJump(to: next, packetsSent: 1, at: .ms(2_000))
        #expect(send(&rewriter, Self.first, next, at: .ms(2_000)) == base + 1)
        let passed = time.distance(to: try #require(rewriter.newestTimestamp).timestamp)
        #expect(passed == (isJump ? 180_000 : step))
        let segment = try #require(rewriter.currentSegment)
        #expect(segment.pictureID(900, bits: 15) == (isJump ? 71 : 900))
        #expect(segment.tl0(90) == (isJump ? 8 : 90))
        #expect(segment.frameNumber(500) == (isJump ? 10 : 500))
        // A repetition of the packet before the jump keeps its place.
        #expect(rewriter.segment(of: 100, in: Self.first)?.timestamp(RTPTimestamp(rawValue: 5_000)) == time)
    }

    @Test func `a source that plays again gives no number out twice`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        // Disconnected for 399 packets, then played again.
        begin(&rewriter, Self.first, describe(500), at: .ms(4_000))
        #expect(rewriter.newestSequence?.rawValue == base + 1)
        // A packet of the time between comes late: it was never to be seen.
        #expect(send(&rewriter, Self.first, describe(499)) == nil)
        #expect(send(&rewriter, Self.first, describe(101)) == nil)
        #expect(send(&rewriter, Self.first, describe(501)) == base + 2)
        #expect(rewriter.newestSequence?.rawValue == base + 2)
    }

    @Test func `there and back again maps to the last time that a source played`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        begin(&rewriter, Self.second, describe(900), at: .ms(10))
        begin(&rewriter, Self.first, describe(120), at: .ms(20))
        let newest = try #require(rewriter.newestSequence)
        #expect(send(&rewriter, Self.first, describe(119)) == nil)
        #expect(send(&rewriter, Self.second, describe(901)) == nil)
        let origins = (0..<3).map { rewriter.origin(of: newest.advanced(by: -$0).wire) }
        #expect(origins.map { $0?.segment.stream } == [Self.first, Self.second, Self.first])
        #expect(origins.map { $0?.source } == [120, 900, 100])
        #expect(rewriter.origin(of: newest.advanced(by: 1).wire) == nil)
        #expect(rewriter.origin(of: newest.advanced(by: -3).wire) == nil)
    }

    @Test func `what goes out and where it came from are each other's inverse`() throws {
        var state: UInt64 = 3
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 0x7FF0)
        var position: [StreamID: Int64] = [Self.first: 65_000, Self.second: 131_000]
        var playing = Self.first
        var sent: [Int64: (StreamID, Int64)] = [:]
        begin(&rewriter, playing, describe(65_000), at: .ms(0))
        sent[try #require(rewriter.newestSequence).rawValue] = (playing, 65_000)
        for step in 1..<20_000 {
            let next = (position[playing] ?? 0) + 1
            switch random(100) {
            case 0:
                playing = playing == Self.first ? Self.second : Self.first
                let start = (position[playing] ?? 0) + Int64(random(500)) + 1
                position[playing] = start
                begin(&rewriter, playing, describe(start), at: .ms(step))
                let number = try #require(rewriter.newestSequence).rawValue
                #expect(sent.updateValue((playing, start), forKey: number) == nil)
            case 1...3:
                position[playing] = next
                _ = rewriter.drop(describe(next, timestamp: UInt32(truncatingIfNeeded: next)))
            case 4...8: position[playing] = next
            case 9...12:
                // Late or repeated: either what it was before, or a number of its own, or nothing.
                let late = next - Int64(random(20)) - 1
                if let number = send(&rewriter, playing, describe(late), at: .ms(step)) {
                    let before = sent.updateValue((playing, late), forKey: number)
                    #expect(before == nil || before! == (playing, late), "step \(step)")
                }
            default:
                position[playing] = next
                let number = try #require(send(&rewriter, playing, describe(next), at: .ms(step)))
                #expect(sent.updateValue((playing, next), forKey: number) == nil, "step \(step)")
            }
            guard let newest = rewriter.newestSequence else { continue }
            let asked = newest.advanced(by: -random(200))
            if let origin = rewriter.origin(of: asked.wire), let known = sent[asked.rawValue] {
                #expect(known == (origin.segment.stream, origin.source.rawValue), "step \(step)")
            }
        }
    }

    /// Sends a packet on as a slot does that closes gaps.
    private func sendClosing(_ rewriter: inout RTPRewriter, _ packet: PacketDescription, _ packetsSent: inout UInt32) {
        rewriter.followJump(to: packet, packetsSent: packetsSent, at: .ms(0))
        guard let segment = rewriter.segment(of: packet.sequence, in: Self.first) else { return }
        rewriter.noteGap(before: packet.sequence, in: segment, packetsSent: packetsSent)
        rewriter.sent(packet, in: segment, at: .ms(0))
        packetsSent += 1
    }

    @Test(arguments: [258, 1_000, 30_000, 1_000_000] as [Int64])
    func `a jump of the source leaves one number unused`(jump: Int64) throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        var count: UInt32 = 1
        let base = try #require(rewriter.newestSequence).rawValue
        for step in 1...10 as ClosedRange<Int64> {
            sendClosing(&rewriter, describe(100 + step * jump), &count)
            #expect(rewriter.newestSequence?.rawValue == base + 2 * step)
        }
        let newest = ExtendedSequenceNumber(rawValue: base + 20)
        #expect(rewriter.origin(of: newest.wire)?.source.rawValue == 100 + 10 * jump)
        #expect(rewriter.origin(of: newest.advanced(by: -2).wire)?.source.rawValue == 100 + 9 * jump)
        // A packet of before the jump has the number that stayed unused, and the one after that has none.
        #expect(send(&rewriter, Self.first, describe(101 + 9 * jump)) == base + 19)
        #expect(send(&rewriter, Self.first, describe(102 + 9 * jump)) == nil)
    }

    @Test func `packets that were only delayed keep their numbers`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        var count: UInt32 = 1
        let base = try #require(rewriter.newestSequence).rawValue
        let gap = Int64(RTPRewriter.skippedMax)
        sendClosing(&rewriter, describe(101 + gap), &count)
        #expect(rewriter.newestSequence?.rawValue == base + gap + 1)
        for number in [1, 2, gap] as [Int64] {
            #expect(send(&rewriter, Self.first, describe(100 + number)) == base + number)
        }
    }

    @Test func `gaps all the time move the numbers hardly faster than packets do`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        var count: UInt32 = 1
        let base = try #require(rewriter.newestSequence).rawValue
        for step in 1...1_000 as ClosedRange<Int64> { sendClosing(&rewriter, describe(100 + step * 200), &count) }
        let moved = try #require(rewriter.newestSequence).rawValue - base
        #expect(moved <= 3 * 1_000 + Int64(RTPRewriter.skippedMax))
    }

    @Test func `half of all packets may be missing for as long as it lasts`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        var count: UInt32 = 1
        let base = try #require(rewriter.newestSequence).rawValue
        for step in 1...5_000 as ClosedRange<Int64> { sendClosing(&rewriter, describe(100 + step * 2), &count) }
        #expect(rewriter.newestSequence?.rawValue == base + 10_000)
    }

    @Test func `segments are bounded, and what is forgotten is not answered`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(0), at: .ms(0))
        let base = try #require(rewriter.newestSequence).rawValue
        var number: Int64 = 0
        for _ in 0..<(RTPRewriter.segmentsMax * 3) {
            #expect(rewriter.drop(describe(number + 1)) == true)
            number += 2
            _ = send(&rewriter, Self.first, describe(number))
        }
        #expect(rewriter.origin(of: ExtendedSequenceNumber(rawValue: base).wire) == nil)
        #expect(
            rewriter.origin(of: ExtendedSequenceNumber(rawValue: base + Int64(RTPRewriter.segmentsMax) * 3 - 1).wire)
                != nil
        )
        #expect(send(&rewriter, Self.first, describe(1)) == nil)
    }

    @Test(
        arguments: [
            (bits: 15, last: 0x7FFF, next: 0), (bits: 15, last: 41, next: 42), (bits: 7, last: 0x7F, next: 0),
            (bits: 7, last: 41, next: 42),
        ] as [(bits: UInt8, last: UInt16, next: UInt16)]
    )
    func `picture ids go on across a switch and wrap at their width`(bits: UInt8, last: UInt16, next: UInt16) throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(1, pictureID: last, bits: bits, tl0: 255), at: .ms(0))
        // The first source's own numbers go out as they are.
        #expect(rewriter.currentSegment?.pictureID(last, bits: bits) == last)
        begin(&rewriter, Self.second, describe(1, pictureID: 99, bits: bits, tl0: 7), at: .ms(10))
        let segment = try #require(rewriter.currentSegment)
        #expect(segment.pictureID(99, bits: bits) == next)
        #expect(segment.pictureID(98, bits: bits) == last)
        #expect(segment.pictureID(100, bits: bits) == (next &+ 1) & (bits == 7 ? 0x7F : 0x7FFF))
        #expect(segment.tl0(7) == 0)
        #expect(segment.tl0(8) == 1)
        #expect(segment.tl0(6) == 255)
    }

    @Test func `the newest packet of a stream that played is known, through other streams`() {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        #expect(rewriter.newestSource(of: Self.first) == nil)
        begin(&rewriter, Self.first, describe(100), at: .ms(0))
        _ = send(&rewriter, Self.first, describe(104), at: .ms(10))
        #expect(rewriter.newestSource(of: Self.first) == 104)
        begin(&rewriter, Self.second, describe(7), at: .ms(20))
        _ = send(&rewriter, Self.second, describe(9), at: .ms(30))
        #expect(rewriter.newestSource(of: Self.first) == 104 && rewriter.newestSource(of: Self.second) == 9)
        begin(&rewriter, Self.first, describe(120), at: .ms(40))
        #expect(rewriter.newestSource(of: Self.first) == 120 && rewriter.newestSource(of: Self.second) == 9)
    }

    @Test func `timestamps move from a packet on, and nothing else does`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(100, timestamp: 1_000, pictureID: 5, tl0: 6), at: .ms(0))
        let before = try #require(rewriter.currentSegment)
        let moved = before.timestamp(RTPTimestamp(rawValue: 2_000)).advanced(by: -500)
        rewriter.moveTimestamps(to: moved, at: describe(101, timestamp: 2_000))
        let after = try #require(rewriter.segment(of: 101, in: Self.first))
        #expect(after.timestamp(RTPTimestamp(rawValue: 2_000)) == moved)
        #expect(
            after.sequence(101) == before.sequence(101) && after.pictureID(5, bits: 15) == before.pictureID(5, bits: 15)
        )
        #expect(after.tl0(6) == before.tl0(6))
        // The packets before keep theirs, however late they are asked for again.
        let late = try #require(rewriter.segment(of: 100, in: Self.first))
        #expect(late.timestamp(RTPTimestamp(rawValue: 1_000)) == before.timestamp(RTPTimestamp(rawValue: 1_000)))
    }

    @Test func `picture ids go on through a source without any`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(1, pictureID: 500, tl0: 50), at: .ms(0))
        begin(&rewriter, Self.second, describe(1), at: .ms(10))
        begin(&rewriter, Self.first, describe(90, pictureID: 900, tl0: 90), at: .ms(20))
        let segment = try #require(rewriter.currentSegment)
        #expect(segment.pictureID(900, bits: 15) == 501)
        #expect(segment.tl0(90) == 51)
    }

    @Test func `frame numbers of the dependency descriptor go on across a switch`() throws {
        var rewriter = RTPRewriter(clockRate: 90_000, seed: 9)
        begin(&rewriter, Self.first, describe(1, frameNumber: 65_535), at: .ms(0))
        begin(&rewriter, Self.second, describe(1, frameNumber: 10), at: .ms(10))
        let segment = try #require(rewriter.currentSegment)
        #expect(segment.frameNumber(10) == 0)
        #expect(segment.frameNumber(9) == 65_535)
        #expect(segment.frameNumber(12) == 2)
    }
}
