import Base

/// The outgoing datagrams of one loop turn, packed back to back in one buffer.
///
/// A datagram is written and encrypted in place and sent from there. Consecutive datagrams to one path form a *run*,
/// which a socket can pass to the kernel as one message (UDP generic segmentation offload, GSO). The batch is reused,
/// so appending never allocates.
@safe
public final class DatagramBatch {
    /// Consecutive datagrams to one path, as GSO requires them: all of the same length, except the last one, which may
    /// be shorter.
    public struct Run: Hashable, Sendable {
        /// The local socket and the remote address.
        public let path: NetworkPath
        /// The offset of the run in the batch's buffer, in bytes.
        public let offset: Int
        /// The bytes of all its datagrams.
        public internal(set) var length: Int
        /// The bytes of each datagram but the last.
        public let segmentBytes: Int
        /// The number of datagrams, 1...``segmentsMax``.
        public internal(set) var count: Int
        /// The index of the first datagram in the batch.
        let firstIndex: Int
        /// Whether another datagram may join: not after a shorter one.
        var isOpen: Bool
    }

    /// The most bytes of one datagram: more than the payload of an Ethernet frame.
    public static let slotBytes = 1536
    /// The most datagrams of one run: the smallest UDP_MAX_SEGMENTS of all kernels.
    public static let segmentsMax = 64
    /// The most bytes of one run: an IPv6 packet of 65,535 bytes with room for extension headers.
    static let runBytesMax = 65_000

    /// The most datagrams of the batch.
    public let capacity: Int
    @usableFromInline let storage: UnsafeMutableRawPointer
    private let runStorage: UnsafeMutablePointer<Run>
    /// A pointer, so that accesses need no exclusivity checks at run time.
    @usableFromInline let state: UnsafeMutablePointer<State>

    @usableFromInline
    struct State {
        @usableFromInline var writeOffset = 0
        @usableFromInline var count = 0
        @usableFromInline var runCount = 0
        @usableFromInline var overflowed = 0
        init() {}
    }

    /// Called when a datagram is appended to a full batch. It should make room; otherwise the datagram is dropped and
    /// counted in ``overflowed``.
    public var onFull: ((DatagramBatch) -> Void)?

