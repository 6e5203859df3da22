import Wire

/// Datagrams of one socket that wait for room in the kernel's send buffer, first in, first out.
///
/// It is short: what waits longer than some milliseconds is late for a call anyway. When it is full, the datagram that
/// comes is dropped. The block is made at the first use and kept.
@safe
final class SendQueue {
    /// Datagrams kept: about 10 ms of 1 Gbit/s of video packets.
    static let capacity = 1024

    private var block: UnsafeMutableRawPointer?
    private var lengths: [Int]
    private var remotes: [TransportAddress]
    private var head = 0
    private(set) var count = 0

    init() {
        lengths = []
        remotes = []
    }

    deinit { unsafe block?.deallocate() }

    var isEmpty: Bool { count == 0 }

    /// Appends a copy; `false` when the queue is full. `bytes` must fit a slot of a `DatagramBatch`.
    func append(_ bytes: UnsafeRawBufferPointer, to remote: TransportAddress) -> Bool {
        precondition(bytes.count <= DatagramBatch.slotBytes)
        guard count < Self.capacity else { return false }
        let block = unsafe allocatedBlock()
        let index = (head + count) % Self.capacity
        if let base = bytes.baseAddress {
            unsafe (block + index * DatagramBatch.slotBytes).copyMemory(from: base, byteCount: bytes.count)
        }
        lengths[index] = bytes.count
        remotes[index] = remote
        count += 1
        return true
    }

    /// The datagram at `offset` from the head, valid until the queue changes.
    func datagram(at offset: Int) -> (bytes: UnsafeRawBufferPointer, remote: TransportAddress) {
        precondition(offset < count)
        let index = (head + offset) % Self.capacity
        let block = unsafe allocatedBlock()
        let bytes = unsafe UnsafeRawBufferPointer(
            start: block + index * DatagramBatch.slotBytes,
            count: lengths[index]
        )
        return unsafe (bytes, remotes[index])
    }

    func removeFirst(_ removed: Int) {
        precondition(removed <= count)
        head = (head + removed) % Self.capacity
        count -= removed
    }

    private func allocatedBlock() -> UnsafeMutableRawPointer {
        if let block = unsafe block { return unsafe block }
        let made = UnsafeMutableRawPointer.allocate(
            byteCount: Self.capacity * DatagramBatch.slotBytes,
            alignment: 64
        )
        unsafe block = made
        lengths = Array(repeating: 0, count: Self.capacity)
        remotes = Array(repeating: TransportAddress(ip: .anyV4, port: 0), count: Self.capacity)
        return unsafe made
    }
}
