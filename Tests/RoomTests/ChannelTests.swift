import Base
import Dispatch
import MediaTypes
import RoomTestSupport
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// A control loop for tests: a serial queue that counts its jobs and can be suspended.
final class TestControlLoop: SerialExecutor {
    private let queue = DispatchQueue(label: "control")
    private let count = Atomic<Int>(0)
    private let key = DispatchSpecificKey<Bool>()
    var jobCount: Int { count.load(ordering: .relaxed) }

    init() { queue.setSpecific(key: key, value: true) }

    /// Whether the caller runs on this loop.
    var isCurrent: Bool { DispatchQueue.getSpecific(key: key) ?? false }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        count.add(1, ordering: .relaxed)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    /// No job runs from now on.
    func suspend() { queue.suspend() }
    func resume() { queue.resume() }
    /// A queue that is suspended when nobody needs it any more ends the process, so a test that fails resumes it too.
    func whileSuspended<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        suspend()
        defer { resume() }
        return try await body()
    }
}

/// A client's signaling, with an executor of its own.
private actor TestSignaling {
    private nonisolated let loop = TestControlLoop()
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Returns: whether the signaling is on its own executor after the refusal; `nil` without a refusal.
    func isIsolatedAfterRefusal(of request: JoinRequest, by directory: ChannelDirectory) async -> Bool? {
        do throws(RoomError) {
            _ = try await directory.reserve(request)
            return nil
        } catch {
            return loop.isCurrent
        }
    }

    /// - Returns: whether the signaling is on its own executor after the answer.
    func isIsolatedAfterReservation(_ request: JoinRequest, in directory: ChannelDirectory) async throws -> Bool {
        _ = try await directory.reserve(request)
        return loop.isCurrent
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ChannelTests {
    private static let names = (0..<100).map { ChannelName("channel \($0)")! }

    private static func index(_ name: ChannelName) -> Int { ControlExecutors.index(of: name, count: 2) }

    /// Two channels that are pinned to different ones of two loops.
    private static var apart: (ChannelName, ChannelName) {
        let first = names[0]
        return (first, names.first { index($0) != index(first) }!)
    }

    @Test func `a channel runs on the control loop of its name, and the loops share the channels`() async throws {
        let loops = [TestControlLoop(), TestControlLoop()]
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], controlLoops: loops)
        for name in Self.names {
            let own = loops[Self.index(name)]
            let other = loops[1 - Self.index(name)]
            let (before, elsewhere) = (own.jobCount, other.jobCount)
            await directory.cancel(try await directory.reserve(JoinRequest(channel: name, role: .sendonly)))
            #expect(own.jobCount > before && other.jobCount == elsewhere)
        }
        let shares = Dictionary(grouping: Self.names, by: Self.index).mapValues(\.count)
        #expect(shares.values.allSatisfy { $0 >= 30 }, "\(shares)")
        #expect(await directory.isEmpty)
    }

    @Test func `a probe waits in the queue of its control loop once for each step of a join`() async throws {
        let loops = [TestControlLoop(), TestControlLoop()]
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], controlLoops: loops)
        let probes = directory.controlLoopProbes
        try #require(probes.count == 2)
        for (index, probe) in probes.enumerated() {
            let before = loops.map(\.jobCount)
            let waits = Atomic(0)
            await probe { _ = waits.add(1, ordering: .relaxed) }
            #expect(waits.load(ordering: .relaxed) == 5)
            let jobs = zip(loops, before).map { $0.jobCount - $1 }
            #expect(jobs[index] >= 5 && jobs[1 - index] == 0, "\(jobs)")
        }
        #expect(await directory.isEmpty)
    }

    @Test func `a probe waits at a control loop that does not turn, and at no other one`() async throws {
        let loops = [TestControlLoop(), TestControlLoop()]
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], controlLoops: loops)
        let probes = directory.controlLoopProbes
        let before = loops[0].jobCount
        let waiting = try await loops[0].whileSuspended {
            let waiting = Task { await probes[0]({}) }
            try await eventually("the probe is queued") { loops[0].jobCount == before + 1 }
            await probes[1]({})
            #expect(loops[0].jobCount == before + 1)
            return waiting
        }
        await waiting.value
        #expect(loops[0].jobCount >= before + 5)
    }

    /// Errors must not leave the caller on the channel's executor, where it would run at the same time as its other jobs.
    @Test func `signaling goes on with its own executor after an answer and after an error`() async throws {
        var limits = RoomLimits()
        limits.participantsPerChannelMax = 1
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], limits: limits, controlLoops: [TestControlLoop()])
        let request = JoinRequest(channel: Self.names[0], role: .sendonly)
        let signaling = TestSignaling()
        #expect(try await signaling.isIsolatedAfterReservation(request, in: directory))
        #expect(await signaling.isIsolatedAfterRefusal(of: request, by: directory) == true)
    }

    @Test func `a busy control loop delays no channel of another loop`() async throws {
        let loops = [TestControlLoop(), TestControlLoop()]
        let plane = FakeMediaPlane()
        let bench = RoomsBench(planes: [plane], directory: ChannelDirectory(planes: [plane], controlLoops: loops))
        let (busy, idle) = Self.apart
        let (held, _) = try await bench.join(.sendonly, in: busy)
        let loop = loops[Self.index(busy)]
        loop.suspend()
        let waiting = Task { try await bench.join(.recvonly, in: busy) }
        let end = Task { await bench.directory.end(held) }
        let (session, _) = try await bench.join(.sendonly, in: idle)
        #expect(await bench.directory.snapshot(of: idle)?.participants.count == 1)
        #expect(await bench.directory.end(session))
        loop.resume()
        _ = try await waiting.value
        #expect(await end.value)
        await bench.directory.shutdown()
        #expect(await bench.directory.isEmpty)
    }

    @Test func `a channel whose media plane does not answer delays no join in another channel`() async throws {
        let planes = [FakeMediaPlane(0), FakeMediaPlane(1)]
        let loop = TestControlLoop()
        let bench = RoomsBench(planes: planes, directory: ChannelDirectory(planes: planes, controlLoops: [loop]))
        await planes[1].setLoad(LoopLoad(busyShare: 0.9, peers: 100_000))
        await bench.directory.sampleLoads()
        await bench.directory.settle()
        for _ in 0..<20 { _ = try await bench.join(.recvonly) }
        let (_, publisher) = try await bench.join(.sendonly)
        try #require(publisher.location == 0)
        await planes[0].setLoad(LoopLoad(busyShare: 0.9, peers: 1_000))
        await planes[1].setLoad(LoopLoad(busyShare: 0.01, peers: 10))
        await bench.directory.sampleLoads()
        await bench.directory.settle()
        // The plane stops answering while the viewers are connected to the publisher.
        await planes[0].closeGate(forTracksOf: 0)
        await bench.report(.connected(over: .udp), from: publisher.peer)
        await planes[0].waitForArrival()
        let other = ChannelName("other")!
        let (_, neighbour) = try await bench.join(.sendonly, in: other)
        let (_, viewer) = try await bench.join(.recvonly, in: other)
        #expect(neighbour.location == 1 && viewer.location == 1)
        await bench.report(.connected(over: .udp), from: neighbour.peer)
        let slot = TrackID(peer: viewer.peer, mid: RoomsBench.mid)
        try await eventually("the viewer plays its neighbour") { await planes[1].sources[slot] != nil }
        await planes[0].openGate()
        await bench.directory.shutdown()
        #expect(await bench.directory.isEmpty)
    }

    @Test func `places of the node are taken at once, whichever channels ask for them`() async throws {
        let loops = [TestControlLoop(), TestControlLoop()]
        let directory = ChannelDirectory(
            planes: [FakeMediaPlane()],
            limits: RoomLimits(channelsMax: 10),
            controlLoops: loops
        )
        let taken = await withTaskGroup(of: ChannelDirectory.Reservation?.self) { group in
            for name in Self.names {
                group.addTask { try? await directory.reserve(JoinRequest(channel: name, role: .sendonly)) }
            }
            var taken: [ChannelDirectory.Reservation] = []
            for await reservation in group { if let reservation { taken.append(reservation) } }
            return taken
        }
        #expect(taken.count == 10)
        #expect(await directory.counts.sessions == 10)
        for reservation in taken { await directory.cancel(reservation) }
        #expect(await directory.isEmpty)
    }

    @Test func `a newcomer to a full node evicts a participant of another channel`() async throws {
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], limits: RoomLimits(participantsMax: 20))
        let crowd = ClientNetwork(IPAddress("192.0.2.1")!)
        var crowded: [ChannelDirectory.Reservation] = []
        for _ in 0..<20 {
            crowded.append(
                try await directory.reserve(JoinRequest(channel: Self.names[0], role: .sendonly, network: crowd))
            )
        }
        let newcomer = try await directory.reserve(JoinRequest(channel: Self.names[1], role: .sendonly))
        await directory.settle()
        #expect(await directory.admissions.abandoned == [.evicted: 1])
        #expect(await directory.joinContext(of: Self.names[0]).members == 19)
        #expect(await directory.joinContext(of: Self.names[1]).members == 1)
        for reservation in crowded + [newcomer] { await directory.cancel(reservation) }
        #expect(await directory.isEmpty)
    }

    @Test func `the same seed and the same calls give the same identifiers and notices`() async throws {
        let first = try await Self.trace(seed: 7)
        #expect(try await Self.trace(seed: 7) == first)
        #expect(try await Self.trace(seed: 8) != first)
    }

    /// The results of a few calls as text.
    private static func trace(seed: UInt64) async throws -> [String] {
        let trace = Mutex<[String]>([])
        let generator = Mutex(SeededGenerator(seed: seed))
        let clock = RoomClock { RoomTime(instant: Instant(nanoseconds: 5_000_000_000), unixNanoseconds: 9) }
        let environment = RoomEnvironment(clock: clock) { generator.withLock { $0.next() } }
        let plane = FakeMediaPlane()
        let directory = ChannelDirectory(planes: [plane], environment: environment) { notice in
            trace.withLock { $0.append("\(notice)") }
        }
        let bench = RoomsBench(planes: [plane], directory: directory)
        for role in [Role.recvonly, .sendonly, .sendrecv] {
            let (id, session) = try await bench.join(role, in: names[0])
            await bench.report(.connected(over: .udp), from: session.peer)
            let text = "\(id.value) \(session.local.credentials) \(session.iceVersion)"
            trace.withLock { $0.append(text) }
        }
        await directory.shutdown()
        return trace.withLock { $0 }
    }
}
