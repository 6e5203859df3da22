/// The datagrams that one loop turn produced, in one contiguous block, waiting for a single flush.
///
/// A slot is written in place, encrypted in place and handed to the socket from there. The batch is reused turn
/// after turn, so appending never allocates.
@safe
public final class DatagramBatch {
    /// One datagram's place in the block.
    public struct Entry {
        /// Where to, and out of which of the loop's sockets.
        public let path: NetworkPath
        public let length: Int
    }

    /// Bytes kept for one datagram: an Ethernet frame's payload, more than any path we send on carries.
    public static let slotBytes = 1536
    public let capacity: Int
    public private(set) var entries: [Entry] = []
    private let storage: UnsafeMutableRawPointer

    /// Called when a datagram is to be appended and every slot is taken; must leave the batch with free slots,
    /// else the datagram is not appended and counts as `overflowed`.
    public var onFull: ((DatagramBatch) -> Void)?
    /// Datagrams refused because the batch stayed full.
    public private(set) var overflowed = 0

    /// - Parameter capacity: slots; 512 is over ten turns of a busy loop.
    public init(capacity: Int = 512) {
        precondition(capacity > 0)
        self.capacity = capacity
        unsafe storage = .allocate(byteCount: capacity * Self.slotBytes, alignment: 64)
        entries.reserveCapacity(capacity)
    }

    deinit { unsafe storage.deallocate() }

    public var count: Int { entries.count }
    public var isEmpty: Bool { entries.isEmpty }

    /// Appends one datagram.
    /// - Parameter write: fills the slot and returns how many bytes of it to send; `nil` gives the slot back.
    /// - Returns: whether a datagram was appended.
    @inline(__always)
    @discardableResult
    public func append(to path: NetworkPath, _ write: (inout MutableRawSpan) -> Int?) -> Bool {
        if entries.count == capacity {
            onFull?(self)
            guard entries.count < capacity else {
                overflowed &+= 1
                return false
            }
        }
        let length = withSlot(entries.count, write)
        guard let length, length > 0, length <= Self.slotBytes else { return false }
        entries.append(Entry(path: path, length: length))
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

    /// The bytes of the datagram at `index`, for the duration of the call.
    public func withDatagram<Result>(_ index: Int, _ body: (RawSpan, NetworkPath) throws -> Result) rethrows -> Result {
        let entry = entries[index]
        let bytes = unsafe UnsafeRawBufferPointer(start: storage + index * Self.slotBytes, count: entry.length)
        return try body(unsafe bytes.bytes, entry.path)
    }

    public func removeAll() { entries.removeAll(keepingCapacity: true) }

    /// The block itself, slot `index` starting at `index * slotBytes`; for the socket that sends it.
    public var baseAddress: UnsafeMutableRawPointer { unsafe storage }

    @inline(__always)
    private func withSlot(_ index: Int, _ write: (inout MutableRawSpan) -> Int?) -> Int? {
        let slot = unsafe UnsafeMutableRawBufferPointer(
            start: storage + index * Self.slotBytes,
            count: Self.slotBytes
        )
        var span = unsafe slot.mutableBytes
        return write(&span)
    }
}
