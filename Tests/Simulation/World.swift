import Base
import ChannelTypes
import Client
import DTLS
import Forwarding
import MediaTypes
import Negotiation
import RoomTestSupport
import TestSupport
import Wire

/// Nodes and their clients on a virtual network, in virtual time: the real cores and models, no clock and no socket.
///
/// Most scenarios have one node and connect slots by hand: ``publish(_:rids:audio:video:layersAscend:canPauseLayers:bitsPerSecondMax:hasData:share:loop:)``,
/// ``watch(audio:video:hasSlots:hasData:share:loop:)``, ``connect(_:to:_:layer:)``. Participants of rooms ``join(_:_:)`` instead, and
/// the node's models decide.
final class World {
    static let nodeAddress = address(ofNode: 0, loop: 0)
    /// One for all: its key is what takes time, and no rule depends on whose it is.
    private static let sharedCertificate = Result { try DTLSCertificate.generate() }
    private let certificate: DTLSCertificate

    /// One end of the network: a core with its batch.
    final class Host {
        fileprivate(set) var address: TransportAddress
        let core: Forwarder
        let batch = DatagramBatch(capacity: 256)
        let framed = DatagramBatch(capacity: 256)
        /// Its place in ``World/loops``; `nil` for a client's host.
        let loop: Int?
        var client: MediaClient?
        /// What happened on a client's data channels.
        var dataEvents: [DataEvent] = []
        init(address: TransportAddress, core: Forwarder, loop: Int? = nil) {
            self.address = address
            self.core = core
            self.loop = loop
        }
    }

    let seed: UInt64
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var network: VirtualNetwork
    /// The connections to the first node's first loop; `nil` while all clients are on UDP.
    var streams: StreamNetwork?
    /// Of the node's loops that cannot do everything at once, by their index.
    var capacities: [Int: LoopCapacity] = [:]
    /// The loops of all nodes, node by node, each a core at a port of its own.
    let loops: [Host]
    /// The first of them, which is all of the node in most scenarios.
    var node: Host { loops[0] }
    let nodes: [SimulatedNode]
    private let sealsMediaLinks: Bool
    /// The loop that the other loops of a node get tracks of other nodes from, by the node's index; without one each gets them
    /// by itself.
    var gateways: [Int: Int] = [:]
    /// The ways between the loops, by where they come from and where they lead to. Messages between nodes are encoded.
    private(set) var links: [[MemoryLink?]] = []
    /// The loop of each peer, by its place in ``loops``.
    var homes: [PeerID: Int] = [:]
    private(set) var hosts: [TransportAddress: Host] = [:]
    /// The hosts in the order of their addresses.
    private(set) var order: [Host] = []
    private(set) var nodeEvents: [(PeerID, PeerEvent)] = []
    /// Datagrams that arrived at addresses that nobody has.
    private(set) var undeliverable = 0
    /// What was called for later.
    private var agenda = Agenda()
    /// When the rooms' deadlines are looked at next; `nil` while all nodes are empty.
    private var nextTick: Instant?
    /// Takes down what happens, if it is set.
    var trace: Trace?
    var generator: SeededGenerator
    private var nextPeer: UInt64 = 1
    private var nextHost: UInt32 = 1
    /// The negotiated tracks and slots of the node's peers.
    private(set) var published: [PeerID: [ReceiveTrackParameters]] = [:]
    private(set) var slots: [PeerID: [SendTrackParameters]] = [:]
    /// The credentials in force, as each side told them.
    private(set) var credentials: [PeerID: (client: ICECredentials, node: ICECredentials)] = [:]
    /// Sees every datagram that a host sends, before the network treats it: from, to and its bytes.
    var onTransmit: ((TransportAddress, TransportAddress, [UInt8]) -> Void)?
    /// Changes what a host sends, as another implementation in its place would send it.
    var alters: ((TransportAddress, [UInt8]) -> [UInt8])?
    /// Changes what a client receives, before its core sees it; `nil` for a datagram that its core does not see.
    var unwraps: ((TransportAddress, [UInt8]) -> [UInt8]?)?

