import Synchronization

/// Which listeners are up, for the node's state and the line that announces readiness.
final class NodeStatus: Sendable {
    private struct State {
        /// The number of listeners that do not accept yet.
        var awaited: Int
        var pagePort: Int?
        var readySince: ContinuousClock.Instant?
    }
    private let state: Mutex<State>

    init(listeners: Int) { state = Mutex(State(awaited: listeners)) }

    /// Records that a listener accepts. Returns the page's port when all do, once.
    func listening(pagePort: Int? = nil) -> Int? {
        state.withLock { state in
            state.awaited -= 1
            if let pagePort { state.pagePort = pagePort }
            guard state.awaited == 0 else { return nil }
            state.readySince = .now
            return state.pagePort
        }
    }

    /// Whether all listeners accept.
    var hasStarted: Bool { state.withLock { $0.readySince != nil } }

    var uptimeSeconds: Double {
        state.withLock { state in state.readySince.map { $0.duration(to: .now) / .seconds(1) } ?? 0 }
    }
}
