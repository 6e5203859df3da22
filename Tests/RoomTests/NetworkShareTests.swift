import Base
import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// The limits of one network, and evictions on a full node.
struct NetworkShareTests {
    private static func network(_ number: Int) -> ClientNetwork {
        ClientNetwork(IPAddress("198.51.\(number / 200).\(number % 200)")!)
    }

    private static func request(_ channel: String, _ network: ClientNetwork, _ role: Role = .sendonly) -> JoinRequest {
        JoinRequest(channel: ChannelName(channel)!, role: role, network: network)
    }

    private static func at(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: 0)
    }

    struct Row: Sendable {
        let name: String
        let limits: RoomLimits
        let error: RoomError
        /// Channels of the newcomers before.
        let channels: [String]
        /// The channel that is refused, and one that is not.
        let refused: String
        let taken: String?
    }
    private static let rows = [
        Row(
            name: "channels",
            limits: RoomLimits(channelsPerNetworkMax: 2),
            error: .networkFull(.channels),
            channels: ["a", "b"],
            refused: "c",
            taken: "a"
        ),
        Row(
            name: "participants",
            limits: RoomLimits(participantsPerNetworkMax: 2),
            error: .networkFull(.participants),
            channels: ["a", "a"],
            refused: "a",
            taken: nil
        ),
        Row(
            name: "unconnected",
            limits: RoomLimits(unconnectedPerNetworkMax: 2),
            error: .networkFull(.unconnected),
            channels: ["a", "b"],
            refused: "a",
            taken: nil
        ),
    ]

    @Test(arguments: rows.indices)
    func `a network beyond its share is refused and counted, and others are not`(index: Int) throws {
        let row = Self.rows[index]
        var bench = ModelBench(limits: row.limits)
        let (greedy, other) = (Self.network(1), Self.network(2))
        let ids = try row.channels.map { try bench.reserve(Self.request($0, greedy)) }
        let refused = Self.request(row.refused, greedy)
        #expect(throws: row.error, "\(row.name)") { try bench.reserve(refused) }
        let counted = try #require(JoinRefusal(row.error))
        #expect(bench.model.admissions.refused == [counted: 1])
        if let taken = row.taken { _ = try bench.reserve(Self.request(taken, greedy)) }
        for network in [other, .unknown, ClientNetwork(.loopbackV4), ClientNetwork(.loopbackV6)] {
            _ = try bench.reserve(Self.request(row.refused, network))
        }
        _ = bench.model.left(ids[0], reason: .left)
        if row.taken == nil { _ = try bench.reserve(refused) }
    }

    @Test func `networks that stand for any number of clients have no limits`() throws {
        let limits = RoomLimits(channelsPerNetworkMax: 1, participantsPerNetworkMax: 1, unconnectedPerNetworkMax: 1)
        for network in [ClientNetwork.unknown, ClientNetwork(.loopbackV4), ClientNetwork(.loopbackV6)] {
            var bench = ModelBench(limits: limits)
            for number in 0..<20 { _ = try bench.reserve(Self.request("\(number)", network)) }
        }
    }

    @Test func `a connected participant does not count as unconnected`() throws {
        var bench = ModelBench(limits: RoomLimits(unconnectedPerNetworkMax: 1))
        for _ in 0..<5 {
            let id = try bench.reserve(Self.request("a", Self.network(1)))
            _ = try bench.activate(id)
            _ = bench.receive(.connected(over: .udp), from: id)
        }
    }

    @Test func `offers that never connect do not keep an honest publisher out`() throws {
        var bench = ModelBench(limits: RoomLimits(channelsMax: 100))
        var channels = 0
        for round in 0..<200 {
            let request = Self.request("flood \(round)", Self.network(round % 5))
            if (try? bench.reserve(request)) != nil { channels += 1 }
        }
        #expect(channels == 100, "five that hold equally much take nothing from each other")
        for honest in 0..<15 {
            let request = Self.request("honest \(honest)", Self.network(100 + honest))
            let id = try bench.reserve(request)
            let ended = bench.model.evictions.compactMap { effect in
                if case .ended(let id, .evicted) = effect { id } else { nil }
            }
            #expect(ended.count == 1)
            _ = try bench.activate(id)
            _ = bench.receive(.connected(over: .udp), from: id)
        }
        #expect(bench.model.admissions.abandoned == [.evicted: 15])
        #expect(bench.model.counts.connections.sendonly == 15 && bench.model.counts.sessions == 100)
    }

    @Test func `connected participants and their channels are not evicted`() throws {
        var bench = ModelBench(limits: RoomLimits(channelsMax: 2, participantsMax: 5))
        let (many, one) = (Self.network(1), Self.network(2))
        let connected = try bench.reserve(Self.request("a", many))
        _ = try bench.activate(connected)
        _ = bench.receive(.connected(over: .udp), from: connected)
        let waiting = try ["a", "b", "b", "b"].map { try bench.reserve(Self.request($0, many)) }
        let ended = { (effects: [ChannelModel.Effect]) in
            effects.compactMap { effect in
                if case .ended(let id, .evicted) = effect { id } else { nil }
            }
        }
        #expect(throws: RoomError.nodeFull, "so few may still be connecting") {
            try bench.reserve(Self.request("a", one))
        }
        #expect(bench.model.evictions == [])
        bench.model.now = Self.at(1_000)
        // The node is full of participants: the oldest goes. Then of channels: the one where nobody connected.
        _ = try bench.reserve(Self.request("a", one))
        #expect(ended(bench.model.evictions) == [waiting[0]])
        _ = try bench.reserve(Self.request("c", Self.network(3)))
        #expect(ended(bench.model.evictions).count == 3)
        #expect(bench.model.participants[connected] != nil)
    }

    @Test func `nobody is evicted for a newcomer that is refused by another limit`() throws {
        var bench = ModelBench(limits: RoomLimits(participantsMax: 20))
        for _ in 0..<20 { _ = try bench.reserve(Self.request("a", Self.network(1))) }
        var request = Self.request("a", Self.network(2), .recvonly)
        var generator = SystemRandomNumberGenerator()
        request.following = .participant(ParticipantID(using: &generator))
        #expect(throws: RoomError.participantUnknown) { try bench.reserve(request) }
        #expect(bench.model.evictions == [])
        _ = try bench.reserve(Self.request("a", Self.network(2), .recvonly))
        #expect(!bench.model.evictions.isEmpty)
    }

    @Test func `on a node full of one network, only age evicts`() throws {
        var bench = ModelBench(limits: RoomLimits(participantsMax: 2))
        bench.model.now = Self.at(100)
        let first = try bench.reserve(Self.request("a", .unknown))
        _ = try bench.reserve(Self.request("a", .unknown))
        bench.model.now = Self.at(104)
        #expect(throws: RoomError.nodeFull) { try bench.reserve(Self.request("a", .unknown)) }
        bench.model.now = Self.at(105)
        _ = try bench.reserve(Self.request("a", .unknown))
        #expect(!bench.model.evictions.isEmpty)
        #expect(bench.model.participants[first] == nil)
    }

    @Test func `channels with listeners only do not count toward the limit of channels`() throws {
        var bench = ModelBench(limits: RoomLimits(channelsMax: 1))
        for number in 0..<5 {
            try bench.model.listenerArrived(ListenerID(rawValue: UInt64(number)), at: ChannelName("\(number)")!)
        }
        _ = try bench.publisher()
        #expect(throws: RoomError.channelsFull) { try bench.reserve(Self.request("0", .unknown)) }
    }

    @Test func `an unanswered offer ends the participant, and an unconnected transport is checked`() throws {
        var bench = ModelBench()
        _ = bench.model.tick(at: Self.at(100))
        let silent = try bench.reserve(.sendonly)
        let answered = try bench.reserve(.sendonly)
        let connected = try bench.livePublisher()
        #expect(bench.model.tick(at: Self.at(110)) == [])
        _ = try bench.activate(answered)
        let gone = bench.model.tick(at: Self.at(115)).withoutNotifications
        #expect(gone == [.ended(silent, .unanswered)])
        #expect(bench.model.tick(at: Self.at(124)) == [])
        let peer = bench.peers[answered]!
        let looks = bench.model.tick(at: Self.at(125))
        #expect(looks == [.checkTransport(answered, peer, location: bench.locations[peer]!)])
        #expect(bench.model.tick(at: Self.at(150)) == [], "once")
        _ = bench.receive(.connected(over: .udp), from: answered)
        for id in [answered, connected] { _ = bench.model.left(id, reason: .left) }
        #expect(bench.model.isEmpty)
        #expect(bench.model.admissions.abandoned == [.unanswered: 1])
    }

    @Test(arguments: [false, true])
    func `a transport without an ICE path ends the participant, and one with a path does not`(
        hasPath: Bool
    ) async throws {
        let bench = RoomsBench()
        let (session, joined) = try await bench.join(.sendonly)
        let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: FakeMediaPlane.candidate)
        await bench.plane.setStatistics(PeerStatistics(isConnected: false, path: hasPath ? path : nil), of: joined.peer)
        let later = RoomClock.system.now().instant + .seconds(20)
        await bench.directory.tick(at: later, unixNanoseconds: 0)
        await bench.directory.settle()
        let isThere = await bench.directory.resource(session) != nil
        #expect(isThere == hasPath)
        #expect(await bench.directory.admissions.abandoned == (hasPath ? [:] : [.unreachable: 1]))
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `concurrent newcomers do not exceed their own limit of members`() throws {
        var bench = ModelBench()
        let limited = { (role: Role) in
            var request = JoinRequest(channel: ModelBench.channel, role: role, following: .everyone)
            request.channelConnectionsMax = 1
            return request
        }
        let first = try bench.reserve(limited(.sendrecv))
        for _ in 0..<9 { #expect(throws: RoomError.channelFull) { try bench.reserve(limited(.recvonly)) } }
        _ = bench.model.left(first, reason: .setupFailed)
        _ = try bench.reserve(limited(.sendonly))
        #expect(bench.model.admissions.refused == [.channelFull: 9])
    }
}

