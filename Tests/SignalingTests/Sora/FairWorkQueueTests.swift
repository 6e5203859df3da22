import Base
import ChannelTypes
import Dispatch
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Sora
@testable import Web

struct FairWorkQueueTests {
    @Test func `a share with a thousand jobs delays another share by one job`() {
        var turns = FairTurns<String, Int>()
        for job in 0..<1000 { turns.append(job, of: "crowd") }
        turns.append(-1, of: "quiet")
        turns.append(-2, of: "quiet")
        #expect((0..<5).map { _ in turns.popNext() } == [0, -1, 1, -2, 2])
    }

    @Test func `the jobs of one share keep their order, and each runs once`() {
        var turns = FairTurns<Int, Int>()
        for job in 0..<60 { turns.append(job, of: job % 7) }
        var taken: [Int] = []
        while let job = turns.popNext() {
            taken.append(job)
            // One that has had its turns comes back behind the others.
            if job < 60, job % 10 == 0 { turns.append(job + 70, of: job % 7) }
        }
        for share in 0..<7 {
            let own = taken.filter { $0 % 7 == share }
            #expect(own == own.sorted())
        }
        #expect(taken.count == 66 && Set(taken).count == 66)
        #expect(turns.popNext() == nil)
    }

    @Test func `an owner with jobs of many shares delays another by one job, and its shares take turns`() {
        var turns = OwnedFairTurns<String, Int, Int>()
        for share in 0..<256 {
            for job in 0..<2 { turns.append(share * 2 + job, of: share, owner: "many") }
        }
        turns.append(-1, of: 0, owner: "one")
        turns.append(-2, of: 0, owner: "one")
        #expect((0..<6).map { _ in turns.popNext() } == [0, -1, 2, -2, 4, 6])
        var rest: [Int] = []
        while let job = turns.popNext() { rest.append(job) }
        #expect(rest.count == 508 && Set(rest).count == 508)
        #expect(rest.prefix(252).allSatisfy { $0.isMultiple(of: 2) }, "each share once before any twice")
    }

    @Test func `clients take turns by network, and by channel in a shared network`() {
        let (own, room, other) = (ClientNetwork(IPAddress("192.0.2.1")!), ChannelName("room")!, ChannelName("other")!)
        #expect(WorkOwner(own, in: room) == WorkOwner(own, in: other) && WorkOwner(own, in: nil) == .network(own))
        #expect(WorkOwner(.unknown, in: room) != WorkOwner(.unknown, in: other))
        #expect(WorkOwner(.unknown, in: room) == WorkOwner(ClientNetwork(.loopbackV6), in: room))
        #expect(WorkOwner(.unknown, in: nil) == .network(.unknown))
    }

    private actor Worker {
        private nonisolated let executor: FairExecutor<Int, Int>
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
        private let running: Running
        private(set) var count = 0

        init(_ queue: FairWorkQueue<Int, Int>, share: Int, running: Running) {
            executor = FairExecutor(queue, share: share, owner: share % 2)
            self.running = running
        }

        func work() {
            running.enter()
            count += 1
            if count == 50 { executor.move(to: -1, owner: -1) }
            running.leave()
        }
    }

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    private actor Hanging {
        private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

        init(_ queue: SignalingQueue) {
            executor = FairExecutor(queue.work, share: nil, owner: .network(.unknown))
        }

        func hang(until end: DispatchSemaphore, _ begun: Flag) {
            begun.set()
            end.wait()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `a probe waits while the thread of the signaling hangs`() async throws {
        let (queue, end) = (SignalingQueue(), DispatchSemaphore(value: 0))
        let (hanging, begun, hasReturned) = (Hanging(queue), Flag(), Flag())
        await queue.probe()
        let job = Task { await hanging.hang(until: end, begun) }
        try await eventually("the thread hangs") { begun.isSet }
        let probing = Task {
            await queue.probe()
            hasReturned.set()
        }
        // Another thread goes on meanwhile.
        await SignalingQueue().probe()
        #expect(!hasReturned.isSet)
        end.signal()
        await probing.value
        await job.value
        #expect(hasReturned.isSet)
    }

    private final class Running: Sendable {
        private let now = Mutex(0)
        private let most = Mutex(0)
        func enter() {
            let count = now.withLock { now in
                now += 1
                return now
            }
            most.withLock { $0 = max($0, count) }
        }
        func leave() { now.withLock { $0 -= 1 } }
        var mostAtOnce: Int { most.withLock { $0 } }
    }

    @Test(.timeLimit(.minutes(10))) func `all jobs run, one at a time`() async {
        let queue = FairWorkQueue<Int, Int>(label: "test")
        let running = Running()
        let workers = (0..<8).map { Worker(queue, share: $0 % 3, running: running) }
        await withTaskGroup(of: Void.self) { group in
            for worker in workers {
                for _ in 0..<100 { group.addTask { await worker.work() } }
            }
        }
        for worker in workers { #expect(await worker.count == 100) }
        #expect(running.mostAtOnce == 1)
    }
}
