/// The datagrams that one loop turn produced, packed back to back in one block, waiting for a single flush.
///
/// A datagram is written in place, encrypted in place and handed to the socket from there. Datagrams to one path that
/// follow one another form a *run*, which a socket can hand to the kernel as one message (UDP generic segmentation
/// offload, GSO). The batch is reused turn after turn, so appending never allocates.
@safe
public final class DatagramBatch {
    /// Consecutive datagrams to one path, as the kernel's segmentation wants them: all as long as the first, but for the
    /// last, which may be shorter.
    public struct Run: Hashable, Sendable {
        /// Where to, and out of which of the loop's sockets.
        public let path: NetworkPath
        /// Where the run begins in the batch's block, in bytes.
        public let offset: Int
        /// Bytes of all its datagrams.
        public internal(set) var length: Int
        /// Bytes of each datagram but the last.
        public let segmentBytes: Int
        /// Datagrams, 1...`segmentsMax`.
        public internal(set) var count: Int
        /// The index in the batch of the first one.
        let firstIndex: Int
        /// Whether a datagram may still join: none follows a shorter one.
        var isOpen: Bool
    }

    /// Bytes that one datagram may have: an Ethernet frame's payload, more than any path we send on carries.
    public static let slotBytes = 1536
    /// Datagrams of one run: UDP_MAX_SEGMENTS of the kernels that have the fewest.
    public static let segmentsMax = 64
    /// Bytes of one run: what fits an IPv6 packet of 65,535 bytes with room for extension headers.
    public static let runBytesMax = 65_000

    /// Datagrams that the batch holds at most.
    public let capacity: Int
    @usableFromInline let storage: UnsafeMutableRawPointer
    private let runStorage: UnsafeMutablePointer<Run>
    /// Behind a pointer and not in the object: no access to it is checked for exclusivity at run time.
    @usableFromInline let state: UnsafeMutablePointer<State>

    @usableFromInline
    struct State {
        @usableFromInline var writeOffset = 0
        @usableFromInline var count = 0
        @usableFromInline var runCount = 0
        @usableFromInline var overflowed = 0
        init() {}
    }

    /// Called when a datagram is to be appended and the batch is full; must leave it with room, else the datagram is not
    /// appended and counts as `overflowed`.
    public var onFull: ((DatagramBatch) -> Void)?

    /// - Parameter capacity: datagrams; 1024 is over twenty turns of a busy loop.
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

    /// Datagrams in the batch.
    @inlinable public var count: Int { unsafe state.pointee.count }
    @inlinable public var isEmpty: Bool { unsafe state.pointee.count == 0 }
    /// Datagrams refused because the batch stayed full.
    public var overflowed: Int { unsafe state.pointee.overflowed }

    /// Room for one datagram of up to `slotBytes`, to be taken by `commit`; without that the next call returns the same
    /// place. `nil` when the batch stays full, which is counted as `overflowed`.
    @unsafe
    @inlinable
    @inline(__always)
    public func reserve() -> UnsafeMutableRawPointer? {
        if unsafe state.pointee.count == capacity, !makeRoom() { return nil }
        return unsafe storage + state.pointee.writeOffset
    }

    /// Takes what was written at the place that `reserve` returned last as the next datagram.
    /// - Parameter length: its bytes, 1...`slotBytes`.
    public func commit(_ length: Int, to path: NetworkPath) {
        precondition(length > 0 && length <= Self.slotBytes, "a datagram fits its slot")
        precondition(unsafe state.pointee.count < capacity, "the place was reserved")
        if !extendLastRun(length, path) { addRun(length, path) }
        unsafe state.pointee.writeOffset &+= length
        unsafe state.pointee.count &+= 1
    }

    /// Appends one datagram.
    /// - Parameter write: fills the slot of `slotBytes` and returns how many bytes of it to send; `nil` gives it back.
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

    /// Appends a copy of `bytes`; one longer than a slot is refused.
    @discardableResult
    public func append(to path: NetworkPath, copying bytes: RawSpan) -> Bool {
        append(to: path) { slot in
            guard bytes.byteCount <= slot.byteCount else { return nil }
            slot.store(bytes, at: 0)
            return bytes.byteCount
        }
    }

    /// The bytes of the datagram at `index`, for the duration of the call. O(log runs).
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

    /// Empties the batch; what its pointers pointed to is written over by what comes next.
    public func removeAll() {
        unsafe state.pointee.writeOffset = 0
        unsafe state.pointee.count = 0
        unsafe state.pointee.runCount = 0
    }

    // MARK: For the socket that sends it

    /// The block, which `Run.offset` counts in.
    public var baseAddress: UnsafeMutableRawPointer { unsafe storage }

    public var runCount: Int { unsafe state.pointee.runCount }

    /// The run at `index`, in the order of their datagrams.
    @inline(__always)
    public func run(at index: Int) -> Run {
        precondition(index >= 0 && index < runCount, "the batch holds the run")
        return unsafe runStorage[index]
    }

    /// All runs, as a copy; `run(at:)` makes none.
    public var runs: [Run] { (0..<runCount).map { run(at: $0) } }

    // MARK: Steps

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