    /// - Parameters:
    ///   - nodeCount: the nodes.
    ///   - count: the loops of each.
    ///   - encodesRelays: loops of one node exchange messages in their encoded form too.
    ///   - estimates: nodes estimate what the network to each client carries. Without it every viewer is sent what it asks for.
    ///   - sendRate: the settings of that.
    ///   - sealsMediaLinks: loops of different nodes exchange sealed datagrams over the network.
    ///   - clockStep: the wall clock of each node is ahead of that of the node before by this.
    init(
        seed: UInt64,
        nodes nodeCount: Int = 1,
        loops count: Int = 1,
        encodesRelays: Bool = false,
        estimates: Bool = false,
        sendRate: SendRateSettings = SendRateSettings(),
        sealsMediaLinks: Bool = false,
        clockStep: Interval = .zero
    ) throws {
        self.seed = seed
        self.sealsMediaLinks = sealsMediaLinks
        network = VirtualNetwork(seed: seed)
        generator = SeededGenerator(seed: seed &+ 1)
        let certificate = try Self.sharedCertificate.get()
        self.certificate = certificate
        var sendRate = sendRate
        sendRate.isEstimating = sendRate.isEstimating && estimates
        loops = (0..<nodeCount * count).map { index in
            Host(
                address: Self.address(ofNode: index / count, loop: index % count),
                core: Self.makeCore(
                    certificate,
                    seed: seed &+ 2 &+ UInt64(index) << 32,
                    sendRate,
                    clockOffset: clockStep * (index / count)
                ),
                loop: index
            )
        }
        nodes = (0..<nodeCount).map { SimulatedNode(number: $0, loops: $0 * count..<($0 + 1) * count) }
        for node in nodes { node.world = self }
        for loop in loops { attach(loop) }
        links = loops.indices.map { from in
            loops.indices.map { to in
                from == to || (sealsMediaLinks && from / count != to / count)
                    ? nil : MemoryLink(isEncoded: encodesRelays || from / count != to / count)
            }
        }
        for from in loops.indices {
            for to in loops.indices {
                if let link = links[from][to] { loops[from].core.setLink(link, as: LinkID(rawValue: UInt32(to))) }
            }
        }
        guard sealsMediaLinks else { return }
        for (index, loop) in loops.enumerated() {
            loop.core.startMediaLinks(
                at: location(ofLoop: index),
                sockets: [.anyV4, .anyV6].map { TransportAddress(ip: $0, port: loop.address.port) },
                addresses: [loop.address],
                into: loop.batch
            )
        }
    }

    func location(ofLoop index: Int) -> MediaLocation {
        let node = nodes[index / nodes[0].loops.count]
        return MediaLocation(
            node: node.incarnation,
            loop: LoopIndex(rawValue: UInt16(index - node.loops.lowerBound))
        )
    }

    /// Every second node and its clients have IPv6 addresses.
    private static func address(ofNode node: Int, loop: Int) -> TransportAddress {
        let ip =
            node % 2 == 0
            ? IPAddress(v4: 0xC633_6401 + UInt32(node))
            : IPAddress(high: 0x2001_0DB8_0000_0000, low: UInt64(node))
        return TransportAddress(ip: ip, port: 7000 + UInt16(loop))
    }

    private static func makeCore(
        _ certificate: DTLSCertificate,
        seed: UInt64,
        _ sendRate: SendRateSettings,
        clockOffset: Interval = .zero
    ) -> Forwarder {
        var generator = SeededGenerator(seed: seed)
        var configuration = ForwarderConfiguration(
            certificate: certificate,
            unixNanosecondsAtZero: 1_700_000_000_000_000_000 + clockOffset.nanoseconds
        ) {
            generator.next()
        }
        configuration.sendRate = sendRate
        return Forwarder(configuration)
    }

    private func attach(_ host: Host) {
        setAddress(of: host, to: host.address)
        host.batch.onFull = { [weak self, weak host] batch in
            guard let self, let host else { return }
            host.core.completeBatch()
            self.transmit(batch, from: host)
        }
    }

    /// `nil` takes the host off the network.
    private func setAddress(of host: Host, to address: TransportAddress?) {
        hosts[host.address] = nil
        order.removeAll { $0 === host }
        guard let address else { return }
        host.address = address
        hosts[address] = host
        let key = address.orderKey
        order.insert(host, at: order.firstIndex { key < $0.address.orderKey } ?? order.count)
    }

    // MARK: - Sessions

    func makeHost(loop: Int = 0, beside neighbour: Host? = nil) throws -> (Host, PeerID) {
        // Where nodes are told apart, an identifier names its node as that of a room's peer does.
        let node = sealsMediaLinks ? location(ofLoop: loop).node : .standalone
        let id = PeerID(node: node, number: nextPeer)
        nextPeer += 1
        return (makeHost(ofNode: 0, beside: neighbour), id)
    }

