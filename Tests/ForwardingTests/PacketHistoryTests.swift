import Base
import Testing
import Wire

@testable import Forwarding

@Suite struct SequenceUnwrapperTests {
    @Test(arguments: [
        ([5, 6, 7], [5, 6, 7]),
        ([65534, 65535, 0, 1], [65534, 65535, 65536, 65537]),
        ([0, 65535, 1], [0, -1, 1]),
        ([65535, 1, 0, 65534], [65535, 65537, 65536, 65534]),
        ([10, 32777, 10], [10, 32777, 10]),
        ([10, 32778, 11], [10, -32758, 11]),
    ])
    func `numbers extend by the shortest distance from the newest`(wire: [UInt16], expected: [Int64]) {
        var unwrapper = SequenceUnwrapper()
        let extended = wire.map { unwrapper.unwrap(SequenceNumber(rawValue: $0)).rawValue - 0x1_0000 }
        #expect(extended == expected)
    }

    @Test func `a peek remembers nothing`() {
        var unwrapper = SequenceUnwrapper()
        #expect(unwrapper.unwrap(SequenceNumber(rawValue: 100)) == 65636)
        #expect(unwrapper.peek(SequenceNumber(rawValue: 200)) == 65736)
        #expect(unwrapper.newest == 65636)
    }
}

