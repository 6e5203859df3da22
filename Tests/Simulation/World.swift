import Client
import DTLS
import Forwarding
import MediaTypes
import Negotiation
import TestSupport
import Wire

/// A node and its clients on a virtual network, in virtual time: the real cores, no clock and no socket.
final class World {
    static let nodeAddress = TransportAddress(ip: IPAddress(v4: 0xC633_6401), port: 7000)
    /// One for all: its key is what takes time, and no rule depends on whose it is.
    private static let sharedCertificate = Result { try DTLSCertificate.generate() }
    private let certificate: DTLSCertificate

    /// One end of the network: a core with its batch.
    final class Host {
        fileprivate(set) var address: TransportAddress
        let core: Forwarder
        let batch = DatagramBatch(capacity: 256)
        var client: MediaClient?
        init(address: TransportAddress, core: Forwarder) {
            self.address = address
            self.core = core
        }
    }

    let seed: UInt64
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var network: VirtualNetwork
    /// Of the node's loops that cannot do everything at once, by their index.
    var capacities: [Int: LoopCapacity] = [:]
    /// The node's loops, each a core at a port of its own.
    let loops: [Host]
    /// The first of them, which is all of the node in most scenarios.
    var node: Host { loops[0] }
    /// The ways between the loops, by where they come from and where they lead to.
    private(set) var links: [[MemoryLink?]] = []
    var homes: [PeerID: Int] = [:]
    private(set) var hosts: [TransportAddress: Host] = [:]
    private(set) var nodeEvents: [(PeerID, PeerEvent)] = []
    var generator: SeededGenerator
    private var nextPeer: UInt64 = 1
    /// The negotiated tracks and slots of the node's peers.
    private(set) var published: [PeerID: [ReceiveTrackParameters]] = [:]
    private(set) var slots: [PeerID: [SendTrackParameters]] = [:]
    /// The credentials in force, as each side told them.
    private(set) var credentials: [PeerID: (client: ICECredentials, node: ICECredentials)] = [:]
    /// Sees every datagram that a host sends, before the network treats it: from, to and its bytes.
    var onTransmit: ((TransportAddress, TransportAddress, [UInt8]) -> Void)?
    /// Changes what a host sends, as another implementation in its place would send it.
    var alters: ((TransportAddress, [UInt8]) -> [UInt8])?

    /// - Parameter encodesRelays: loops exchange messages in their encoded form, as nodes do.
    init(seed: UInt64, loops count: Int = 1, encodesRelays: Bool = false) throws {
        self.seed = seed
        network = VirtualNetwork(seed: seed)
        generator = SeededGenerator(seed: seed &+ 1)
        let certificate = try Self.sharedCertificate.get()
        self.certificate = certificate
        loops = (0..<count).map { index in
            Host(
                address: TransportAddress(ip: Self.nodeAddress.ip, port: Self.nodeAddress.port + UInt16(index)),
                core: Self.makeCore(certificate, seed: seed &+ 2 &+ UInt64(index) << 32)
            )
        }
        for loop in loops { attach(loop) }
        links = (0..<count).map { from in (0..<count).map { $0 == from ? nil : MemoryLink(isEncoded: encodesRelays) } }
        for from in 0..<count {
            for to in 0..<count {
                if let link = links[from][to] { loops[from].core.setLink(link, as: LinkID(rawValue: UInt32(to))) }
            }
        }
    }

    private static func makeCore(_ certificate: DTLSCertificate, seed: UInt64) -> Forwarder {
        var generator = SeededGenerator(seed: seed)
        return Forwarder(
            ForwarderConfiguration(certificate: certificate, unixNanosecondsAtZero: 1_700_000_000_000_000_000) {
                generator.next()
            }
        )
    }

    private func attach(_ host: Host) {
        hosts[host.address] = host
        host.batch.onFull = { [weak self, weak host] batch in
            guard let self, let host else { return }
            host.core.completeBatch()
            self.transmit(batch, from: host)
        }
    }

    // MARK: - Sessions

