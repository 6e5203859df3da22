import Synchronization

/// The one lock of this module: a value that several threads share.
///
/// It wraps `Mutex`, which ThreadSanitizer does not see on Linux, so that a build for it can put another lock here.
struct Guarded<Value: ~Copyable>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>

    init(_ value: consuming sending Value) { mutex = Mutex(value) }

    borrowing func withLock<Result: ~Copyable>(
        _ body: (inout sending Value) -> sending Result
    ) -> sending Result {
        mutex.withLock(body)
    }
}
