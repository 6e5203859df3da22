internal import Forwarding
internal import Wire

/// Datagrams where a socket would put them, waiting to be received.
@safe
final class Inbox {
    private static let slotBytes = 2_048
    private let memory: UnsafeMutableRawBufferPointer
    private var lengths: [Int] = []
    private var paths: [NetworkPath] = []
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        unsafe memory = .allocate(byteCount: capacity * Self.slotBytes, alignment: 64)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
        lengths.reserveCapacity(capacity)
        paths.reserveCapacity(capacity)
    }

    deinit { unsafe memory.deallocate() }

    func removeAll() {
        lengths.removeAll(keepingCapacity: true)
        paths.removeAll(keepingCapacity: true)
    }

    func append(_ bytes: [UInt8], from path: NetworkPath) {
        precondition(lengths.count < capacity && bytes.count <= Self.slotBytes)
        let start = lengths.count * Self.slotBytes
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + Self.slotBytes]).copyBytes(from: bytes)
        lengths.append(bytes.count)
        paths.append(path)
    }

    /// Hands everything to `core`, where it lies.
    @inline(__always)
    func deliver(to core: Forwarder, at now: Instant, into batch: DatagramBatch) {
        guard let start = unsafe memory.baseAddress else { return }
        for index in lengths.indices {
            let slot = unsafe UnsafeMutableRawBufferPointer(
                start: start + index * Self.slotBytes,
                count: Self.slotBytes
            )
            var span = unsafe slot.mutableBytes
            core.receive(&span, length: lengths[index], path: paths[index], at: now, into: batch)
        }
    }
}
