import Glibc

/// The limit on open files. Every HTTP connection uses one.
package enum FileDescriptorLimit {
    /// Raises the soft limit to the hard one, which needs no privilege.
    package static func raise() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(resource, &limit)
    }
}
