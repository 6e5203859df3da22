/// Decides from samples of the free memory when to release it: when much of it was free in a whole period. Memory that is freed
/// and allocated again all the time stays with the process.
package struct UnusedMemory {
    /// The samples of one period.
    package static let samplesMax = 4
    /// The unused memory from which on a release is worth its cost, in bytes.
    package static let releaseBytesMin = 8 << 20

    private var sampleCount = 0
    private var leastUnused = Int.max
    /// The least resident memory since the last release that was not allocated: code, stacks and the like.
    private var leastOther: Int?

    package init() {}

    /// - Parameters:
    ///   - free: the free memory in bytes, including what was released: the C library counts both as free.
    ///   - allocated: the memory in bytes that is in use.
    ///   - resident: the process's memory in bytes that the system has not got back. What was allocated and freed again between two
    ///     samples shows in it alone.
    /// - Returns: whether to release it now.
    package mutating func sampled(free: Int, allocated: Int, resident: Int) -> Bool {
        let other = resident - allocated
        leastOther = leastOther.map { min($0, other) }
        leastUnused = min(leastUnused, leastOther.map { min(other - $0, free) } ?? free)
        sampleCount += 1
        guard sampleCount == Self.samplesMax else { return false }
        defer { (sampleCount, leastUnused) = (0, .max) }
        return leastUnused >= Self.releaseBytesMin
    }

    /// Takes the memory right after a release. By the next sample a burst may have left as much behind again.
    package mutating func released(allocated: Int, resident: Int) { leastOther = resident - allocated }
}
