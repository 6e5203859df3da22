import MediaTypes
import RoomTestSupport
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

extension Channel {
    /// Receives events while it handles none.
    func receiveAll(_ events: [PeerEvent], from peer: PeerID) {
        for event in events { receive(event, from: peer) }
    }
}

/// Channels over fake planes, and the few parameters that joining needs.
struct RoomsBench {
    let plane: FakeMediaPlane
    private let planes: [FakeMediaPlane]
    let directory: ChannelDirectory
    static let channel = ChannelName("lobby")!
    static let mid = MID("0")!

    /// - Parameter planes: the first of them is `plane`; a bench of one makes its own.
    init(
        planes: [FakeMediaPlane] = [FakeMediaPlane()],
        limits: RoomLimits = RoomLimits(),
        onEvent: @escaping @Sendable (ChannelDirectory.Event) -> Void = { _ in }
    ) {
        plane = planes[0]
        self.planes = planes
        directory = ChannelDirectory(planes: planes, limits: limits, onEvent: onEvent)
    }

    /// - Parameter planes: those of the rooms; the first of them is `plane`.
    init(planes: [FakeMediaPlane], directory: ChannelDirectory) {
        plane = planes[0]
        self.planes = planes
        self.directory = directory
    }

    /// - Parameter rooms: makes them with the bench's plane.
    init(directory: (FakeMediaPlane) -> ChannelDirectory) {
        plane = FakeMediaPlane()
        planes = [plane]
        self.directory = directory(plane)
    }

    static func credentials(_ name: String) -> ICECredentials {
        ICECredentials(usernameFragment: name, password: String(repeating: "p", count: 22))!
    }
    static let remote = RemoteTransport(
        credentials: credentials("remote"),
        fingerprints: [Fingerprint(algorithm: .sha256, digest: Array(repeating: 1, count: 32))!],
        localRole: .server
    )
    static let vp8 = CodecParameters(name: .vp8, payloadType: PayloadType(rawValue: 96)!)

    func activate(_ reservation: ChannelDirectory.Reservation, _ role: Role) async throws -> ChannelDirectory.Resource {
        let receive = ReceiveTrackParameters(mid: Self.mid, kind: .video, codecs: [Self.vp8])
        let send = SendTrackParameters(
            mid: Self.mid,
            kind: .video,
            codecs: [Self.vp8],
            ssrc: SSRC(rawValue: 1),
            cname: "c"
        )
        return try await directory.activate(
            reservation,
            remote: Self.remote,
            receive: role.publishes ? [receive] : [],
            send: role.watches ? [send] : [],
            firstMediaKind: .video,
            mids: [Self.mid]
        )
    }

    func join(
        _ role: Role,
        following: Following = .currentPublisher,
        in channel: ChannelName = Self.channel
    ) async throws -> (ResourceID, ChannelDirectory.Resource) {
        let request = JoinRequest(channel: channel, role: role, following: following)
        let reservation = try await directory.reserve(request)
        return (reservation.resource, try await activate(reservation, role))
    }

    func report(_ event: PeerEvent, from peer: PeerID) async {
        for plane in planes { await plane.report(event, from: peer) }
        await directory.takeEvents()
    }

