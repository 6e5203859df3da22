package import Logging
internal import MediaTypes
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
package import Room
import Synchronization
internal import Wire

/// What a node does with its links, called on one thread in the order of what happened. No call may block.
package protocol LinkDelegate: AnyObject, Sendable {
    func linkUp(_ node: NodeID, hello: LinkHello)
    func linkDown(_ node: NodeID)
    /// A run of a node is gone, or nobody hears it: its members leave.
    /// - Parameter mayReturn: whether it was perhaps only cut off.
    func linkDead(_ instance: NodeInstance, mayReturn: Bool)
    func received(_ message: [UInt8], from node: NodeID)
    /// Answers a question of another node; `nil` when it cannot.
    func answer(_ request: LinkRequest, from node: NodeID) async -> [UInt8]?
}

/// Why a question to another node got no answer.
package enum LinkRequestError: Error, Hashable, Sendable {
    /// There is no such node.
    case noNode
    /// There is no link to the node.
    case noLink
    case timedOut
    /// The node could not answer.
    case refused
    /// As many questions wait for answers as may.
    case busy
}

/// What links carried and refused, since the start.
package struct LinkCounters: Hashable, Sendable {
    package var framesSent: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var framesReceived: UInt64 = 0
    /// Connections that ended before both sides said hello: of strangers, or with another secret.
    package var strangers: UInt64 = 0
    /// Connections that were closed for a frame that was too long or not understood.
    package var malformed: UInt64 = 0
    /// Links that were closed because too much waited to be sent.
    package var overflows: UInt64 = 0
    package var linksUp: UInt64 = 0
    package var linksDown: UInt64 = 0
    package var nodesDead: UInt64 = 0
}

