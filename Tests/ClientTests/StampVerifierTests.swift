import Base
import Client
import Testing
import Wire

@Suite struct StampVerifierTests {
    /// Frames of three packets, the first a key frame, from one source.
    private func stamp(_ packet: UInt32, source: UInt32 = 1, keyFrame: Bool? = nil) -> MediaStamp {
        MediaStamp(
            source: source,
            packet: packet,
            frame: packet / 3,
            indexInFrame: UInt16(packet % 3),
            packetsInFrame: 3,
            isKeyFrame: keyFrame ?? (packet < 3),
            sentAt: Instant(nanoseconds: Int64(packet))
        )
    }

    private func give(_ stamp: MediaStamp, to verifier: inout StampVerifier, at milliseconds: Int = 0) {
        var bytes: [UInt8] = []
        stamp.append(to: &bytes)
        verifier.received(unsafe bytes.span.bytes, at: Instant(nanoseconds: 0) + .milliseconds(milliseconds))
    }

    private func give(_ packets: some Sequence<UInt32>, to verifier: inout StampVerifier) {
        for packet in packets { give(stamp(packet), to: &verifier) }
    }

    @Test(
        arguments: [
            ("in order", [0, 1, 2, 3, 4, 5], 0, 0, 0, 2),
            ("reordered", [1, 0, 2, 5, 4, 3], 0, 0, 3, 2),
            ("one lost", [0, 1, 2, 3, 5], 1, 0, 0, 1),
            ("one twice", [0, 1, 1, 2, 2], 0, 2, 0, 1),
            ("the first overtaken", [2, 1, 0, 0], 0, 1, 2, 1),
            ("the second frame before the first", [3, 4, 5, 0, 1, 2], 0, 0, 3, 2),
            ("late and then again", [0, 2, 1, 1], 0, 1, 1, 1),
        ] as [(String, [UInt32], Int, Int, Int, Int)]
    )
    func `each packet is judged`(
        name: String,
        packets: [UInt32],
        lost: Int,
        duplicates: Int,
        late: Int,
        frames: Int
    ) {
        var verifier = StampVerifier()
        give(packets, to: &verifier)
        #expect(verifier.lost == lost)
        #expect(verifier.duplicates == duplicates)
        #expect(verifier.late == late)
        #expect(verifier.framesDecoded == frames)
        #expect(verifier.packets == Set(packets).count)
    }

    @Test func `late packets are reordered, late retransmissions are restored`() {
        var verifier = StampVerifier()
        let order: [(packet: UInt32, isRestored: Bool)] = [
            (0, false), (2, false), (1, false), (5, false), (3, true), (4, true), (4, false), (6, true),
        ]
        for (packet, isRestored) in order {
            var bytes: [UInt8] = []
            stamp(packet).append(to: &bytes)
            verifier.received(unsafe bytes.span.bytes, isRestored: isRestored, at: Instant(nanoseconds: 0))
        }
        #expect(verifier.reordered == 1)
        #expect(verifier.restored == 2, "the newest packet is not late, however it came")
        #expect(verifier.late == 3)
        #expect(verifier.duplicates == 1)
        #expect(verifier.lost == 0)
        #expect(verifier.packets == 7)
    }

    @Test(
        arguments: [
            // Sequence numbers of the packets 0, 1 and 6.
            ("left out by the server", [10, 11, 12], 4),
            ("lost", [10, 11, 16], 0),
            ("two left out, two lost", [10, 11, 14], 2),
            ("a jump of the sequence numbers", [10, 11, 5_000], 0),
            ("the sequence numbers begin anew", [10, 11, 3], 4),
        ] as [(String, [Int64], Int)]
    )
    func `what the server leaves out is known by its sequence numbers`(name: String, sequences: [Int64], withheld: Int)
    {
        var verifier = StampVerifier()
        for (packet, sequence) in zip([0, 1, 6] as [UInt32], sequences) {
            var bytes: [UInt8] = []
            stamp(packet).append(to: &bytes)
            verifier.received(
                unsafe bytes.span.bytes,
                sequence: ExtendedSequenceNumber(rawValue: sequence),
                at: Instant(nanoseconds: 0)
            )
        }
        #expect((verifier.lost, verifier.withheld) == (4, withheld))
        verifier.beginWindow()
        #expect((verifier.lost, verifier.withheld) == (0, 0))
    }

    @Test func `a frame that depends on a missing one waits, and a key frame does not`() {
        var verifier = StampVerifier()
        give([0, 1, 2, 4, 5, 6, 7, 8], to: &verifier)
        #expect(verifier.newestFrameDecoded == 0)
        for packet: UInt32 in 9..<12 { give(stamp(packet, keyFrame: true), to: &verifier) }
        #expect(verifier.newestFrameDecoded == 3)
        #expect(verifier.keyFramesDecoded == 2)
        give([3], to: &verifier)
        #expect(verifier.framesDecoded == 2, "what was passed over is not shown after it")
        give([12, 13, 14], to: &verifier)
        #expect(verifier.newestFrameDecoded == 4)
        #expect(verifier.missing.isEmpty)
    }

