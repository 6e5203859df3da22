internal import CDatagram
internal import CUV
import Glibc
import Wire

/// One UDP socket of a loop: reads and writes in batches, and never stops because of what the network reports.
@safe
final class UDPSocket {
    /// Calls of `recvmmsg` that one readiness is worth. With 64 datagrams a call, a flooded socket lets the loop's other
    /// sockets, timer and jobs have their turn after 256; the rest is reported ready again at once.
    static let receiveCallsPerTurnMax = 4

    /// Sends datagrams as `nagare_send` does. Tests put a full buffer in its place, which loopback never has.
    typealias Transmit = (Int32, Bool, UnsafePointer<nagare_outgoing>, Int) -> Int

    let description: SocketDescription
    let descriptor: Int32
    var transmit: Transmit = { descriptor, isV6, first, count in
        unsafe Int(nagare_send(descriptor, isV6 ? 1 : 0, first, Int32(count)))
    }

    private let loop: EventLoop
    private let isV6: Bool
    private let poll: UnsafeMutablePointer<uv_poll_t>
    /// Datagrams on their way into the kernel; empty between calls of `flush`.
    private let chunk: UnsafeMutablePointer<nagare_outgoing>
    private var chunkCount = 0
    private let queue = SendQueue()

    /// Takes over the descriptor and begins to watch it. On the loop's thread.
    init(_ description: SocketDescription, descriptor: Int32, loop: EventLoop) {
        self.description = description
        self.descriptor = descriptor
        self.loop = loop
        isV6 = !description.local.ip.isV4
        unsafe poll = .allocate(capacity: 1)
        unsafe poll.initialize(to: uv_poll_t())
        unsafe chunk = .allocate(capacity: Int(NAGARE_BATCH_MAX))
        let result = unsafe uv_poll_init(loop.uvLoop, poll, descriptor)
        precondition(result == 0, "an open socket can be polled")
        unsafe poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        watch()
    }

    deinit {
        unsafe poll.deallocate()
        unsafe chunk.deallocate()
    }