/// The cost of filters does not grow with the number of events.
struct FilterCostTests {
    @Test func `full lists of rules are evaluated once for each viewer and sender`() throws {
        let (viewers, speakers) = (60, 20)
        let rules = (0..<ForwardingFilter.rulesMax).map { number in
            [ForwardingFilter.Rule(field: .clientID, operator: .isIn, values: ["nobody \(number)"])]
        }
        var bench = ModelBench()
        var people: [ParticipantID] = []
        for _ in 0..<viewers {
            people.append(
                try bench.member(.recvonly) {
                    $0.announces = false
                    $0.receivesNotifications = false
                    $0.filters = [ForwardingFilter(rules: rules)]
                    $0.spotlight = Spotlight(focus: .richest, unfocus: .level(0))
                }
            )
        }
        var speaking: [ParticipantID] = []
        for _ in 0..<speakers { speaking.append(try bench.member(.sendonly)) }
        _ = try bench.model.perform(.createFilter(ForwardingFilter(rules: rules), scope: .channel))
        let slots = speaking.flatMap { bench.slots(for: $0) }
        for viewer in people { _ = try bench.model.slotsChanged(of: viewer, add: slots, remove: []) }
        var last = bench.model.workDone
        for round in 0..<200 {
            let id = speaking[round % speakers]
            _ = try bench.model.perform(.focus(id, isFixed: false))
        }
        // For two senders each viewer visits two slots, and the speakers are notified.
        #expect(bench.model.workDone - last <= 200 * 2 * (3 * viewers + speakers), "\(bench.model.workDone - last)")
        last = bench.model.workDone
        _ = try bench.member(.sendonly)
        #expect(bench.model.workDone - last <= 4 * (viewers + speakers) + 2 * 64, "\(bench.model.workDone - last)")
    }

