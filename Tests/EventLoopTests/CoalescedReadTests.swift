import Base
import Testing
import Wire

@testable import EventLoop

/// The delivery of one received message.
@Suite(.timeLimit(.minutes(10)))
struct CoalescedReadTests {
    /// Makes the host's first socket deliver a message of `length` bytes, where byte i is i mod 251, and overwrites
    /// each delivered datagram.
    private func deliver(
        _ length: Int,
        segments: Int,
        isTruncated: Bool = false,
        to host: isolated LoopHost
    ) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(length, 1), alignment: 1)
        defer { unsafe bytes.deallocate() }
        for index in 0..<length { unsafe bytes[index] = UInt8(index % 251) }
        guard let base = bytes.baseAddress else { return [] }
        let message = unsafe ReceivedMessage(
            bytes: base,
            length: length,
            segmentBytes: segments,
            isTruncated: isTruncated,
            remote: TransportAddress(ip: .loopbackV4, port: 1)
        )
        let count = unsafe host.loop.sockets[0].deliver(message, at: EventLoop.now()) { span, length, _, _ in
            #expect(span.byteCount == length)
            datagrams.append(span.bytes.array())
            for index in 0..<span.byteCount { span.storeBytes(of: 0xFF, toByteOffset: index, as: UInt8.self) }
        }
        #expect(count >= datagrams.count)
        return datagrams
    }

    private func pattern(_ range: Range<Int>) -> [UInt8] { range.map { UInt8($0 % 251) } }

    @Test func `each datagram is delivered with exactly its bytes`() async throws {
        let host = try LoopHost()
        _ = try await host.open()
        await host.run { host in
            let datagrams = deliver(2_500, segments: 1_000, to: host)
            #expect(datagrams == [pattern(0..<1_000), pattern(1_000..<2_000), pattern(2_000..<2_500)])
            #expect(host.loop.statistics.segmentsPerRead.counts == [0, 0, 1, 0, 0, 0, 0, 0])
        }
        await host.loop.stop()
    }

    @Test(arguments: [0, -1, Int(Int32.min), Int(Int32.max), 1_000, 1_001])
    func `an invalid segment size means one datagram`(segments: Int) async throws {
        let host = try LoopHost()
        _ = try await host.open()
        await host.run { host in
            #expect(deliver(1_000, segments: segments, to: host) == [pattern(0..<1_000)])
        }
        await host.loop.stop()
    }

    @Test func `any length and segment size delivers every byte once`() async throws {
        let host = try LoopHost()
        _ = try await host.open()
        await host.run { host in
            for length in [1, 2, 63, 64, 1_535, 1_536, 4_000, 65_535] {
                for segments in [1, 2, 7, 1_200, 1_535, 1_536] where length / segments < 5_000 {
                    let datagrams = deliver(length, segments: segments, to: host)
                    if length <= DatagramBatch.slotBytes || segments < length {
                        #expect(datagrams.flatMap { $0 } == pattern(0..<length))
                    }
                }
            }
        }
        await host.loop.stop()
    }

    @Test func `datagrams longer than a slot are dropped one by one, and a truncated message as a whole`() async throws
    {
        let host = try LoopHost()
        _ = try await host.open()
        await host.run { host in
            let long = DatagramBatch.slotBytes + 1
            #expect(deliver(2 * long + 100, segments: long, to: host) == [pattern(2 * long..<2 * long + 100)])
            #expect(host.loop.statistics.receiveSizeDrops == 2)
            #expect(deliver(1_000, segments: 100, isTruncated: true, to: host).isEmpty)
            #expect(deliver(0, segments: 0, to: host).isEmpty)
            #expect(host.loop.statistics.receiveSizeDrops == 4)
        }
        await host.loop.stop()
    }
}

@Suite struct SizeHistogramTests {
    @Test func `each size is counted in the first bucket whose bound is not below it`() {
        var histogram = SizeHistogram()
        for size in [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 1_000] { histogram.record(size) }
        #expect(histogram.counts == [1, 1, 2, 2, 2, 2, 2, 2])
        #expect(SizeHistogram.bounds.count == histogram.counts.count - 1)
        #expect(histogram.sum == 1_259)
        #expect(histogram.total == 14)
    }

    @Test func `sizes below 1 count as 1, and merging adds`() {
        var left = SizeHistogram()
        left.record(0)
        left.record(Int.min)
        var right = SizeHistogram()
        right.record(Int(Int32.max))
        #expect(left != right)
        left.merge(right)
        #expect(left.counts == [2, 0, 0, 0, 0, 0, 0, 1])
        #expect(left.sum == UInt64(Int32.max) + 2)
        #expect(Set([left, left, right]).count == 2)
    }
}
