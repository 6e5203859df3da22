import Synchronization

/// How far the node's life has come, for the readiness probe and for the one line that says that it is ready.
final class NodeStatus: Sendable {
    private struct State {
        /// Listeners that do not accept yet.
        var awaited: Int
        var pagePort: Int?
        var readySince: ContinuousClock.Instant?
        var isDraining = false
    }
    private let state: Mutex<State>

    init(listeners: Int) { state = Mutex(State(awaited: listeners)) }

    /// A listener accepts. Returns the page's port once, when the last of them does.
    func listening(pagePort: Int? = nil) -> Int? {
        state.withLock { state in
            state.awaited -= 1
            if let pagePort { state.pagePort = pagePort }
            guard state.awaited == 0 else { return nil }
            state.readySince = .now
            return state.pagePort
        }
    }

    func startDraining() { state.withLock { $0.isDraining = true } }

    /// Whether new clients should be sent here.
    var isReady: Bool { state.withLock { $0.readySince != nil && !$0.isDraining } }

    var uptimeSeconds: Double {
        state.withLock { state in state.readySince.map { $0.duration(to: .now) / .seconds(1) } ?? 0 }
    }
}