    @Test func `a verdict changes with the filters only`() throws {
        let block = ForwardingFilter(rules: [[.init(field: .kind, operator: .isIn, values: ["video"])]])
        for isOfChannel in [true, false] {
            var bench = ModelBench()
            let sender = try bench.member(.sendonly)
            let viewer = try bench.viewer()
            let scope: FilterScope = isOfChannel ? .channel : .participant(viewer)
            #expect(bench.sources(of: viewer) == [sender, sender])
            _ = try bench.model.perform(.createFilter(block, scope: scope))
            #expect(bench.sources(of: viewer) == [sender, nil])
            let second = try bench.member(.sendonly)
            #expect(bench.sources(of: viewer) == [second, nil])
            _ = bench.model.left(second, reason: .left)
            #expect(bench.sources(of: viewer) == [sender, nil])
            _ = try bench.model.perform(.deleteFilter(name: block.name, scope: scope, expected: nil))
            #expect(bench.sources(of: viewer) == [sender, sender])
        }
    }
}

/// The scope of bundle identifiers.
struct BundleTests {
    private static func join(
        _ bench: inout ModelBench,
        _ bundle: String?,
        _ network: Int,
        _ scope: BundleScope? = nil
    ) throws -> ParticipantID {
        try bench.member(.sendrecv) {
            $0.bundleID = bundle
            $0.bundleScope = scope
            $0.network = ClientNetwork(IPAddress("192.0.2.\(network)")!)
        }
    }

