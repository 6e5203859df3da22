import Base
import Glibc
import MediaTypes
import Synchronization
import Testing

@testable import Media

/// A header whose size is no multiple of the records' alignment.
private struct Header: BitwiseCopyable, Sendable, Equatable {
    var number: UInt64
    var check: UInt32
}

private typealias Ring = LoopRing<Header>

private let pattern = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }

/// The bytes of record `number`: every length from 0 to a packet's, and content that its neighbours do not have.
private func content(_ number: UInt64, lengthMax: UInt64 = 1_500) -> [UInt8] {
    let start = Int(number % 251)
    return Array(pattern[start..<start + Int(number &* 2_654_435_761 % (lengthMax + 1))])
}

private func header(_ number: UInt64) -> Header {
    Header(number: number, check: UInt32(truncatingIfNeeded: number) ^ 0xA5A5_A5A5)
}

extension LoopRing<Header> {
    fileprivate func append(_ number: UInt64, _ bytes: [UInt8]) -> Bool {
        append(header(number), unsafe bytes.span.bytes)
    }

    /// Takes up to `count` records as pairs of number and bytes.
    fileprivate func take(_ count: Int = .max) -> [(UInt64, [UInt8])] {
        var taken: [(UInt64, [UInt8])] = []
        let drained = drain(count) { header, bytes in
            #expect(header == expectedHeader(header.number))
            taken.append((header.number, bytes.array()))
        }
        #expect(drained == taken.count)
        return taken
    }
}

private func expectedHeader(_ number: UInt64) -> Header { header(number) }

struct LoopRingTests {
    @Test func `a ring takes its memory with the first record`() {
        let ring = Ring()
        #expect(!ring.isAllocated && ring.isEmpty)
        #expect(ring.take().isEmpty)
        #expect(!ring.publish(), "there is nothing to publish")
        #expect(ring.append(1, [1, 2, 3]))
        #expect(ring.isAllocated)
        #expect(ring.capacity == 1 << 20)
    }