    @Test func `losses are counted exactly beyond the remembered packets`() {
        var verifier = StampVerifier()
        let count = UInt32(StampVerifier.packetsRemembered * 3 + 17)
        give((0..<count).lazy.filter { $0 % 100 != 50 }, to: &verifier)
        #expect(verifier.lost == Int((count + 49) / 100))
        let oldest = count - UInt32(StampVerifier.packetsRemembered)
        #expect(verifier.missing == (oldest..<count).filter { $0 % 100 == 50 })
        #expect(verifier.duplicates == 0)
        give([count - 1], to: &verifier)
        #expect(verifier.duplicates == 1)
    }

    @Test(arguments: [4_095, 4_096, 100_000, UInt32.max] as [UInt32])
    func `a large gap clears the remembered packets`(target: UInt32) {
        var verifier = StampVerifier()
        give([0, target], to: &verifier)
        #expect(verifier.lost == Int(target) - 1)
        give([target - 1, target - 1, target], to: &verifier)
        #expect(verifier.duplicates == 2)
        #expect(verifier.late == 1)
        #expect(verifier.lost == Int(target) - 2)
    }

    @Test func `a window counts packets after its start`() {
        var verifier = StampVerifier()
        give([0, 1, 3, 4], to: &verifier)
        #expect(verifier.lost == 1)
        verifier.beginWindow()
        #expect(verifier.lost == 0)
        give([2, 4], to: &verifier)
        #expect(verifier.lost == 0)
        #expect(verifier.duplicates == 1)
        give([6, 7], to: &verifier)
        #expect(verifier.lost == 1)
        #expect(verifier.lost(ofMade: 8) == 1)
        #expect(verifier.lost(ofMade: 10) == 3)
        give([5, 8, 9], to: &verifier)
        #expect(verifier.lost(ofMade: 10) == 0)
    }

    @Test func `a window without packets has lost all that were sent`() {
        var verifier = StampVerifier()
        #expect(verifier.lost(ofMade: 5) == 0, "it may not have been connected")
        give([0, 1], to: &verifier)
        verifier.beginWindow()
        #expect(verifier.lost(ofMade: 5) == 3)
    }

    @Test func `another source restarts the counts`() {
        var verifier = StampVerifier()
        give([0, 1, 2, 4], to: &verifier)
        for packet: UInt32 in 500..<510 { give(stamp(packet, source: 2), to: &verifier) }
        #expect(verifier.switches == 1)
        #expect(verifier.sourceNumber == 2)
        #expect(verifier.lost == 0)
    }

    @Test func `the longest gap between frames is kept`() {
        var verifier = StampVerifier()
        for frame in 0..<6 {
            let milliseconds = frame * 33 + (frame >= 4 ? 100 : 0)
            for packet in frame * 3..<frame * 3 + 3 { give(stamp(UInt32(packet)), to: &verifier, at: milliseconds) }
        }
        #expect(verifier.longestGap == .milliseconds(133))
        verifier.beginWindow()
        #expect(verifier.longestGap == .zero)
    }

    @Test func `a frame that comes much later than usual ends a freeze`() {
        var verifier = StampVerifier()
        // Usual are 33 ms. Frames 10 and 20 come 100 ms and 400 ms later.
        for frame in 0..<30 {
            let milliseconds = frame * 33 + (frame >= 10 ? 100 : 0) + (frame >= 20 ? 400 : 0)
            for packet in frame * 3..<frame * 3 + 3 { give(stamp(UInt32(packet)), to: &verifier, at: milliseconds) }
        }
        #expect(verifier.freezes == 1)
        #expect(verifier.freezeTime == .milliseconds(433))
    }

    @Test(arguments: [0, 1, 31, 32, 64])
    func `a packet without a stamp is unreadable`(count: Int) {
        var verifier = StampVerifier()
        let bytes = [UInt8](repeating: 0xA5, count: count)
        verifier.received(unsafe bytes.span.bytes, at: Instant(nanoseconds: 0))
        #expect(verifier.unreadable == 1)
        #expect(verifier.packets == 0)
    }

    @Test func `no stamp traps the verifier`() {
        var generator = Numbers(state: 7)
        var verifier = StampVerifier()
        let edges: [UInt32] = [0, 1, 255, 256, 4_095, 4_096, .max - 1, .max]
        for round in 0..<20_000 {
            let stamp = MediaStamp(
                source: round % 500 == 0 ? generator.next32() : 1,
                packet: edges[Int(generator.next32() % 8)] &+ generator.next32() % 3,
                frame: edges[Int(generator.next32() % 8)] &+ generator.next32() % 3,
                indexInFrame: UInt16(truncatingIfNeeded: generator.next32()),
                packetsInFrame: UInt16(truncatingIfNeeded: generator.next32() % 3),
                isKeyFrame: generator.next32() % 2 == 0,
                sentAt: Instant(nanoseconds: Int64(bitPattern: UInt64(generator.next32()) << 32))
            )
            give(stamp, to: &verifier)
            if round % 1_000 == 0 { verifier.beginWindow() }
            #expect(verifier.lost >= 0)
        }
    }

    /// A linear congruential generator (Knuth's constants).
    private struct Numbers {
        var state: UInt64
        mutating func next32() -> UInt32 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt32(truncatingIfNeeded: state >> 33)
        }
    }
}
