import Base
import Cluster
import ClusterTestSupport
import MediaTypes
import Synchronization
import Testing

/// The model with a clock that is set forward, as a store that answers at once.
final class SteppedStore: TestedStore {
    private struct State {
        var store = MemoryStore(seed: 1)
        var now = Instant(nanoseconds: 0)
    }
    private let state = Mutex(State())

    private func answer<Answer: Sendable>(
        _ body: (inout MemoryStore, Instant) -> MemoryStore.Reply<Answer>
    ) throws(StoreError) -> Answer {
        guard let reply = state.withLock({ body(&$0.store, $0.now) }) else { throw .timedOut }
        return try reply.result.get()
    }

    func enlist(_ request: RegisterNode) throws(StoreError) -> NodeIncarnation {
        try answer { $0.enlist(request, at: $1) }
    }
    func beat(_ request: Heartbeat) throws(StoreError) -> HeartbeatAnswer { try answer { $0.beat(request, at: $1) } }
    func attach(_ request: Attach) throws(StoreError) -> RoomEntry { try answer { $0.attach(request, at: $1) } }
    func detach(_ request: Detach) throws(StoreError) -> Bool { try answer { $0.detach(request, at: $1) } }
    func sweep(_ request: Sweep) throws(StoreError) -> Int { try answer { $0.sweep(request, at: $1) } }

    func advance(milliseconds: Int) { state.withLock { $0.now += .milliseconds(milliseconds) } }
    func keep() { state.withLock { $0.store.copy(at: $0.now) } }
    func restore() { state.withLock { $0.store.restore(copyOf: $0.now) } }
    func wipe() { state.withLock { $0.store.wipe() } }
}

@Suite struct MemoryStoreTests {
    @Test(arguments: StoreCase.allCases)
    func `the model of the store does what a store has to do`(name: StoreCase) async throws {
        try await name.run(SteppedStore())
    }

    @Test func `faults take effect`() throws {
        var store = MemoryStore(seed: 1)
        let now = Instant(nanoseconds: 0)
        let beat = try Given.beat(Given.instance("a", 7), Given.record("x"))
        store.delayMax = .seconds(1)
        let delays = (0..<50).compactMap { _ in store.beat(beat, at: now).map { ($0.at - now).milliseconds } }
        #expect(delays.count == 50 && Set(delays).count > 10 && delays.allSatisfy { 0...1_000 ~= $0 })
        store.isUnavailable = true
        #expect(store.beat(beat, at: now) == nil)
        store.isUnavailable = false
        store.trouble = .down("OOM")
        #expect(store.beat(beat, at: now)?.result == .failure(.down("OOM")))
        #expect(store.counts == ["beat": 51])
    }
}