    /// - Parameter capacity: the most datagrams; 1024 is more than 20 turns of a busy loop.
    public init(capacity: Int = 1024) {
        precondition(capacity > 0)
        self.capacity = capacity
        unsafe storage = .allocate(byteCount: capacity * Self.slotBytes, alignment: 64)
        unsafe runStorage = .allocate(capacity: capacity)
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: State())
    }

    deinit {
        unsafe storage.deallocate()
        unsafe runStorage.deallocate()
        unsafe state.deallocate()
    }

    /// The number of datagrams in the batch.
    @inlinable public var count: Int { unsafe state.pointee.count }
    @inlinable public var isEmpty: Bool { unsafe state.pointee.count == 0 }
    /// The number of datagrams dropped because the batch was full.
    public var overflowed: Int { unsafe state.pointee.overflowed }

    /// The memory for the next datagram of up to ``slotBytes``, which ``commit(_:to:)`` appends. Without a commit the
    /// next call returns the same memory. `nil` when the batch stays full, which is counted in ``overflowed``.
    @unsafe
    @inlinable
    @inline(__always)
    public func reserve() -> UnsafeMutableRawPointer? {
        if unsafe state.pointee.count == capacity, !makeRoom() { return nil }
        return unsafe storage + state.pointee.writeOffset
    }

    /// Whether a datagram can be appended, for a caller whose own state ``onFull`` reads: after this it is not called for the
    /// next datagram.
    public func hasRoom() -> Bool { unsafe reserve() != nil }

    /// Appends the datagram that was written to the memory from ``reserve()``.
    /// - Parameter length: its bytes, 1...``slotBytes``.
    public func commit(_ length: Int, to path: NetworkPath) {
        precondition(length > 0 && length <= Self.slotBytes, "a datagram fits its slot")
        precondition(unsafe state.pointee.count < capacity, "the memory was reserved")
        if !extendLastRun(length, path) { addRun(length, path) }
        unsafe state.pointee.writeOffset &+= length
        unsafe state.pointee.count &+= 1
    }

    /// Appends one datagram.
    /// - Parameter write: fills the slot of ``slotBytes`` and returns the datagram's length, or `nil` to append
    ///   nothing.
    /// - Returns: whether a datagram was appended.
    @inlinable
    @inline(__always)
    @discardableResult
    public func append(to path: NetworkPath, _ write: (inout MutableRawSpan) -> Int?) -> Bool {
        guard let place = unsafe reserve() else { return false }
        let slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: Self.slotBytes)
        var span = unsafe slot.mutableBytes
        guard let length = write(&span), length > 0, length <= Self.slotBytes else { return false }
        commit(length, to: path)
        return true
    }

    /// Appends a copy of `bytes`, at most ``slotBytes``.
    /// - Returns: whether a datagram was appended.
    @discardableResult
    public func append(to path: NetworkPath, copying bytes: RawSpan) -> Bool {
        append(to: path) { slot in
            guard bytes.byteCount <= slot.byteCount else { return nil }
            slot.store(bytes, at: 0)
            return bytes.byteCount
        }
    }

    /// Passes the bytes and the path of the datagram at `index` to `body`. O(log runs).
    public func withDatagram<Result>(_ index: Int, _ body: (RawSpan, NetworkPath) throws -> Result) rethrows -> Result {
        precondition(index >= 0 && index < count, "the batch holds the datagram")
        var lower = 0
        var upper = runCount
        while upper - lower > 1 {
            let middle = (lower + upper) / 2
            if unsafe runStorage[middle].firstIndex <= index { lower = middle } else { upper = middle }
        }
        let run = unsafe runStorage[lower]
        let start = (index - run.firstIndex) * run.segmentBytes
        let bytes = unsafe UnsafeRawBufferPointer(
            start: storage + run.offset + start,
            count: min(run.segmentBytes, run.length - start)
        )
        return try body(unsafe bytes.bytes, run.path)
    }

    /// Passes each datagram of one of the batch's runs to `body`.
    public func forEachDatagram(of run: Run, _ body: (RawSpan) -> Void) {
        var offset = run.offset
        let end = run.offset + run.length
        while offset < end {
            let count = min(run.segmentBytes, end - offset)
            let bytes = unsafe UnsafeRawBufferPointer(start: storage + offset, count: count)
            body(unsafe bytes.bytes)
            offset += count
        }
    }

    /// Empties the batch. Its memory is reused.
    public func removeAll() {
        unsafe state.pointee.writeOffset = 0
        unsafe state.pointee.count = 0
        unsafe state.pointee.runCount = 0
    }

    // MARK: For the socket

    /// The start of the buffer that `Run.offset` refers to.
    public var baseAddress: UnsafeMutableRawPointer { unsafe storage }

    public var runCount: Int { unsafe state.pointee.runCount }

    /// The run at `index`, in the order of the datagrams.
    @inline(__always)
    public func run(at index: Int) -> Run {
        precondition(index >= 0 && index < runCount, "the batch holds the run")
        return unsafe runStorage[index]
    }

    /// A copy of all runs; ``run(at:)`` does not copy.
    public var runs: [Run] { (0..<runCount).map { run(at: $0) } }

    // MARK: Implementation

    @usableFromInline
    @inline(never)
    func makeRoom() -> Bool {
        onFull?(self)
        if unsafe state.pointee.count < capacity { return true }
        unsafe state.pointee.overflowed &+= 1
        return false
    }

    @inline(__always)
    private func extendLastRun(_ length: Int, _ path: NetworkPath) -> Bool {
        guard unsafe state.pointee.runCount > 0 else { return false }
        let last = unsafe runStorage + (state.pointee.runCount &- 1)
        guard unsafe last.pointee.isOpen, unsafe length <= last.pointee.segmentBytes,
            unsafe last.pointee.count < Self.segmentsMax,
            unsafe last.pointee.length &+ length <= Self.runBytesMax,
            unsafe last.pointee.path == path
        else { return false }
        unsafe last.pointee.length &+= length
        unsafe last.pointee.count &+= 1
        if unsafe length < last.pointee.segmentBytes { unsafe last.pointee.isOpen = false }
        return true
    }

    @inline(__always)
    private func addRun(_ length: Int, _ path: NetworkPath) {
        unsafe (runStorage + state.pointee.runCount).initialize(
            to: Run(
                path: path,
                offset: state.pointee.writeOffset,
                length: length,
                segmentBytes: length,
                count: 1,
                firstIndex: state.pointee.count,
                isOpen: true
            )
        )
        unsafe state.pointee.runCount &+= 1
    }
}
