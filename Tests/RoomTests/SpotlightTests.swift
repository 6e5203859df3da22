import MediaTypes
import RoomTestSupport
import Speakers
import TestSupport
import Testing

@testable import ChannelTypes
@testable import Room

struct ActiveSpeakersTests {
    private static let ids: [ParticipantID] = {
        var generator = SeededGenerator(seed: 3)
        return (0..<6).map { _ in ParticipantID(using: &generator) }
    }()

    enum Event: Sendable {
        case begins(Int)
        case ceases(Int)
        case forward(Int)
        case fix(Int)
        /// Another node told who is fixed, of whom only some are here.
        case fixed([Int], here: Set<Int>)
        case comes(Int)
        case dismiss(Int)
        case number(Int)
        case joins(Int?, unsaid: Int = Spotlight.numberDefault)
    }
    struct Row: Sendable {
        let name: String
        let events: [Event]
        let focused: [Int]
    }
    static let rows = [
        Row(name: "nobody joined with spotlight", events: [.begins(0)], focused: []),
        Row(name: "who spoke before the first spotlight", events: [.begins(0), .joins(nil)], focused: [0]),
        Row(name: "one by default", events: [.joins(nil), .begins(0), .begins(1)], focused: [1]),
        Row(
            name: "the first number holds",
            events: [.joins(2), .joins(5), .begins(0), .begins(1), .begins(2)],
            focused: [2, 1]
        ),
        Row(
            name: "a number too large",
            events: [.joins(99)] + (0..<6).map { .begins($0) },
            focused: [5, 4, 3, 2, 1, 0]
        ),
        Row(
            name: "no number is no opinion",
            events: [.joins(nil), .joins(2), .begins(0), .begins(1)],
            focused: [1, 0]
        ),
        Row(
            name: "as many as the first one has where nobody says",
            events: [.joins(nil, unsaid: 2), .joins(nil, unsaid: 3), .begins(0), .begins(1), .begins(2)],
            focused: [2, 1]
        ),
        Row(
            name: "what is said goes before what the first one has, larger or smaller",
            events: [.joins(nil, unsaid: 8), .begins(0), .begins(1), .joins(1), .joins(5, unsaid: 8)],
            focused: [1]
        ),
        Row(
            name: "no number that is too small",
            events: [.joins(nil, unsaid: 0), .begins(0), .begins(1)],
            focused: [1]
        ),
        Row(
            name: "the silent stay while nobody else speaks",
            events: [.joins(1), .begins(0), .ceases(0)],
            focused: [0]
        ),
        Row(
            name: "who still speaks comes back",
            events: [.joins(1), .begins(0), .begins(1), .ceases(1)],
            focused: [0]
        ),
        Row(
            name: "the longest silent goes",
            events: [.joins(2), .begins(0), .begins(1), .ceases(1), .ceases(0), .begins(2)],
            focused: [2, 0]
        ),
        Row(name: "put forward past speakers", events: [.joins(1), .begins(0), .forward(1)], focused: [1]),
        Row(name: "put forward until somebody begins", events: [.joins(1), .forward(1), .begins(0)], focused: [0]),
        Row(name: "fixed whoever speaks", events: [.joins(1), .fix(1), .begins(0), .begins(2)], focused: [1]),
        Row(name: "fixed ones first", events: [.joins(2), .fix(1), .begins(0), .fix(3)], focused: [1, 3]),
        Row(name: "no longer fixed", events: [.joins(1), .fix(1), .forward(1), .begins(0)], focused: [0]),
        Row(
            name: "fixed at another node, before who speaks",
            events: [.joins(2), .begins(0), .fixed([3, 1, 3], here: [1])],
            focused: [1, 0]
        ),
        Row(
            name: "fixed before it came",
            events: [.joins(2), .begins(0), .fixed([3, 1], here: [1]), .comes(2), .comes(3)],
            focused: [3, 1]
        ),
        Row(
            name: "fixed no longer at another node",
            events: [.joins(1), .fix(1), .fixed([], here: []), .begins(0)],
            focused: [0]
        ),
        Row(name: "dismissed until it begins", events: [.joins(1), .begins(0), .dismiss(0), .ceases(0)], focused: []),
        Row(name: "dismissed and begins", events: [.joins(1), .begins(0), .dismiss(0), .begins(0)], focused: [0]),
        Row(
            name: "the next after one dismissed",
            events: [.joins(1), .begins(0), .begins(1), .dismiss(1)],
            focused: [0]
        ),
        Row(name: "fewer", events: [.joins(3), .begins(0), .begins(1), .begins(2), .number(1)], focused: [2]),
        Row(name: "more", events: [.joins(1), .begins(0), .begins(1), .number(3)], focused: [1, 0]),
    ]

