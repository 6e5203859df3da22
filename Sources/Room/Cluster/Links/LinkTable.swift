package import Base
package import ChannelTypes
internal import MediaTypes

/// The control links of a node: to whom there should be one, which connection carries it, and who is dead.
///
/// Without I/O and clock. Whoever needs a link dials; of two connections between the same runs of two nodes the one stays
/// that the node with the lower name dialed, so that both keep the same one.
///
/// A lost or silent link does not mean that the other node is dead. A node is given up when its link is lost, it does not
/// come back for ``deadAfter``, and none of the witnesses hears it. With a witness that does, the link is at fault: the other
/// node's members stay until their own time is over.
package struct LinkTable: Sendable {
    /// A connection of this node, by a number that is never used again.
    package struct ConnectionID: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt64
        package init(rawValue: UInt64) { self.rawValue = rawValue }
    }

    package enum Action: Hashable, Sendable {
        case dial(NodeID, address: String)
        /// Close a connection after saying why.
        case close(ConnectionID, LinkClosing)
        case ping(ConnectionID, UInt64)
        /// Tell the other node that this one does not need the link.
        case tellUnused(ConnectionID)
        /// The node can be reached over the connection from now on.
        case up(LinkHello, ConnectionID)
        /// The node's link is lost. Everything has to be told again with the next one.
        case down(NodeID)
        /// The node said that it stops, or a later run of it was seen: its members leave.
        case dead(NodeInstance)
        /// Nobody hears the node: its members leave, and return with the next link if it was only cut off.
        case givenUp(NodeInstance)
        /// Ask a node whether it hears another one.
        case ask(NodeID, about: NodeInstance)
    }

    package enum LinkClosing: String, Hashable, Sendable {
        case duplicate, incompatible, silent, replaced, tooManyLinks, ownName
        /// Neither node needs the link.
        case unused
        /// The node's last links ended with bytes that are no message.
        case flawed
    }

    /// A link as operators see it.
    package struct Status: Hashable, Sendable {
        package var state: LinkState
        package var roundTrip: Interval?
    }

    private struct Link: Sendable {
        let connection: ConnectionID
        let hello: LinkHello
        let isDialedHere: Bool
        let upSince: Instant
        var heardAt: Instant
        var pingedAt: Instant
        /// The last ping that was not answered.
        var ping: (number: UInt64, sentAt: Instant)?
        var roundTrip: Interval?
    }

    private struct Peer: Sendable {
        var wants = 0
        var link: Link?
        var isDialing = false
        var dialAt: Instant?
        var attempts = 0
        /// The run that had the last link.
        var last: NodeInstance?
        /// Since when that run has no link, unless it was given up.
        var lostAt: Instant?
        /// Who was asked about it since ``lostAt``, and when.
        var askedAt: Instant?
        /// Since when nobody here wants the link.
        var unusedSince: Instant?
        /// When the other node was told so.
        var toldUnusedAt: Instant?
    }

    /// A link without any byte for so long gets a ping.
    package static let pingAfter = Interval.milliseconds(250)
    /// A link that is not silent gets a ping this often: its other end may hear nothing else while it sends.
    static let busyPingAfter = Interval.milliseconds(500)
    /// A link that is silent for so long is reported as suspect.
    package static let suspectAfter = Interval.seconds(1)
    /// A link that is silent for so long is closed.
    package static let silentAfter = Interval.seconds(3)
    /// A node without a link for so long is given up, unless a witness hears it.
    package static let deadAfter = Interval.milliseconds(1_500)
    /// Witnesses have so long to answer.
    static let witnessTime = Interval.milliseconds(500)
    static let witnessesMax = 3
    /// A node that stood still for so long accuses nobody: it would hear nobody either.
    package static let stalledAfter = Interval.milliseconds(600)
    /// The other node is told of a link that nobody here has wanted for so long.
    package static let unusedAfter = Interval.seconds(60)
    /// A link that the other node does not need is closed when nobody here has wanted it for so long.
    static let closedAfter = Interval.seconds(5)
    /// After a link that was lost sooner, the pauses between dials grow on.
    static let settledAfter = Interval.seconds(3)
    /// The first dials come fast, because a link is wanted by somebody who waits.
    private static let redials: [Interval] = [
        .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .seconds(2),
    ]
    /// The most nodes with links.
    package static let linksMax = 1_024

    /// What this node says of itself on new connections.
    package private(set) var own: LinkHello
    private var peers: [NodeID: Peer] = [:]
    private var nodeOfConnection: [ConnectionID: NodeID] = [:]
    private var addresses: [NodeID: (instance: NodeInstance, address: String)] = [:]
    private var bars = LinkBackoff()
    /// Nodes whose records in the store another secret signed.
    private var otherSecrets: Set<NodeID> = []
    /// Nodes that refused this one's secret when it dialed them last, while a link to them is needed.
    private var refusing: Set<NodeID> = []
    private var pingNext: UInt64 = 1
    private var tickedAt: Instant?
    /// Before this time nobody is accused.
    private var accusesFrom: Instant

    package init(own: LinkHello, at now: Instant) {
        self.own = own
        accusesFrom = now
    }

    /// This run has a later incarnation from now on. With the earlier one in its hello, its links would give way to those of
    /// another run of the node that is still there.
    package mutating func setInstance(_ instance: NodeInstance) { own.instance = instance }

    // MARK: What is wanted

    /// Keeps a link to a node from now on. Each call is undone by one of ``release(_:)``.
    package mutating func want(_ node: NodeID, at now: Instant) -> [Action] {
        guard node != own.instance.node, peers[node] != nil || peers.count < Self.linksMax else { return [] }
        peers[node, default: Peer()].wants += 1
        peers[node]?.unusedSince = nil
        peers[node]?.toldUnusedAt = nil
        return dialIfNeeded(node, at: now)
    }

    /// The link is not needed here any more. It stays as long as the other side needs it, and for a while.
    package mutating func release(_ node: NodeID) {
        guard let wants = peers[node]?.wants, wants > 0 else { return }
        peers[node]?.wants = wants - 1
        forgetIfUnused(node)
    }

    /// The other nodes with the addresses of their link listeners, as the store or a saved view tells.
    package mutating func setAddresses(
        _ known: [(instance: NodeInstance, address: String)],
        at now: Instant
    ) -> [Action] {
        var actions: [Action] = []
        let before = addresses
        addresses = Dictionary(known.map { ($0.instance.node, $0) }, uniquingKeysWith: { $1 })
        refusing = refusing.filter { node in
            guard let entry = addresses[node], let earlier = before[node] else { return false }
            return entry == earlier
        }
        for (node, entry) in addresses.sorted(by: { $0.key < $1.key }) where peers[node] != nil {
            guard before[node].map({ $0 != entry }) ?? true else { continue }
            bars.lift(node)
            // A later run is known before its link: nothing of the earlier one is left.
            if let last = peers[node]?.last, last.incarnation != entry.instance.incarnation, peers[node]?.link == nil,
                peers[node]?.lostAt != nil, last.isBefore(entry.instance)
            {
                forgetLastRun(of: node)
                actions.append(.dead(last))
            }
            peers[node]?.attempts = 0
            peers[node]?.dialAt = nil
            actions += dialIfNeeded(node, at: now)
        }
        return actions
    }

    /// Sets the nodes whose records in the store another secret signed. It does nothing to their links and dials: a store that is
    /// wrong must not separate nodes.
    package mutating func setOtherSecrets(_ nodes: Set<NodeID>) { otherSecrets = nodes }

    private mutating func dialIfNeeded(_ node: NodeID, at now: Instant) -> [Action] {
        guard let peer = peers[node], peer.wants > 0, peer.link == nil, !peer.isDialing else { return [] }
        guard let address = addresses[node]?.address, !address.isEmpty else { return [] }
        if let dialAt = peer.dialAt, dialAt > now { return [] }
        guard !bars.isHeld(node, at: now) else { return [] }
        peers[node]?.isDialing = true
        return [.dial(node, address: address)]
    }

    private mutating func forgetIfUnused(_ node: NodeID) {
        guard let peer = peers[node], peer.wants == 0, peer.link == nil, !peer.isDialing, peer.lostAt == nil else {
            return
        }
        peers[node] = nil
        refusing.remove(node)
    }

    // MARK: Connections

    /// A node could not be dialed, or did not say hello.
    package mutating func dialFailed(_ node: NodeID, at now: Instant) {
        refusing.remove(node)
        guard peers[node] != nil else { return }
        peers[node]?.isDialing = false
        scheduleDial(node, at: now)
        forgetIfUnused(node)
    }

    /// A node that was dialed refused this one's secret. It is left alone for a while.
    ///
    /// - Returns: whether this is news: of a node whose record another secret signed it is not.
    package mutating func dialRefused(_ node: NodeID, at now: Instant) -> Bool {
        guard let peer = peers[node] else { return false }
        let isNew = peer.link == nil && !otherSecrets.contains(node) && !refusing.contains(node)
        refusing.insert(node)
        peers[node]?.isDialing = false
        bars.hold(node, at: now)
        forgetIfUnused(node)
        return isNew
    }

    private mutating func scheduleDial(_ node: NodeID, at now: Instant) {
        guard let attempts = peers[node]?.attempts else { return }
        peers[node]?.attempts = min(attempts + 1, Self.redials.count - 1)
        peers[node]?.dialAt = now + Self.redials[min(attempts, Self.redials.count - 1)]
    }

    /// Both sides of a connection said hello.
    /// - Parameter isDialedHere: whether this node opened it.
    package mutating func connected(
        _ connection: ConnectionID,
        to hello: LinkHello,
        isDialedHere: Bool,
        at now: Instant
    ) -> [Action] {
        let node = hello.instance.node
        if isDialedHere { peers[node]?.isDialing = false }
        if let refusal = refusal(of: hello, at: now) {
            if node != own.instance.node { bars.hold(node, at: now) }
            forgetIfUnused(node)
            return [.close(connection, refusal)]
        }
        refusing.remove(node)
        var actions: [Action] = []
        if let link = peers[node]?.link {
            if link.hello.instance == hello.instance, link.hello.media == hello.media {
                guard replaces(isDialedHere: isDialedHere, link, node) else { return [.close(connection, .duplicate)] }
                actions += [.close(link.connection, .duplicate), .down(node)]
            } else {
                guard !hello.instance.isBefore(link.hello.instance) else { return [.close(connection, .replaced)] }
                actions += [.close(link.connection, .replaced), .down(node)]
            }
            nodeOfConnection[link.connection] = nil
        }
        if let last = peers[node]?.last, last != hello.instance { actions.append(.dead(last)) }
        var peer = peers[node] ?? Peer()
        peer.link = Link(
            connection: connection,
            hello: hello,
            isDialedHere: isDialedHere,
            upSince: now,
            heardAt: now,
            pingedAt: now
        )
        peer.last = hello.instance
        peer.lostAt = nil
        peer.askedAt = nil
        peer.unusedSince = nil
        peer.toldUnusedAt = nil
        peers[node] = peer
        nodeOfConnection[connection] = node
        return actions + [.up(hello, connection)]
    }

    private func refusal(of hello: LinkHello, at now: Instant) -> LinkClosing? {
        let node = hello.instance.node
        if bars.isRefused(node, at: now) { return .flawed }
        if hello.cluster != own.cluster || own.version(with: hello) == nil { return .incompatible }
        // Two runs under one name, or two nodes whose identifiers would meet.
        if node == own.instance.node || hello.media == own.media { return .ownName }
        let isTaken = peers.contains { $0.key != node && $0.value.link?.hello.media == hello.media }
        if isTaken { return .ownName }
        return peers[node] == nil && peers.count >= Self.linksMax ? .tooManyLinks : nil
    }

    /// Whether a new connection takes the place of one to the same run of a node.
    private func replaces(isDialedHere: Bool, _ link: Link, _ node: NodeID) -> Bool {
        // A node dials again when it lost the connection that it dialed before.
        guard isDialedHere != link.isDialedHere else { return true }
        return isDialedHere == (own.instance.node < node)
    }

    /// A connection ended, whoever closed it.
    /// - Parameter goodbye: why the other node closed it, if it said so.
    package mutating func disconnected(
        _ connection: ConnectionID,
        goodbye: LinkGoodbye? = nil,
        at now: Instant
    ) -> [Action] {
        guard let node = nodeOfConnection.removeValue(forKey: connection), let link = peers[node]?.link else {
            return []
        }
        end(link, of: node, at: now)
        switch goodbye {
        case .stopping:
            peers[node]?.last = nil
            scheduleDial(node, at: now)
            forgetIfUnused(node)
            return [.down(node), .dead(link.hello.instance)]
        case .unused:
            // Nothing was lost with it, so the node is not accused.
            forgetLastRun(of: node)
            return [.down(node)] + dialIfNeeded(node, at: now)
        case .incompatible, .refused: bars.hold(node, at: now)
        case nil, .closing, .duplicate: break
        }
        peers[node]?.lostAt = now
        return [.down(node)] + dialIfNeeded(node, at: now)
    }

    private mutating func end(_ link: Link, of node: NodeID, at now: Instant) {
        peers[node]?.link = nil
        if now - link.upSince >= Self.settledAfter {
            peers[node]?.attempts = 0
            peers[node]?.dialAt = nil
        } else {
            // Nodes whose links do not last would dial each other as fast as they can.
            scheduleDial(node, at: now)
        }
    }

    /// The other node does not need the link.
    package mutating func unused(_ connection: ConnectionID, at now: Instant) -> [Action] {
        guard let node = nodeOfConnection[connection], let peer = peers[node], peer.link?.connection == connection,
            peer.wants == 0, let since = peer.unusedSince, now - since >= Self.closedAfter
        else { return [] }
        nodeOfConnection[connection] = nil
        peers[node]?.link = nil
        forgetLastRun(of: node)
        return [.close(connection, .unused), .down(node)]
    }

    /// A connection brought bytes that are no message. It ends.
    /// - Returns: whether links to its node are refused from now on.
    package mutating func flawed(_ connection: ConnectionID, at now: Instant) -> Bool {
        guard let node = nodeOfConnection[connection] else { return false }
        return bars.noteFlaw(node, at: now)
    }

    /// Bytes arrived. A large frame takes longer over a slow line than a link may be silent.
    package mutating func heard(_ connection: ConnectionID, at now: Instant) {
        guard let node = nodeOfConnection[connection] else { return }
        peers[node]?.link?.heardAt = now
    }

    package mutating func pong(_ number: UInt64, over connection: ConnectionID, at now: Instant) {
        guard let node = nodeOfConnection[connection], let ping = peers[node]?.link?.ping, ping.number == number else {
            return
        }
        peers[node]?.link?.ping = nil
        peers[node]?.link?.roundTrip = now - ping.sentAt
    }

    package func connection(of node: NodeID) -> ConnectionID? { peers[node]?.link?.connection }
    package func node(of connection: ConnectionID) -> NodeID? { nodeOfConnection[connection] }
    package func hello(of node: NodeID) -> LinkHello? { peers[node]?.link?.hello }

    package func status(at now: Instant) -> [NodeID: Status] {
        var status = peers.mapValues { peer in
            guard let link = peer.link else { return Status(state: peer.lostAt == nil ? .connecting : .down) }
            let isSuspect = now - link.heardAt >= Self.suspectAfter
            return Status(state: isSuspect ? .suspect : .up, roundTrip: link.roundTrip)
        }
        for node in otherSecrets.union(refusing) where peers[node]?.link == nil {
            status[node] = Status(state: .refused)
        }
        return status
    }

    // MARK: Who is dead

    /// Whether this node can reach a run of another one, for one that asks.
    package func canReach(_ instance: NodeInstance, at now: Instant) -> Bool {
        guard let link = peers[instance.node]?.link, link.hello.instance == instance else { return false }
        return now - link.heardAt < Self.suspectAfter
    }

    /// A witness answered.
    package mutating func witnessed(_ instance: NodeInstance, isHeard: Bool, at now: Instant) {
        let node = instance.node
        guard isHeard, peers[node]?.last == instance, peers[node]?.lostAt != nil else { return }
        // The link is at fault. The question is asked again later.
        peers[node]?.lostAt = now
        peers[node]?.askedAt = nil
    }

    /// To be called each 100 ms.
    package mutating func tick(at now: Instant) -> [Action] {
        if let tickedAt, now - tickedAt > Self.stalledAfter { accusesFrom = now + .seconds(1) }
        tickedAt = now
        bars.expire(at: now)
        var actions: [Action] = []
        for (node, peer) in peers.sorted(by: { $0.key < $1.key }) {
            if let link = peer.link {
                actions += check(link, of: node, at: now)
            } else {
                actions += dialIfNeeded(node, at: now)
                actions += judge(peer, of: node, at: now)
            }
        }
        return actions
    }

    private mutating func check(_ link: Link, of node: NodeID, at now: Instant) -> [Action] {
        let silence = now - link.heardAt
        if silence >= Self.silentAfter, now >= accusesFrom {
            nodeOfConnection[link.connection] = nil
            end(link, of: node, at: now)
            peers[node]?.lostAt = now
            return [.close(link.connection, .silent), .down(node)] + dialIfNeeded(node, at: now)
        }
        var actions = checkUse(of: link, to: node, at: now)
        let pause = silence >= Self.pingAfter ? Self.pingAfter : Self.busyPingAfter
        guard now - link.pingedAt >= pause else { return actions }
        let number = pingNext
        pingNext &+= 1
        peers[node]?.link?.pingedAt = now
        peers[node]?.link?.ping = (number, now)
        actions.append(.ping(link.connection, number))
        return actions
    }

    private mutating func checkUse(of link: Link, to node: NodeID, at now: Instant) -> [Action] {
        guard let peer = peers[node], peer.wants == 0 else { return [] }
        guard let since = peer.unusedSince else {
            peers[node]?.unusedSince = now
            return []
        }
        guard now - (peer.toldUnusedAt ?? since) >= Self.unusedAfter else { return [] }
        peers[node]?.toldUnusedAt = now
        return [.tellUnused(link.connection)]
    }

    private mutating func judge(_ peer: Peer, of node: NodeID, at now: Instant) -> [Action] {
        guard let lostAt = peer.lostAt, let last = peer.last, now >= accusesFrom, now - lostAt >= Self.deadAfter else {
            return []
        }
        if let askedAt = peer.askedAt {
            return now - askedAt >= Self.witnessTime ? giveUp(node) : []
        }
        let witnesses = peers.filter { other, peer in
            guard other != node, let link = peer.link else { return false }
            return now - link.heardAt < Self.suspectAfter
        }
        guard !witnesses.isEmpty else { return giveUp(node) }
        peers[node]?.askedAt = now
        return witnesses.keys.sorted().prefix(Self.witnessesMax).map { .ask($0, about: last) }
    }

    private mutating func giveUp(_ node: NodeID) -> [Action] {
        guard let last = peers[node]?.last else { return [] }
        forgetLastRun(of: node)
        return [.givenUp(last)]
    }

    private mutating func forgetLastRun(of node: NodeID) {
        peers[node]?.last = nil
        peers[node]?.lostAt = nil
        peers[node]?.askedAt = nil
        forgetIfUnused(node)
    }
}

extension NodeInstance {
    /// Whether another run of the same node is later. A provisional incarnation tells no order.
    func isBefore(_ other: Self) -> Bool {
        incarnation.isAssigned && other.incarnation.isAssigned && incarnation.rawValue < other.incarnation.rawValue
    }
}
