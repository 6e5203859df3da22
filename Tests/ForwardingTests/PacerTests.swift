import Base
import Testing
import Wire

@testable import Forwarding

@Suite struct PacerTests {
    private static let start = Instant(nanoseconds: 5_000_000_000)

    @Test func `without a limit everything leaves`() {
        var pacer = Pacer()
        for _ in 0..<1_000 {
            let mayLeave = pacer.mayLeave(at: Self.start)
            #expect(mayLeave)
            pacer.take(1_200)
        }
        #expect(pacer.wait == .zero)
    }

    @Test(arguments: [100_000, 1_000_000, 20_000_000, 300_000_000])
    func `packets leave at the rate`(_ rate: Int) {
        var pacer = Pacer()
        pacer.set(rate, burst: .milliseconds(5), at: Self.start)
        var now = Self.start
        var bytes = 0
        while now - Self.start < .seconds(2) {
            if pacer.mayLeave(at: now) {
                pacer.take(1_200)
                bytes += 1_200
            } else {
                now = now + pacer.wait
            }
        }
        // The first burst comes on top.
        let burst = max(rate / 8 / 200, 1_500) + 1_200
        #expect(bytes <= rate / 4 + burst)
        #expect(Double(bytes) > Double(rate / 4) * 0.98)
    }

    @Test func `a frame that fits the burst leaves at once, and idle time does not add up`() {
        var pacer = Pacer()
        pacer.set(1_000_000, burst: .milliseconds(40), at: Self.start)
        let later = Self.start + .seconds(60)
        var bytes = 0
        while pacer.mayLeave(at: later) {
            pacer.take(1_000)
            bytes += 1_000
        }
        #expect(bytes == 5_000)
    }

    @Test func `rates without sense do not trap`() {
        var pacer = Pacer()
        for rate in [Int.min, -1, 0, 1, .max] {
            pacer.set(rate, burst: .seconds(1_000), at: Self.start)
            _ = pacer.mayLeave(at: Self.start + .seconds(100_000))
            pacer.take(.max)
            pacer.take(1)
            _ = pacer.wait
        }
    }
}

@Suite struct PacketQueueTests {
    private func packet(
        _ slot: UInt32,
        _ sequence: Int64,
        of stream: UInt64 = 1,
        retransmits: UInt16? = nil
    ) -> PacketReference {
        PacketReference(
            slot: SSRC(rawValue: slot),
            stream: StreamID(rawValue: stream),
            sequence: ExtendedSequenceNumber(rawValue: sequence),
            bytes: 1_000,
            retransmits: retransmits.map { SequenceNumber(rawValue: $0) }
        )
    }

    @Test func `retransmissions come first, and each kind keeps its order`() {
        var queue = PacketQueue()
        for item in [packet(1, 1), packet(1, 2, retransmits: 7), packet(2, 3), packet(2, 4, retransmits: 8)] {
            let isQueued = queue.append(item)
            #expect(isQueued)
        }
        #expect(queue.bytes == 4_000)
        var order: [Int64] = []
        while let first = queue.first {
            order.append(first.sequence.rawValue)
            queue.removeFirst()
        }
        #expect(order == [2, 4, 1, 3])
        #expect(queue.bytes == 0 && queue.isEmpty)
    }

    @Test func `media that is left out keeps its place and costs nothing`() {
        var queue = PacketQueue()
        for item in [packet(1, 1), packet(2, 2), packet(1, 3, retransmits: 7)] {
            let isQueued = queue.append(item)
            #expect(isQueued)
        }
        queue.dropMedia(of: SSRC(rawValue: 1))
        #expect(queue.bytes == 2_000)
        #expect(queue.count == 3)
        #expect(queue.first?.isDropped == false, "a retransmission is still wanted")
        queue.removeFirst()
        #expect(queue.first?.isDropped == true)
        queue.removeFirst()
        #expect(queue.first?.isDropped == false)
        queue.removeAll(of: SSRC(rawValue: 2))
        #expect(queue.isEmpty && queue.bytes == 0)
    }

    @Test func `the packets of one stream stay when a slot's others are left out`() {
        var queue = PacketQueue()
        for stream in [1, 2, 1] as [UInt64] {
            let isQueued = queue.append(packet(1, 1, of: stream))
            #expect(isQueued)
        }
        queue.dropMedia(of: SSRC(rawValue: 1)) { $0.stream != StreamID(rawValue: 2) }
        #expect(queue.bytes == 1_000)
        let leftOut = (0..<3).map { _ in
            defer { queue.removeFirst() }
            return queue.first?.isDropped
        }
        #expect(leftOut == [true, false, true])
    }

    @Test func `a full queue refuses`() {
        var queue = PacketQueue()
        for number in 0..<Int64(PacketQueue.packetsMax) {
            let isQueued = queue.append(packet(1, number))
            #expect(isQueued)
        }
        let isQueued = queue.append(packet(1, 9_999))
        #expect(!isQueued)
    }
}
