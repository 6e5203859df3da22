import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct LayerAllocatorTests {
    private static let start = Instant(nanoseconds: 1_000_000_000_000)

    /// A receiver whose rate and slots change with virtual time.
    private struct Receiver {
        var requests: [LayerRequest]
        var allocator = LayerAllocator()
        var now = LayerAllocatorTests.start
        var allocation = LayerAllocation()
        /// Changes of each slot's target since the first allocation.
        var changes: [Int] = []

        init(_ requests: [LayerRequest]) { self.requests = requests }

        mutating func allocate(_ rate: Int) {
            let before = allocation.targets
            allocation = allocator.allocate(requests, rate: .limited(bitsPerSecond: rate), at: now)
            if changes.count != requests.count { changes = .init(repeating: 0, count: requests.count) }
            guard before.count == requests.count else { return }
            for slot in before.indices where before[slot] != allocation.targets[slot] { changes[slot] += 1 }
        }

        /// Lets time pass at a rate, a call each 100 ms.
        mutating func run(_ rate: Int, for time: Interval) {
            let end = now + time
            while now < end {
                allocate(rate)
                now += .milliseconds(100)
            }
        }

        func stream(_ slot: Int = 0) -> UInt64? {
            guard case .layer(let stream, _, _) = allocation.targets[slot] else { return nil }
            return stream.rawValue
        }
    }

    private static func camera(_ id: UInt32 = 1, _ importance: SlotImportance = .other) -> LayerRequest {
        LayerSources.request(id, LayerSources.plainCamera, importance, isPlaying: true)
    }

    @Test func `at the start the layers follow the rate at once`() {
        var receiver = Receiver([Self.camera()])
        receiver.allocate(300_000)
        #expect(receiver.stream() == 1)
        receiver.now += .milliseconds(100)
        receiver.allocate(700_000)
        #expect(receiver.stream() == 2)
        receiver.now += .milliseconds(100)
        receiver.allocate(2_400_000)
        #expect(receiver.stream() == 3)
        #expect(receiver.allocation.upgrade == nil)
    }

    @Test func `a rate that falls below the cost lowers the layers at once`() {
        var receiver = Receiver([Self.camera()])
        receiver.run(3_000_000, for: .seconds(10))
        #expect(receiver.stream() == 3)
        receiver.allocate(2_200_000)
        #expect(receiver.stream() == 3)
        receiver.allocate(2_100_000)
        #expect(receiver.stream() == 2)
        #expect(receiver.allocation.allocated == 530_000)
    }
}
