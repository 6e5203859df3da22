import Synchronization

/// A value that is replaced as a whole while any thread reads it: what a reload changes, or what is known later than its owner.
package final class Replaceable<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    package init(_ value: Value) { state = Mutex(value) }

    /// The value in force. A reader that needs two members of it reads it once.
    package var current: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
