internal import CDatagram
import Glibc
public import Wire

/// UDP sockets, for the loop's thread only.
extension EventLoop {
    /// Opens a UDP socket bound to `address`; port 0 lets the kernel choose, which `description(of:)` tells. An IPv6
    /// socket takes IPv4 too where its address permits it (`[::]` does), and shows IPv4 peers as IPv4.
    ///
    /// A port is never shared: one that another socket uses is an error.
    @discardableResult
    public func addSocket(
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

    /// The socket as it was opened; `nil` when the loop has none of that index.
    public func description(of index: SocketIndex) -> SocketDescription? {
        executor.checkIsolated()
        return Int(index.rawValue) < socketCount ? socket(at: Int(index.rawValue)).description : nil
    }

    /// Datagrams that wait because the kernel's send buffers are full.
    public var queuedDatagrams: Int {
        executor.checkIsolated()
        return (0..<socketCount).reduce(0) { $0 + socket(at: $1).queuedCount }
    }

    /// Sends everything in `batch`, each datagram from its path's socket, and empties it.
    ///
    /// Nothing is awaited and nothing fails: what the kernel has no room for waits in a bounded queue of its socket,
    /// what that cannot take and what the system refuses is dropped and counted. Datagrams to one path leave in their
    /// order, but for those that waited: of them control leaves before audio, and audio before other media.
    public func send(_ batch: DatagramBatch) {
        executor.checkIsolated()
        defer { batch.removeAll() }
        guard isOpen else {
            unsafe counters.pointee.sendQueueDrops &+= UInt64(batch.count)
            return
        }
        let base = unsafe batch.baseAddress
        let socketCount = socketCount
        var touchedCount = 0
        for index in 0..<batch.runCount {
            let run = batch.run(at: index)
            guard let socketIndex = run.path.local.socket?.rawValue, socketIndex < socketCount else {
                unsafe counters.pointee.sendEndpointDrops &+= UInt64(run.count)
                continue
            }
            unsafe socketTable[Int(socketIndex)]._withUnsafeGuaranteedRef { socket in
                if socket.isIdle {
                    unsafe touched[touchedCount] = socketIndex
                    touchedCount += 1
                }
                unsafe socket.add(run, at: base + run.offset)
            }
        }
        for index in 0..<touchedCount {
            unsafe socketTable[Int(touched[index])]._withUnsafeGuaranteedRef { $0.flush() }
        }
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
            // With IPv6 switched off in the kernel's settings sockets can be made but bound to no address.
            .addressNotAvailable(address)
        case EACCES, EPERM: .permissionDenied(address)
        case EAFNOSUPPORT: .ipv6NotAvailable(address)
        case EMFILE, ENFILE: .tooManyOpenFiles(address)
        default: .system(address, message: systemMessage(opened.error))
        }
    }
}
