import Base
import ChannelTypes
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Room
import Synchronization
internal import Wire

/// Connections: dialed, accepted and closed.
extension ControlLinks {
    private static let connectTimeout = TimeAmount.seconds(2)

    func dial(_ node: NodeID, _ address: String) {
        guard let listener = HostPort(address) else {
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
        bootstrap.connect(host: listener.host, port: listener.port).whenComplete { [self] result in
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

    func accept(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture { [self] in
            let state = loop.value
            let address = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
            guard !state.isStopped else { throw ChannelError.ioOnClosedChannel }
            let stranger = ObjectIdentifier(channel)
            channel.closeFuture.whenComplete { [loop] _ in loop.value.strangers.remove(stranger) }
            if let oldest = state.strangers.admit(channel, from: address) {
                shared.withLock { $0.counters.crowded &+= 1 }
                oldest.close(promise: nil)
            }
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
        // A closed connection has none.
        let address = channel.remoteAddress?.ipAddress ?? "-"
        var hasHello = false
        var refusal: (any Error)?
        var goodbye: LinkGoodbye?
        return LinkHandler(
            LinkHandler.Owner(
                connected: { [self] channel, hello in
                    hasHello = true
                    state.strangers.remove(stranger)
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
                    if case .goodbye(let reason) = frame { goodbye = reason }
                    received(frame, over: id, state)
                },
                heard: { [self] in state.table.heard(id, at: now) },
                refused: { [self] error in
                    shared.withLock { $0.counters.malformed &+= 1 }
                    logger.notice("link refused", metadata: ["error": "\(error)", "address": "\(address)"])
                    noteFlaw(of: id, state)
                },
                closed: { [self] in
                    state.connections[id] = nil
                    if !hasHello {
                        shared.withLock { $0.counters.strangers &+= 1 }
                        if state.mayLogStranger(at: now) {
                            logger.debug("connection without a hello ended", metadata: ["address": "\(address)"])
                        }
                        if let dialed { dialEnded(dialed, refusal, state) }
                    }
                    guard !state.isStopped else { return }
                    perform(state.table.disconnected(id, goodbye: goodbye, at: now), state)
                },
                failed: { error in
                    if LinkSecurity.isRefusal(error) { refusal = error }
                }
            ),
            helloTimeout: helloTimeout
        )
    }

    /// A dialed connection ended before the other side's hello.
    private func dialEnded(_ node: NodeID, _ refusal: (any Error)?, _ state: LoopState) {
        guard let refusal else { return state.table.dialFailed(node, at: now) }
        guard state.table.dialRefused(node, at: now) else { return }
        logger.error(
            "A node refuses this one's --cluster-secret. The two have no link, and members of a channel on both do not see each other. Give both the same secret, and restart the one that had another.",
            metadata: ["node": "\(node)", "error": "\(refusal)"]
        )
    }

    private func report(_ actions: [LinkTable.Action], about hello: LinkHello) {
        for case .close(_, let reason) in actions {
            switch reason {
            case .incompatible:
                shared.withLock { $0.counters.incompatible &+= 1 }
                logger.warning(
                    "A node of another cluster or with another version of the link protocol was refused. Nodes of one cluster need the same --cluster-name and builds of neighbouring versions. It is dialed again after 30 seconds.",
                    metadata: [
                        "node": "\(hello.instance)", "cluster": "\(hello.cluster)",
                        "versions": "\(hello.versions.lowerBound)-\(hello.versions.upperBound)",
                        "own-versions": "\(own.versions.lowerBound)-\(own.versions.upperBound)",
                    ]
                )
            case .ownName:
                logger.error(
                    "Another node has this node's name or its identifiers. Give every node a --node-name of its own.",
                    metadata: ["node": "\(hello.instance)"]
                )
            case .tooManyLinks:
                logger.warning(
                    "A node was refused because \(LinkTable.linksMax) others have links. Use fewer nodes, or clusters of their own.",
                    metadata: ["node": "\(hello.instance)"]
                )
            case .duplicate, .silent, .replaced, .flawed, .unused: break
            }
        }
    }

    /// A node that sends what is no message, again and again, is left alone for a while.
    private func noteFlaw(of id: LinkTable.ConnectionID, _ state: LoopState) {
        guard let node = state.connections[id]?.node, state.table.flawed(id, at: now) else { return }
        shared.withLock { $0.counters.barred &+= 1 }
        logger.warning(
            "A node sent bytes that are no message three times in ten seconds. Its links are refused for 30 seconds. Check that all nodes run released builds of neighbouring versions.",
            metadata: ["node": "\(node)"]
        )
    }
}
