package import Base
internal import CDatagram
internal import CUV
import Glibc
package import Wire

/// The TCP listeners of a loop and the connections that they accepted; on the loop's thread only.
///
/// A connection has an endpoint of its own (`LocalEndpoint.Kind.tcp`), whose index is used for no other connection of the
/// loop as long as it is open, and again after 16 million others at the earliest. What is written and not taken by the
/// kernel is the caller's to keep: nothing waits here.
@safe
package final class TCPSockets: @unchecked Sendable {
    /// What has happened since the loop's start.
    package struct Counters: Hashable, Sendable {
        package var accepted: UInt64 = 0
        /// Failures to accept a connection, such as for too many open files. The listener rests for a second.
        package var acceptErrors: UInt64 = 0
        package var bytesReceived: UInt64 = 0
        package var bytesSent: UInt64 = 0
        package init() {}
    }

    /// The most bytes that the kernel holds of one connection, sent and not acknowledged, or not sent yet: the bandwidth-delay
    /// product of 5 Mbit/s and 100 ms.
    static let sendBufferBytes: Int32 = 65_536
    /// Connections that wait to be accepted, of one listener.
    static let backlog: Int32 = 512
    /// Connections that one readiness event accepts, so that a flood does not starve the rest of the loop.
    static let acceptedPerTurnMax = 64

    /// Called with each accepted connection, and the address of its listener. Returns whether it stays open.
    package var onConnection: ((NetworkPath, TransportAddress, Instant) -> Bool)?
    /// Called with bytes of a connection, in their order.
    package var onBytes: ((RawSpan, NetworkPath, Instant) -> Void)?
    /// Called when a connection takes bytes again, after a ``write(_:to:)`` that it did not take completely.
    package var onWritable: ((NetworkPath, Instant) -> Void)?
    /// Called when the other side has ended a connection, or it has failed. It is closed already.
    package var onEnd: ((NetworkPath, Instant) -> Void)?

    // The loop owns this object.
    private unowned(unsafe) let loop: EventLoop
    private var listeners: [TCPListener] = []
    private var connections: [LocalEndpoint: TCPConnection] = [:]
    private var nextIndex = 0
    private(set) lazy var buffer = ReadBuffer()
    /// The counters of the connections.
    package internal(set) var counters = Counters()

    init(_ loop: EventLoop) { unsafe self.loop = loop }

    /// Memory that all connections read into.
    @safe
    final class ReadBuffer {
        static let byteCount = 65_536
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: ReadBuffer.byteCount, alignment: 64)
        deinit { unsafe bytes.deallocate() }
    }

    var uvLoop: UnsafeMutablePointer<uv_loop_t> { unsafe loop.uvLoop }
    func beginTurn() { unsafe loop.beginTurn() }

    /// The open connections.
    package var count: Int { connections.count }

    /// Listens on `address`. With port 0 the kernel chooses the port. An IPv6 listener also accepts IPv4 when its address
    /// permits it, as `[::]` does. A loop has as many listeners at most as UDP sockets (``EventLoop/socketsMax``).
    /// - Returns: the bound address.
    /// - Throws: ``EventLoopError/cannotListen(_:message:)`` or ``EventLoopError/stopped``.
    @discardableResult
    package func listen(on address: TransportAddress) throws(EventLoopError) -> TransportAddress {
        unsafe loop.executor.checkIsolated()
        guard unsafe loop.isOpen else { throw .stopped }
        let listenersMax = unsafe loop.socketsMax
        guard listeners.count < listenersMax else {
            throw .cannotListen(address, message: "a loop has \(listenersMax) listeners at most")
        }
        let opened = nagare_listen(
            nagare_address(high: address.ip.high, low: address.ip.low, port: address.port),
            Self.backlog
        )
        guard opened.fd >= 0 else { throw .cannotListen(address, message: systemMessage(opened.error)) }
        let local = TransportAddress(
            ip: IPAddress(high: opened.local.high, low: opened.local.low),
            port: opened.local.port
        )
        listeners.append(TCPListener(opened.fd, local: local, sockets: self))
        return local
    }

    /// Takes a connection from a listener.
    func accepted(_ descriptor: Int32, from remote: TransportAddress, by listener: TransportAddress) {
        let path = NetworkPath(local: takeEndpoint(), remote: remote)
        guard let onConnection, onConnection(path, listener, EventLoop.now()) else {
            _ = Glibc.close(descriptor)
            return
        }
        counters.accepted &+= 1
        connections[path.local] = TCPConnection(path, descriptor: descriptor, sockets: self)
    }

    /// Takes a connection that was accepted elsewhere, and owns the descriptor: of a listener of the process, or from
    /// ``detach(_:)`` of another loop. ``onConnection`` is not called for it.
    /// - Returns: `nil` when the connection has ended already, or the loop has stopped; the descriptor is closed then.
    package func adopt(_ descriptor: Int32) -> NetworkPath? {
        unsafe loop.executor.checkIsolated()
        let adopted = nagare_adopt(descriptor, Self.sendBufferBytes)
        guard adopted.fd >= 0, unsafe loop.isOpen else {
            _ = Glibc.close(descriptor)
            return nil
        }
        let remote = TransportAddress(
            ip: IPAddress(high: adopted.remote.high, low: adopted.remote.low),
            port: adopted.remote.port
        )
        let path = NetworkPath(local: takeEndpoint(), remote: remote)
        counters.accepted &+= 1
        connections[path.local] = TCPConnection(path, descriptor: descriptor, sockets: self)
        return path
    }

    /// Lets go of a connection without closing it. Bytes that were not read yet stay in the kernel.
    /// - Returns: the descriptor, which is the caller's then; `nil` when the connection is closed.
    package func detach(_ endpoint: LocalEndpoint) -> Int32? {
        unsafe loop.executor.checkIsolated()
        return connections.removeValue(forKey: endpoint)?.detach()
    }

    private func takeEndpoint() -> LocalEndpoint {
        while true {
            nextIndex = nextIndex == LocalEndpoint.indexMax ? 0 : nextIndex + 1
            let endpoint = LocalEndpoint(.tcp, index: nextIndex)
            if connections[endpoint] == nil { return endpoint }
        }
    }

    /// Writes bytes to a connection, as many as the kernel takes. If not all, ``onWritable`` is called later.
    /// - Returns: how many were taken; `nil` when the connection is closed or has failed.
    package func write(_ bytes: RawSpan, to endpoint: LocalEndpoint) -> Int? {
        unsafe loop.executor.checkIsolated()
        guard let connection = connections[endpoint], let count = connection.write(bytes) else { return nil }
        counters.bytesSent &+= UInt64(count)
        return count
    }

    /// Closes a connection; the kernel still sends what it took. Does nothing when it is closed.
    package func close(_ endpoint: LocalEndpoint) {
        unsafe loop.executor.checkIsolated()
        connections.removeValue(forKey: endpoint)?.close()
    }

    /// The other side ended the connection, or it failed.
    func ended(_ connection: TCPConnection) {
        guard connections[connection.path.local] === connection else { return }
        close(connection.path.local)
        onEnd?(connection.path, EventLoop.now())
    }

    /// Closes everything, at the end of the loop.
    func closeAll() {
        for listener in listeners { listener.close() }
        for connection in connections.values { connection.close() }
        listeners = []
        connections = [:]
        onConnection = nil
        onBytes = nil
        onWritable = nil
        onEnd = nil
    }
}
