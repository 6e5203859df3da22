internal import CDatagram
internal import CUV
import Glibc
import Wire

/// One listening socket of a loop.
@safe
final class TCPListener {
    /// After a failure to accept: the cause, such as too many open files, does not end at once, and the listener would be
    /// reported ready all the time.
    private static let restMS: UInt64 = 1_000

    private let descriptor: Int32
    private let local: TransportAddress
    // The loop's sockets outlive their handles.
    private unowned(unsafe) let sockets: TCPSockets
    private let poll: UnsafeMutablePointer<uv_poll_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>

    /// Takes ownership of the descriptor and starts to accept. On the loop's thread.
    /// - Parameter local: the address that the socket is bound to.
    init(_ descriptor: Int32, local: TransportAddress, sockets: TCPSockets) {
        self.descriptor = descriptor
        self.local = local
        unsafe self.sockets = sockets
        unsafe poll = .allocate(capacity: 1)
        unsafe poll.initialize(to: uv_poll_t())
        unsafe timer = .allocate(capacity: 1)
        unsafe timer.initialize(to: uv_timer_t())
        let result = unsafe uv_poll_init(sockets.uvLoop, poll, descriptor)
        precondition(result == 0, "an open socket can be polled")
        unsafe uv_timer_init(sockets.uvLoop, timer)
        unsafe poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        unsafe timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        watch()
    }

    deinit {
        unsafe poll.deallocate()
        unsafe timer.deallocate()
    }

    /// Closes the socket. The object lives until the loop has closed both handles.
    func close() {
        for _ in 0..<2 { _ = unsafe Unmanaged.passRetained(self) }
        unsafe uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<TCPListener>.fromOpaque(data).release()
        }
        unsafe uv_close(UnsafeMutableRawPointer(timer).assumingMemoryBound(to: uv_handle_t.self)) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<TCPListener>.fromOpaque(data).release()
        }
        _ = Glibc.close(descriptor)
    }

    private func watch() {
        let result = unsafe uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<TCPListener>.fromOpaque(data).takeUnretainedValue().accept()
        }
        precondition(result == 0, "an open socket can be watched")
    }

    private func accept() {
        unsafe sockets.beginTurn()
        for _ in 0..<TCPSockets.acceptedPerTurnMax {
            let accepted = nagare_accept(descriptor, TCPSockets.sendBufferBytes)
            guard accepted.fd >= 0 else {
                switch accepted.error {
                case EAGAIN: return
                // The client ended the connection before it was accepted (accept(2)).
                case ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, EPERM: continue
                default:
                    unsafe sockets.counters.acceptErrors &+= 1
                    rest()
                    return
                }
            }
            let remote = TransportAddress(
                ip: IPAddress(high: accepted.remote.high, low: accepted.remote.low),
                port: accepted.remote.port
            )
            unsafe sockets.accepted(accepted.fd, from: remote, by: local)
        }
    }

    private func rest() {
        unsafe uv_poll_stop(poll)
        unsafe uv_timer_start(
            timer,
            { handle in
                guard let data = unsafe handle?.pointee.data else { return }
                unsafe Unmanaged<TCPListener>.fromOpaque(data).takeUnretainedValue().watch()
            },
            Self.restMS,
            0
        )
    }
}
