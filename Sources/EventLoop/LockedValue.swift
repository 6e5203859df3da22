import Synchronization

/// A value that several threads share, protected by a lock; the only lock of this module.
///
/// It wraps `Mutex`, which ThreadSanitizer does not recognize on Linux. A build for ThreadSanitizer can use another
/// lock here.
struct LockedValue<Value: ~Copyable>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>

    init(_ value: consuming sending Value) { mutex = Mutex(value) }

    borrowing func withLock<Result: ~Copyable>(
        _ body: (inout sending Value) -> sending Result
    ) -> sending Result {
        mutex.withLock(body)
    }
}
