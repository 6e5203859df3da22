import EventLoop
import ServiceLifecycle

/// Gives the system memory that a burst left behind, such as messages for clients that read nothing: the C library keeps what
/// is freed, however much it is.
struct MemoryRelease: Service {
    func run() async throws {
        await cancelWhenGracefulShutdown {
            var unused = UnusedMemory()
            while (try? await Task.sleep(for: .seconds(5))) != nil {
                guard let resident = ProcessStat.current()?.residentBytes else { continue }
                let memory = FreeMemory.bytes
                let isDue = unused.sampled(free: memory.free, allocated: memory.allocated, resident: resident)
                guard isDue else { continue }
                FreeMemory.release()
                guard let resident = ProcessStat.current()?.residentBytes else { continue }
                unused.released(allocated: FreeMemory.bytes.allocated, resident: resident)
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
    private var leastUnused = Int.max
    /// The least resident memory since the last release that was not allocated: code, stacks and the like.
    private var leastOther: Int?

    /// - Parameters:
    ///   - free: the free memory in bytes, including what was released: the C library counts both as free.
    ///   - allocated: the memory in bytes that is in use.
    ///   - resident: the process's memory in bytes that the system has not got back. What was allocated and freed again between two
    ///     samples shows in it alone.
    /// - Returns: whether to release it now.
    mutating func sampled(free: Int, allocated: Int, resident: Int) -> Bool {
        let other = resident - allocated
        leastOther = leastOther.map { min($0, other) }
        leastUnused = min(leastUnused, leastOther.map { min(other - $0, free) } ?? free)
        sampleCount += 1
        guard sampleCount == Self.samplesMax else { return false }
        defer { (sampleCount, leastUnused) = (0, .max) }
        return leastUnused >= Self.releaseBytesMin
    }

    /// Takes the memory right after a release. By the next sample a burst may have left as much behind again.
    mutating func released(allocated: Int, resident: Int) { leastOther = resident - allocated }
}
