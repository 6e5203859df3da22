import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

struct FollowEveryoneTests {
    @Test func `a newcomer's streams are visible from its connection to its end`() throws {
        var bench = ModelBench()
        let first = try bench.member(.sendrecv)
        let viewer = try bench.member(.recvonly)
        let (second, effects) = try bench.join(.sendrecv)
        #expect(effects.streamsChanged == [first, viewer], "in the order of joining, and not itself")
        #expect(bench.model.visibleStreams(to: viewer).map(\.sender) == [first, second])
        #expect(bench.model.visibleStreams(to: first).map(\.sender) == [second])
        #expect(bench.model.visibleStreams(to: second).map(\.sender) == [first])
        #expect(bench.model.visibleStreams(to: viewer).first?.tracks.map(\.kind) == [.audio, .video])
        let end = bench.model.left(first, reason: .left)
        #expect(end.streamsChanged == [viewer, second])
        #expect(bench.model.visibleStreams(to: second) == [])
    }

    @Test func `a sender sees no streams, and a reserved receiver sees the present ones`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        _ = try bench.member(.sendonly)
        #expect(bench.model.visibleStreams(to: sender) == [])
        let newcomer = try bench.reserve(.recvonly, following: .everyone)
        #expect(bench.model.visibleStreams(to: newcomer).count == 2)
        let (_, effects) = try bench.join(.sendonly)
        #expect(effects.streamsChanged == [newcomer], "it is told of changes from the start")
    }

    @Test func `a publisher that follows nothing and one that follows everyone see each other in one channel`() throws {
        var bench = ModelBench()
        let whip = try bench.livePublisher()
        let whep = try bench.viewer()
        let member = try bench.member(.sendrecv)
        #expect(bench.model.visibleStreams(to: member).map(\.sender) == [whip])
        #expect(bench.sources(of: whep) == [member, member])
        #expect(bench.model.counts(of: ModelBench.channel) == ChannelCounts(sendrecv: 1, sendonly: 1))
        _ = bench.receive(.connected(over: .udp), from: whep)
        #expect(bench.model.counts(of: ModelBench.channel).recvonly == 1, "viewers are members too")
    }

    @Test func `slots play the track that they were made for, and nothing after its end`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let viewer = try bench.member(.recvonly) { $0.layer = .level(0) }
        let slots = try bench.see(sender, by: viewer)
        let location = bench.location(viewer)
        #expect(
            slots.effects == [
                .connect(slot: slots.audio, to: bench.placed(sender, ModelBench.audio), location: location),
                .connect(
                    slot: slots.video,
                    to: bench.placed(sender, ModelBench.video),
                    preference: LayerPreference(cap: .level(0)),
                    location: location
                ),
            ]
        )
        let end = bench.model.left(sender, reason: .left)
        #expect(
            end.connects == [
                .connect(slot: slots.audio, to: nil, location: location),
                .connect(slot: slots.video, to: nil, location: location),
            ]
        )
        let mids = [slots.audio.mid, slots.video.mid]
        #expect(try bench.model.slotsChanged(of: viewer, add: [], remove: mids) == [])
        #expect(try bench.model.slotsChanged(of: viewer, add: [], remove: mids) == [], "twice is harmless")
        #expect(bench.model.slots(of: viewer) == [])
    }

    @Test func `a slot for an unknown sender or one that left plays nothing`() throws {
        var bench = ModelBench()
        let viewer = try bench.member(.recvonly)
        let gone = try bench.member(.sendonly)
        _ = bench.model.left(gone, reason: .left)
        #expect(try bench.see(gone, by: viewer).effects == [])
        let itself = try bench.member(.sendrecv)
        #expect(try bench.see(itself, by: itself).effects == [], "nobody gets its own stream")
        let elsewhere = try bench.member(.sendonly, in: ChannelName("elsewhere")!)
        #expect(try bench.see(elsewhere, by: viewer).effects == [])
    }

    @Test func `inactive participants and senders have no slots to change`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let reserved = try bench.reserve(.recvonly, following: .everyone)
        for id in [sender, reserved] {
            #expect(throws: RoomError.participantUnknown) { try bench.see(sender, by: id) }
        }
    }

    @Test func `members of one bundle neither see nor are notified of each other`() throws {
        var bench = ModelBench()
        let camera = try bench.member(.sendonly) { $0.bundleID = "me" }
        let (screen, effects) = try bench.join(.sendrecv) { $0.bundleID = "me" }
        #expect(bench.model.visibleStreams(to: screen) == [])
        #expect(effects.streamsChanged == [])
        #expect(effects.notifications.map(\.to) == [[screen]], "its own news only")
        #expect(try bench.see(camera, by: screen).effects == [])
        let (other, later) = try bench.join(.recvonly)
        #expect(bench.model.visibleStreams(to: other).count == 2)
        #expect(later.notifications.map(\.to) == [[other], [camera, screen]])
    }

    @Test func `a viewer of the current publisher does not see its own bundle`() throws {
        var bench = ModelBench()
        let first = try bench.livePublisher()
        var request = JoinRequest(channel: ModelBench.channel, role: .recvonly)
        request.bundleID = "me"
        let viewer = try bench.reserve(request)
        _ = try bench.activate(viewer)
        let mine = try bench.member(.sendonly) { $0.bundleID = "me" }
        #expect(bench.sources(of: viewer) == [first, first])
        _ = try bench.member(.sendonly) { $0.bundleID = "me" }
        _ = bench.model.left(first, reason: .left)
        #expect(bench.sources(of: viewer) == [nil, nil])
        _ = bench.model.left(mine, reason: .left)
    }

    @Test func `a layer is requested of all senders or of one, and others keep theirs`() throws {
        var bench = ModelBench()
        let first = try bench.member(.sendonly)
        let second = try bench.member(.sendonly)
        let plain = try bench.member(.sendonly, isSimulcast: false)
        let viewer = try bench.member(.recvonly) { $0.layer = .level(0) }
        let slots = try [first, second, plain].map { try bench.see($0, by: viewer).video }
        let layers = { (bench: ModelBench) in slots.map { bench.slot($0)?.layer } }
        #expect(layers(bench) == [.level(0), .level(0), .richest])
        #expect(try bench.model.layerRequested(.level(2), by: viewer, of: second).count == 1)
        #expect(layers(bench) == [.level(0), .level(2), .richest])
        #expect(try bench.model.layerRequested(.level(1), by: viewer, of: nil).count == 1)
        #expect(layers(bench) == [.level(1), .level(2), .richest])
        #expect(try bench.model.layerRequested(.level(1), by: viewer, of: nil) == [], "twice is nothing new")
        _ = try bench.model.layerRequested(.nothing, by: viewer, of: nil)
        #expect(slots.map { bench.slot($0)?.source == nil } == [true, false, true])
        let stranger = try bench.member(.sendonly, in: ChannelName("elsewhere")!)
        for sender in [stranger, viewer] {
            #expect(throws: RoomError.participantUnknown) {
                try bench.model.layerRequested(.richest, by: viewer, of: sender)
            }
        }
        #expect(throws: RoomError.participantUnknown) {
            try bench.model.layerRequested(.richest, by: first, of: second)
        }
    }

    @Test(
        arguments: [
            (["r0", "r1", "r2"], [0, 1, 2]), (["r0", "r2"], [0, 0, 1]), (["r2", "r0"], [0, 0, 1]),
            (["r1", "r2"], [0, 0, 1]), (["r0", "r1"], [0, 1, 1]), (["r0", "x"], [0, 1, 2]), (["l", "h"], [0, 1, 2]),
            (["q", "h", "f"], [0, 1, 2]), (["f", "q"], [0, 0, 1]),
        ]
    )
    func `a layer that is asked for by its name is the one of that name, or the next lower one`(
        names: [String],
        ranks: [Int]
    ) throws {
        var bench = ModelBench()
        let rids = names.compactMap { RID($0) }
        let sender = try bench.member(.sendonly, rids: rids)
        let viewer = try bench.member(.recvonly)
        let slot = try bench.see(sender, by: viewer).video
        for (level, rank) in ranks.enumerated() {
            _ = try bench.model.layerRequested(.level(level), by: viewer, of: nil)
            #expect(bench.slot(slot)?.layer == .level(rank), "r\(level) of \(names)")
            let effects = bench.model.received(
                .layerSwitched(slot: slot.mid, current: rids[level % 2], previous: nil, isRequested: true),
                from: slot.peer
            )
            guard case .layerSwitched(let news) = effects.notifications.first?.content else {
                Issue.record("\(effects)")
                return
            }
            #expect(news.requested == .level(level), "what was asked for is told as it was asked")
        }
    }

    @Test func `a receiver is notified of a layer switch, with its trigger`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let viewer = try bench.member(.recvonly) { $0.layer = .level(0) }
        let slot = try bench.see(sender, by: viewer).video
        let rids = ModelBench.layers
        let switched = { (bench: inout ModelBench, to: RID?, from: RID?, isRequested: Bool) in
            bench.model.received(
                .layerSwitched(slot: slot.mid, current: to, previous: from, isRequested: isRequested),
                from: slot.peer
            )
        }
        let news = {
            (to: RID?, from: RID?, requested: Int, isHigher: Bool, trigger: Notification.LayerSwitch.Trigger) in
            ChannelModel.Effect.notify(
                .layerSwitched(
                    Notification.LayerSwitch(
                        sender: sender,
                        requested: .level(requested),
                        layers: rids,
                        permitted: Array(rids.prefix(requested + 1)),
                        current: to,
                        previous: from,
                        isHigher: isHigher,
                        trigger: trigger
                    )
                ),
                to: [viewer]
            )
        }
        #expect(switched(&bench, rids[0], nil, true) == [news(rids[0], nil, 0, true, .sender)])
        _ = try bench.model.layerRequested(.level(2), by: viewer, of: nil)
        #expect(switched(&bench, rids[1], rids[0], false) == [news(rids[1], rids[0], 2, true, .sender)])
        #expect(switched(&bench, rids[2], rids[1], true) == [news(rids[2], rids[1], 2, true, .receiver)])
        #expect(switched(&bench, rids[1], rids[2], false) == [news(rids[1], rids[2], 2, false, .sender)])
        #expect(switched(&bench, rids[2], rids[1], true) == [news(rids[2], rids[1], 2, true, .sender)])
        #expect(switched(&bench, rids[2], rids[2], true) == [], "no switch at all")
        let none = try bench.model.layerRequested(.nothing, by: viewer, of: sender)
        let gone = Notification.LayerSwitch(
            sender: sender,
            requested: .nothing,
            layers: rids,
            permitted: [],
            current: nil,
            previous: rids[2],
            isHigher: false,
            trigger: .receiver
        )
        #expect(none.notifications.map(\.content) == [.layerSwitched(gone)])
        #expect(switched(&bench, nil, rids[2], true) == [], "that is known")
        let unknown = PeerEvent.layerSwitched(slot: MID("x")!, current: nil, previous: rids[0], isRequested: true)
        #expect(bench.model.received(unknown, from: slot.peer) == [])
    }
}

