internal import CDatagram

/// The memory that the process has freed and the C library keeps for later allocations.
package enum FreeMemory {
    /// The memory in bytes, including what ``release()`` gave back: the C library counts both as free. And the bytes that are
    /// allocated. Each of its arenas is locked for as long as it takes to count its free pieces.
    package static var bytes: (free: Int, allocated: Int) {
        let memory = nagare_memory()
        return (memory.free, memory.allocated)
    }

    /// Gives the memory back to the system. The next allocations take it again, page by page.
    package static func release() { nagare_release_memory() }
}
