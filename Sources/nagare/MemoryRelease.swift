import EventLoop
import ServiceLifecycle

/// Gives the system memory that a burst left behind, such as messages for clients that read nothing: the C library keeps what
/// is freed, however much it is.
struct MemoryRelease: Service {
    func run() async throws {
        await cancelWhenGracefulShutdown {
            var unused = UnusedMemory()
            while (try? await Task.sleep(for: .seconds(5))) != nil {
                if unused.sampled(FreeMemory.bytes) { FreeMemory.release() }
            }
        }
    }
}

/// Decides from samples of the free memory when to release it: when much of it was free in a whole period. Memory that is freed
/// and allocated again all the time stays with the process.
struct UnusedMemory {
    /// The samples of one period.
    static let samplesMax = 4
    /// The unused memory from which on a release is worth its cost, in bytes.
    static let releaseBytesMin = 8 << 20

    private var sampleCount = 0
    private var leastFree = Int.max
    /// The free bytes whose pages the system has already.
    private var released = 0

    /// - Parameter free: the free memory in bytes, including what was released.
    /// - Returns: whether to release it now.
    mutating func sampled(_ free: Int) -> Bool {
        // What is allocated again comes from the released memory, too.
        released = min(released, free)
        leastFree = min(leastFree, free)
        sampleCount += 1
        guard sampleCount == Self.samplesMax else { return false }
        let unused = leastFree - released
        (sampleCount, leastFree) = (0, .max)
        guard unused >= Self.releaseBytesMin else { return false }
        released = free
        return true
    }
}