/// The cost of a large channel in visited members and slots, which is the same on every machine.
struct CostTests {
    @Test func `viewers without notifications join and leave a large channel in constant time`() throws {
        var bench = ModelBench()
        let publisher = try bench.livePublisher()
        var viewers: [ParticipantID] = []
        for _ in 0..<500 {
            let before = bench.model.workDone
            let id = try bench.reserve(.recvonly)
            let slot = Slot(mid: ModelBench.video, kind: .video)
            _ = try bench.model.setupCompleted(id, publications: [], slots: [slot], hasEventReader: false)
            _ = bench.receive(.connected(over: .udp), from: id)
            viewers.append(id)
            // Itself, its slot, and the publisher that is notified of it.
            #expect(bench.model.workDone - before <= 3)
        }
        #expect(bench.sources(of: viewers[499]) == [publisher])
        for id in viewers {
            let before = bench.model.workDone
            _ = bench.model.left(id, reason: .left)
            #expect(bench.model.workDone - before <= 1)
        }
    }

    @Test func `the cost of events in a channel of 100 senders and 1000 receivers is bounded`() throws {
        let (senders, receivers) = (100, 1_000)
        var bench = ModelBench()
        var people: [ParticipantID] = []
        for _ in 0..<receivers { people.append(try bench.member(.recvonly) { $0.announces = false }) }
        var last = bench.model.workDone
        var joins: [Int] = []
        var ids: [ParticipantID] = []
        for _ in 0..<senders {
            let (id, effects) = try bench.join(.sendonly)
            #expect(effects.streamsChanged.count == receivers)
            // Each viewer once, and once more as receiver of the notification; each sender as receiver and as one of
            // the others.
            joins.append(bench.model.workDone - last)
            last = bench.model.workDone
            ids.append(id)
        }
        #expect(joins.allSatisfy { $0 <= 3 * receivers + 2 * senders + 10 }, "\(joins.max() ?? 0)")
        let slots = ids.flatMap { bench.slots(for: $0) }
        for viewer in people { _ = try bench.model.slotsChanged(of: viewer, add: slots, remove: []) }
        #expect(bench.model.workDone - last <= 3 * senders * receivers, "three a subscription, slots included")
        last = bench.model.workDone
        let end = bench.model.left(ids[50], reason: .left)
        #expect(end.connects.count == 2 * receivers)
        #expect(end.streamsChanged.count == receivers)
        #expect(bench.model.workDone - last <= 4 * receivers + 2 * senders, "what others play is not looked at")
        last = bench.model.workDone
        let leave = bench.model.left(people[500], reason: .left)
        #expect(leave.connects == [] && leave.streamsChanged == [])
        #expect(bench.model.workDone - last <= receivers + senders, "nobody's slots are looked at")
        last = bench.model.workDone
        _ = try bench.model.layerRequested(.level(0), by: people[0], of: ids[0])
        #expect(bench.model.workDone - last <= 3)
        last = bench.model.workDone
        _ = bench.model.received(.speech(mid: ModelBench.audio, isSpeaking: true), from: bench.peers[ids[0]]!)
        #expect(bench.model.workDone - last <= 3 * receivers, "a new speaker's slots")
        last = bench.model.workDone
        for id in [ids[0], ids[1]] {
            _ = bench.model.received(.speech(mid: ModelBench.audio, isSpeaking: true), from: bench.peers[id]!)
        }
        #expect(bench.model.workDone == last, "a known speaker, and another one too soon")
    }
}
