package import Base
package import EventLoop
package import Impairment
package import Wire

/// The UDP side of the proxy: clients send to its ports, and each client has a socket of its own toward the server.
///
/// Datagrams in each direction pass an ``ImpairedLink``: all clients share one, or each has its own.
package actor MediaProxy {
    package struct Configuration: Sendable {
        /// The address of the ports for clients.
        package var listen: IPAddress
        /// The first port; the next ones follow. A port in use is replaced by one that the kernel chooses.
        package var firstPort: UInt16
        /// The number of ports, each for one media address of the server.
        package var ports: Int
        /// From the server to clients.
        package var down = LinkConditions()
        /// From clients to the server.
        package var up = LinkConditions()
        package var seed: UInt64 = 1
        /// Whether each client has a link of its own.
        package var isPerClient = false

        package init(listen: IPAddress, firstPort: UInt16, ports: Int) {
            self.listen = listen
            self.firstPort = firstPort
            self.ports = ports
        }
    }

    package enum Direction: String, Sendable, CaseIterable {
        case down, up
    }

    /// What passed so far, and what waits now.
    package struct Status: Sendable {
        package struct Link: Sendable {
            package var statistics = LinkStatistics()
            /// The conditions that apply now, in words.
            package var conditions = ""
            /// The time that the queue takes to empty; of several links the longest.
            package var queueDelay = Interval.zero
            package var queuePackets = 0
        }
        package var at = Instant(nanoseconds: 0)
        /// Since the first datagram of a client; `nil` before it.
        package var elapsed: Interval?
        package var clients = 0
        /// Datagrams of clients beyond the limit, or to a port that stands for no address.
        package var refused = 0
        package var down = Link()
        package var up = Link()
    }

    package static let clientsMax = 1_000
    package static let portsMax = 64
    /// A client is forgotten when it has sent nothing for this long. Consent checks come every 5 s (RFC 7675 §5.1).
    private static let idleMax = Interval.seconds(60)
    private static let socketOptions = SocketOptions(receiveBufferBytes: 1 << 20, sendBufferBytes: 1 << 20)

    private struct Datagram: Sendable {
        let bytes: [UInt8]
        let path: NetworkPath
    }

    private struct Links {
        var down: ImpairedLink<Datagram>
        var up: ImpairedLink<Datagram>
    }

    private final class Client {
        /// From the proxy's port to the client.
        let path: NetworkPath
        /// From the client's own socket to the server.
        let serverPath: NetworkPath
        var lastReceived: Instant
        /// `nil` when all clients share links.
        var links: Links?

        init(path: NetworkPath, serverPath: NetworkPath, at now: Instant) {
            self.path = path
            self.serverPath = serverPath
            lastReceived = now
        }
    }

    private nonisolated let eventLoop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe eventLoop.executor.asUnownedSerialExecutor()
    }
    package nonisolated let ports: MediaPorts

    private var configuration: Configuration
    private let batch = DatagramBatch()
    /// The sockets from the first on are the ports for clients; the others lead to the server.
    private var portCount = 0
    private var clients: [NetworkPath: Client] = [:]
    private var clientsBySocket: [SocketIndex: Client] = [:]
    /// Sockets of forgotten clients, by whether they are IPv4.
    private var freeSockets: [(socket: SocketIndex, isV4: Bool)] = []
    private var shared: Links?
    private var linksMade: UInt64 = 0
    private var startedAt: Instant?
    private var refused = 0
    /// The counts of forgotten clients' links.
    private var former = (down: LinkStatistics(), up: LinkStatistics())

    // MARK: Lifecycle

    private init(_ configuration: Configuration) {
        self.configuration = configuration
        eventLoop = EventLoop(
            name: "impair",
            socketsMax: Self.portsMax + Self.clientsMax,
            slice: EventLoop.mediaSlice
        )
        ports = MediaPorts()
    }

    /// Opens the ports for clients. ``shutdown()`` must follow.
    package static func start(_ configuration: Configuration) async throws(EventLoopError) -> MediaProxy {
        precondition((1...portsMax).contains(configuration.ports), "the ports are bounded")
        let proxy = MediaProxy(configuration)
        try proxy.eventLoop.start()
        do throws(EventLoopError) {
            try await proxy.begin()
        } catch {
            await proxy.eventLoop.stop()
            throw error
        }
        return proxy
    }

    private func begin() throws(EventLoopError) {
        var opened: [UInt16] = []
        for index in 0..<configuration.ports {
            let wanted = configuration.firstPort == 0 ? 0 : UInt16(exactly: Int(configuration.firstPort) + index) ?? 0
            let socket: SocketIndex
            do throws(EventLoopError) {
                socket = try openSocket(configuration.listen, wanted)
            } catch .addressInUse where configuration.ports > 1 {
                socket = try openSocket(configuration.listen, 0)
            }
            opened.append(eventLoop.description(of: socket)?.local.port ?? 0)
        }
        portCount = opened.count
        ports.open(opened)
        eventLoop.onDatagram = { [self] datagram, length, path, now in
            received(datagram.bytes.extracting(0..<length), on: path, at: now)
        }
        eventLoop.onTimer = { [self] now in deliver(at: now) }
        eventLoop.onTurnEnd = { [self] now in deliver(at: now) }
        batch.onFull = { [unowned self] batch in eventLoop.send(batch) }
    }

    private func openSocket(_ ip: IPAddress, _ port: UInt16) throws(EventLoopError) -> SocketIndex {
        try eventLoop.addSocket(bind: TransportAddress(ip: ip, port: port), options: Self.socketOptions)
    }

    package func shutdown() async { await eventLoop.stop() }

    // MARK: Control

    /// Changes the conditions of one direction from now on.
    package func change(_ direction: Direction, to conditions: LinkConditions) {
        let now = EventLoop.now()
        switch direction {
        case .down:
            configuration.down = conditions
            shared?.down.change(to: conditions, at: now)
            for client in clients.values { client.links?.down.change(to: conditions, at: now) }
        case .up:
            configuration.up = conditions
            shared?.up.change(to: conditions, at: now)
            for client in clients.values { client.links?.up.change(to: conditions, at: now) }
        }
        deliver(at: now)
    }

    package func conditions(_ direction: Direction) -> LinkConditions {
        direction == .down ? configuration.down : configuration.up
    }

    package func status() -> Status {
        let now = EventLoop.now()
        var status = Status()
        status.at = now
        status.elapsed = startedAt.map { now - $0 }
        status.clients = clients.count
        status.refused = refused
        let time = status.elapsed ?? .zero
        status.down.statistics = former.down
        status.up.statistics = former.up
        status.down.conditions = configuration.down.summary(at: time)
        status.up.conditions = configuration.up.summary(at: time)
        for links in [shared].compactMap(\.self) + clients.values.compactMap(\.links) {
            Self.add(links.down, to: &status.down, at: now)
            Self.add(links.up, to: &status.up, at: now)
        }
        return status
    }

    private static func add(_ link: ImpairedLink<Datagram>, to status: inout Status.Link, at now: Instant) {
        status.statistics.add(link.statistics)
        status.queueDelay = max(status.queueDelay, link.queueDelay(at: now))
        status.queuePackets += link.queueCount
    }

    // MARK: Clients

    private func client(on path: NetworkPath, at now: Instant) -> Client? {
        if let client = clients[path] { return client }
        guard let target = ports.target(ofPortAt: path.local.index) else { return nil }
        if clients.count >= Self.clientsMax { forgetIdleClients(at: now) }
        guard clients.count < Self.clientsMax, let socket = takeSocket(toward: target.ip) else { return nil }
        let client = Client(path: path, serverPath: NetworkPath(socket: socket, remote: target), at: now)
        let start = startedAt ?? now
        startedAt = start
        if configuration.isPerClient {
            client.links = makeLinks(start: start)
        } else if shared == nil {
            shared = makeLinks(start: start)
        }
        clients[path] = client
        clientsBySocket[socket] = client
        return client
    }

    private func makeLinks(start: Instant) -> Links {
        let seed = configuration.seed &+ linksMade &* 2
        linksMade &+= 1
        return Links(
            down: ImpairedLink(configuration.down, seed: seed, start: start),
            up: ImpairedLink(configuration.up, seed: seed &+ 1, start: start)
        )
    }

    private func takeSocket(toward ip: IPAddress) -> SocketIndex? {
        forgetIdleClients(at: EventLoop.now())
        if let index = freeSockets.firstIndex(where: { $0.isV4 == ip.isV4 }) {
            return freeSockets.remove(at: index).socket
        }
        let any: IPAddress = ip.isV4 ? .anyV4 : .anyV6
        do throws(EventLoopError) {
            return try openSocket(ip.isLoopback ? ip : any, 0)
        } catch {
            return nil
        }
    }

    private func forgetIdleClients(at now: Instant) {
        for (path, client) in clients where now - client.lastReceived > Self.idleMax {
            clients[path] = nil
            guard let socket = client.serverPath.local.socket else { continue }
            clientsBySocket[socket] = nil
            freeSockets.append((socket, client.serverPath.remote.ip.isV4))
            guard let links = client.links else { continue }
            former.down.add(links.down.statistics)
            former.up.add(links.up.statistics)
        }
    }

    // MARK: Datagrams

    private func received(_ bytes: RawSpan, on path: NetworkPath, at now: Instant) {
        if path.local.index < portCount {
            guard let client = client(on: path, at: now) else {
                refused += 1
                return
            }
            client.lastReceived = now
            send(bytes, of: client, .up, at: now)
        } else if let socket = path.local.socket, let client = clientsBySocket[socket], client.serverPath == path {
            // Only the server that the socket leads to reaches the client.
            send(bytes, of: client, .down, at: now)
        }
    }

    private func send(_ bytes: RawSpan, of client: Client, _ direction: Direction, at now: Instant) {
        let path = direction == .down ? client.path : client.serverPath
        let overhead = path.remote.ip.isV4 ? ImpairedLink<Datagram>.overheadV4 : ImpairedLink<Datagram>.overheadV6
        let datagram = Datagram(bytes: bytes.array(), path: path)
        let length = bytes.byteCount + overhead
        switch (direction, client.links == nil) {
        case (.down, true): shared?.down.send(datagram, bytes: length, at: now)
        case (.up, true): shared?.up.send(datagram, bytes: length, at: now)
        case (.down, false): client.links?.down.send(datagram, bytes: length, at: now)
        case (.up, false): client.links?.up.send(datagram, bytes: length, at: now)
        }
    }

    /// Sends what has arrived at the links' ends.
    private func deliver(at now: Instant) {
        var deadline: Instant?
        if shared != nil { deadline = deliver(&shared, at: now) }
        if configuration.isPerClient {
            for client in clients.values { deadline = earliest(deadline, deliver(&client.links, at: now)) }
        }
        eventLoop.send(batch)
        eventLoop.setTimer(at: deadline)
    }

    /// - Returns: when the links need attention next.
    private func deliver(_ links: inout Links?, at now: Instant) -> Instant? {
        while let (datagram, _) = links?.down.receive(at: now) {
            unsafe batch.append(to: datagram.path, copying: datagram.bytes.span.bytes)
        }
        while let (datagram, _) = links?.up.receive(at: now) {
            unsafe batch.append(to: datagram.path, copying: datagram.bytes.span.bytes)
        }
        return earliest(links?.down.nextDeadline, links?.up.nextDeadline)
    }
}