    func makeHost() throws -> (Host, PeerID) {
        let id = PeerID(rawValue: nextPeer)
        nextPeer += 1
        let address = TransportAddress(
            ip: IPAddress(v4: 0x0A00_0000 + UInt32(id.rawValue)),
            port: 40_000
        )
        let host = Host(address: address, core: Self.makeCore(certificate, seed: generator.next()))
        attach(host)
        return (host, id)
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
        bitsPerSecondMax: Int? = nil,
        share: UInt64 = 0,
        loop: Int = 0
    ) throws -> Host {
        let (host, id) = try makeHost()
        homes[id] = loop
        let clientTransport = localTransport(host)
        let nodeTransport = localTransport(loops[loop])
        let video = settings.video == nil ? [] : video
        let offer = ClientOffer.publish(
            transport: clientTransport,
            audio: audio,
            video: video,
            rids: rids,
            using: &generator
        )
        let negotiated = try PublishOffer(parsing: offer.text).answer(local: nodeTransport, sessionID: id.rawValue)
        let receive = negotiated.receive.map { track in
            var track = track
            track.layersAscend = layersAscend
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
        share: UInt64 = 0,
        loop: Int = 0
    ) throws -> Host {
        let (host, id) = try makeHost()
        homes[id] = loop
        let clientTransport = localTransport(host)
        let nodeTransport = localTransport(loops[loop])
        let offer = ClientOffer.watch(transport: clientTransport, audio: audio, video: video, using: &generator)
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
                try mirror(track, from: origin, on: home)
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

    /// Makes a track of one loop known on another, if it is not.
    private func mirror(_ track: TrackID, from origin: Int, on home: Int) throws {
        guard loops[home].core.mirror(of: track) == nil else { return }
        let relay = try loops[home].core.makeRelayID()
        let exported = try loops[origin].core.exportTrack(
            track,
            as: relay,
            over: LinkID(rawValue: UInt32(home)),
            at: now
        )
        loops[home].core.addMirror(exported, as: relay, from: LinkID(rawValue: UInt32(origin)), at: now)
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
                        loops[to].core.receiveRelayed(
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
        try node.core.restartICE(id, local: server, remote: client, at: now)
        try host.core.restartICE(id, local: client, remote: server, at: now)
        settle(node)
        settle(host)
    }

    /// The client's datagrams come from another address from now on, and only those to it arrive.
    func move(_ host: Host, to address: TransportAddress) {
        hosts[host.address] = nil
        host.address = address
        hosts[address] = host
    }

    /// The client leaves without a word.
    func vanish(_ host: Host) { hosts[host.address] = nil }

    // MARK: - Time

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
        var next = network.nextDelivery
        for capacity in capacities.values { next = earliest(next, capacity.nextSample) }
        for host in hosts.values {
            next = earliest(next, host.core.nextDeadline)
            next = earliest(next, host.client?.nextDeadline)
        }
        return next
    }

    private func step() {
        for (index, capacity) in capacities where capacity.nextSample <= now {
            guard let sample = capacities[index]?.sample(at: now), capacity.isSampled else { continue }
            loops[index].core.noteLoad(sample, at: now)
        }
        while let datagram = network.popDue(at: now) {
            guard let host = hosts[datagram.to] else { continue }
            deliver(datagram, to: host)
        }
        for host in hosts.values.sorted(by: {
            ($0.address.ip.low, $0.address.port) < ($1.address.ip.low, $1.address.port)
        }) {
            host.client?.handleTimeout(at: now, into: host.batch)
            if let deadline = host.core.nextDeadline, deadline <= now {
                host.core.handleTimeout(at: now, into: host.batch)
            }
            settle(host)
        }
        drainLinks()
    }

    private func deliver(_ datagram: VirtualNetwork.Datagram, to host: Host) {
        if let loop = loops.firstIndex(where: { $0 === host }), capacities[loop]?.receive(at: now) == false { return }
        var buffer = datagram.bytes + Array(repeating: 0, count: 64)
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: datagram.from)
        unsafe buffer.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            host.core.receive(&span, length: datagram.bytes.count, path: path, at: now, into: host.batch)
        }
        settle(host)
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
    func deliverSecured(_ packets: [[UInt8]], from host: Host) {
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
        settle(node)
    }

    func settle(_ host: Host) {
        host.core.endTurn(at: now, into: host.batch)
        transmit(host.batch, from: host)
        let events = host.core.takeEvents()
        if loops.contains(where: { $0 === host }) {
            nodeEvents += events
        } else {
            for (_, event) in events { host.client?.handle(event, at: now) }
        }
    }

    private func transmit(_ batch: DatagramBatch, from host: Host) {
        if let loop = loops.firstIndex(where: { $0 === host }) { capacities[loop]?.work(batch.count) }
        for index in 0..<batch.count {
            let (bytes, to) = batch.withDatagram(index) { ($0.array(), $1.remote) }
            onTransmit?(host.address, to, bytes)
            network.send(alters?(host.address, bytes) ?? bytes, from: host.address, to: to, at: now)
        }
        batch.removeAll()
    }
}

/// A way between two loops of the world, which can be told to lose records.
final class MemoryLink: RelayLink {
    private var records: [(RelayRecord, [UInt8])] = []
    /// Whether a record is lost, asked for each.
    var loses: (RelayRecord) -> Bool = { _ in false }
    private(set) var packetsCarried = 0
    /// Messages cross as bytes, and nothing but these bytes.
    private let isEncoded: Bool

    init(isEncoded: Bool = false) { self.isEncoded = isEncoded }

    override func send(_ record: RelayRecord, _ bytes: RawSpan) -> Bool {
        guard !loses(record) else { return false }
        if !record.isControl { packetsCarried += 1 }
        guard isEncoded else {
            records.append((record, bytes.array()))
            return true
        }
        let encoded = record.message.encoded(bytes)
        guard let decoded = try? RelayMessage.decode(unsafe encoded.span.bytes) else {
            preconditionFailure("what was encoded is read")
        }
        records.append((RelayRecord(decoded.message), Array(encoded[decoded.bodyOffset...])))
        return true
    }

    func take() -> [(RelayRecord, [UInt8])] {
        defer { records = [] }
        return records
    }
}
