import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

struct ChannelModelTests {
    @Test func `a viewer that joined first plays the publisher once it is live`() throws {
        var bench = ModelBench()
        let viewer = try bench.viewer()
        #expect(bench.sources(of: viewer) == [nil, nil])
        let publisher = try bench.publisher()
        #expect(bench.sources(of: viewer) == [nil, nil])
        let effects = bench.receive(.connected(over: .udp), from: publisher)
        #expect(
            effects == [
                .connect(
                    slot: bench.track(viewer, ModelBench.audio),
                    to: bench.placed(publisher, ModelBench.audio),
                    location: 0
                ),
                .connect(
                    slot: bench.track(viewer, ModelBench.video),
                    to: bench.placed(publisher, ModelBench.video),
                    preference: LayerPreference(importance: .stage),
                    location: 0
                ),
                .channelChanged(ModelBench.channel),
            ]
        )
    }

    @Test func `viewers follow the publisher that went live last and fall back when it ends`() throws {
        var bench = ModelBench()
        let viewer = try bench.viewer()
        let first = try bench.livePublisher()
        let second = try bench.publisher()
        #expect(bench.sources(of: viewer) == [first, first], "one that is not live takes nothing over")
        _ = bench.receive(.connected(over: .udp), from: second)
        #expect(bench.sources(of: viewer) == [second, second])
        _ = bench.receive(.closed(.consentExpired), from: second)
        #expect(bench.sources(of: viewer) == [first, first])
        _ = bench.model.left(first, reason: .left)
        #expect(bench.sources(of: viewer) == [nil, nil])
        let third = try bench.livePublisher()
        #expect(bench.sources(of: viewer) == [third, third])
    }

    @Test func `the end of another publisher than the current one changes nothing`() throws {
        var bench = ModelBench()
        _ = try bench.viewer()
        let first = try bench.livePublisher()
        _ = try bench.livePublisher()
        let effects = bench.model.left(first, reason: .left).withoutNotifications
        #expect(
            effects == [
                .removePeer(bench.peers[first]!, location: 0), .ended(first, .left),
                .channelChanged(ModelBench.channel),
            ]
        )
    }

    @Test func `a viewer of one participant sees that one only and nothing after its end`() throws {
        var bench = ModelBench()
        let first = try bench.livePublisher()
        let viewer = try bench.viewer(.participant(first))
        let second = try bench.livePublisher()
        #expect(bench.sources(of: viewer) == [first, first])
        _ = bench.model.left(first, reason: .left)
        #expect(bench.sources(of: viewer) == [nil, nil])
        _ = bench.model.left(second, reason: .left)
        #expect(bench.sources(of: viewer) == [nil, nil])
    }

    @Test func `a participant that is still being set up can be followed`() throws {
        var bench = ModelBench()
        let publisher = try bench.reserve(.sendonly)
        let viewer = try bench.viewer(.participant(publisher))
        #expect(bench.sources(of: viewer) == [nil, nil])
        _ = try bench.activate(publisher)
        #expect(bench.sources(of: viewer) == [publisher, publisher])
    }

    @Test func `only publishers of the channel can be followed`() throws {
        var bench = ModelBench()
        let elsewhere = try bench.livePublisher(in: ChannelName("elsewhere")!)
        let viewer = try bench.viewer()
        for target in [elsewhere, viewer] {
            #expect(throws: RoomError.participantUnknown) {
                try bench.reserve(.recvonly, following: .participant(target))
            }
        }
    }

    @Test func `a slot plays the track of its own kind, or none`() throws {
        var bench = ModelBench()
        let publisher = try bench.reserve(.sendonly)
        _ = try bench.activate(publisher, kinds: [.video])
        _ = bench.receive(.connected(over: .udp), from: publisher)
        let viewer = try bench.viewer()
        #expect(
            bench.model.slots(of: viewer)?.map(\.source)
                == [nil, bench.track(publisher, ModelBench.video)]
        )
    }

    @Test func `a member that publishes and watches does not see itself`() throws {
        var bench = ModelBench()
        let first = try bench.reserve(.sendrecv)
        _ = try bench.activate(first)
        _ = bench.receive(.connected(over: .udp), from: first)
        #expect(bench.sources(of: first) == [nil, nil])
        let second = try bench.reserve(.sendrecv)
        _ = try bench.activate(second)
        _ = bench.receive(.connected(over: .udp), from: second)
        #expect(bench.sources(of: first) == [second, second])
        #expect(bench.sources(of: second) == [first, first])
        _ = bench.model.left(first, reason: .left)
        #expect(bench.sources(of: second) == [nil, nil])
    }

    @Test func `a transport that comes up before setup is complete counts from its completion`() throws {
        var bench = ModelBench()
        let viewer = try bench.viewer()
        let publisher = try bench.reserve(.sendonly)
        #expect(bench.receive(.connected(over: .udp), from: publisher) == [])
        #expect(bench.sources(of: viewer) == [nil, nil])
        _ = try bench.activate(publisher)
        #expect(bench.sources(of: viewer) == [publisher, publisher])
    }

    @Test(arguments: [EndReason.left, .shutdown, .setupFailed, .transport(.setupTimedOut)])
    func `an end during setup frees the place and completion is refused`(reason: EndReason) throws {
        var bench = ModelBench()
        let publisher = try bench.reserve(.sendonly)
        #expect(bench.model.left(publisher, reason: reason).withoutNotifications == [.ended(publisher, reason)])
        #expect(throws: RoomError.endedDuringSetup) { try bench.activate(publisher) }
        #expect(bench.model.isEmpty)
    }

    @Test func `events of unknown, ended and doubly ended peers change nothing`() throws {
        var bench = ModelBench()
        #expect(bench.model.received(.closed(.closedByPeer), from: PeerID(rawValue: 99)) == [])
        let publisher = try bench.livePublisher()
        #expect(bench.receive(.connected(over: .udp), from: publisher) == [], "connected twice")
        let end = bench.receive(.closed(.closedByPeer), from: publisher)
        #expect(end == [.ended(publisher, .transport(.closedByPeer)), .channelChanged(ModelBench.channel)])
        #expect(bench.receive(.closed(.closedByPeer), from: publisher) == [])
        #expect(bench.model.left(publisher, reason: .left) == [])
        #expect(bench.model.isEmpty)
    }

    @Test func `tracks have their codec and activity, and each change is reported once`() throws {
        var bench = ModelBench()
        let publisher = try bench.livePublisher()
        let changed = [ChannelModel.Effect.channelChanged(ModelBench.channel)]
        #expect(bench.receive(.trackStarted(mid: ModelBench.video, codec: .vp8), from: publisher) == changed)
        #expect(bench.receive(.trackStarted(mid: ModelBench.video, codec: .vp8), from: publisher) == [])
        #expect(bench.receive(.trackPaused(mid: ModelBench.video), from: publisher) == changed)
        #expect(bench.receive(.trackStarted(mid: MID("9")!, codec: .vp8), from: publisher) == [])
        let track = bench.model.snapshot(of: ModelBench.channel)?.participants.first?.publications.last
        #expect(track?.codec == .vp8)
        #expect(track?.isActive == false)
    }

    @Test func `small channels stay on one loop each, and the loops share the channels`() throws {
        var bench = ModelBench(loopCount: 2)
        let names = (0..<10).map { ChannelName("call-\($0)")! }
        var locations: [MediaLocation] = []
        for name in names {
            let caller = try bench.livePublisher(in: name)
            let callee = try bench.viewer(in: name)
            #expect(bench.location(caller) == bench.location(callee), "a call of two")
            locations.append(bench.location(caller))
        }
        #expect(locations.count { $0 == 0 } == 5)
        #expect(bench.model.placement.members == [10, 10])
    }

    @Test(arguments: 2...8)
    func `a channel of one publisher and a hundred viewers is spread evenly`(loopCount: Int) throws {
        var bench = ModelBench(loopCount: loopCount)
        let publisher = try bench.livePublisher()
        var viewers = Array(repeating: 0, count: loopCount)
        for _ in 0..<100 {
            let viewer = try bench.viewer()
            viewers[Int(bench.location(viewer).loop.rawValue)] += 1
            #expect(bench.sources(of: viewer) == [publisher, publisher])
        }
        #expect(bench.model.placement.members.reduce(0, +) == 101)
        let share = Double(100) / Double(loopCount)
        let difference = (viewers.max() ?? 0) - (viewers.min() ?? 0)
        #expect(Double(difference) <= max(share / 10, Placement.slackMembers + 1), "\(viewers)")
    }

    @Test func `a connection on another loop has the location of its source`() throws {
        var bench = ModelBench(loopCount: 2)
        let publisher = try bench.livePublisher()
        var viewers: [ParticipantID] = []
        for _ in 0..<10 { viewers.append(try bench.reserve(.recvonly)) }
        let far = try #require(viewers.first { bench.location($0) != bench.location(publisher) })
        let effects = try bench.activate(far)
        #expect(
            effects.contains(
                .connect(
                    slot: bench.track(far, ModelBench.video),
                    to: bench.placed(publisher, ModelBench.video),
                    preference: LayerPreference(importance: .stage),
                    location: 1
                )
            )
        )
        let end = bench.model.left(publisher, reason: .left)
        #expect(end.contains(.connect(slot: bench.track(far, ModelBench.video), to: nil, location: 1)))
        #expect(end.contains(.removePeer(bench.peers[publisher]!, location: 0)))
    }

    @Test func `a leave releases the place, and an empty channel restarts its revisions`() throws {
        var bench = ModelBench(loopCount: 2)
        let other = ChannelName("other")!
        let first = try bench.livePublisher()
        let second = try bench.livePublisher(in: other)
        #expect([bench.location(first), bench.location(second)] == [0, 1])
        for _ in 0..<2 { _ = try bench.viewer(in: other) }
        #expect(bench.model.placement.members == [1, 3])
        _ = bench.model.left(second, reason: .left)
        _ = bench.receive(.closed(.closedByPeer), from: first)
        #expect(bench.model.placement.members == [0, 2])
        let third = try bench.publisher()
        #expect(bench.location(third) == 0)
    }

    @Test func `a channel exists as long as it has a participant or a listener`() throws {
        var bench = ModelBench()
        let listener = ListenerID(rawValue: 1)
        try bench.model.listenerArrived(listener, at: ModelBench.channel)
        let publisher = try bench.livePublisher()
        _ = bench.model.left(publisher, reason: .left)
        let snapshot = try #require(bench.model.snapshot(of: ModelBench.channel))
        #expect(snapshot.participants.isEmpty && snapshot.revision > 0)
        bench.model.listenerLeft(listener, from: ModelBench.channel)
        bench.model.listenerLeft(listener, from: ModelBench.channel)
        #expect(bench.model.snapshot(of: ModelBench.channel) == nil)
        #expect(bench.model.isEmpty)
    }

    @Test func `listeners of one network have a share, and others their own`() throws {
        var bench = ModelBench(limits: RoomLimits(listenersPerNetworkMax: 2))
        let (one, other) = (ClientNetwork(IPAddress(v4: 0xC000_0201)), ClientNetwork(IPAddress(v4: 0xC000_0202)))
        func arrive(_ id: UInt64, from network: ClientNetwork) throws {
            try bench.model.listenerArrived(ListenerID(rawValue: id), at: ModelBench.channel, from: network)
        }
        try arrive(1, from: one)
        try arrive(2, from: one)
        #expect(throws: RoomError.networkListenersFull) { try arrive(3, from: one) }
        try arrive(4, from: other)
        bench.model.listenerLeft(ListenerID(rawValue: 1), from: ModelBench.channel)
        try arrive(5, from: one)
        for id: UInt64 in [2, 4, 5] { bench.model.listenerLeft(ListenerID(rawValue: id), from: ModelBench.channel) }
        #expect(bench.model.isEmpty && bench.model.node.listenerCounts.isEmpty && bench.model.node.listeners.isEmpty)
    }

    struct LimitRow: Sendable {
        let name: String
        let limits: RoomLimits
        let error: RoomError
        let attempt: @Sendable (inout ModelBench) throws -> Void
    }
    static let limitRows = [
        LimitRow(name: "channels", limits: RoomLimits(channelsMax: 1), error: .channelsFull) {
            _ = try $0.viewer(in: ChannelName("other")!)
        },
        LimitRow(name: "node", limits: RoomLimits(participantsMax: 2), error: .nodeFull) { _ = try $0.viewer() },
        LimitRow(name: "channel", limits: RoomLimits(participantsPerChannelMax: 2), error: .channelFull) {
            _ = try $0.viewer()
        },
        LimitRow(name: "publishers", limits: RoomLimits(publishersPerChannelMax: 1), error: .publishersFull) {
            _ = try $0.publisher()
        },
        LimitRow(name: "listeners", limits: RoomLimits(listenersMax: 1), error: .listenersFull) {
            try $0.model.listenerArrived(ListenerID(rawValue: 9), at: ModelBench.channel)
        },
        LimitRow(name: "listeners here", limits: RoomLimits(listenersPerChannelMax: 1), error: .listenersFull) {
            try $0.model.listenerArrived(ListenerID(rawValue: 9), at: ModelBench.channel)
        },
    ]

    @Test(arguments: limitRows.indices)
    func `each limit refuses with its own error and changes nothing`(index: Int) throws {
        let row = Self.limitRows[index]
        var bench = ModelBench(limits: row.limits)
        _ = try bench.publisher()
        _ = try bench.viewer()
        try bench.model.listenerArrived(ListenerID(rawValue: 1), at: ModelBench.channel)
        let before = bench.model.counts
        #expect(throws: row.error, "\(row.name)") { try row.attempt(&bench) }
        #expect(bench.model.counts == before)
    }

    @Test func `a shutdown refuses newcomers and ends all participants in the order of joining`() throws {
        var bench = ModelBench()
        let publisher = try bench.livePublisher()
        let viewer = try bench.viewer()
        bench.model.drainingStarted()
        #expect(throws: RoomError.draining) { try bench.viewer() }
        #expect(throws: RoomError.draining) {
            try bench.model.listenerArrived(ListenerID(rawValue: 1), at: ModelBench.channel)
        }
        let ended = bench.model.shutdownRequested().compactMap { effect in
            if case .ended(let id, .shutdown) = effect { id } else { nil }
        }
        #expect(ended == [publisher, viewer])
        #expect(bench.model.isEmpty)
    }

    @Test func `a node whose place another one took admits newcomers to its own channels only`() throws {
        var bench = ModelBench()
        bench.model.node.joinPolicy.isReplaced = true
        #expect(bench.model.node.refusesJoins(to: ModelBench.channel))
        #expect(throws: RoomError.draining) { try bench.viewer() }
        bench.model.node.joinPolicy.isReplaced = false
        _ = try bench.livePublisher()
        bench.model.node.joinPolicy.isReplaced = true
        #expect(!bench.model.node.refusesJoins(to: ModelBench.channel))
        _ = try bench.viewer()
    }

    @Test func `unused layers of a publisher's own track are told to its signaling`() throws {
        var bench = ModelBench()
        let publisher = try bench.member(.sendonly)
        _ = try bench.member(.recvonly)
        let rids = Array(ModelBench.layers.dropFirst())
        let peer = bench.peers[publisher]!
        #expect(
            bench.model.received(.unusedLayers(mid: ModelBench.video, rids: rids), from: peer)
                == [.unusedLayersChanged(publisher, mid: ModelBench.video, rids: rids)]
        )
        #expect(bench.model.received(.unusedLayers(mid: MID("other")!, rids: rids), from: peer) == [])
    }
}
