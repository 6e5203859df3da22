internal import CDatagram
import Glibc
package import Wire

/// UDP sockets; on the loop's thread only.
extension EventLoop {
    /// Opens a UDP socket bound to `address`. With port 0 the kernel chooses the port; see ``description(of:)``. An
    /// IPv6 socket also receives IPv4 when its address permits it, as `[::]` does, and reports IPv4 peers as IPv4.
    ///
    /// A port that another socket uses is an error (no SO_REUSEPORT).
    @discardableResult
    package func addSocket(
        bind address: TransportAddress,
        options: SocketOptions = SocketOptions()
    ) throws(EventLoopError) -> SocketIndex {
        executor.checkIsolated()
        guard isOpen else { throw .stopped }
        guard socketCount < socketsMax else { throw .tooManySockets(address, max: socketsMax) }
        let requested = nagare_socket_options(
            receive_buffer_bytes: Int32(clamping: options.receiveBufferBytes),
            send_buffer_bytes: Int32(clamping: options.sendBufferBytes),
            force_buffers: options.exceedsKernelLimits ? 1 : 0,
            uses_gro: options.usesGRO ? 1 : 0
        )
        let opened = nagare_open(
            nagare_address(high: address.ip.high, low: address.ip.low, port: address.port),
            requested
        )
        guard opened.fd >= 0 else { throw Self.error(opened, for: address) }
        let index = SocketIndex(rawValue: SocketIndex.RawValue(socketCount))
        let description = SocketDescription(
            index: index,
            local: TransportAddress(
                ip: IPAddress(high: opened.local.high, low: opened.local.low),
                port: opened.local.port
            ),
            receiveBufferBytes: Int(opened.receive_buffer_bytes),
            sendBufferBytes: Int(opened.send_buffer_bytes),
            usesGSO: options.usesGSO && opened.knows_gso != 0,
            usesGRO: opened.uses_gro != 0,
            shortfalls: Self.shortfalls(opened, options)
        )
        append(UDPSocket(description, descriptor: opened.fd, loop: self))
        return index
    }

    /// The socket's address and settings; `nil` when the loop has no socket with that index.
    package func description(of index: SocketIndex) -> SocketDescription? {
        executor.checkIsolated()
        return Int(index.rawValue) < socketCount ? socket(at: Int(index.rawValue)).description : nil
    }

    /// Datagrams in the send queues, which wait because the kernel's send buffers are full.
    package var queuedDatagrams: Int {
        executor.checkIsolated()
        return (0..<socketCount).reduce(0) { $0 + socket(at: $1).queuedCount }
    }

    /// Sends all datagrams of `batch`, each from its path's socket, and empties it.
    ///
    /// Never blocks and never fails. Datagrams that do not fit in the kernel's send buffer wait in the socket's bounded
    /// queue. Datagrams that do not fit in the queue, or that the system refuses, are dropped and counted. Datagrams to
    /// one path keep their order, except in the queue, where control is sent before audio and audio before other media.
    package func send(_ batch: DatagramBatch) {
        executor.checkIsolated()
        defer { batch.removeAll() }
        guard isOpen else {
            unsafe counters.pointee.sendQueueDrops &+= UInt64(batch.count)
            return
        }
        let base = unsafe batch.baseAddress
        let socketCount = socketCount
        var flushCount = 0
        for index in 0..<batch.runCount {
            let run = batch.run(at: index)
            guard let socketIndex = run.path.local.socket?.rawValue, socketIndex < socketCount else {
                if onOtherRun?(run, batch) != true {
                    unsafe counters.pointee.sendEndpointDrops &+= UInt64(run.count)
                }
                continue
            }
            unsafe socketTable[Int(socketIndex)]._withUnsafeGuaranteedRef { socket in
                if socket.isIdle {
                    unsafe socketsToFlush[flushCount] = socketIndex
                    flushCount += 1
                }
                unsafe socket.add(run, at: base + run.offset)
            }
        }
        for index in 0..<flushCount {
            unsafe socketTable[Int(socketsToFlush[index])]._withUnsafeGuaranteedRef { $0.flush() }
        }
    }

    /// Sets the ECN field of all datagrams that leave on a path from now on, those in its send queue included (RFC 3168 §5).
    package func setECN(_ codepoint: ECNCodepoint, on path: NetworkPath) {
        executor.checkIsolated()
        guard isOpen, let index = path.local.socket?.rawValue, index < socketCount else { return }
        socket(at: Int(index)).setECN(codepoint, toward: path.remote)
    }

    private static func shortfalls(_ opened: nagare_opened, _ options: SocketOptions) -> [BufferShortfall] {
        let rows: [(BufferShortfall.Setting, Int, Int32)] = [
            (.receive, options.receiveBufferBytes, opened.receive_buffer_bytes),
            (.send, options.sendBufferBytes, opened.send_buffer_bytes),
        ]
        return rows.filter { $0.2 < $0.1 }.map { setting, requested, granted in
            BufferShortfall(setting: setting, requestedBytes: requested, grantedBytes: Int(granted))
        }
    }

    private static func error(_ opened: nagare_opened, for address: TransportAddress) -> EventLoopError {
        switch opened.error {
        case EADDRINUSE: .addressInUse(address)
        case EADDRNOTAVAIL:
            // When IPv6 is disabled by sysctl, sockets can be created but not bound.
            .addressNotAvailable(address)
        case EACCES, EPERM: .permissionDenied(address)
        case EAFNOSUPPORT: .ipv6NotAvailable(address)
        case EMFILE, ENFILE: .tooManyOpenFiles(address)
        default: .system(address, message: systemMessage(opened.error))
        }
    }
}