    @Test(arguments: rows.indices)
    func `those that spoke last are focused`(index: Int) {
        let row = Self.rows[index]
        var speakers = ActiveSpeakers()
        var shown: Set<ParticipantID> = []
        for event in row.events {
            switch event {
            case .begins(let who): speakers.startedSpeaking(Self.ids[who])
            case .ceases(let who): speakers.stoppedSpeaking(Self.ids[who])
            case .forward(let who): speakers.focus(Self.ids[who], isFixed: false)
            case .fix(let who): speakers.focus(Self.ids[who], isFixed: true)
            case .fixed(let all, let here):
                speakers.setFixed(all.map { Self.ids[$0] }) { id in here.contains { Self.ids[$0] == id } }
            case .comes(let who): _ = speakers.came(Self.ids[who])
            case .dismiss(let who): speakers.remove(Self.ids[who])
            case .number(let number): speakers.change(number: number)
            case .joins(let number, let unsaid):
                speakers.joined(
                    with: Spotlight(number: number, defaultNumber: unsaid, focus: .richest, unfocus: .nothing)
                )
            }
            let change = speakers.update()
            #expect(shown.isDisjoint(with: change.focused) && shown.isSuperset(of: change.unfocused), "\(row.name)")
            shown = shown.union(change.focused).subtracting(change.unfocused)
            #expect(shown == Set(speakers.focused), "\(row.name): changes add up")
        }
        #expect(speakers.focused == row.focused.map { Self.ids[$0] }, "\(row.name)")
    }
}

struct SpotlightTests {
    private static let spotlight = Spotlight(number: 1, focus: .level(2), unfocus: .level(0))

    private func speak(_ bench: inout ModelBench, _ id: ParticipantID, _ isSpeaking: Bool) -> [ChannelModel.Effect] {
        bench.model.received(.speech(mid: ModelBench.audio, isSpeaking: isSpeaking), from: bench.peers[id]!)
    }

    @Test func `members in focus are sent with audio and the focus layer, others with the unfocus layer only`() throws {
        var bench = ModelBench()
        let senders = [try bench.member(.sendonly), try bench.member(.sendonly)]
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let everything = try bench.member(.recvonly)
        let slots = try senders.map { try bench.see($0, by: viewer) }
        let full = try senders.map { try bench.see($0, by: everything) }
        let layers = { (bench: ModelBench) in slots.map { bench.slot($0.video)?.layer } }
        let isHeard = { (bench: ModelBench) in slots.map { bench.slot($0.audio)?.source != nil } }
        #expect(layers(bench) == [.level(0), .level(0)] && isHeard(bench) == [false, false])
        let first = speak(&bench, senders[0], true)
        #expect(layers(bench) == [.level(2), .level(0)] && isHeard(bench) == [true, false])
        #expect(first.notifications.count == 1 && first.notifications.first?.to.count == 4, "all members are told")
        let second = speak(&bench, senders[1], true)
        #expect(layers(bench) == [.level(0), .level(2)] && isHeard(bench) == [false, true])
        #expect(second.connects.count == 4)
        let contents = second.notifications.map(\.content)
        guard case .spotlightUnfocused(let gone, isFixed: false) = contents.first,
            case .spotlightFocused(let come, isFixed: false) = contents.last
        else {
            Issue.record("\(contents)")
            return
        }
        #expect([gone.id, come.id] == senders)
        #expect(speak(&bench, senders[1], false).isEmpty == false, "the other still speaks")
        #expect(layers(bench) == [.level(2), .level(0)])
        #expect(full.allSatisfy { bench.slot($0.audio)?.source != nil && bench.slot($0.video)?.layer == .richest })
    }