    func expectNothingLeft(_ location: SourceLocation = #_sourceLocation) async {
        await directory.settle()
        #expect(await directory.isEmpty, sourceLocation: location)
        #expect(await plane.peers.isEmpty, sourceLocation: location)
        #expect(await plane.sources.isEmpty, sourceLocation: location)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ChannelDirectoryTests {
    @Test func `the media plane gets the publish limit and the share of a participant`() async throws {
        var limits = RoomLimits()
        limits.publishBitsPerSecondMax = 7_000_000
        let bench = RoomsBench(limits: limits)
        let (_, plain) = try await bench.join(.sendonly)
        let (_, viewer) = try await bench.join(.recvonly)
        let (_, stranger) = try await bench.join(.sendonly, in: try #require(ChannelName("elsewhere")))
        var request = JoinRequest(channel: RoomsBench.channel, role: .sendonly)
        request.publishBitsPerSecondMax = 2_000_000
        let granted = try await bench.activate(try await bench.directory.reserve(request), .sendonly)
        let peers = await bench.plane.peers
        #expect(peers[plain.peer]?.publishBitsPerSecondMax == 7_000_000)
        #expect(peers[granted.peer]?.publishBitsPerSecondMax == 2_000_000)
        #expect(peers[plain.peer]?.share == peers[viewer.peer]?.share)
        #expect(peers[plain.peer]?.share != peers[stranger.peer]?.share)
    }

    @Test func `other limits hold for whom comes after them`() async throws {
        let bench = RoomsBench()
        let (_, first) = try await bench.join(.sendonly)
        await bench.report(.connected(over: .udp), from: first.peer)
        var limits = RoomLimits()
        limits.participantsMax = 1
        bench.directory.setLimits(limits)
        await #expect(throws: RoomError.nodeFull) { _ = try await bench.join(.recvonly) }
        limits.participantsMax = 2
        limits.publishBitsPerSecondMax = 5_000_000
        bench.directory.setLimits(limits)
        let (_, later) = try await bench.join(.sendonly, in: try #require(ChannelName("elsewhere")))
        #expect(await bench.plane.peers[later.peer]?.publishBitsPerSecondMax == 5_000_000)
    }

    @Test func `each event of a participant's life has its channel, its connection and its address`() async throws {
        let lives = Mutex<[ChannelDirectory.ParticipantInfo]>([])
        let reasons = Mutex<[EndReason]>([])
        let bench = RoomsBench { event in
            switch event {
            case .joined(let attendance), .connected(let attendance): lives.withLock { $0.append(attendance) }
            case .ended(_, let reason, let attendance):
                reasons.withLock { $0.append(reason) }
                if let attendance { lives.withLock { $0.append(attendance) } }
            default: break
            }
        }
        let request = JoinRequest(
            channel: RoomsBench.channel,
            role: .sendonly,
            agent: ClientAgent(signaling: .whip),
            network: ClientNetwork(try #require(IPAddress("192.0.2.7")))
        )
        let reservation = try await bench.directory.reserve(request)
        let resource = try await bench.activate(reservation, .sendonly)
        await bench.report(.connected(over: .udp), from: resource.peer)
        #expect(await bench.directory.end(reservation.resource))
        await bench.directory.settle()
        let seen = lives.withLock { $0 }
        #expect(seen.count == 3 && reasons.withLock { $0 } == [.left])
        for attendance in seen {
            #expect(attendance.channel == RoomsBench.channel && attendance.peer == resource.peer)
            #expect(attendance.participant == resource.participant && attendance.role == .sendonly)
            #expect("\(attendance.network)" == "192.0.2.7" && attendance.agent.signaling == .whip)
        }
    }

    @Test func `a grant and an operator limit what a participant is sent`() async throws {
        let bench = RoomsBench()
        var request = JoinRequest(channel: RoomsBench.channel, role: .recvonly)
        request.receiveBitsPerSecondMax = 2_000_000
        let granted = try await bench.activate(try await bench.directory.reserve(request), .recvonly)
        let (_, publisher) = try await bench.join(.sendonly)
        #expect(await bench.plane.peers[granted.peer]?.receiveBitsPerSecondMax == 2_000_000)
        #expect(await bench.plane.peers[publisher.peer]?.receiveBitsPerSecondMax == nil)
        let id = granted.participant
        for limit in [3_000_000, 500_000, 500_000, nil, nil] as [Int?] {
            try await bench.directory.perform(.limitSending(to: id, bitsPerSecond: limit), in: RoomsBench.channel)
            await bench.directory.settle()
        }
        #expect(await bench.plane.sendLimits.map(\.peer) == [granted.peer, granted.peer, granted.peer])
        #expect(await bench.plane.sendLimits.map(\.bitsPerSecond) == [3_000_000, 500_000, 2_000_000])
        #expect(await bench.directory.connection(of: id)?.receiveBitsPerSecondMax == 2_000_000)
        await #expect(throws: RoomError.participantUnknown) {
            let command = ChannelCommand.limitSending(to: publisher.participant, bitsPerSecond: 1)
            try await bench.directory.perform(command, in: RoomsBench.channel)
        }
    }

    @Test func `effects reach the media plane, and the source follows the publisher`() async throws {
        let bench = RoomsBench()
        let (_, viewer) = try await bench.join(.recvonly)
        let (first, publisher) = try await bench.join(.sendonly)
        await bench.report(.connected(over: .udp), from: publisher.peer)
        await bench.directory.settle()
        let slot = TrackID(peer: viewer.peer, mid: RoomsBench.mid)
        let source = { PlacedTrack(track: TrackID(peer: $0, mid: RoomsBench.mid), location: 0) }
        #expect(await bench.plane.sources == [slot: source(publisher.peer)])
        let (_, second) = try await bench.join(.sendonly)
        await bench.report(.connected(over: .udp), from: second.peer)
        await bench.directory.settle()
        #expect(await bench.plane.sources == [slot: source(second.peer)])
        await bench.plane.lose(second.peer)
        await bench.report(.closed(.consentExpired), from: second.peer)
        await bench.directory.settle()
        #expect(await bench.plane.sources == [slot: source(publisher.peer)])
        #expect(await bench.directory.end(first))
        await bench.directory.settle()
        #expect(await bench.plane.sources == [:])
        #expect(await bench.plane.removed == [publisher.peer])
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a thousand joins and leaves leave nothing`() async throws {
        let bench = RoomsBench()
        for round in 0..<1000 {
            let (session, joined) = try await bench.join(round % 3 == 0 ? .sendonly : .recvonly)
            await bench.report(.connected(over: .udp), from: joined.peer)
            if round % 2 == 0 {
                #expect(await bench.directory.end(session))
            } else {
                await bench.plane.lose(joined.peer)
                await bench.report(.closed(.closedByPeer), from: joined.peer)
            }
            #expect(await bench.directory.resource(session) == nil)
            #expect(await bench.directory.end(session) == false)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a thousand at once and their end leave nothing`() async throws {
        let bench = RoomsBench()
        let sessions = try await withThrowingTaskGroup(of: ResourceID.self) { group in
            for index in 0..<1000 { group.addTask { try await bench.join(index % 50 == 0 ? .sendonly : .recvonly).0 } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(await bench.directory.counts.viewers == 980)
        await withTaskGroup(of: Void.self) { group in
            for session in sessions { group.addTask { _ = await bench.directory.end(session) } }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a failed negotiation releases the place`() async throws {
        let bench = RoomsBench(limits: RoomLimits(participantsMax: 1))
        for _ in 0..<3 {
            let request = JoinRequest(channel: RoomsBench.channel, role: .recvonly)
            await bench.directory.cancel(try await bench.directory.reserve(request))
        }
        await bench.expectNothingLeft()
    }

    @Test func `a peer that the media plane refuses releases the place`() async throws {
        let bench = RoomsBench()
        await bench.plane.setRefuses(true)
        await #expect(throws: RoomError.self) { try await bench.join(.sendonly) }
        await bench.expectNothingLeft()
    }

    @Test func `a peer that closes while it is being added ends cleanly`() async throws {
        let bench = RoomsBench()
        let reservation = try await bench.directory.reserve(JoinRequest(channel: RoomsBench.channel, role: .sendonly))
        await bench.plane.closeGate()
        let activation = Task { try await bench.activate(reservation, .sendonly) }
        await bench.plane.waitForArrival()
        await bench.report(.connected(over: .udp), from: reservation.peer)
        await bench.report(.closed(.handshakeFailed), from: reservation.peer)
        await bench.plane.openGate()
        await #expect(throws: RoomError.endedDuringSetup) { try await activation.value }
        await bench.expectNothingLeft()
    }

    private static let turn = TURNAccess(urls: ["turn:192.0.2.1:1"], username: "u", password: "p")

    private static var turnRequest: JoinRequest {
        var request = JoinRequest(channel: RoomsBench.channel, role: .sendonly)
        request.usesTURN = true
        return request
    }

    @Test func `TURN credentials are opened for who asks, and end with the reservation or the peer`() async throws {
        let bench = RoomsBench()
        #expect(try await bench.directory.reserve(Self.turnRequest).turn == nil, "the loop has no TURN server")
        await bench.plane.setTURN(Self.turn)
        let plain = try await bench.directory.reserve(JoinRequest(channel: RoomsBench.channel, role: .sendonly))
        #expect(plain.turn == nil)
        let cancelled = try await bench.directory.reserve(Self.turnRequest)
        #expect(cancelled.turn == Self.turn)
        #expect(await bench.plane.turnPeers == [cancelled.peer])
        await bench.directory.cancel(cancelled)
        await bench.directory.settle()
        #expect(await bench.plane.turnPeers.isEmpty)
        let reservation = try await bench.directory.reserve(Self.turnRequest)
        _ = try await bench.activate(reservation, .sendonly)
        #expect(await bench.plane.turnPeers == [reservation.peer])
        #expect(await bench.directory.end(reservation.resource))
        await bench.directory.settle()
        #expect(await bench.plane.turnPeers.isEmpty)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `TURN credentials that are opened while the newcomer is removed end at once`() async throws {
        let bench = RoomsBench()
        await bench.plane.setTURN(Self.turn)
        await bench.plane.closeGate()
        let reservation = Task { try await bench.directory.reserve(Self.turnRequest) }
        await bench.plane.waitForArrival()
        await bench.directory.shutdown()
        await bench.plane.openGate()
        #expect(try await reservation.value.turn == nil)
        await bench.expectNothingLeft()
        #expect(await bench.plane.turnPeers.isEmpty)
    }

    @Test func `shutdown while a peer is being added removes the peer`() async throws {
        let bench = RoomsBench()
        let reservation = try await bench.directory.reserve(JoinRequest(channel: RoomsBench.channel, role: .recvonly))
        await bench.plane.closeGate()
        let activation = Task { try await bench.activate(reservation, .recvonly) }
        await bench.plane.waitForArrival()
        await bench.directory.shutdown()
        await bench.plane.openGate()
        await #expect(throws: RoomError.endedDuringSetup) { try await activation.value }
        await bench.expectNothingLeft()
        await #expect(throws: RoomError.draining) { try await bench.join(.recvonly) }
    }

    @Test func `events that come after shutdown and for unknown peers are harmless`() async throws {
        let bench = RoomsBench()
        await bench.report(.closed(.closedByPeer), from: PeerID(rawValue: 1234))
        await bench.directory.shutdown()
        await bench.report(.connected(over: .udp), from: PeerID(rawValue: 1))
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a channel handles the events of its peers by itself`() async throws {
        let (ended, signal) = AsyncStream.makeStream(of: ParticipantID.self)
        let bench = RoomsBench { notice in
            if case .ended(let id, _, _) = notice { signal.yield(id) }
        }
        let (_, publisher) = try await bench.join(.sendonly)
        await bench.plane.report(.closed(.closedByPeer), from: publisher.peer)
        var iterator = ended.makeAsyncIterator()
        #expect(await iterator.next() == publisher.participant)
        await bench.directory.shutdown()
    }

    @Test func `of a flood of events the last of each track is kept`() async throws {
        let bench = RoomsBench()
        let (_, publisher) = try await bench.join(.sendonly)
        let events = (0..<10_000).map { PeerEvent.trackStarted(mid: RoomsBench.mid, codec: $0 % 2 == 0 ? .vp8 : .vp9) }
        let channel = try #require(bench.directory.node.actor(of: RoomsBench.channel))
        await channel.receiveAll(events, from: publisher.peer)
        await bench.directory.takeEvents()
        let snapshot = try #require(await bench.directory.snapshot(of: RoomsBench.channel))
        #expect(snapshot.participants.first?.publications.first?.codec == .vp9)
        #expect(snapshot.revision == 2, "one change for the join, one for all the events")
    }
}

@Suite(.timeLimit(.minutes(10)))
struct LoadMonitorTests {
    /// Joins as many as are asked for, each to a channel of its own, and returns their loops.
    private func locations(_ count: Int, in directory: ChannelDirectory, _ name: String) async throws -> [MediaLocation]
    {
        var locations: [MediaLocation] = []
        for index in 0..<count {
            let request = JoinRequest(channel: ChannelName("\(name)-\(index)")!, role: .sendonly)
            locations.append(try await directory.reserve(request).location)
        }
        return locations
    }

    @Test func `newcomers are placed by the loads of the planes`() async throws {
        let planes = [FakeMediaPlane(0), FakeMediaPlane(1), FakeMediaPlane(2)]
        let directory = ChannelDirectory(planes: planes)
        await planes[0].setLoad(LoopLoad(packetsPerSecond: 90_000, busyShare: 0.9, peers: 100))
        await planes[1].setLoad(LoopLoad(packetsPerSecond: 1_000, busyShare: 0.01, peers: 100))
        await planes[2].setLoad(LoopLoad(packetsPerSecond: 50_000, busyShare: 0.5, peers: 100))
        await directory.sampleLoads()
        await directory.settle()
        #expect(try await locations(20, in: directory, "a") == Array(repeating: 1, count: 20))
        await planes[1].setLoad(LoopLoad(packetsPerSecond: 95_000, busyShare: 0.95, peers: 100))
        await directory.sampleLoads()
        await directory.settle()
        #expect(try await locations(20, in: directory, "b") == Array(repeating: 2, count: 20))
    }

    @Test func `a plane that does not answer gets no newcomers until it does, and delays nobody`() async throws {
        let planes = [FakeMediaPlane(0), FakeMediaPlane(1)]
        let directory = ChannelDirectory(planes: planes)
        await planes[1].setLoad(LoopLoad(packetsPerSecond: 1_000, busyShare: 0.5, peers: 1))
        await planes[0].closeGate()
        await directory.sampleLoads()
        await planes[0].waitForArrival()
        await directory.sampleLoads()
        #expect(try await locations(5, in: directory, "a") == [1, 1, 1, 1, 1])
        await planes[0].openGate()
        await directory.settle()
        #expect(try await locations(5, in: directory, "b") == [0, 0, 0, 0, 0])
    }

    @Test func `a loop that does not answer delays only the viewers of its tracks`() async throws {
        let planes = [FakeMediaPlane(0), FakeMediaPlane(1)]
        let bench = RoomsBench(planes: planes)
        let (far, publisher) = try await bench.join(.sendonly)
        await planes[0].setLoad(LoopLoad(packetsPerSecond: 1_000, busyShare: 0.9, peers: 100))
        await bench.directory.sampleLoads()
        await bench.directory.settle()
        let (_, waiting) = try await bench.join(.recvonly)
        let other = ChannelName("other")!
        let (_, neighbour) = try await bench.join(.sendonly, in: other)
        let (_, viewer) = try await bench.join(.recvonly, in: other)
        // What follows waits for the second plane, which must have them.
        try #require([publisher, waiting, neighbour, viewer].map(\.location) == [0, 1, 1, 1])
        await planes[1].closeGate(forTracksOf: 0)
        await bench.report(.connected(over: .udp), from: publisher.peer)
        await planes[1].waitForArrival()
        let slot = TrackID(peer: waiting.peer, mid: RoomsBench.mid)
        #expect(await planes[1].sources[slot] == nil)
        await bench.report(.connected(over: .udp), from: neighbour.peer)
        let near = TrackID(peer: viewer.peer, mid: RoomsBench.mid)
        try await eventually("the viewer plays its neighbour") { await planes[1].sources[near] != nil }
        #expect(await bench.directory.end(far))
        await planes[1].openGate()
        await bench.directory.settle()
        #expect(await planes[1].sources[slot] == nil, "what it wanted last is what it has")
        await bench.directory.shutdown()
        #expect(await bench.directory.isEmpty)
    }

    @Test func `a newcomer's viewers are connected concurrently, and its removal waits for them`() async throws {
        let bench = RoomsBench()
        for _ in 0..<600 { _ = try await bench.join(.recvonly) }
        let (session, publisher) = try await bench.join(.sendonly)
        await bench.plane.closeGate(forTracksOf: 0)
        await bench.report(.connected(over: .udp), from: publisher.peer)
        try await eventually("256 connections wait at the gate") { await bench.plane.waitingCount >= 256 }
        #expect(await bench.directory.end(session))
        #expect(await bench.plane.removed.isEmpty)
        await bench.plane.openGate()
        await bench.directory.settle()
        #expect(await bench.plane.removed == [publisher.peer])
        #expect(await bench.plane.sources.isEmpty)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `a viewer's plane gets the location of the publisher`() async throws {
        let planes = [FakeMediaPlane(0), FakeMediaPlane(1)]
        let bench = RoomsBench(planes: planes)
        let (first, publisher) = try await bench.join(.sendonly)
        await bench.report(.connected(over: .udp), from: publisher.peer)
        for _ in 0..<20 { _ = try await bench.join(.recvonly) }
        await bench.directory.settle()
        let source = PlacedTrack(track: TrackID(peer: publisher.peer, mid: RoomsBench.mid), location: 0)
        let near = await planes[0].sources
        let far = await planes[1].sources
        #expect(near.count + far.count == 20)
        #expect(far.count >= 9)
        #expect(near.values.allSatisfy { $0 == source } && far.values.allSatisfy { $0 == source })
        #expect(await bench.directory.end(first))
        await bench.directory.settle()
        #expect(await planes[0].sources.isEmpty)
        #expect(await planes[1].sources.isEmpty, "the far loop lets go of what its neighbour lost")
        await bench.directory.shutdown()
        #expect(await bench.directory.isEmpty)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct RestartTests {
    @Test func `an ICE restart replaces both sides' credentials and changes the version`() async throws {
        let bench = RoomsBench()
        let (id, before) = try await bench.join(.sendonly)
        let remote = RoomsBench.credentials("again")
        let after = try await bench.directory.restartICE(id, expected: before.iceVersion, remote: remote)
        #expect(after.iceVersion != before.iceVersion)
        #expect(after.local.credentials != before.local.credentials)
        #expect(await bench.plane.peers[after.peer]?.localCredentials == after.local.credentials)
        #expect(await bench.plane.peers[after.peer]?.remote.credentials == remote)
        await #expect(throws: RoomError.versionMismatch) {
            try await bench.directory.restartICE(id, expected: before.iceVersion, remote: remote)
        }
        _ = try await bench.directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("third"))
    }

    @Test func `a failed ICE restart changes nothing`() async throws {
        let bench = RoomsBench()
        let (id, before) = try await bench.join(.sendonly)
        await bench.plane.setRefuses(true)
        await #expect(throws: RoomError.self) {
            try await bench.directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("again"))
        }
        let session = try #require(await bench.directory.resource(id))
        #expect(session.iceVersion == before.iceVersion)
        #expect(session.local == before.local)
        await bench.plane.setRefuses(false)
        _ = try await bench.directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("again"))
    }

    @Test func `concurrent ICE restarts are refused, and one whose participant ends fails`() async throws {
        let bench = RoomsBench()
        let (id, _) = try await bench.join(.sendonly)
        await bench.plane.closeGate()
        let first = Task {
            try await bench.directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("first"))
        }
        await bench.plane.waitForArrival()
        await #expect(throws: RoomError.restartUnderWay) {
            try await bench.directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("second"))
        }
        #expect(await bench.directory.end(id))
        await bench.plane.openGate()
        await #expect(throws: RoomError.resourceUnknown) { try await first.value }
        await bench.expectNothingLeft()
    }

    @Test func `an ICE restart of an unknown resource fails`() async throws {
        var generator = SystemRandomNumberGenerator()
        let id = ResourceID(using: &generator)
        await #expect(throws: RoomError.resourceUnknown) {
            try await RoomsBench().directory.restartICE(id, expected: nil, remote: RoomsBench.credentials("again"))
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ListenerTests {
    @Test func `a listener is notified at the start and after changes, which may be merged`() async throws {
        let bench = RoomsBench()
        let (id, changes) = try await bench.directory.listen(to: RoomsBench.channel)
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next() != nil)
        #expect(await bench.directory.snapshot(of: RoomsBench.channel)?.participants.isEmpty == true)
        let (session, _) = try await bench.join(.sendonly)
        _ = try await bench.join(.recvonly)
        #expect(await iterator.next() != nil)
        let snapshot = try #require(await bench.directory.snapshot(of: RoomsBench.channel))
        #expect(snapshot.participants.count == 1 && snapshot.viewerCount == 1)
        #expect(await bench.directory.end(session))
        #expect(await iterator.next() != nil)
        await bench.directory.stopListening(id)
        #expect(await iterator.next() == nil)
        await bench.directory.stopListening(id)
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `shutdown ends the streams of listeners`() async throws {
        let bench = RoomsBench()
        let (_, changes) = try await bench.directory.listen(to: RoomsBench.channel)
        await bench.directory.shutdown()
        for await _ in changes {}
        await bench.expectNothingLeft()
        await #expect(throws: RoomError.draining) { try await bench.directory.listen(to: RoomsBench.channel) }
    }
}