    /// A client's host, with an address of the family of its node.
    /// - Parameter neighbour: has the same address, behind one NAT; `nil` for nobody.
    func makeHost(ofNode node: Int, beside neighbour: Host? = nil) -> Host {
        let ip =
            node % 2 == 0
            ? IPAddress(v4: 0x0A00_0000 + nextHost) : IPAddress(high: 0x2001_0DB8_0001_0000, low: UInt64(nextHost))
        nextHost += 1
        var sendRate = SendRateSettings()
        sendRate.isEstimating = false
        let host = Host(
            address: TransportAddress(
                ip: neighbour?.address.ip ?? ip,
                port: neighbour.map { $0.address.port + 1 } ?? 40_000
            ),
            core: Self.makeCore(certificate, seed: generator.next(), sendRate)
        )
        attach(host)
        return host
    }

    /// Notes what was negotiated for a peer.
    func note(
        _ id: PeerID,
        published tracks: [ReceiveTrackParameters] = [],
        slots: [SendTrackParameters] = [],
        client: ICECredentials,
        node: ICECredentials
    ) {
        published[id] = tracks
        self.slots[id] = slots
        credentials[id] = (client, node)
    }

    /// The loop that a client's peer is on.
    func home(of host: Host) -> Host { loops[host.client.flatMap { homes[$0.id] } ?? 0] }