    @Test func `without simulcast focus changes audio and importance, and layer none sends no video`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly, isSimulcast: false)
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let blind = try bench.member(.recvonly) { $0.spotlight = Spotlight(focus: .richest, unfocus: .nothing) }
        let seen = try bench.see(sender, by: viewer)
        let unseen = try bench.see(sender, by: blind)
        #expect(bench.slot(seen.video)?.source != nil && bench.slot(unseen.video)?.source == nil)
        let effects = speak(&bench, sender, true)
        #expect(
            effects.connects == [
                .connect(
                    slot: seen.audio,
                    to: bench.placed(sender, ModelBench.audio),
                    location: bench.location(viewer)
                ),
                .connect(
                    slot: seen.video,
                    to: bench.placed(sender, ModelBench.video),
                    preference: LayerPreference(importance: .stage),
                    location: bench.location(viewer)
                ),
                .connect(
                    slot: unseen.audio,
                    to: bench.placed(sender, ModelBench.audio),
                    location: bench.location(blind)
                ),
                .connect(
                    slot: unseen.video,
                    to: bench.placed(sender, ModelBench.video),
                    preference: LayerPreference(importance: .stage),
                    location: bench.location(blind)
                ),
            ]
        )
    }

    @Test func `the next one takes the place of a speaker that leaves`() throws {
        var bench = ModelBench()
        let senders = [try bench.member(.sendonly), try bench.member(.sendonly)]
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let slot = try bench.see(senders[0], by: viewer)
        _ = speak(&bench, senders[0], true)
        _ = speak(&bench, senders[1], true)
        #expect(bench.slot(slot.video)?.layer == .level(0))
        let end = bench.model.left(senders[1], reason: .left)
        #expect(bench.slot(slot.video)?.layer == .level(2))
        #expect(
            end.notifications.contains { news in
                if case .spotlightFocused(let member, _) = news.content { member.id == senders[0] } else { false }
            }
        )
    }

    @Test func `speech of unknown members, in video, and before the connection is ignored`() throws {
        var bench = ModelBench()
        _ = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let sender = try bench.member(.sendonly)
        let video = bench.model.received(.speech(mid: ModelBench.video, isSpeaking: true), from: bench.peers[sender]!)
        #expect(video == [])
        let early = try bench.reserve(.sendonly, following: .everyone)
        _ = try bench.activate(early)
        #expect(speak(&bench, early, true) == [])
        let connected = bench.model.received(.connected(over: .udp), from: bench.peers[early]!)
        #expect(
            connected.notifications.contains { news in
                if case .spotlightFocused(let member, _) = news.content { member.id == early } else { false }
            },
            "it speaks when it arrives"
        )
        #expect(
            connected.notifications.last.map { if case .spotlightFocused = $0.content { true } else { false } } == true
        )
    }

    @Test func `a member in focus is notified, and others of its bundle are not`() throws {
        var bench = ModelBench()
        let speaker = try bench.member(.sendrecv) { ($0.bundleID, $0.spotlight) = ("me", Self.spotlight) }
        _ = try bench.member(.sendrecv) { $0.bundleID = "me" }
        let other = try bench.member(.recvonly)
        #expect(speak(&bench, speaker, true).notifications.map(\.to) == [[speaker, other]])
        let next = try bench.member(.sendonly) { $0.bundleID = "we" }
        let change = speak(&bench, next, true).notifications
        #expect(change.map { $0.to.count } == [3, 4], "the one that falls out of focus keeps its bundle's silence")
    }

    @Test func `operators focus, fix, unfocus and change the number`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let other = try bench.member(.sendonly)
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let slot = try bench.see(sender, by: viewer)
        let fixed = try bench.model.perform(.focus(sender, isFixed: true))
        guard case .spotlightFocused(_, isFixed: true) = fixed.notifications.first?.content else {
            Issue.record("\(fixed)")
            return
        }
        #expect(speak(&bench, other, true) == [], "a fixed one stays")
        #expect(try bench.model.perform(.setSpotlightNumber(2)).notifications.count == 1)
        _ = try bench.model.perform(.unfocus(sender))
        #expect(bench.slot(slot.video)?.layer == .level(0))
        for number in [0, 9, -1] {
            #expect(throws: RoomError.spotlightNumberInvalid) {
                try bench.model.perform(.setSpotlightNumber(number))
            }
        }
        let elsewhere = ChannelName("elsewhere")!
        #expect(throws: RoomError.channelUnknown) { try bench.model.perform(.setSpotlightNumber(1), in: elsewhere) }
        #expect(throws: RoomError.channelUnknown) {
            try bench.model.perform(.focus(sender, isFixed: true), in: elsewhere)
        }
        #expect(throws: RoomError.participantUnknown) {
            try bench.model.perform(.focus(viewer, isFixed: true))
        }
        let strange = ChannelSessionID(using: &bench.generator)
        #expect(throws: RoomError.sessionUnknown) {
            try bench.model.perform(.setSpotlightNumber(1), session: strange)
        }
    }

    @Test func `a receiver's requested layers override those that it joined with, until they are reset`() throws {
        var bench = ModelBench()
        let senders = [try bench.member(.sendonly), try bench.member(.sendonly)]
        let viewer = try bench.member(.recvonly) { $0.spotlight = Self.spotlight }
        let plain = try bench.member(.recvonly)
        let slots = try senders.map { try bench.see($0, by: viewer).video }
        let layers = { (bench: ModelBench) in slots.map { bench.slot($0)?.layer } }
        _ = try bench.model.spotlightLayersRequested((.richest, .level(1)), by: viewer, of: senders[0])
        #expect(layers(bench) == [.level(1), .level(0)])
        _ = try bench.model.spotlightLayersRequested((.richest, .richest), by: viewer, of: nil)
        #expect(layers(bench) == [.level(1), .richest])
        _ = try bench.model.spotlightLayersRequested(nil, by: viewer, of: senders[0])
        #expect(layers(bench) == [.richest, .richest])
        _ = try bench.model.spotlightLayersRequested(nil, by: viewer, of: nil)
        #expect(layers(bench) == [.level(0), .level(0)])
        #expect(throws: RoomError.spotlightUnused) {
            try bench.model.spotlightLayersRequested((.richest, .richest), by: plain, of: nil)
        }
    }
}
