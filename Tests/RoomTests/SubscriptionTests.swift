import RoomTestSupport
import TestSupport
import Testing
import Wire

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
}
