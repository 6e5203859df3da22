import Base
internal import CDatagram
internal import CUV
import Glibc
import Wire

/// One UDP socket of a loop. It reads and writes in batches, and network errors do not close it.
@safe
final class UDPSocket {
    /// The most messages of one `sendmmsg` call.
    static let messagesMax = Int(NAGARE_BATCH_MAX)
    /// The most datagrams per readiness event, so that a flooded socket does not starve the loop's other sockets, timer
    /// and jobs. The socket is reported ready again at once.
    static let receivedPerTurnMax = 256

    /// Fault injection for tests, called before each `sendmmsg` with the datagram count of each message. Returns a
    /// negative errno, the number of messages to pass to the kernel, or `nil` for all.
    typealias Fault = ([Int]) -> Int?

    let description: SocketDescription
    let descriptor: Int32
    var fault: Fault?
    /// The most time that media is queued; tests change it.
    var mediaAgeMax = SendQueue.ageMax

    // The loop outlives its sockets, because it closes and releases them.
    private unowned(unsafe) let loop: EventLoop
    private let counters: UnsafeMutablePointer<LoopCounters>
    private let isV6: Bool
    private let poll: UnsafeMutablePointer<uv_poll_t>
    /// The messages of the next `sendmmsg` calls; empty after `flush`.
    private let outgoing: UnsafeMutablePointer<nagare_outgoing>
    private var outgoingCount = 0
    private(set) var offload: SegmentationOffload
    /// The ECN fields toward the destinations that have another than Not-ECT.
    private var ecn: [TransportAddress: ECNCodepoint] = [:]
    /// When to check for destinations whose GSO pause has expired.
    private var retryAt: Instant?
    private static let retryInterval = Interval.seconds(5)
    /// Created when a datagram must be queued for the first time.
    private var queue: SendQueue?
    private var isWaiting: Bool { queue.map { !$0.isEmpty } ?? false }

    /// Takes ownership of the descriptor and starts to poll it. On the loop's thread.
    init(_ description: SocketDescription, descriptor: Int32, loop: EventLoop) {
        self.description = description
        self.descriptor = descriptor
        unsafe self.loop = loop
        unsafe counters = loop.counters
        isV6 = !description.local.ip.isV4
        offload = SegmentationOffload(isOn: description.usesGSO)
        unsafe poll = .allocate(capacity: 1)
        unsafe poll.initialize(to: uv_poll_t())
        unsafe outgoing = .allocate(capacity: Self.messagesMax)
        let result = unsafe uv_poll_init(loop.uvLoop, poll, descriptor)
        precondition(result == 0, "an open socket can be polled")
        unsafe poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        watch()
    }

    deinit {
        unsafe poll.deallocate()
        unsafe outgoing.deallocate()
    }

