import Base
import Synchronization

/// A bounded queue of records from one thread to one other, without locks: a byte ring in shared memory.
///
/// A record is a header of a fixed type with some bytes behind it, in one piece and aligned to ``alignment``. The writing
/// thread appends and, once a turn, publishes what it appended; the reading thread drains. A record without room is dropped
/// and counted, so a reader that stalls costs the writer nothing. Control records, which have no bytes, may use the whole
/// ring; packets, which have bytes, leave them an eighth.
///
/// The memory is taken when the first record is appended: most pairs of loops never talk.
@safe
final class LoopRing<Header: BitwiseCopyable & Sendable>: @unchecked Sendable {
    /// Some 800 packets: longer than a loop's turn under load, and 10 ms of 1 Gbit/s.
    static var capacityDefault: Int { 1 << 20 }
    /// Of a record's start. A cache line would waste a twentieth of the ring.
    static var alignment: Int { 16 }

    /// What the writing thread has counted. Every count only grows.
    struct WriterCounters: Sendable {
        var records: UInt64 = 0
        /// Of the records, with their headers and padding.
        var bytes: UInt64 = 0
        /// Records with bytes that found no room.
        var droppedPackets: UInt64 = 0
        /// Records without bytes that found no room.
        var droppedControl: UInt64 = 0
        /// The most bytes that ever waited, as seen when records were published.
        var waitingMax = 0
    }

    /// What stands before a record's header.
    private struct Prefix: BitwiseCopyable {
        /// From this record to the next.
        var stride: UInt32
        /// Behind the header. ``skip`` tells that there is no record here, only the ring's end.
        var byteCount: UInt32
        static var skip: UInt32 { .max }
    }

    let capacity: Int
    /// How much of the ring records with bytes may fill.
    private let packetCapacity: Int
    private let constantsPadding: [16 of UInt64] = .init(repeating: 0)

    // Positions count bytes since the start and never wrap; their place in the memory is their remainder. Each side's own
    // data lie on cache lines of their own (two each, because processors fetch them in pairs).

    /// Up to where records are published. Written by the writer, which hands over the memory below it.
    private let tail = Atomic<UInt64>(0)
    private let tailPadding: [15 of UInt64] = .init(repeating: 0)
    /// Up to where records are taken. Written by the reader, which hands the memory back.
    private let head = Atomic<UInt64>(0)
    private let headPadding: [15 of UInt64] = .init(repeating: 0)

    // The writing thread's.
    private var end: UInt64 = 0
    private var published: UInt64 = 0
    /// The reader's position when it was last looked at; the true one is at least as far.
    private var headSeen: UInt64 = 0
    private(set) var counters = WriterCounters()
    /// Set once by the writer before anything is published, so the reader sees it with the first record.
    private var storage: UnsafeMutableRawPointer?

    /// - Parameter capacity: a power of two, at least 4096 and at most 2^30.
    init(capacity: Int = LoopRing.capacityDefault) {
        precondition(capacity.nonzeroBitCount == 1, "a ring is a power of two")
        precondition((1 << 12...1 << 30).contains(capacity), "a ring holds a few records at least")
        precondition(MemoryLayout<Header>.alignment <= Self.alignment, "headers are aligned as records are")
        self.capacity = capacity
        packetCapacity = capacity / 8 * 7
    }

    /// Neither thread uses the ring any more.
    deinit { unsafe storage?.deallocate() }

    private static var headerOffset: Int { 16 }
    private static var bytesOffset: Int { headerOffset + MemoryLayout<Header>.size }

    // MARK: The writing thread

    /// Whether memory was taken.
    var isAllocated: Bool { unsafe storage != nil }
    /// Bytes appended and not published yet.
    var unpublishedBytes: Int { Int(end &- published) }
    /// Bytes that wait to be read, published or not.
    var waitingBytes: Int { Int(end &- head.load(ordering: .relaxed)) }

