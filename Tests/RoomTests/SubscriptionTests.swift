import Base
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

struct SubscriptionTests {
    private static let users = ["anna", "ben", "cem"]

    private func selection(using generator: inout SeededGenerator) -> SubscriptionSelection {
        SubscriptionSelection(
            user: (Self.users + [nil]).randomElement(using: &generator)!,
            kind: [.audio, .video, nil].randomElement(using: &generator)!,
            source: [.camera, .screen, nil].randomElement(using: &generator)!
        )
    }

    @Test(arguments: 0..<20)
    func `the last request that matches a track decides`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let isManual = Bool.random(using: &generator)
        var subscription = Subscription(isManual: isManual)
        var history: [(isSubscribed: Bool, selection: SubscriptionSelection)] = []
        for step in 0..<60 {
            let request = (Bool.random(using: &generator), selection(using: &generator))
            try subscription.request(request.0, request.1)
            history.append(request)
            for user in Self.users + ["nobody"] {
                for kind in MediaKind.allCases {
                    for source in VideoSource.allCases {
                        let last = history.last { _, selection in
                            (selection.user ?? user) == user && (selection.kind ?? kind) == kind
                                && (selection.source ?? source) == source
                        }
                        let expected = last?.isSubscribed ?? !isManual
                        #expect(subscription.includes(user, kind, source) == expected, "seed \(seed), step \(step)")
                    }
                }
            }
        }
    }

    @Test func `users with a subscription of their own are limited, and a request for all frees them`() throws {
        var subscription = Subscription()
        for number in 0..<Subscription.usersMax {
            try subscription.request(false, SubscriptionSelection(user: "user\(number)"))
        }
        #expect(throws: RoomError.subscriptionsFull) {
            try subscription.request(false, SubscriptionSelection(user: "another"))
        }
        #expect(subscription.includes("another", .audio, .camera))
        try subscription.request(true, SubscriptionSelection(user: "another"))
        try subscription.request(false, SubscriptionSelection())
        try subscription.request(true, SubscriptionSelection(user: "another"))
        #expect(subscription.includes("another", .audio, .camera) && !subscription.includes("user1", .audio, .camera))
    }

    @Test func `slots play only what their receiver subscribes to, and nobody negotiates for it`() throws {
        var bench = ModelBench()
        let (camera, screen) = (
            try bench.member(.sendonly) { $0.clientID = "anna" },
            try bench.member(.sendonly) { request in
                request.clientID = "anna"
                request.options = MemberOptions(source: .screen)
            }
        )
        let viewer = try bench.member(.recvonly) { $0.options = MemberOptions(subscribesManually: true) }
        let (first, second) = (try bench.see(camera, by: viewer), try bench.see(screen, by: viewer))
        #expect(first.effects.isEmpty && second.effects.isEmpty)
        let effects = try bench.model.subscribe(true, SubscriptionSelection(user: "anna", source: .screen), by: viewer)
        #expect(effects.count == 2 && effects.connects.count == 2)
        #expect(bench.slot(first.video)?.source == nil)
        #expect(bench.slot(second.video)?.source == bench.track(screen, ModelBench.video))
        let rest = try bench.model.subscribe(false, SubscriptionSelection(kind: .audio), by: viewer)
        #expect(rest.count == 1 && bench.slot(second.audio)?.source == nil)
        #expect(throws: RoomError.participantUnknown) {
            try bench.model.subscribe(true, SubscriptionSelection(), by: camera)
        }
    }

    @Test func `an operator's request is for all connections of a user`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly) { $0.clientID = "anna" }
        let viewers = try (0..<2).map { _ in try bench.member(.recvonly) { $0.clientID = "ben" } }
        let slots = try viewers.map { try bench.see(sender, by: $0) }
        let video = SubscriptionSelection(user: "anna", kind: .video)
        let (changed, effects) = try bench.model.subscribe(false, video, ofUser: "ben")
        #expect(changed == 2 && effects.connects.count == 2)
        for slot in slots {
            #expect(bench.slot(slot.video)?.source == nil)
            #expect(bench.slot(slot.audio)?.source == bench.track(sender, ModelBench.audio))
        }
        let rest = TrackSelector.allCases.filter { $0.kind == .audio }
        let listed = try bench.model.subscriptions(ofUser: "ben")
        #expect(listed.map(\.connection) == viewers && listed.allSatisfy { Array($0.users) == ["anna"] })
        #expect(listed.allSatisfy { $0.tracks(of: "anna") == rest && $0.tracks(of: nil) == TrackSelector.allCases })
        // The user itself undoes it for one connection.
        #expect(try bench.model.subscribe(true, video, by: viewers[0]).connects.count == 1)
        let again = try bench.model.subscribe(true, video, ofUser: "ben")
        #expect(again.changed == 1 && again.effects.connects.count == 1)
        #expect(try bench.model.subscribe(true, SubscriptionSelection(), ofUser: "anna").changed == 0)
        #expect(throws: RoomError.participantUnknown) { try bench.model.subscribe(true, video, ofUser: "cem") }
    }

    @Test func `an operator's request that one connection has no room for changes none`() throws {
        var bench = ModelBench()
        let viewers = try (0..<2).map { _ in try bench.member(.recvonly) { $0.clientID = "ben" } }
        for number in 0..<Subscription.usersMax {
            _ = try bench.model.subscribe(false, SubscriptionSelection(user: "user\(number)"), by: viewers[1])
        }
        #expect(throws: RoomError.subscriptionsFull) {
            try bench.model.subscribe(false, SubscriptionSelection(user: "another"), ofUser: "ben")
        }
        #expect(try bench.model.subscriptions(ofUser: "ben").allSatisfy { $0.tracks(of: "another").count == 4 })
        #expect(try bench.model.subscribe(false, SubscriptionSelection(), ofUser: "ben").changed == 2)
    }
}

extension SynchronousNode {
    mutating func subscribe(
        _ isSubscribed: Bool,
        _ selection: SubscriptionSelection,
        by id: ParticipantID
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in
            try model.subscriptionRequested(isSubscribed, selection, by: id)
        }
    }

    fileprivate mutating func subscribe(
        _ isSubscribed: Bool,
        _ selection: SubscriptionSelection,
        ofUser user: String
    ) throws(RoomError) -> (changed: Int, effects: [Effect]) {
        try changed(.subscribe(isSubscribed, to: selection, receiver: .user(user)))
    }

    fileprivate func subscriptions(ofUser user: String) throws(RoomError) -> [ConnectionSubscription] {
        try channels[ModelBench.channel]?.subscriptions(ofUser: user) ?? []
    }
}
