internal import CDatagram

/// The memory that the process has freed and the C library keeps for later allocations.
public enum FreeMemory {
    /// The memory in bytes, including what ``release()`` gave back: the C library counts both as free. Each of its arenas is
    /// locked for as long as it takes to count its free pieces.
    public static var bytes: Int { nagare_free_memory() }

    /// Gives the memory back to the system. The next allocations take it again, page by page.
    public static func release() { nagare_release_memory() }
}
