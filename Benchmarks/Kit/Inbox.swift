import Base
internal import Forwarding
internal import Wire

/// Datagrams that wait to be received, in buffers like a socket's. They are in plain memory, so that delivering them adds
/// nothing to the counts.
@safe
final class Inbox {
    private static let slotBytes = 2_048

    private struct Slot {
        var length: Int
        var path: NetworkPath
    }

    private let memory: UnsafeMutableRawPointer
    private let slots: UnsafeMutablePointer<Slot>
    private let count: UnsafeMutablePointer<Int>
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        unsafe memory = .allocate(byteCount: capacity * Self.slotBytes, alignment: 64)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * Self.slotBytes)
        unsafe slots = .allocate(capacity: capacity)
        unsafe count = .allocate(capacity: 1)
        unsafe count.initialize(to: 0)
    }

    deinit {
        unsafe memory.deallocate()
        unsafe slots.deallocate()
        unsafe count.deallocate()
    }

    func removeAll() { unsafe count.pointee = 0 }

    func append(_ bytes: [UInt8], from path: NetworkPath) {
        let index = unsafe count.pointee
        precondition(index < capacity && bytes.count <= Self.slotBytes)
        unsafe UnsafeMutableRawBufferPointer(start: memory + index * Self.slotBytes, count: Self.slotBytes)
            .copyBytes(from: bytes)
        unsafe (slots + index).initialize(to: Slot(length: bytes.count, path: path))
        unsafe count.pointee = index + 1
    }

    func append(_ bytes: [UInt8], from route: ClientRoute) { append(route.wrapped(bytes), from: route.source) }

    /// Delivers every datagram to `forwarder` in place.
    @inline(__always)
    func deliver(to forwarder: Forwarder, at now: Instant, into batch: DatagramBatch) {
        deliver(unsafe 0..<count.pointee, to: forwarder, at: now, into: batch)
    }

    /// Delivers some of the datagrams to `forwarder` in place.
    @inline(__always)
    func deliver(_ places: Range<Int>, to forwarder: Forwarder, at now: Instant, into batch: DatagramBatch) {
        precondition(unsafe places.upperBound <= count.pointee)
        for index in places {
            let slot = unsafe slots[index]
            let buffer = unsafe UnsafeMutableRawBufferPointer(
                start: memory + index * Self.slotBytes,
                count: Self.slotBytes
            )
            var span = unsafe buffer.mutableBytes
            forwarder.receive(&span, length: slot.length, path: slot.path, at: now, into: batch)
        }
    }
}