    @Test func `records come in order, whole, and only once they are published`() {
        let ring = Ring()
        for number in 0..<100 as Range<UInt64> { #expect(ring.append(number, content(number))) }
        #expect(ring.isEmpty)
        #expect(ring.take().isEmpty)
        #expect(ring.unpublishedBytes > 0)
        #expect(ring.publish())
        #expect(ring.unpublishedBytes == 0)
        #expect(!ring.publish())
        let taken = ring.take()
        #expect(taken.map(\.0) == Array(0..<100))
        for (number, bytes) in taken { #expect(bytes == content(number)) }
        #expect(ring.isEmpty && ring.waitingBytes == 0)
        #expect(ring.counters.records == 100)
    }

    @Test func `draining is bounded and goes on where it stopped`() {
        let ring = Ring(capacity: 1 << 14)
        for number in 0..<10 as Range<UInt64> { #expect(ring.append(number, [UInt8(number)])) }
        _ = ring.publish()
        #expect(ring.take(4).map(\.0) == [0, 1, 2, 3])
        #expect(!ring.isEmpty)
        #expect(ring.take(0).isEmpty)
        #expect(ring.take(4).map(\.0) == [4, 5, 6, 7])
        #expect(ring.take(4).map(\.0) == [8, 9])
        #expect(ring.take(4).isEmpty)
    }

    @Test(arguments: [1 << 12, 1 << 13, 1 << 16])
    func `records of every length come through many times round the ring`(capacity: Int) {
        let ring = Ring(capacity: capacity)
        // A quarter of the ring is the longest record, of which the header takes a part.
        let lengthMax = UInt64(min(1_500, capacity / 4 - 64))
        var next: UInt64 = 0
        var expected: UInt64 = 0
        while next < 5_000 {
            while ring.append(next, content(next, lengthMax: lengthMax)) { next += 1 }
            _ = ring.publish()
            for (number, bytes) in ring.take(Int(next % 7) + 1) {
                #expect(number == expected)
                #expect(bytes == content(number, lengthMax: lengthMax))
                expected += 1
            }
        }
        #expect(ring.counters.records == next)
        #expect(ring.counters.droppedPackets + ring.counters.droppedControl > 0)
        #expect(ring.counters.waitingMax <= capacity)
    }

    @Test func `a full ring drops packets and counts them, and takes them again once it was read`() {
        let ring = Ring(capacity: 1 << 14)
        let packet = [UInt8](repeating: 7, count: 1_000)
        var taken: UInt64 = 0
        while ring.append(taken, packet) { taken += 1 }
        #expect(ring.waitingBytes <= ring.capacity / 8 * 7)
        #expect(ring.waitingBytes > ring.capacity / 8 * 7 - 1_100)
        for _ in 0..<9 { #expect(!ring.append(99, packet)) }
        #expect(ring.counters.droppedPackets == 10)
        #expect(ring.counters.records == taken)
        _ = ring.publish()
        #expect(ring.take(2).map(\.0) == [0, 1])
        #expect(ring.append(100, packet))
        _ = ring.publish()
        #expect(ring.take().last?.0 == 100, "nothing of what was dropped is seen")
    }

    @Test func `records without bytes have room when packets have none`() {
        let ring = Ring(capacity: 1 << 14)
        let packet = [UInt8](repeating: 7, count: 1_000)
        while ring.append(1, packet) {}
        var count = 0
        while ring.append(2, []) { count += 1 }
        // Each takes 32 bytes: the prefix of 16 and the header of 12, aligned.
        #expect(count >= ring.capacity / 8 / 32)
        #expect(ring.counters.droppedControl == 1)
        #expect(ring.counters.droppedPackets == 1)
        #expect(ring.waitingBytes <= ring.capacity)
        _ = ring.publish()
        #expect(ring.counters.waitingMax == ring.waitingBytes)
        #expect(ring.take().count { $0.1.isEmpty } == count)
    }

    @Test func `a record that could never fit is dropped, whatever the ring holds`() {
        let ring = Ring(capacity: 1 << 12)
        #expect(!ring.append(1, [UInt8](repeating: 0, count: 1_024)))
        #expect(ring.counters.droppedPackets == 1)
        // The longest that is taken finds its place at every position.
        for number in 0..<200 as Range<UInt64> {
            let length = number % 2 == 0 ? 992 : 3
            #expect(ring.append(number, [UInt8](repeating: UInt8(number), count: length)))
            _ = ring.publish()
            #expect(ring.take().map(\.1.count) == [length])
        }
    }

    @Test func `a hundred thousand records cross from one thread to another`() async {
        let ring = Ring(capacity: 1 << 16)
        let total: UInt64 = 100_000
        let writerIsDone = Atomic(false)
        async let written: Void = onThread {
            var number: UInt64 = 0
            while number < total {
                // A few records a turn, as packets come; what finds no room is tried again.
                for _ in 0..<(number % 13 + 1) where number < total {
                    let bytes = number % 10 == 0 ? [] : content(number, lengthMax: 300)
                    guard ring.append(number, bytes) else {
                        sched_yield()
                        break
                    }
                    number += 1
                }
                _ = ring.publish()
            }
            writerIsDone.store(true, ordering: .releasing)
        }
        let wrong = await onThread {
            var expected: UInt64 = 0
            var wrong = 0
            while expected < total {
                let isLast = writerIsDone.load(ordering: .acquiring)
                let count = ring.drain(100) { header, bytes in
                    let right = expected % 10 == 0 ? [] : content(expected, lengthMax: 300)
                    let isRight = header == expectedHeader(expected) && bytes.array() == right
                    wrong += isRight ? 0 : 1
                    expected += 1
                }
                // With the writer gone an empty ring stays empty.
                if isLast, count == 0 { break }
                if count == 0 { sched_yield() }
            }
            return expected == total ? wrong : -1
        }
        await written
        #expect(wrong == 0)
        #expect(ring.isEmpty)
        #expect(ring.counters.records == total)
    }

    /// The writer never waits, as a loop whose neighbour stalls: what is missing at the reader is what was counted.
    @Test func `between threads nothing is lost without being counted`() async {
        let ring = Ring(capacity: 1 << 13)
        let writerIsDone = Atomic(false)
        async let written: Void = onThread {
            for number in 0..<30_000 as Range<UInt64> {
                _ = ring.append(number, content(number, lengthMax: 200))
                if number % 5 == 0 { _ = ring.publish() }
            }
            _ = ring.publish()
            writerIsDone.store(true, ordering: .releasing)
        }
        let (count, isOrdered) = await onThread {
            var last: UInt64?
            var count: UInt64 = 0
            var isOrdered = true
            while true {
                let isLast = writerIsDone.load(ordering: .acquiring)
                let taken = ring.drain(50) { header, bytes in
                    if let last, header.number <= last { isOrdered = false }
                    if bytes.array() != content(header.number, lengthMax: 200) { isOrdered = false }
                    last = header.number
                    count += 1
                }
                if isLast, taken == 0 { return (count, isOrdered) }
                if taken == 0 { sched_yield() }
            }
        }
        await written
        #expect(isOrdered)
        #expect(count == ring.counters.records)
        #expect(count + ring.counters.droppedPackets + ring.counters.droppedControl == 30_000)
    }
}

struct LoadMeterTests {
    private func instant(_ milliseconds: Int) -> Instant { Instant(nanoseconds: 0) + .milliseconds(milliseconds) }

    @Test func `a load is of the time since the one before`() {
        var meter = LoadMeter(at: instant(1_000))
        let first = meter.measure(busyNanoseconds: 250_000_000, packets: 500, peers: 3, at: instant(2_000))
        #expect(first == LoopLoad(packetsPerSecond: 500, busyShare: 0.25, peers: 3))
        let second = meter.measure(busyNanoseconds: 300_000_000, packets: 1_500, peers: 2, at: instant(2_500))
        #expect(second == LoopLoad(packetsPerSecond: 2_000, busyShare: 0.1, peers: 2))
    }

    @Test func `two questions at one instant lose nothing`() {
        var meter = LoadMeter(at: instant(0))
        #expect(meter.measure(busyNanoseconds: 5, packets: 5, peers: 1, at: instant(0)) == LoopLoad(peers: 1))
        let load = meter.measure(busyNanoseconds: 1_000_000_000, packets: 10, peers: 1, at: instant(1_000))
        #expect(load == LoopLoad(packetsPerSecond: 10, busyShare: 1, peers: 1))
    }

    @Test func `a turn that was longer than the time between is all of it`() {
        var meter = LoadMeter(at: instant(0))
        let load = meter.measure(busyNanoseconds: 9_000_000_000, packets: 0, peers: 0, at: instant(100))
        #expect(load.busyShare == 1)
    }
}