    /// Sends as many queued datagrams as the kernel accepts, and closes the socket. The object must live until the loop
    /// has closed the handle.
    func close() {
        if let queue, !queue.isEmpty {
            flush(queue)
            unsafe counters.pointee.sendQueueDrops &+= UInt64(queue.count)
            unsafe counters.pointee.sendQueueControlDrops &+= UInt64(queue.controlCount)
        }
        queue = nil
        if offload.isPaused { unsafe counters.pointee.gsoPausedSockets &-= 1 }
        unsafe counters.pointee.kernelReceiveDrops &+= kernelDrops
        unsafe uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self), nil)
        _ = Glibc.close(descriptor)
    }

    /// Datagrams in the send queue.
    var queuedCount: Int { queue?.count ?? 0 }

    /// Datagrams that the kernel dropped at this socket.
    var kernelDrops: UInt64 { UInt64(nagare_kernel_drops(descriptor)) }

    // MARK: Readiness

    private func watch() {
        let events = isWaiting ? UV_READABLE.rawValue | UV_WRITABLE.rawValue : UV_READABLE.rawValue
        let result = unsafe uv_poll_start(poll, Int32(events)) { handle, status, events in
            guard let data = unsafe handle?.pointee.data else { return }
            let socket = unsafe Unmanaged<UDPSocket>.fromOpaque(data).takeUnretainedValue()
            socket.ready(status: status, events: UInt32(bitPattern: events))
        }
        precondition(result == 0, "an open socket can be watched")
    }

    private func ready(status: Int32, events: UInt32) {
        unsafe loop.beginTurn()
        guard status == 0 else {
            // The socket has a pending error, such as an ICMP message. libuv treats it as fatal and has stopped
            // polling, but for UDP it concerns one datagram at most.
            unsafe counters.pointee.socketErrors &+= 1
            _ = nagare_clear_errors(descriptor)
            watch()
            return
        }
        if events & UV_WRITABLE.rawValue != 0 {
            if let queue { flush(queue) }
            if !isWaiting { watch() }
        }
        if events & UV_READABLE.rawValue != 0 { receive() }
    }

    // MARK: Receiving

    private func receive() {
        let reader = unsafe description.usesGRO ? loop.coalescedReader : loop.plainReader
        let onDatagram = unsafe loop.onDatagram
        var receivedCount = 0
        // A pending error may be returned instead of datagrams; continue, but not forever.
        var failuresLeft = 4
        while receivedCount < Self.receivedPerTurnMax, failuresLeft > 0 {
            let count = reader.receive(from: descriptor)
            guard count > 0 else {
                if count == 0 || -count == Int(EAGAIN) { return }
                // The call cleared the pending error; the datagrams are still there.
                unsafe counters.pointee.socketErrors &+= 1
                failuresLeft -= 1
                continue
            }
            let now = EventLoop.now()
            var datagrams = 0
            for index in 0..<count {
                datagrams += unsafe deliver(reader.message(at: index), at: now, to: onDatagram)
            }
            unsafe counters.pointee.receiveCalls &+= 1
            unsafe counters.pointee.datagramsReceived &+= UInt64(datagrams)
            unsafe counters.pointee.datagramsPerReceiveCall.record(datagrams)
            receivedCount += datagrams
            if count < reader.slots { return }
        }
    }

    /// Delivers each datagram of a message, in a span that excludes the next one.
    /// - Returns: the number of datagrams.
    func deliver(
        _ message: ReceivedMessage,
        at now: Instant,
        to onDatagram: ((inout MutableRawSpan, Int, NetworkPath, Instant) -> Void)?
    ) -> Int {
        let length = unsafe message.length
        unsafe counters.pointee.bytesReceived &+= UInt64(length)
        guard unsafe message.remote.isValidSource else {
            unsafe counters.pointee.receiveSourceDrops &+= 1
            unsafe counters.pointee.segmentsPerRead.record(1)
            return 1
        }
        guard length > 0, unsafe !message.isTruncated else {
            unsafe counters.pointee.receiveSizeDrops &+= 1
            unsafe counters.pointee.segmentsPerRead.record(1)
            return 1
        }
        let path = unsafe NetworkPath(socket: description.index, remote: message.remote)
        let coalesced = unsafe message.segmentBytes
        let segmentBytes = coalesced > 0 && coalesced < length ? coalesced : length
        var datagrams = 0
        var offset = 0
        while offset < length {
            let size = min(segmentBytes, length - offset)
            if size <= DatagramBatch.slotBytes {
                let datagram = unsafe UnsafeMutableRawBufferPointer(start: message.bytes + offset, count: size)
                var span = unsafe datagram.mutableBytes
                onDatagram?(&span, size, path, now)
            } else {
                unsafe counters.pointee.receiveSizeDrops &+= 1
            }
            datagrams += 1
            offset += size
        }
        unsafe counters.pointee.segmentsPerRead.record(datagrams)
        return datagrams
    }

    // MARK: Sending

    /// Whether nothing was added since the last ``flush()``.
    @inline(__always)
    var isIdle: Bool { outgoingCount == 0 }

    /// Sets the ECN field of what leaves toward a destination.
    func setECN(_ codepoint: ECNCodepoint, toward remote: TransportAddress) {
        ecn[remote] = codepoint == .notCapable ? nil : codepoint
    }

    /// Adds one run. Its bytes must not move until ``flush()``.
    func add(_ run: DatagramBatch.Run, at bytes: UnsafeRawPointer) {
        if offload.isOn(for: run.path.remote) {
            unsafe add(bytes, length: run.length, segmentBytes: run.segmentBytes, segments: run.count, run.path.remote)
            return
        }
        var offset = 0
        while offset < run.length {
            let length = min(run.segmentBytes, run.length - offset)
            unsafe add(bytes + offset, length: length, segmentBytes: length, segments: 1, run.path.remote)
            offset += length
        }
    }

    @inline(__always)
    private func add(
        _ bytes: UnsafeRawPointer,
        length: Int,
        segmentBytes: Int,
        segments: Int,
        _ remote: TransportAddress
    ) {
        if outgoingCount == Self.messagesMax { flush() }
        unsafe (outgoing + outgoingCount).initialize(
            to: nagare_outgoing(
                bytes: bytes,
                high: remote.ip.high,
                low: remote.ip.low,
                length: UInt32(length),
                port: remote.port,
                segment_bytes: UInt16(segmentBytes),
                segments: UInt16(segments),
                ecn: ecn.isEmpty ? 0 : UInt16(ecn[remote]?.rawValue ?? 0)
            )
        )
        outgoingCount += 1
    }

    /// Sends what was added. Datagrams that do not fit in the kernel's buffer are queued.
    func flush() {
        let count = outgoingCount
        guard count > 0 else { return }
        if offload.isPaused { resumeOffload() }
        if retryAt != nil { resumeDestinations() }
        // Queued datagrams go first.
        let handled = unsafe isWaiting ? 0 : transmit(outgoing, count)
        if handled < count { enqueue(from: handled) }
        outgoingCount = 0
    }

    /// Queues the outgoing messages from `first`.
    private func enqueue(from first: Int) {
        let wasWaiting = isWaiting
        let queue = queue ?? SendQueue()
        self.queue = queue
        let now = EventLoop.now()
        let shareOf = unsafe loop.shareOf
        for index in first..<outgoingCount {
            let message = unsafe outgoing[index]
            let remote = unsafe TransportAddress(
                ip: IPAddress(high: message.high, low: message.low),
                port: message.port
            )
            let path = NetworkPath(socket: description.index, remote: remote)
            unsafe Self.forEachSegment(of: message) { bytes in
                let share = unsafe shareOf?(bytes.bytes, path) ?? SendShare()
                let drops = unsafe queue.append(bytes, to: remote, share: share, at: now)
                unsafe counters.pointee.sendQueued &+= 1
                unsafe counters.pointee.sendQueueDrops &+= UInt64(drops.media + drops.control + drops.data)
                unsafe counters.pointee.sendQueueAudioDrops &+= UInt64(drops.audio)
                unsafe counters.pointee.sendQueueControlDrops &+= UInt64(drops.control)
            }
        }
        if !wasWaiting { watch() }
    }

    /// Sends queued datagrams until the kernel's buffer is full.
    private func flush(_ queue: SendQueue) {
        precondition(outgoingCount == 0, "no message is left between flushes")
        unsafe counters.pointee.sendQueueLateDrops &+= UInt64(
            queue.dropMedia(thatWaited: mediaAgeMax, at: EventLoop.now())
        )
        let batch = unsafe loop.resendBatch
        while !queue.isEmpty {
            batch.removeAll()
            for offset in 0..<queue.take(batch.capacity) {
                let (bytes, remote) = unsafe queue.datagram(at: offset)
                batch.append(
                    to: NetworkPath(socket: description.index, remote: remote),
                    copying: unsafe bytes.bytes
                )
            }
            for index in 0..<batch.runCount {
                let run = batch.run(at: index)
                unsafe add(run, at: batch.baseAddress + run.offset)
            }
            let handled = unsafe transmit(outgoing, outgoingCount)
            var left = 0
            for index in handled..<outgoingCount { unsafe left += Int(outgoing[index].segments) }
            outgoingCount = 0
            queue.finish(sent: batch.count - left)
            if left > 0 { return }
        }
    }

    /// Sends messages in order.
    /// - Returns: how many of them were sent or refused; fewer than all when the kernel's buffer is full. Then the next
    ///   message is cut to its datagrams that were not sent.
    private func transmit(_ messages: UnsafeMutablePointer<nagare_outgoing>, _ count: Int) -> Int {
        var next = 0
        var isRetry = false
        while next < count {
            let end = unsafe offload.isOn ? count : Self.firstCoalesced(messages, next, count)
            if end == next {
                guard unsafe transmitSingly(messages + next) else { return next }
                next += 1
                continue
            }
            let sent = unsafe send(messages + next, end - next)
            if sent > 0 {
                unsafe countSent(messages + next, sent)
                next += sent
                isRetry = false
                continue
            }
            let error = Int32(truncatingIfNeeded: -sent)
            if error == EAGAIN { return next }
            if unsafe messages[next].segments > 1, SegmentationOffload.isRefusal(error) {
                unsafe noteRefusal(error, of: messages[next])
                guard unsafe transmitSingly(messages + next) else { return next }
                next += 1
                isRetry = false
                continue
            }
            // The error may belong to an earlier datagram (ICMP), and the call cleared it: retry once.
            if isRetry {
                unsafe counters.pointee.sendErrorDrops &+= UInt64(messages[next].segments)
                next += 1
            } else {
                unsafe counters.pointee.socketErrors &+= 1
            }
            isRetry.toggle()
        }
        return next
    }

    /// Sends the datagrams of one message one by one.
    /// - Returns: whether all were sent or refused; if not, the message is cut to the others.
    private func transmitSingly(_ message: UnsafeMutablePointer<nagare_outgoing>) -> Bool {
        let singles = unsafe loop.singles
        var count = 0
        unsafe Self.forEachSegment(of: message.pointee) { bytes in
            var single = unsafe message.pointee
            unsafe single.bytes = UnsafeRawPointer(bytes.baseAddress)
            unsafe single.length = UInt32(bytes.count)
            unsafe single.segment_bytes = UInt16(bytes.count)
            unsafe single.segments = 1
            unsafe (singles + count).initialize(to: single)
            count += 1
        }
        let handled = unsafe transmit(singles, count)
        if handled == count { return true }
        let handledBytes = unsafe handled * Int(message.pointee.segment_bytes)
        unsafe message.pointee.bytes += handledBytes
        unsafe message.pointee.length -= UInt32(handledBytes)
        unsafe message.pointee.segments -= UInt16(handled)
        return false
    }

    @inline(__always)
    private func send(_ messages: UnsafeMutablePointer<nagare_outgoing>, _ count: Int) -> Int {
        var count = count
        if let fault, let verdict = fault((0..<count).map { unsafe Int(messages[$0].segments) }) {
            guard verdict > 0 else { return verdict }
            count = min(count, verdict)
        }
        return unsafe Int(nagare_send(descriptor, isV6 ? 1 : 0, messages, Int32(count)))
    }

    private func countSent(_ messages: UnsafeMutablePointer<nagare_outgoing>, _ count: Int) {
        var datagrams = 0
        var bytes = 0
        for index in 0..<count {
            let segments = unsafe Int(messages[index].segments)
            datagrams += segments
            unsafe bytes += Int(messages[index].length)
            unsafe counters.pointee.segmentsPerSend.record(segments)
        }
        if datagrams > count { offload.accepted() }
        unsafe counters.pointee.datagramsSent &+= UInt64(datagrams)
        unsafe counters.pointee.bytesSent &+= UInt64(bytes)
        unsafe counters.pointee.messagesSent &+= UInt64(count)
        unsafe counters.pointee.sendCalls &+= 1
    }

    private func noteRefusal(_ error: Int32, of message: nagare_outgoing) {
        unsafe counters.pointee.gsoFallbacks &+= 1
        let remote = unsafe TransportAddress(ip: IPAddress(high: message.high, low: message.low), port: message.port)
        let now = EventLoop.now()
        switch offload.refused(error, to: remote, at: now) {
        case .nothing: break
        case .destinationPaused:
            unsafe counters.pointee.gsoPathPauses &+= 1
            retryAt = retryAt ?? now + SegmentationOffload.pause
        case .socketPaused:
            unsafe counters.pointee.gsoPauses &+= 1
            unsafe counters.pointee.gsoPausedSockets &+= 1
        }
    }

    /// Ends the GSO pauses of destinations that have expired.
    private func resumeDestinations() {
        guard let retryAt, EventLoop.now() >= retryAt else { return }
        offload.resumeDestinations(at: EventLoop.now())
        self.retryAt = offload.hasPausedDestinations ? EventLoop.now() + Self.retryInterval : nil
    }

    private func resumeOffload() {
        offload.resume(at: EventLoop.now())
        if !offload.isPaused { unsafe counters.pointee.gsoPausedSockets &-= 1 }
    }

    /// The first GSO message from `next` on; `count` when there is none.
    private static func firstCoalesced(
        _ messages: UnsafeMutablePointer<nagare_outgoing>,
        _ next: Int,
        _ count: Int
    ) -> Int {
        var index = next
        while index < count, unsafe messages[index].segments == 1 { index += 1 }
        return index
    }

    @inline(__always)
    private static func forEachSegment(of message: nagare_outgoing, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard let base = unsafe message.bytes else { return }
        let length = unsafe Int(message.length)
        var offset = 0
        while offset < length {
            let size = unsafe min(Int(message.segment_bytes), length - offset)
            unsafe body(UnsafeRawBufferPointer(start: base + offset, count: size))
            offset += size
        }
    }
}

extension TransportAddress {
    /// Whether a datagram can be sent to the address: its port is not 0, and it is a unicast address.
    fileprivate var isValidSource: Bool {
        guard port != 0, !ip.isUnspecified else { return false }
        // IPv4 multicast, the reserved block above it and broadcast: 224.0.0.0 and up (RFC 1112, RFC 6890).
        return ip.isV4 ? ip.low & 0xFFFF_FFFF < 0xE000_0000 : ip.high >> 56 != 0xFF
    }
}
