import Base
package import ChannelTypes
internal import Listeners
package import Logging
internal import NIOCore
internal import NIOPosix
import Room
import Synchronization

/// The control links of a node over TCP and TLS. All run on one event loop.
@safe
package final class ControlLinks: ChannelLinks {
    /// A connection whose other side said hello.
    final class Connection: Sendable {
        let channel: any Channel
        let node: NodeID
        let queuedBytes = Atomic<Int>(0)
        /// Questions of the other side that are being answered.
        let answering = Atomic<Int>(0)

        init(_ channel: any Channel, _ node: NodeID) {
            self.channel = channel
            self.node = node
        }
    }
    struct Shared {
        var connections: [NodeID: Connection] = [:]
        var counters = LinkCounters()
        weak var delegate: (any LinkDelegate)?
        var status: [NodeID: LinkTable.Status] = [:]
    }
    /// Touched on the event loop only.
    final class LoopState {
        var table: LinkTable
        var connections: [LinkTable.ConnectionID: Connection] = [:]
        /// Accepted connections that wait for the other side's hello.
        var strangers = LinkStrangers()
        var connectionNext: UInt64 = 1
        var server: (any Channel)?
        var ticks: RepeatedTask?
        var isStopped = false
        private var strangerLines = (since: Instant(nanoseconds: 0), count: 0)
        private static let strangerLinesMax = 10

        init(_ table: LinkTable) { self.table = table }

        /// Whether a stranger may have a line in the log: few of them in a second.
        func mayLogStranger(at now: Instant) -> Bool {
            if now - strangerLines.since >= .seconds(1) { strangerLines = (now, 0) }
            guard strangerLines.count < Self.strangerLinesMax else { return false }
            strangerLines.count += 1
            return true
        }
    }

    /// Bytes that may wait to be sent over one link.
    private static let queuedBytesMax = 32 << 20
    private static let tickInterval = TimeAmount.milliseconds(100)

    let security: LinkSecurity
    private let clock: RoomClock
    let helloTimeout: TimeAmount
    let logger: Logger
    let eventLoop: any EventLoop
    let loop: NIOLoopBound<LoopState>
    let shared = Mutex(Shared())
    let questions = PendingRequests()

    /// - Parameter helloTimeout: from a connection to the other side's hello.
    package init(
        own: LinkHello,
        security: LinkSecurity,
        clock: RoomClock = .system,
        helloTimeout: Duration = .seconds(5),
        logger: Logger
    ) async {
        self.security = security
        self.clock = clock
        self.helloTimeout = TimeAmount(helloTimeout)
        self.logger = logger
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        self.eventLoop = eventLoop
        let now = clock.now().instant
        loop = await withCheckedContinuation { continuation in
            eventLoop.execute {
                let state = LoopState(LinkTable(own: own, at: now))
                continuation.resume(returning: NIOLoopBound(state, eventLoop: eventLoop))
            }
        }
    }

    var now: Instant { clock.now().instant }
    /// What this node says of itself on new connections; on the event loop only.
    var own: LinkHello { loop.value.table.own }

    package var counters: LinkCounters { shared.withLock { $0.counters } }
    /// The links as they were at the last tick.
    package var status: [NodeID: LinkTable.Status] { shared.withLock { $0.status } }

    // MARK: Life

    /// Starts to listen, to dial and to watch.
    /// - Returns: the port.
    /// - Throws: the system's error when the address cannot be used.
    package func start(host: String, port: Int, delegate: any LinkDelegate) async throws -> Int {
        shared.withLock { $0.delegate = delegate }
        let server = try await ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: 128)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptRestHandler())
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { [self] channel in accept(channel) }
            .bind(host: host, port: port).get()
        try await eventLoop.submit { [self] in
            loop.value.server = server
            let task = eventLoop.scheduleRepeatedTask(initialDelay: Self.tickInterval, delay: Self.tickInterval) {
                [self] _ in
                tick()
            }
            loop.value.ticks = task
        }.get()
        return server.localAddress?.port ?? port
    }

    /// Tells the other nodes that this one stops, and closes all links.
    package func stop() async {
        let channels = try? await eventLoop.submit { [self] () -> [any Channel] in
            let state = loop.value
            state.isStopped = true
            state.ticks?.cancel()
            for (id, connection) in state.connections {
                transmit(.goodbye(.stopping), over: connection)
                _ = state.table.disconnected(id, goodbye: .stopping, at: now)
            }
            return state.strangers.channels + state.connections.values.map(\.channel)
                + [state.server].compactMap(\.self)
        }.get()
        for channel in channels ?? [] { try? await channel.close().get() }
        questions.failAll()
    }

    // MARK: ChannelLinks

    package func want(_ node: NodeID) { onLoop { $0.table.want(node, at: $1) } }

    package func release(_ node: NodeID) {
        onLoop { state, _ in
            state.table.release(node)
            return []
        }
    }

    package func send(_ message: [UInt8], to node: NodeID) -> Bool { send(.channel(message), to: node) }

    /// Sends a message about a room of the 1:1 relay after those before it.
    /// - Returns: `false` without a link or room in its queue.
    package func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool { send(.relay(message), to: node) }

    /// Tells the addresses of the other nodes' link listeners.
    package func setAddresses(_ known: [(instance: NodeInstance, address: String)]) {
        onLoop { $0.table.setAddresses(known, at: $1) }
    }

    /// This run has a later incarnation from now on.
    package func setInstance(_ instance: NodeInstance) {
        onLoop { state, _ in
            state.table.setInstance(instance)
            return []
        }
    }

    /// Tells which nodes have records in the store that another secret signed.
    package func setOtherSecrets(_ nodes: Set<NodeID>) {
        onLoop { state, _ in
            state.table.setOtherSecrets(nodes)
            return []
        }
    }

    /// Asks a node.
    package func ask(
        _ request: NodeRequest,
        of node: NodeID,
        within duration: Duration
    ) async throws(NodeRequestError) -> [UInt8] {
        try await questions.ask(node, within: duration) { send(.request($0, request), to: node) }
    }

    /// Counts a question as answered, or not.
    func count(_ failure: NodeRequestError?) {
        shared.withLock { shared in
            if let failure {
                shared.counters.unanswered[failure, default: 0] &+= 1
            } else {
                shared.counters.answered &+= 1
            }
        }
    }

    // MARK: Frames out

    private func send(_ frame: LinkFrame, to node: NodeID) -> Bool {
        let bytes = frame.encoded()
        let sending = shared.withLock { shared in
            shared.connections[node].map { ($0, Self.admit(bytes.count, to: $0, &shared)) }
        }
        guard let (connection, isAdmitted) = sending else { return false }
        return transmit(bytes, over: connection, isAdmitted: isAdmitted)
    }

    @discardableResult
    func transmit(_ frame: LinkFrame, over connection: Connection) -> Bool {
        let bytes = frame.encoded()
        let isAdmitted = shared.withLock { Self.admit(bytes.count, to: connection, &$0) }
        return transmit(bytes, over: connection, isAdmitted: isAdmitted)
    }

    /// Counts a frame that is to be sent. Returns whether there is room for it in the connection's queue.
    private static func admit(_ count: Int, to connection: Connection, _ shared: inout Shared) -> Bool {
        let queued = connection.queuedBytes.wrappingAdd(count, ordering: .relaxed).newValue
        guard queued <= queuedBytesMax, count <= LinkFrame.bytesMax + 4 else {
            shared.counters.overflows &+= 1
            return false
        }
        shared.counters.framesSent &+= 1
        shared.counters.bytesSent &+= UInt64(count)
        return true
    }

    private func transmit(_ bytes: [UInt8], over connection: Connection, isAdmitted: Bool) -> Bool {
        guard isAdmitted else {
            connection.channel.close(promise: nil)
            return false
        }
        // Always through the loop's queue, so that frames of all threads keep their order.
        eventLoop.execute {
            connection.channel.writeAndFlush(ByteBuffer(bytes: bytes)).whenComplete { _ in
                connection.queuedBytes.wrappingSubtract(bytes.count, ordering: .relaxed)
            }
        }
        return true
    }

    // MARK: The event loop

    func onLoop(_ change: @escaping @Sendable (LoopState, Instant) -> [LinkTable.Action]) {
        eventLoop.execute { [self] in
            let state = loop.value
            guard !state.isStopped else { return }
            perform(change(state, now), state)
        }
    }

    private func tick() {
        let state = loop.value
        perform(state.table.tick(at: now), state)
        let status = state.table.status(at: now)
        shared.withLock { $0.status = status }
    }

    func perform(_ actions: [LinkTable.Action], _ state: LoopState) {
        let delegate = shared.withLock { $0.delegate }
        for action in actions {
            switch action {
            case .dial(let node, let address): dial(node, address)
            case .close(let id, let reason):
                guard let connection = state.connections.removeValue(forKey: id) else { continue }
                logger.info("link closed", metadata: ["node": "\(connection.node)", "reason": "\(reason)"])
                close(connection, LinkGoodbye(reason))
            case .ping(let id, let number):
                if let connection = state.connections[id] { transmit(.ping(number), over: connection) }
            case .tellUnused(let id):
                if let connection = state.connections[id] { transmit(.unused, over: connection) }
            case .up(let hello, let id):
                let node = hello.instance.node
                shared.withLock { shared in
                    shared.connections[node] = state.connections[id]
                    shared.counters.linksUp &+= 1
                }
                logger.info(
                    "link up",
                    metadata: [
                        "node": "\(hello.instance)", "media": "\(hello.media)",
                        "version": "\(own.version(with: hello) ?? 0)",
                    ]
                )
                delegate?.linkUp(node, hello: hello)
            case .down(let node):
                shared.withLock { shared in
                    shared.connections[node] = nil
                    shared.counters.linksDown &+= 1
                }
                questions.fail(to: node)
                logger.notice("link down", metadata: ["node": "\(node)"])
                delegate?.linkDown(node)
            case .dead(let instance):
                shared.withLock { $0.counters.nodesDead &+= 1 }
                logger.notice("node gone", metadata: ["node": "\(instance)"])
                delegate?.linkDead(instance, mayReturn: false)
            case .givenUp(let instance):
                shared.withLock { $0.counters.nodesDead &+= 1 }
                logger.notice("node given up", metadata: ["node": "\(instance)"])
                delegate?.linkDead(instance, mayReturn: true)
            case .ask(let witness, let instance): askWitness(witness, about: instance)
            }
        }
    }

    private func askWitness(_ witness: NodeID, about instance: NodeInstance) {
        Task { [self] in
            let request = NodeRequest(kind: .canReach, body: Array(instance.description.utf8))
            let answer = try? await ask(request, of: witness, within: request.kind.answerTimeout)
            onLoop { state, now in
                state.table.witnessed(instance, isHeard: answer == [1], at: now)
                return []
            }
        }
    }

    private func close(_ connection: Connection, _ reason: LinkGoodbye) {
        transmit(.goodbye(reason), over: connection)
        eventLoop.execute { connection.channel.close(promise: nil) }
    }
}

extension LinkGoodbye {
    fileprivate init(_ closing: LinkTable.LinkClosing) {
        self =
            switch closing {
            case .incompatible: .incompatible
            case .flawed, .ownName, .tooManyLinks: .refused
            case .duplicate, .silent, .replaced: .duplicate
            case .unused: .unused
            }
    }
}