@Suite struct PacketHistoryTests {
    private func insert(
        _ history: PacketHistory,
        _ sequence: Int64,
        bytes count: Int = 1000,
        at now: Instant = .ms(0)
    ) -> Bool {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: count)
        return history.insert(unsafe bytes.span.bytes, describe(sequence, at: now))
    }

    /// Whether a packet is lent whole and with its own bytes.
    private func isIntact(_ history: PacketHistory, _ sequence: Int64, bytes count: Int = 1000) -> Bool {
        history.withPacket(ExtendedSequenceNumber(rawValue: sequence)) { packet, description in
            packet.array() == [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: count)
                && description.sequence.rawValue == sequence
        } ?? false
    }

    @Test func `a kept packet is lent as it came`() {
        let history = PacketHistory()
        #expect(insert(history, 70_000))
        #expect(isIntact(history, 70_000))
        #expect(history.contains(70_000))
        #expect(!history.contains(70_001))
        #expect(history.withPacket(70_001) { _, _ in true } == nil)
    }

    @Test func `the bytes of a frame are those of its packets that are kept`() {
        let history = PacketHistory()
        for (sequence, timestamp) in [(9, 1), (10, 2), (11, 2), (13, 2), (14, 3)] as [(Int64, UInt32)] {
            let bytes = [UInt8](repeating: 0, count: 100)
            #expect(history.insert(unsafe bytes.span.bytes, describe(sequence, timestamp: timestamp)))
        }
        #expect(history.frameBytes(from: 10, RTPTimestamp(rawValue: 2)) == 300)
        #expect(history.frameBytes(from: 14, RTPTimestamp(rawValue: 3)) == 100)
        #expect(history.frameBytes(from: 14, RTPTimestamp(rawValue: 2)) == 0)
        #expect(history.frameBytes(from: 15, RTPTimestamp(rawValue: 3)) == 0)
    }

    @Test func `a second copy is refused and changes nothing`() {
        let history = PacketHistory()
        #expect(insert(history, 1))
        #expect(!insert(history, 1, bytes: 10))
        #expect(isIntact(history, 1))
    }

    @Test func `a late packet is kept as long as its place is free`() {
        let history = PacketHistory()
        #expect(insert(history, 2000))
        #expect(insert(history, 1990))
        #expect(isIntact(history, 1990))
        #expect(isIntact(history, 2000))
    }

    @Test func `a packet older than everything that could be kept is refused`() {
        let history = PacketHistory()
        #expect(insert(history, 10_000))
        #expect(!insert(history, 10_000 - Int64(PacketHistory.packetsMax)))
        #expect(insert(history, 10_001 - Int64(PacketHistory.packetsMax)))
    }

    @Test func `a packet whose place a newer one took is refused`() {
        let history = PacketHistory()
        #expect(insert(history, 164, at: .ms(5_000)))
        #expect(!insert(history, 100, at: .ms(5_001)))
        #expect(isIntact(history, 164))
    }

    @Test func `a slow stream stays in its first ring`() {
        let history = PacketHistory()
        let first = history.footprintBytes
        for number in 0..<5_000 { #expect(insert(history, Int64(number), bytes: 160, at: .ms(number * 20))) }
        #expect(history.footprintBytes == first)
        #expect(isIntact(history, 4_999, bytes: 160))
        #expect(isIntact(history, 4_950, bytes: 160))
    }

    @Test func `a fast stream grows until a second of it is kept`() {
        let history = PacketHistory()
        // 5 Mbit/s: 625 packets a second.
        for number in 0..<3_000 { #expect(insert(history, Int64(number), at: .ms(number * 8 / 5))) }
        for number in (3_000 - 620)..<3_000 { #expect(isIntact(history, Int64(number)), "\(number)") }
        #expect(history.footprintBytes < 3 * 512 * 1024)
    }

    @Test func `memory is bounded whatever arrives`() {
        let history = PacketHistory()
        for number in 0..<20_000 { _ = insert(history, Int64(number), bytes: 1_400, at: .ms(number / 100)) }
        #expect(history.footprintBytes <= PacketHistory.bytesMax + PacketHistory.packetsMax * 256)
        #expect(isIntact(history, 19_999, bytes: 1_400))
        #expect(!isIntact(history, 10_000, bytes: 1_400))
    }

    @Test func `what is lent after many laps and growths is always the packet's own bytes`() {
        let history = PacketHistory(bytesLimit: 96 * 1024)
        var state: UInt64 = 7
        var sizes: [Int64: Int] = [:]
        for number in 0..<6_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let size = 20 + Int(state >> 33) % 1_400
            if state >> 20 & 15 == 0 { continue }
            sizes[Int64(number)] = size
            #expect(insert(history, Int64(number), bytes: size, at: .ms(number)))
            for back in [0, 1, 7, 30, 60, 200] {
                let sequence = Int64(number - back)
                guard let size = sizes[sequence] else {
                    #expect(history.withPacket(ExtendedSequenceNumber(rawValue: sequence)) { _, _ in true } == nil)
                    continue
                }
                let present = history.withPacket(ExtendedSequenceNumber(rawValue: sequence)) { _, _ in true } != nil
                #expect(!present || isIntact(history, sequence, bytes: size))
                if back <= 7 { #expect(present) }
            }
        }
    }

    @Test func `a trimmed history is small, empty and goes on`() {
        let history = PacketHistory()
        let first = history.footprintBytes
        for number in 0..<3_000 { _ = insert(history, Int64(number), at: .ms(number)) }
        #expect(history.footprintBytes > first)
        history.trim()
        #expect(history.footprintBytes == first)
        #expect(history.withPacket(2_999) { _, _ in true } == nil)
        // A copy that comes now is still a duplicate: its outgoing number is used.
        #expect(history.contains(2_999))
        #expect(!insert(history, 2_999))
        #expect(insert(history, 3_000))
        #expect(isIntact(history, 3_000))
    }

    @Test func `a packet that no ring could hold is refused`() {
        let history = PacketHistory()
        #expect(!insert(history, 1, bytes: PacketHistory.bytesMin))
        #expect(!history.contains(1))
    }

    @Test func `a frame is kept with all that came after it, or it is not`() {
        let history = PacketHistory()
        func put(_ sequence: Int64, _ timestamp: UInt32) {
            let bytes = [UInt8](repeating: 1, count: 100)
            #expect(history.insert(unsafe bytes.span.bytes, describe(sequence, timestamp: timestamp)))
        }
        func keepsAll(_ bytes: Int) -> Bool {
            history.keepsAll(from: 10, of: RTPTimestamp(rawValue: 3_000), bytesAfterMax: bytes)
        }
        #expect(!keepsAll(1_000), "nothing came")
        for sequence in 10...12 { put(Int64(sequence), 3_000) }
        #expect(keepsAll(0), "the frame itself does not count")
        for sequence in [13, 14, 16] { put(Int64(sequence), UInt32(sequence) * 1_000) }
        #expect(!keepsAll(1_000), "one is missing")
        put(15, 15_000)
        #expect(keepsAll(400) && !keepsAll(399))
        for sequence in 17..<600 { put(Int64(sequence), 60_000) }
        #expect(!keepsAll(.max), "they are more than a frame has")
    }
}