    /// Sends what waits as far as the kernel takes it and closes the socket. The object must live until the loop has
    /// closed the handle.
    func close() {
        if !queue.isEmpty { flushQueue() }
        loop.counters.sendQueueDrops &+= UInt64(queue.count)
        loop.counters.kernelReceiveDrops &+= kernelDrops
        queue.removeFirst(queue.count)
        unsafe uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self), nil)
        _ = Glibc.close(descriptor)
    }

    /// Datagrams that wait for room in the kernel's buffer.
    var queuedCount: Int { queue.count }

    /// What the kernel has dropped at this socket.
    var kernelDrops: UInt64 { UInt64(nagare_kernel_drops(descriptor)) }

    // MARK: Readiness

    private func watch() {
        let events = queue.isEmpty ? UV_READABLE.rawValue : UV_READABLE.rawValue | UV_WRITABLE.rawValue
        let result = unsafe uv_poll_start(poll, Int32(events)) { handle, status, events in
            guard let data = unsafe handle?.pointee.data else { return }
            let socket = unsafe Unmanaged<UDPSocket>.fromOpaque(data).takeUnretainedValue()
            socket.ready(status: status, events: UInt32(bitPattern: events))
        }
        precondition(result == 0, "an open socket can be watched")
    }

    private func ready(status: Int32, events: UInt32) {
        loop.beginTurn()
        guard status == 0 else {
            // An error waits at the socket, an ICMP message for instance. libuv takes it for the end and has stopped
            // watching; for UDP it is news about one datagram at most.
            loop.counters.socketErrors &+= 1
            _ = nagare_clear_errors(descriptor)
            watch()
            return
        }
        if events & UV_WRITABLE.rawValue != 0 {
            flushQueue()
            if queue.isEmpty { watch() }
        }
        if events & UV_READABLE.rawValue != 0 { receive() }
    }

    private func receive() {
        for _ in 0..<Self.receiveCallsPerTurnMax {
            let count = unsafe Int(
                nagare_receive(
                    descriptor,
                    loop.receiveBlock,
                    EventLoop.receiveSlotBytes,
                    DatagramBatch.slotBytes,
                    loop.received,
                    NAGARE_BATCH_MAX
                )
            )
            guard count > 0 else {
                if count == 0 || -count == Int(EAGAIN) { return }
                // The call took the pending error; the datagrams behind it are still there.
                loop.counters.socketErrors &+= 1
                continue
            }
            let now = EventLoop.now()
            loop.counters.receiveCalls &+= 1
            for index in 0..<count { deliver(index, at: now) }
            if count < Int(NAGARE_BATCH_MAX) { return }
        }
    }

    @inline(__always)
    private func deliver(_ index: Int, at now: Instant) {
        let received = unsafe loop.received[index]
        loop.counters.datagramsReceived &+= 1
        loop.counters.bytesReceived &+= UInt64(received.length)
        guard received.truncated == 0, received.length > 0 else {
            loop.counters.receiveSizeDrops &+= 1
            return
        }
        let path = NetworkPath(
            socket: description.index,
            remote: TransportAddress(ip: IPAddress(high: received.high, low: received.low), port: received.port)
        )
        let slot = unsafe UnsafeMutableRawBufferPointer(
            start: loop.receiveBlock + index * EventLoop.receiveSlotBytes,
            count: EventLoop.receiveSlotBytes
        )
        var span = unsafe slot.mutableBytes
        loop.onDatagram?(&span, Int(received.length), path, now)
    }

    // MARK: Sending

    /// Takes one datagram, whose bytes stay where they are until `flush`.
    @inline(__always)
    func add(_ bytes: UnsafeRawPointer, length: Int, to remote: TransportAddress) {
        if chunkCount == Int(NAGARE_BATCH_MAX) { flush() }
        unsafe (chunk + chunkCount).initialize(
            to: nagare_outgoing(
                bytes: bytes,
                length: UInt32(length),
                port: remote.port,
                segment_bytes: 0,
                high: remote.ip.high,
                low: remote.ip.low
            )
        )
        chunkCount += 1
    }

    /// Hands what was added to the kernel; what the kernel has no room for waits in the queue.
    func flush() {
        guard chunkCount > 0 else { return }
        // Nothing overtakes what waits already.
        let handled = queue.isEmpty ? transmitChunk() : 0
        let wasEmpty = queue.isEmpty
        for index in handled..<chunkCount {
            let outgoing = unsafe chunk[index]
            let bytes = unsafe UnsafeRawBufferPointer(start: outgoing.bytes, count: Int(outgoing.length))
            let remote = unsafe TransportAddress(
                ip: IPAddress(high: outgoing.high, low: outgoing.low),
                port: outgoing.port
            )
            if unsafe queue.append(bytes, to: remote) {
                loop.counters.sendQueued &+= 1
            } else {
                loop.counters.sendQueueDrops &+= 1
            }
        }
        chunkCount = 0
        if wasEmpty, !queue.isEmpty { watch() }
    }

    private func flushQueue() {
        precondition(chunkCount == 0, "the chunk is empty between flushes")
        while !queue.isEmpty {
            let count = min(queue.count, Int(NAGARE_BATCH_MAX))
            for offset in 0..<count {
                let (bytes, remote) = unsafe queue.datagram(at: offset)
                guard let base = bytes.baseAddress else { continue }
                unsafe add(base, length: bytes.count, to: remote)
            }
            let handled = transmitChunk()
            chunkCount = 0
            queue.removeFirst(handled)
            if handled < count { return }
        }
    }

    /// Sends the chunk.
    /// - Returns: how many of its datagrams are done with, sent or refused; fewer than all when the kernel's buffer is
    ///   full.
    private func transmitChunk() -> Int {
        var next = 0
        var isRetry = false
        while next < chunkCount {
            let sent = unsafe transmit(descriptor, isV6, UnsafePointer(chunk + next), chunkCount - next)
            if sent > 0 {
                var bytes = 0
                for index in next..<(next + sent) { unsafe bytes += Int(chunk[index].length) }
                loop.counters.datagramsSent &+= UInt64(sent)
                loop.counters.bytesSent &+= UInt64(bytes)
                loop.counters.sendCalls &+= 1
                next += sent
                isRetry = false
                continue
            }
            if -sent == Int(EAGAIN) { break }
            // The error may be an ICMP message about an earlier datagram, which the call took: try the same once more.
            if isRetry {
                loop.counters.sendErrorDrops &+= 1
                next += 1
            } else {
                loop.counters.socketErrors &+= 1
            }
            isRetry.toggle()
        }
        return next
    }
}
