import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

struct ImportanceTests {
    private static let spotlight = Spotlight(number: 1, focus: .level(2), unfocus: .level(0))

    private func speak(_ bench: inout ModelBench, _ id: ParticipantID, _ isSpeaking: Bool = true)
        -> [ChannelModel.Effect]
    {
        bench.model.received(.speech(mid: ModelBench.audio, isSpeaking: isSpeaking), from: bench.peers[id]!)
    }

    private func pass(_ bench: inout ModelBench, to second: Int64) -> [ChannelModel.Effect] {
        bench.model.tick(at: RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: 0))
    }

    @Test func `a request for one sender's highest layer, or a higher one than of others, puts it on stage`() throws {
        struct Row {
            let general: LayerChoice
            let requested: LayerChoice
            var rids = ModelBench.layers
            let importance: SlotImportance
        }
        let two = [RID("r0")!, RID("r2")!]
        let rows = [
            Row(general: .richest, requested: .level(2), importance: .stage),
            Row(general: .richest, requested: .richest, importance: .stage),
            Row(general: .richest, requested: .level(1), importance: .other),
            Row(general: .richest, requested: .level(1), rids: two, importance: .other),
            Row(general: .richest, requested: .level(2), rids: two, importance: .stage),
            Row(general: .level(0), requested: .level(1), importance: .stage),
            Row(general: .level(0), requested: .level(0), importance: .other),
            Row(general: .nothing, requested: .level(0), importance: .stage),
            Row(general: .level(0), requested: .level(0), rids: [], importance: .other),
            Row(general: .richest, requested: .level(2), rids: [], importance: .stage),
        ]
        for row in rows {
            var bench = ModelBench()
            let sender = try bench.member(.sendonly, isSimulcast: !row.rids.isEmpty, rids: row.rids)
            let other = try bench.member(.sendonly)
            let viewer = try bench.member(.recvonly) { $0.layer = row.general }
            let slot = try bench.see(sender, by: viewer)
            let beside = try bench.see(other, by: viewer)
            _ = try bench.model.layerRequested(row.requested, by: viewer, of: sender)
            #expect(bench.slot(slot.video)?.preference.importance == row.importance, "\(row)")
            #expect(bench.slot(slot.audio)?.preference == LayerPreference(), "audio has no rank")
            #expect(bench.slot(beside.video)?.preference.importance == .other)
        }
    }

    @Test func `the height of the picture is that of the join, or of a request for all or one sender`() throws {
        var bench = ModelBench()
        let senders = [try bench.member(.sendonly), try bench.member(.sendonly)]
        let viewer = try bench.member(.recvonly) { $0.videoHeight = 180 }
        let slots = try senders.map { try bench.see($0, by: viewer) }
        let heights = { (bench: ModelBench) in slots.map { bench.slot($0.video)?.preference.height } }
        let request = { (bench: inout ModelBench, height: Int?, sender: ParticipantID?) in
            try bench.model.change(of: viewer) { model throws(RoomError) in
                try model.heightRequested(height, by: viewer, of: sender)
            }
            .connects.count
        }
        #expect(heights(bench) == [180, 180])
        #expect(bench.slot(slots[0].audio)?.preference == LayerPreference())
        #expect(try request(&bench, 720, senders[0]) == 1 && heights(bench) == [720, 180])
        #expect(try request(&bench, 720, senders[0]) == 0)
        #expect(try request(&bench, 360, nil) == 1 && heights(bench) == [720, 360])
        #expect(try request(&bench, nil, nil) == 1 && heights(bench) == [720, nil])
        #expect(try request(&bench, nil, senders[0]) == 1 && heights(bench) == [nil, nil])
        #expect(throws: RoomError.participantUnknown) { try request(&bench, 90, viewer) }
        #expect(throws: RoomError.participantUnknown) {
            try bench.model.change(of: senders[0]) { model throws(RoomError) in
                try model.heightRequested(90, by: senders[0], of: nil)
            }
        }
    }

    @Test func `a sender in focus is on stage, and the layers stay its caps`() throws {
        var bench = ModelBench()
        let senders = [try bench.member(.sendonly), try bench.member(.sendonly)]
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let slots = try senders.map { try bench.see($0, by: viewer).video }
        let preferences = { (bench: ModelBench) in slots.compactMap { bench.slot($0)?.preference } }
        let low = LayerPreference(cap: .level(0))
        #expect(preferences(bench) == [low, low])
        _ = speak(&bench, senders[0])
        #expect(preferences(bench) == [LayerPreference(cap: .level(2), importance: .stage), low])
        _ = pass(&bench, to: 10)
        let effects = speak(&bench, senders[1])
        let spoke = LayerPreference(cap: .level(0), importance: .speaker)
        #expect(preferences(bench) == [spoke, LayerPreference(cap: .level(2), importance: .stage)])
        #expect(effects.connects.count == 4, "audio and video of both, once each")
    }

    @Test func `the one source of a viewer that follows one publisher is on stage`() throws {
        var bench = ModelBench()
        let publisher = try bench.livePublisher()
        let viewer = try bench.viewer()
        #expect(bench.sources(of: viewer) == [publisher, publisher])
        #expect(bench.model.slots(of: viewer)?.map(\.preference.importance) == [.other, .stage])
        #expect(speak(&bench, publisher).connects == [])
    }

    @Test func `those that spoke last are speakers, and silence changes nothing`() throws {
        var bench = ModelBench()
        var senders: [ParticipantID] = []
        for _ in 0..<5 { senders.append(try bench.member(.sendonly)) }
        let viewer = try bench.member(.recvonly)
        let slots = try senders.map { try bench.see($0, by: viewer).video }
        let speakers = { (bench: ModelBench) in
            slots.indices.filter { bench.slot(slots[$0])?.preference.importance == .speaker }
        }
        for (index, sender) in senders.prefix(3).enumerated() {
            _ = pass(&bench, to: Int64(10 * index))
            #expect(speak(&bench, sender).connects.count == 1)
            #expect(speak(&bench, sender, false).connects == [])
        }
        #expect(speakers(bench) == [0, 1, 2])
        _ = pass(&bench, to: 30)
        #expect(speak(&bench, senders[0]).connects == [], "one of them again")
        #expect(speak(&bench, senders[3]).connects.count == 2, "in place of the one that is silent longest")
        #expect(speakers(bench) == [0, 2, 3])
        #expect(speak(&bench, senders[4]).connects == [], "too soon")
        #expect(pass(&bench, to: 31).connects == [])
        #expect(bench.model.channels[ModelBench.channel]?.summary.nextDeadlineSecond == 32)
        #expect(pass(&bench, to: 32).connects.count == 2)
        #expect(speakers(bench) == [0, 3, 4])
        #expect(pass(&bench, to: 40).connects == [])
        _ = bench.model.left(senders[4], reason: .left)
        #expect(speak(&bench, senders[1]).connects.count == 1, "into the free place")
        #expect(speakers(bench) == [0, 1, 3])
    }

    @Test func `who has no video, or repeats its request, causes no command`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let silent = try bench.reserve(JoinRequest(channel: ModelBench.channel, role: .sendonly, following: .everyone))
        _ = try bench.activate(silent, kinds: [.audio])
        _ = bench.receive(.connected(over: .udp), from: silent)
        let viewer = try bench.member(.recvonly)
        _ = try bench.see(sender, by: viewer)
        #expect(speak(&bench, silent).connects == [])
        #expect(try bench.model.layerRequested(.level(2), by: viewer, of: sender).connects.count == 1)
        #expect(try bench.model.layerRequested(.level(2), by: viewer, of: sender).connects == [])
    }

    @Test func `however often members start to speak, the commands of a minute are bounded`() throws {
        var bench = ModelBench()
        var senders: [ParticipantID] = []
        for _ in 0..<8 { senders.append(try bench.member(.sendonly)) }
        let viewers = try (0..<10).map { _ in try bench.member(.recvonly) }
        for viewer in viewers { for sender in senders { _ = try bench.see(sender, by: viewer) } }
        var generator = SeededGenerator(seed: 7)
        var commands = 0
        for second in Int64(0)..<60 {
            commands += pass(&bench, to: second).connects.count
            for _ in 0..<50 {
                let sender = senders.randomElement(using: &generator)!
                commands += speak(&bench, sender, Bool.random(using: &generator)).connects.count
            }
        }
        #expect(commands <= 30 * 2 * viewers.count, "\(commands)")
        #expect(commands > 20 * viewers.count, "\(commands)")
    }
}
