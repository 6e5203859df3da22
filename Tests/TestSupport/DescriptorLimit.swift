import Glibc

/// The process's limit of open files, lowered to those that are open: every further one fails with EMFILE. For tests in a process
/// of their own.
package struct DescriptorLimit {
    package struct Failure: Error { let code: Int32 }

    private let before: rlimit

    /// Lowers the limit.
    package static func none() throws(Failure) -> Self {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw Failure(code: errno)
        }
        // The system gives out the lowest free number.
        let free = dup(0)
        guard free >= 0 else { throw Failure(code: errno) }
        close(free)
        let before = limit
        limit.rlim_cur = rlim_t(free)
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw Failure(code: errno)
        }
        guard dup(0) == -1, errno == EMFILE else { throw Failure(code: 0) }
        return Self(before: before)
    }

    /// Sets the limit that was there before.
    package func restore() {
        var limit = before
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
