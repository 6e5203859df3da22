import Base
internal import CDatagram
internal import CUV
import Glibc
import Wire

/// One accepted connection of a loop.
@safe
final class TCPConnection {
    /// Reads of one readiness event, so that a fast sender does not starve the rest of the loop. The connection is reported
    /// ready again at once.
    private static let readsPerTurnMax = 4

    let path: NetworkPath
    private let descriptor: Int32
    // The loop's sockets outlive their handles.
    private unowned(unsafe) let sockets: TCPSockets
    private let poll: UnsafeMutablePointer<uv_poll_t>
    private var isClosed = false
    /// The last write was not taken completely.
    private var isBlocked = false

    /// Takes ownership of the descriptor and starts to poll it. On the loop's thread.
    init(_ path: NetworkPath, descriptor: Int32, sockets: TCPSockets) {
        self.path = path
        self.descriptor = descriptor
        unsafe self.sockets = sockets
        unsafe poll = .allocate(capacity: 1)
        unsafe poll.initialize(to: uv_poll_t())
        let result = unsafe uv_poll_init(sockets.uvLoop, poll, descriptor)
        precondition(result == 0, "an open socket can be polled")
        unsafe poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        watch()
    }

    deinit { unsafe poll.deallocate() }

    /// Closes the socket.
    func close() { if let descriptor = detach() { _ = Glibc.close(descriptor) } }

    /// Stops to poll the socket, which is the caller's then; `nil` when it is closed. The object lives until the loop has closed
    /// the handle.
    func detach() -> Int32? {
        guard !isClosed else { return nil }
        isClosed = true
        _ = unsafe Unmanaged.passRetained(self)
        unsafe uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<TCPConnection>.fromOpaque(data).release()
        }
        return descriptor
    }

    private func watch() {
        let events = isBlocked ? UV_READABLE.rawValue | UV_WRITABLE.rawValue : UV_READABLE.rawValue
        let result = unsafe uv_poll_start(poll, Int32(events)) { handle, status, events in
            guard let data = unsafe handle?.pointee.data else { return }
            let connection = unsafe Unmanaged<TCPConnection>.fromOpaque(data).takeUnretainedValue()
            connection.ready(status: status, events: UInt32(bitPattern: events))
        }
        precondition(result == 0, "an open socket can be watched")
    }

    private func ready(status: Int32, events: UInt32) {
        unsafe sockets.beginTurn()
        guard status == 0 else {
            unsafe sockets.ended(self)
            return
        }
        if events & UV_WRITABLE.rawValue != 0, isBlocked {
            isBlocked = false
            unsafe sockets.onWritable?(path, EventLoop.now())
            if !isClosed, !isBlocked { watch() }
        }
        if events & UV_READABLE.rawValue != 0 { read() }
    }

    private func read() {
        for _ in 0..<Self.readsPerTurnMax {
            guard !isClosed else { return }
            let buffer = unsafe sockets.buffer.bytes
            let count = unsafe Int(nagare_stream_read(descriptor, buffer.baseAddress, buffer.count))
            guard count > 0 else {
                if count != -Int(EAGAIN) { unsafe sockets.ended(self) }
                return
            }
            unsafe sockets.counters.bytesReceived &+= UInt64(count)
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
            unsafe sockets.onBytes?(bytes.bytes, path, EventLoop.now())
            if count < TCPSockets.ReadBuffer.byteCount { return }
        }
    }

    /// - Returns: how many bytes the kernel took; `nil` when the connection has failed.
    func write(_ bytes: RawSpan) -> Int? {
        guard !isClosed else { return nil }
        let result = unsafe bytes.withUnsafeBytes { buffer in
            unsafe Int(nagare_stream_write(descriptor, buffer.baseAddress, buffer.count))
        }
        guard result >= 0 || result == -Int(EAGAIN) else { return nil }
        let count = max(result, 0)
        if count < bytes.byteCount, !isBlocked {
            isBlocked = true
            watch()
        }
        return count
    }
}
