import Synchronization

/// A queue from threads to an actor, which takes all that waits at once. What waits is a value, which orders and bounds itself.
package final class Inbox<Waiting: Sendable>: Sendable {
    private struct State {
        var waiting: Waiting
        var isEmpty = true
    }
    private let state: Mutex<State>
    private let empty: Waiting

    package init(empty: Waiting) {
        self.empty = empty
        state = Mutex(State(waiting: empty))
    }

    /// - Parameter add: adds to what waits. It must not block.
    /// - Returns: whether nothing waited, so that the actor has to be called.
    package func post(_ add: (inout Waiting) -> Void) -> Bool {
        state.withLock { state in
            defer { state.isEmpty = false }
            add(&state.waiting)
            return state.isEmpty
        }
    }

    /// Removes and returns what waits.
    package func take() -> Waiting {
        state.withLock { state in
            defer { state = State(waiting: empty) }
            return state.waiting
        }
    }
}