    @Test func `a client of another network cannot join a bundle by its identifier`() throws {
        var bench = ModelBench()
        let holder = try Self.join(&bench, "camera and screen", 1)
        let plain = try Self.join(&bench, nil, 2)
        let claims: [(String, BundleScope?)] = [
            ("camera and screen", nil), (plain.value, nil), ("camera and screen", .client("mallory")),
        ]
        for (claim, scope) in claims {
            let stranger = try Self.join(&bench, claim, 3, scope)
            for id in [holder, plain] {
                #expect(bench.model.visibleStreams(to: id).contains { $0.sender == stranger })
                #expect(bench.model.visibleStreams(to: stranger).contains { $0.sender == id })
            }
            #expect(bench.model.left(stranger, reason: .left).streamsChanged.contains(holder))
        }
    }

    @Test func `connections of one client share a bundle, and so do those with a granted identifier`() throws {
        for (first, second, scope) in [
            (1, 1, nil), (1, 2, .client("alice")), (1, 2, .granted),
        ] as [(Int, Int, BundleScope?)] {
            var bench = ModelBench()
            let camera = try Self.join(&bench, "b", first, scope)
            let screen = try Self.join(&bench, "b", second, scope)
            #expect(bench.model.visibleStreams(to: camera).isEmpty && bench.model.visibleStreams(to: screen).isEmpty)
            let connections = bench.model.connections(in: ModelBench.channel)
            #expect(connections.map(\.member.bundleID) == ["b", "b"])
        }
    }
}

/// The codec of a publisher that leaves the choice to the node.
struct VideoDecoderTests {
    private static func watch(_ bench: inout ModelBench, _ codecs: Set<CodecName>?) throws -> ParticipantID {
        let id = try bench.reserve(.recvonly)
        _ = try bench.model.setupCompleted(id, publications: [], slots: [], decodedVideo: codecs)
        return id
    }

    @Test func `a viewer that refused a codec counts as one that cannot decode it`() throws {
        var bench = ModelBench()
        let choice = { (model: SynchronousNode) in model.decoders(in: ModelBench.channel).choice(preferred: .vp9) }
        let viewer = try Self.watch(&bench, nil)
        #expect(choice(bench.model) == .vp9)
        for codecs in [[.opus], [.vp9], [.vp9]] as [Set<CodecName>] {
            bench.model.channels[ModelBench.channel]?.codecsRefused(by: viewer, codecs)
            #expect(choice(bench.model) == (codecs == [.opus] ? .vp9 : .vp8))
        }
        bench.model.channels[ModelBench.channel]?.codecsRefused(by: viewer, [.vp8])
        #expect(choice(bench.model) == .h264)
        _ = bench.model.left(viewer, reason: .left)
        #expect(choice(bench.model) == .vp9)
    }

    @Test func `the preferred codec is chosen if all viewers decode it, otherwise the one that most decode`() throws {
        var bench = ModelBench()
        let choice = { (model: SynchronousNode) in model.decoders(in: ModelBench.channel).choice(preferred: .vp9) }
        #expect(choice(bench.model) == .vp9, "nobody is there")
        _ = try Self.watch(&bench, nil)
        let browser = try Self.watch(&bench, [.vp8, .vp9, .h264])
        #expect(choice(bench.model) == .vp9)
        let old = try Self.watch(&bench, [.vp8, .h264])
        #expect(choice(bench.model) == .vp8)
        let hardware = try Self.watch(&bench, [.h264])
        #expect(choice(bench.model) == .h264)
        _ = bench.model.left(hardware, reason: .left)
        #expect(choice(bench.model) == .vp8)
        _ = bench.model.left(old, reason: .left)
        #expect(choice(bench.model) == .vp9)
        _ = bench.model.left(browser, reason: .left)
        _ = try Self.watch(&bench, [.av1])
        #expect(choice(bench.model) == .vp9, "where no common codec helps, the preferred one stays")
    }
}
