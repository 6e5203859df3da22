import EventLoop
import ServiceLifecycle

/// Gives the system memory that a burst left behind, such as messages for clients that read nothing: the C library keeps what
/// is freed, however much it is.
struct MemoryRelease: Service {
    func run() async throws {
        await cancelWhenGracefulShutdown {
            var unused = UnusedMemory()
            while (try? await Task.sleep(for: .seconds(5))) != nil {
                let resident = ProcessStat.current()?.residentBytes ?? 0
                if unused.sampled(free: FreeMemory.bytes, resident: resident) { FreeMemory.release() }
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

    private struct Sample {
        var free: Int
        var resident: Int
    }

    private var sampleCount = 0
    private var leastUnused = Int.max
    /// The first sample after the last release.
    private var afterRelease: Sample?
    private var hasReleased = false

    /// - Parameters:
    ///   - free: the free memory in bytes, including what was released: the C library counts both as free.
    ///   - resident: the process's memory in bytes that the system has not got back. What was allocated and freed again between two
    ///     samples shows in it alone.
    /// - Returns: whether to release it now.
    mutating func sampled(free: Int, resident: Int) -> Bool {
        if hasReleased {
            afterRelease = Sample(free: free, resident: resident)
            hasReleased = false
        }
        leastUnused = min(leastUnused, unused(Sample(free: free, resident: resident)))
        sampleCount += 1
        guard sampleCount == Self.samplesMax else { return false }
        hasReleased = leastUnused >= Self.releaseBytesMin
        (sampleCount, leastUnused) = (0, .max)
        return hasReleased
    }

    /// The free memory that the system has not got back.
    private func unused(_ sample: Sample) -> Int {
        guard let afterRelease else { return sample.free }
        // What is in use again is resident and no longer free.
        let grown = (sample.resident - afterRelease.resident) + (sample.free - afterRelease.free)
        return min(max(grown, 0), sample.free)
    }
}
