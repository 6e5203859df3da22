package import Glibc

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

/// A TCP client that has its descriptor before it connects, so that it can without a free one. The system completes its connection
/// before anybody accepts it.
package final class LoopbackClient: Sendable {
    package struct Failure: Error { let code: Int32 }

    private let descriptor: Int32

    package init() throws(Failure) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(code: errno) }
    }

    deinit { close(descriptor) }

    package func connect(to port: Int) throws(Failure) {
        var name = sockaddr_in.loopback(port: port)
        let result = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure(code: errno) }
    }
}

extension sockaddr_in {
    /// A port of 127.0.0.1; 0 for one that the system chooses.
    package static func loopback(port: Int) -> Self {
        var name = Self()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return name
    }
}

/// Processor time of all threads of the process.
package func processorSeconds() -> Double {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