    func localTransport(_ host: Host) -> LocalTransport {
        LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: certificate.fingerprint,
            candidates: [host.address]
        )
    }

    /// A client offers to publish, the node answers, and both start.
    @discardableResult
    func publish(
        _ settings: MediaClient.Settings = .init(),
        rids: [RID] = [],
        audio: [CodecParameters] = [.standard(.opus)],
        video: [CodecParameters] = [.standard(.vp8)],
        layersAscend: Bool = false,
        canPauseLayers: Bool = false,
        bitsPerSecondMax: Int? = nil,
        hasData: Bool = false,
        share: UInt64 = 0,
        loop: Int = 0
    ) throws -> Host {
        let (host, id) = try makeHost(loop: loop)
        homes[id] = loop
        let clientTransport = localTransport(host)
        let nodeTransport = localTransport(loops[loop])
        let video = settings.video == nil ? [] : video
        let offer = ClientOffer.publish(
            transport: clientTransport,
            audio: audio,
            video: video,
            rids: rids,
            hasData: hasData,
            using: &generator
        )
        let negotiated = try PublishOffer(parsing: offer.text).answer(local: nodeTransport, sessionID: id.rawValue)
        let receive = negotiated.receive.map { track in
            var track = track
            track.layersAscend = layersAscend
            track.canPauseLayers = canPauseLayers && track.rids.count > 1
            return track
        }
        published[id] = receive
        credentials[id] = (clientTransport.credentials, nodeTransport.credentials)
        try loops[loop].core.addPeer(
            PeerParameters(
                id: id,
                localCredentials: nodeTransport.credentials,
                remote: negotiated.remote,
                receive: receive,
                publishBitsPerSecondMax: bitsPerSecondMax,
                data: negotiated.data,
                share: share
            ),
            at: now
        )
        try start(host, id, clientTransport, try offer.parse(answer: negotiated.answer), settings)
        return host
    }

    /// A client offers to watch, the node answers, and both start. Slots play nothing yet.
    /// - Parameter hasSlots: whether the node's peer has its slots from the beginning; ``changeSlots(of:add:remove:)``
    ///   adds them otherwise.
    @discardableResult
    func watch(
        audio: [CodecParameters] = [.standard(.opus), .standard(.red)],
        video: [CodecParameters] = [.standard(.vp8), .standard(.vp9), .standard(.h264), .standard(.av1)],
        hasSlots: Bool = true,
        hasData: Bool = false,
        share: UInt64 = 0,
        loop: Int = 0,
        beside neighbour: Host? = nil
    ) throws -> Host {
        let (host, id) = try makeHost(loop: loop, beside: neighbour)
        homes[id] = loop
        let clientTransport = localTransport(host)
        let nodeTransport = localTransport(loops[loop])
        let offer = ClientOffer.watch(
            transport: clientTransport,
            audio: audio,
            video: video,
            hasData: hasData,
            using: &generator
        )
        let negotiated = try WatchOffer(parsing: offer.text).answer(
            local: nodeTransport,
            streamID: "stream",
            sessionID: id.rawValue,
            using: &generator
        )
        slots[id] = negotiated.send
        credentials[id] = (clientTransport.credentials, nodeTransport.credentials)
        try loops[loop].core.addPeer(
            PeerParameters(
                id: id,
                localCredentials: nodeTransport.credentials,
                remote: negotiated.remote,
                send: hasSlots ? negotiated.send : [],
                data: negotiated.data,
                share: share
            ),
            at: now
        )
        try start(host, id, clientTransport, try offer.parse(answer: negotiated.answer), .init())
        return host
    }

    func start(
        _ host: Host,
        _ id: PeerID,
        _ transport: LocalTransport,
        _ answer: ClientAnswer,
        _ settings: MediaClient.Settings
    ) throws {
        let paths = answer.remoteCandidates.map { NetworkPath(socket: SocketIndex(rawValue: 0), remote: $0) }
        host.client = try MediaClient(
            core: host.core,
            id: id,
            credentials: transport.credentials,
            answer: answer,
            paths: paths,
            settings: settings,
            at: now,
            using: &generator
        )
        settle(host)
    }

    /// Changes the slots of a viewer's peer in the node.
    func changeSlots(of viewer: Host, add: [SendTrackParameters], remove: [MID]) throws {
        guard let id = viewer.client?.id else { return }
        try home(of: viewer).core.changeSlots(of: id, add: add, remove: remove, at: now)
        settle(home(of: viewer))
    }

    /// Lets everything that `publisher` publishes, or one kind of it, play into the viewer's slots.
    func connect(
        _ viewer: Host,
        to publisher: Host?,
        _ kind: MediaKind? = nil,
        layer: LayerChoice = .richest
    ) throws {
        guard let viewerID = viewer.client?.id else { return }
        for slot in slots[viewerID] ?? [] where kind == nil || slot.kind == kind {
            let track = publisher.flatMap { host in
                host.client.flatMap { client in
                    published[client.id]?.first { $0.kind == slot.kind }.map { TrackID(peer: client.id, mid: $0.mid) }
                }
            }
            let home = homes[viewerID] ?? 0
            if let track, let origin = homes[track.peer], origin != home {
                try relay(track, from: origin, to: home)
            }
            try loops[home].core.connect(
                slot: TrackID(peer: viewerID, mid: slot.mid),
                to: track,
                layer: layer,
                at: now
            )
        }
        for loop in loops { settle(loop) }
    }

    /// Lets a track of one loop cross to another loop, of its node or of another one, unless it does so already.
    ///
    /// - Parameter publisher: the loop of another node that the track is published on, if it comes over a gateway.
    func relay(_ track: TrackID, from origin: Int, to home: Int, publishedOn publisher: Int? = nil) throws {
        guard loops[home].core.mirror(of: track) == nil else { return }
        let count = nodes[0].loops.count
        if let gateway = gateways[home / count], gateway != home, origin / count != home / count {
            try relay(track, from: origin, to: gateway)
            try relay(track, from: gateway, to: home, publishedOn: origin)
            return
        }
        let relay = try loops[home].core.makeMirrorID()
        guard links[origin][home] != nil else {
            let end = try loops[home].core.mediaLinkEnd(to: location(ofLoop: origin), at: now)
            let answer = try loops[origin].core.exportTrack(track, as: relay, to: end, at: now)
            let link = try loops[home].core.joinMediaLink(answer.origin, at: now)
            loops[home].core.addMirror(answer.track, as: relay, from: link, at: now)
            return
        }
        let exported = try loops[origin].core.exportTrack(
            track,
            as: relay,
            over: LinkID(rawValue: UInt32(home)),
            at: now
        )
        loops[home].core.addMirror(
            exported,
            as: relay,
            from: LinkID(rawValue: UInt32(origin)),
            publishedAt: publisher.map { location(ofLoop: $0) },
            at: now
        )
    }

    /// Hands over what waits between the loops, which brings forth more perhaps.
    private func drainLinks() {
        var isDone = false
        while !isDone {
            isDone = true
            for from in loops.indices {
                for to in loops.indices {
                    guard let records = links[from][to]?.take(), !records.isEmpty else { continue }
                    isDone = false
                    for (record, bytes) in records {
                        loops[to].core.receiveTransferred(
                            record,
                            unsafe bytes.span.bytes,
                            from: LinkID(rawValue: UInt32(from)),
                            at: now,
                            into: loops[to].batch
                        )
                    }
                    settle(loops[to])
                }
            }
        }
    }

    func remove(_ host: Host) {
        guard let id = host.client?.id else { return }
        let home = home(of: host)
        home.core.removePeer(id, at: now, into: home.batch)
        settle(home)
    }

    /// Both sides take new credentials, as after an exchange over signaling.
    func restartICE(_ host: Host) throws {
        guard let id = host.client?.id else { return }
        let client = ICECredentials(using: &generator)
        let server = ICECredentials(using: &generator)
        credentials[id] = (client, server)
        let home = home(of: host)
        try home.core.restartICE(id, local: server, remote: client, at: now)
        try host.core.restartICE(id, local: client, remote: server, at: now)
        settle(home)
        settle(host)
    }

    /// The client's datagrams come from another address from now on, and only those to it arrive.
    func move(_ host: Host, to address: TransportAddress) { setAddress(of: host, to: address) }

    /// The client leaves without a word.
    func vanish(_ host: Host) { setAddress(of: host, to: nil) }

    // MARK: - Time

    /// Calls something later, in the order of the times and then of the calls.
    func schedule(after delay: Interval, _ body: @escaping () -> Void) { agenda.add(at: now + delay, body) }

    /// The rooms' deadlines are looked at from now on, once a second.
    func startTicking() {
        guard nextTick == nil else { return }
        nextTick = Instant(nanoseconds: (now.nanoseconds / 1_000_000_000 + 1) * 1_000_000_000)
    }

    var roomTime: RoomTime { RoomTime(instant: now, unixNanoseconds: 1_700_000_000_000_000_000 + now.nanoseconds) }

    /// Runs until a condition holds or `limit` has passed; answers whether it held.
    @discardableResult
    func run(for limit: Interval, until done: () -> Bool = { false }) -> Bool {
        let end = now + limit
        while !done() {
            guard let next = nextInstant, next <= end else {
                now = end
                return done()
            }
            now = max(now, next)
            step()
        }
        return true
    }

    private var nextInstant: Instant? {
        var next = earliest(earliest(network.nextDelivery, agenda.next), nextTick)
        next = earliest(next, streams?.nextInstant)
        for capacity in capacities.values { next = earliest(next, capacity.nextSample) }
        for host in order {
            next = earliest(next, host.core.nextDeadline)
            next = earliest(next, host.client?.nextDeadline)
        }
        return next
    }

    private func step() {
        for index in capacities.keys.sorted() {
            guard let capacity = capacities[index], capacity.nextSample <= now,
                let sample = capacities[index]?.sample(at: now), capacity.isSampled
            else { continue }
            loops[index].core.noteLoad(sample, at: now)
        }
        while let body = agenda.popDue(at: now) { body() }
        if let nextTick, nextTick <= now {
            for node in nodes { node.tick() }
            self.nextTick = nodes.allSatisfy(\.rooms.isEmpty) ? nil : nextTick + .seconds(1)
        }
        while let datagram = network.popDue(at: now) {
            trace?.note(arrivalAt: datagram.to, from: datagram.from, at: now)
            guard let host = hosts[datagram.to] else {
                undeliverable += 1
                continue
            }
            deliver(datagram, to: host)
        }
        streams?.step()
        for host in order {
            host.client?.handleTimeout(at: now, into: host.batch)
            if let deadline = host.core.nextDeadline, deadline <= now {
                host.core.handleTimeout(at: now, into: host.batch)
            }
            settle(host)
        }
        drainLinks()
    }

    private func deliver(_ datagram: VirtualNetwork.Datagram, to host: Host) {
        if let loop = host.loop, capacities[loop]?.receive(at: now) == false { return }
        var bytes = datagram.bytes
        if host.loop == nil, let unwraps {
            guard let inner = unwraps(host.address, bytes) else { return }
            bytes = inner
        }
        deliver(bytes, from: datagram.from, to: host)
    }

    /// Lets a host's core take a datagram.
    /// - Parameter settles: whether its turn ends.
    func deliver(_ bytes: [UInt8], from remote: TransportAddress, to host: Host, settles: Bool = true) {
        var buffer = bytes + Array(repeating: 0, count: 64)
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote)
        unsafe buffer.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            host.core.receive(&span, length: bytes.count, path: path, at: now, into: host.batch)
        }
        if settles { settle(host) }
    }

    /// Sends raw bytes to the node from an address of an outsider's choice.
    func inject(_ bytes: [UInt8], from address: TransportAddress) {
        network.send(bytes, from: address, to: Self.nodeAddress, at: now)
    }

    /// Sends bytes from a host's address as they are.
    func send(_ bytes: [UInt8], from host: Host) {
        network.send(bytes, from: host.address, to: Self.nodeAddress, at: now)
    }

    /// Sends a packet of the test's choice as the client would: encrypted with the keys of its session.
    func sendSecured(_ packet: [UInt8], isRTCP: Bool = false, from host: Host) {
        guard let id = host.client?.id, let transport = host.core.peer(id)?.transport else { return }
        if isRTCP {
            transport.egress.sendRTCP(packet, into: host.batch)
        } else {
            transport.egress.sendRTP(packet, into: host.batch)
        }
        settle(host)
    }

    /// Lets the node take packets of a client, encrypted with the keys of its session, in one turn and at once.
    /// - Parameter settles: whether the turn ends.
    func deliverSecured(_ packets: [[UInt8]], from host: Host, settles: Bool = true) {
        guard let id = host.client?.id, let transport = host.core.peer(id)?.transport else { return }
        var datagrams: [[UInt8]] = []
        for packet in packets { transport.egress.sendRTP(packet, into: host.batch) }
        host.core.completeBatch()
        for index in 0..<host.batch.count {
            datagrams.append(host.batch.withDatagram(index) { bytes, _ in bytes.array() })
        }
        host.batch.removeAll()
        let back = NetworkPath(socket: SocketIndex(rawValue: 0), remote: host.address)
        for datagram in datagrams {
            var buffer = datagram + Array(repeating: 0, count: 64)
            unsafe buffer.withUnsafeMutableBytes { buffer in
                var span = unsafe buffer.mutableBytes
                node.core.receive(&span, length: datagram.count, path: back, at: now, into: node.batch)
            }
        }
        if settles { settle(node) }
    }

    func settle(_ host: Host) {
        host.core.endTurn(at: now, into: host.batch)
        transmit(host.batch, from: host)
        let events = host.core.takeEvents()
        for (peer, event) in events { trace?.note(event, of: peer, at: now) }
        if let loop = host.loop {
            nodeEvents += events
            let node = nodes[loop / nodes[0].loops.count]
            for (peer, event) in events { node.received(event, from: peer) }
        } else {
            for (_, event) in events {
                if case .data(let event) = event { host.dataEvents.append(event) }
                host.client?.handle(event, at: now)
            }
        }
    }

    private func transmit(_ batch: DatagramBatch, from host: Host) {
        if let loop = host.loop { capacities[loop]?.work(batch.count) }
        for run in batch.runs where run.path.local.socket == nil {
            _ = host.core.frame(run, of: batch, at: now, into: host.framed)
        }
        if host === node { streams?.queue([batch, host.framed]) }
        send(batch, from: host)
        send(host.framed, from: host)
        host.core.closeTURNSessions(at: now)
    }

    private func send(_ batch: DatagramBatch, from host: Host) {
        for index in 0..<batch.count {
            let (bytes, path) = batch.withDatagram(index) { ($0.array(), $1) }
            guard path.local.socket != nil else { continue }
            let to = path.remote
            if host.loop == nil, streams?.take(bytes, from: host) == true { continue }
            onTransmit?(host.address, to, bytes)
            trace?.note(bytes, from: host.address, to: to, at: now)
            network.send(alters?(host.address, bytes) ?? bytes, from: host.address, to: to, at: now)
        }
        batch.removeAll()
    }
}

extension TransportAddress {
    /// An order of all addresses.
    fileprivate var orderKey: (UInt64, UInt64, UInt16) { (ip.high, ip.low, port) }
}

/// Calls that wait for their times.
private struct Agenda {
    private var calls: [(at: Instant, body: () -> Void)] = []

    var next: Instant? { calls.first?.at }

    mutating func add(at time: Instant, _ body: @escaping () -> Void) {
        calls.insert((time, body), at: calls.firstIndex { time < $0.at } ?? calls.count)
    }

    mutating func popDue(at now: Instant) -> (() -> Void)? {
        guard let first = calls.first, first.at <= now else { return nil }
        calls.removeFirst()
        return first.body
    }
}

extension MediaClient {
    /// What the client hears.
    var audioReceived: StampVerifier? { receivers.first { $0.kind == .audio }?.verifier }
}