    /// Copies a record in; it is seen by the reader from the next ``publish()`` on.
    /// - Returns: `false` when there is no room, or the record is longer than a quarter of the ring; this is counted.
    @inline(__always)
    func append(_ header: Header, _ bytes: RawSpan) -> Bool {
        let stride = (Self.bytesOffset + bytes.byteCount + Self.alignment - 1) & ~(Self.alignment - 1)
        let position = Int(truncatingIfNeeded: end) & (capacity - 1)
        // A record is in one piece: one that does not fit before the ring's end goes to its start.
        let skipped = stride <= capacity - position ? 0 : capacity - position
        let limit = bytes.isEmpty ? capacity : packetCapacity
        // What were longer than a quarter might find no place even in an empty ring, at its end.
        guard stride <= capacity / 4, hasRoom(for: skipped + stride, within: limit) else {
            if bytes.isEmpty { counters.droppedControl &+= 1 } else { counters.droppedPackets &+= 1 }
            return false
        }
        let memory = unsafe memory()
        if skipped > 0 {
            let prefix = Prefix(stride: UInt32(truncatingIfNeeded: skipped), byteCount: Prefix.skip)
            unsafe (memory + position).storeBytes(of: prefix, as: Prefix.self)
        }
        let record = unsafe memory + (skipped > 0 ? 0 : position)
        let prefix = Prefix(
            stride: UInt32(truncatingIfNeeded: stride),
            byteCount: UInt32(truncatingIfNeeded: bytes.byteCount)
        )
        unsafe record.storeBytes(of: prefix, as: Prefix.self)
        unsafe (record + Self.headerOffset).storeBytes(of: header, as: Header.self)
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe (record + Self.bytesOffset).copyMemory(from: start, byteCount: source.count)
        }
        end &+= UInt64(skipped + stride)
        counters.records &+= 1
        counters.bytes &+= UInt64(stride)
        return true
    }

    /// Lets the reader see what was appended.
    /// - Returns: whether there was anything.
    func publish() -> Bool {
        guard end != published else { return false }
        published = end
        tail.store(end, ordering: .releasing)
        headSeen = head.load(ordering: .acquiring)
        counters.waitingMax = max(counters.waitingMax, Int(end &- headSeen))
        return true
    }

    @inline(__always)
    private func hasRoom(for count: Int, within limit: Int) -> Bool {
        if Int(end &- headSeen) + count <= limit { return true }
        // What the reader read before it moved its position, it has read: the memory may be written again.
        headSeen = head.load(ordering: .acquiring)
        return Int(end &- headSeen) + count <= limit
    }

    @inline(__always)
    private func memory() -> UnsafeMutableRawPointer {
        if let storage = unsafe storage { return unsafe storage }
        let made = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 64)
        unsafe storage = made
        return unsafe made
    }

    // MARK: The reading thread

    /// Whether nothing published waits.
    var isEmpty: Bool { tail.load(ordering: .relaxed) == head.load(ordering: .relaxed) }

    /// Takes published records in their order.
    /// - Parameters:
    ///   - recordsMax: how many at most.
    ///   - body: gets each record; its bytes are valid during the call only.
    /// - Returns: how many were taken.
    @inline(__always)
    func drain(_ recordsMax: Int, _ body: (Header, RawSpan) -> Void) -> Int {
        let tail = tail.load(ordering: .acquiring)
        var position = head.load(ordering: .relaxed)
        guard position != tail, let storage = unsafe storage else { return 0 }
        var count = 0
        while position != tail, count < recordsMax {
            let record = unsafe storage + (Int(truncatingIfNeeded: position) & (capacity - 1))
            let prefix = unsafe record.load(as: Prefix.self)
            position &+= UInt64(prefix.stride)
            if prefix.byteCount == Prefix.skip { continue }
            let header = unsafe (record + Self.headerOffset).load(as: Header.self)
            let bytes = unsafe UnsafeRawBufferPointer(
                start: record + Self.bytesOffset,
                count: Int(prefix.byteCount)
            )
            body(header, unsafe bytes.bytes)
            count += 1
        }
        head.store(position, ordering: .releasing)
        return count
    }
}
