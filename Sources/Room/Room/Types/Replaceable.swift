import Synchronization

/// A value that is replaced as a whole while any thread reads it: what a reload changes, or what is known later than its owner.
public final class Replaceable<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    public init(_ value: Value) { state = Mutex(value) }

    /// The value in force. A reader that needs two members of it reads it once.
    public var current: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