/// The control links of a node over TCP and TLS. All run on one event loop.
@safe
package final class NodeLinks: ChannelLinks {
    /// A connection whose other side said hello.
    private final class Connection: Sendable {
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
    private struct Shared {
        var connections: [NodeID: Connection] = [:]
        var questions: [UInt32: (node: NodeID, answer: CheckedContinuation<[UInt8], any Error>)] = [:]
        var questionNext: UInt32 = 0
        var counters = LinkCounters()
        weak var delegate: (any LinkDelegate)?
        var status: [NodeID: LinkTable.Status] = [:]
    }
    /// Touched on the event loop only.
    private final class LoopState {
        var table: LinkTable
        var connections: [LinkTable.ConnectionID: Connection] = [:]
        /// Connections that wait for the other side's hello.
        var strangers: [ObjectIdentifier: any Channel] = [:]
        var connectionNext: UInt64 = 1
        var server: (any Channel)?
        var ticks: RepeatedTask?
        var isStopped = false

        init(_ table: LinkTable) { self.table = table }
    }

    /// Bytes that may wait to be sent over one link.
    private static let queuedBytesMax = 32 << 20
    private static let questionsMax = 4_096
    /// Questions of one node that may be under way.
    private static let answersMax = 256
    /// Connections that have not said hello.
    private static let strangersMax = 64
    private static let connectTimeout = TimeAmount.seconds(2)
    private static let tickInterval = TimeAmount.milliseconds(100)

    private let own: LinkHello
    private let security: LinkSecurity
    private let clock: RoomClock
    private let logger: Logger
    private let eventLoop: any EventLoop
    private let loop: NIOLoopBound<LoopState>
    private let shared = Mutex(Shared())

    package init(own: LinkHello, security: LinkSecurity, clock: RoomClock = .system, logger: Logger) async {
        self.own = own
        self.security = security
        self.clock = clock
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

    private var now: Instant { clock.now().instant }

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
                _ = state.table.disconnected(id, isStopping: true, at: now)
            }
            return Array(state.strangers.values) + state.connections.values.map(\.channel)
                + [state.server].compactMap(\.self)
        }.get()
        for channel in channels ?? [] { try? await channel.close().get() }
        let waiting = shared.withLock { shared in
            defer { shared.questions = [:] }
            return Array(shared.questions.values)
        }
        for question in waiting { question.answer.resume(throwing: LinkRequestError.noLink) }
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

    /// Tells the addresses of the other nodes' link listeners.
    package func setAddresses(_ known: [(instance: NodeInstance, address: String)]) {
        onLoop { $0.table.setAddresses(known, at: $1) }
    }

    /// Asks a node.
    package func ask(
        _ request: LinkRequest,
        of node: NodeID,
        within duration: Duration
    ) async throws(LinkRequestError) -> [UInt8] {
        let number = shared.withLock { shared -> UInt32 in
            shared.questionNext &+= 1
            return shared.questionNext
        }
        let timeout = Task { [self] in
            try? await Task.sleep(for: duration)
            if !Task.isCancelled { finish(number, .failure(.timedOut)) }
        }
        defer { timeout.cancel() }
        do {
            return try await withCheckedThrowingContinuation { continuation in
                let isTaken = shared.withLock { shared in
                    guard shared.questions.count < Self.questionsMax else { return false }
                    shared.questions[number] = (node, continuation)
                    return true
                }
                guard isTaken else { return continuation.resume(throwing: LinkRequestError.busy) }
                if !send(.request(number, request), to: node) { finish(number, .failure(.noLink)) }
            }
        } catch {
            throw error as? LinkRequestError ?? .noLink
        }
    }

    private func finish(_ number: UInt32, _ result: Result<[UInt8], LinkRequestError>, from node: NodeID? = nil) {
        let question = shared.withLock { shared -> CheckedContinuation<[UInt8], any Error>? in
            guard let question = shared.questions[number], node == nil || question.node == node else { return nil }
            shared.questions[number] = nil
            return question.answer
        }
        question?.resume(with: result.mapError { $0 })
    }

    // MARK: Frames out

    private func send(_ frame: LinkFrame, to node: NodeID) -> Bool {
        guard let connection = shared.withLock({ $0.connections[node] }) else { return false }
        return transmit(frame, over: connection)
    }

    @discardableResult
    private func transmit(_ frame: LinkFrame, over connection: Connection) -> Bool {
        let bytes = frame.encoded()
        let queued = connection.queuedBytes.wrappingAdd(bytes.count, ordering: .relaxed).newValue
        guard queued <= Self.queuedBytesMax, bytes.count <= LinkFrame.bytesMax + 4 else {
            shared.withLock { $0.counters.overflows &+= 1 }
            connection.channel.close(promise: nil)
            return false
        }
        shared.withLock { shared in
            shared.counters.framesSent &+= 1
            shared.counters.bytesSent &+= UInt64(bytes.count)
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

    private func onLoop(_ change: @escaping @Sendable (LoopState, Instant) -> [LinkTable.Action]) {
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

    private func perform(_ actions: [LinkTable.Action], _ state: LoopState) {
        let delegate = shared.withLock { $0.delegate }
        for action in actions {
            switch action {
            case .dial(let node, let address): dial(node, address)
            case .close(let id, let reason):
                guard let connection = state.connections.removeValue(forKey: id) else { continue }
                logger.info("link closed", metadata: ["node": "\(connection.node)", "reason": "\(reason)"])
                close(connection, reason == .incompatible ? .incompatible : .duplicate)
            case .ping(let id, let number):
                if let connection = state.connections[id] { transmit(.ping(number), over: connection) }
            case .up(let hello, let id):
                let node = hello.instance.node
                shared.withLock { shared in
                    shared.connections[node] = state.connections[id]
                    shared.counters.linksUp &+= 1
                }
                logger.info("link up", metadata: ["node": "\(hello.instance)", "media": "\(hello.media)"])
                delegate?.linkUp(node, hello: hello)
            case .down(let node):
                shared.withLock { shared in
                    shared.connections[node] = nil
                    shared.counters.linksDown &+= 1
                }
                failQuestions(to: node)
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

    private func failQuestions(to node: NodeID) {
        let numbers = shared.withLock { $0.questions.filter { $0.value.node == node }.map(\.key) }
        for number in numbers { finish(number, .failure(.noLink)) }
    }

    private func askWitness(_ witness: NodeID, about instance: NodeInstance) {
        Task { [self] in
            let request = LinkRequest(kind: .hears, body: Array(instance.description.utf8))
            let answer = try? await ask(request, of: witness, within: .milliseconds(400))
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

    // MARK: Connections

    private func dial(_ node: NodeID, _ address: String) {
        guard let (host, port) = LinkAddress.parse(address) else {
            logger.warning("a node's link address is not HOST:PORT", metadata: ["node": "\(node)"])
            return onLoop { state, now in
                state.table.dialFailed(node, at: now)
                return []
            }
        }
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(Self.connectTimeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: security.client, serverHostname: nil))
                    try pipeline.addHandler(handler(channel, dialed: node))
                }
            }
        bootstrap.connect(host: host, port: port).whenComplete { [self] result in
            switch result {
            case .success(let channel):
                channel.writeAndFlush(ByteBuffer(bytes: LinkFrame.hello(own).encoded()), promise: nil)
            case .failure:
                onLoop { state, now in
                    state.table.dialFailed(node, at: now)
                    return []
                }
            }
        }
    }

    private func accept(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture { [self] in
            let state = loop.value
            guard !state.isStopped, state.strangers.count < Self.strangersMax else {
                throw ChannelError.ioOnClosedChannel
            }
            state.strangers[ObjectIdentifier(channel)] = channel
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(NIOSSLServerHandler(context: security.server))
            try pipeline.addHandler(handler(channel, dialed: nil))
        }
    }

    /// - Parameter dialed: the node that this one called; `nil` for a connection that was accepted.
    private func handler(_ channel: any Channel, dialed: NodeID?) -> LinkHandler {
        let state = loop.value
        let id = LinkTable.ConnectionID(rawValue: state.connectionNext)
        state.connectionNext &+= 1
        let stranger = ObjectIdentifier(channel)
        var hasHello = false
        var isStopping = false
        return LinkHandler(
            LinkHandler.Owner(
                connected: { [self] channel, hello in
                    hasHello = true
                    state.strangers[stranger] = nil
                    if dialed == nil {
                        channel.writeAndFlush(ByteBuffer(bytes: LinkFrame.hello(own).encoded()), promise: nil)
                    }
                    state.connections[id] = Connection(channel, hello.instance.node)
                    if let dialed, dialed != hello.instance.node { state.table.dialFailed(dialed, at: now) }
                    let actions = state.table.connected(id, to: hello, isDialedHere: dialed != nil, at: now)
                    report(actions, about: hello)
                    perform(actions, state)
                },
                received: { [self] frame in
                    if frame == .goodbye(.stopping) { isStopping = true }
                    received(frame, over: id, state)
                },
                refused: { [self] error in
                    shared.withLock { $0.counters.malformed &+= 1 }
                    logger.notice("link refused", metadata: ["error": "\(error)"])
                },
                closed: { [self] in
                    state.strangers[stranger] = nil
                    state.connections[id] = nil
                    if !hasHello {
                        shared.withLock { $0.counters.strangers &+= 1 }
                        if let dialed { state.table.dialFailed(dialed, at: now) }
                    }
                    guard !state.isStopped else { return }
                    perform(state.table.disconnected(id, isStopping: isStopping, at: now), state)
                }
            )
        )
    }

    private func report(_ actions: [LinkTable.Action], about hello: LinkHello) {
        for case .close(_, let reason) in actions {
            switch reason {
            case .incompatible:
                logger.warning(
                    "A node of another cluster or with another version of the link protocol was refused. Nodes of one cluster need the same --cluster-name and builds of neighbouring versions.",
                    metadata: ["node": "\(hello.instance)", "cluster": "\(hello.cluster)"]
                )
            case .ownName:
                logger.error(
                    "Another node has this node's name or its identifiers. Give every node a --node-name of its own.",
                    metadata: ["node": "\(hello.instance)"]
                )
            case .duplicate, .silent, .replaced, .unused: break
            }
        }
    }

    private func received(_ frame: LinkFrame, over id: LinkTable.ConnectionID, _ state: LoopState) {
        guard let connection = state.connections[id] else { return }
        state.table.heard(id, at: now)
        shared.withLock { $0.counters.framesReceived &+= 1 }
        switch frame {
        case .hello, .goodbye: break
        case .ping(let number): transmit(.pong(number), over: connection)
        case .pong(let number): state.table.pong(number, over: id, at: now)
        case .channel(let message):
            guard state.table.node(of: id) != nil else { return }
            shared.withLock { $0.delegate }?.received(message, from: connection.node)
        case .response(let number, let body):
            finish(number, body.map { .success($0) } ?? .failure(.refused), from: connection.node)
        case .request(let number, let request): answer(request, number, connection, state)
        }
    }

    private func answer(_ request: LinkRequest, _ number: UInt32, _ connection: Connection, _ state: LoopState) {
        if request.kind == .hears {
            let instance = NodeInstance(String(decoding: request.body.prefix(128), as: UTF8.self))
            let isHeard = instance.map { state.table.hears($0, at: now) } ?? false
            transmit(.response(number, [isHeard ? 1 : 0]), over: connection)
            return
        }
        let delegate = shared.withLock { $0.delegate }
        guard connection.answering.wrappingAdd(1, ordering: .relaxed).newValue <= Self.answersMax else {
            connection.answering.wrappingSubtract(1, ordering: .relaxed)
            transmit(.response(number, nil), over: connection)
            return
        }
        Task { [self] in
            let body = await delegate?.answer(request, from: connection.node)
            connection.answering.wrappingSubtract(1, ordering: .relaxed)
            transmit(.response(number, body), over: connection)
        }
    }
}

/// `HOST:PORT`, an IPv6 address in brackets.
enum LinkAddress {
    static func parse(_ text: String) -> (host: String, port: Int)? {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), 1...65_535 ~= port
        else { return nil }
        var host = text[..<colon]
        if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
        return host.isEmpty ? nil : (String(host), port)
    }
}
