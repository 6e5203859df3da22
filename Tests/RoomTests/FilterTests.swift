import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

struct FilterListTests {
    private static func rule(
        _ field: ForwardingFilter.Rule.Field,
        _ relation: ForwardingFilter.Rule.Operator,
        _ values: String...
    ) -> ForwardingFilter.Rule { .init(field: field, operator: relation, values: values) }

    struct Row: Sendable {
        let name: String
        let filters: [ForwardingFilter]
        /// Of the client `one`: audio, video; then of the client `two`.
        let isBlocked: [Bool]
    }
    static let rows = [
        Row(name: "no filter", filters: [], isBlocked: [false, false, false, false]),
        Row(name: "no rules", filters: [.init(rules: [])], isBlocked: [false, false, false, false]),
        Row(
            name: "an allowance without rules",
            filters: [.init(action: .allow, rules: [])],
            isBlocked: [false, false, false, false]
        ),
        Row(name: "a rule of nothing fits all", filters: [.init(rules: [[]])], isBlocked: [true, true, true, true]),
        Row(
            name: "a kind",
            filters: [.init(rules: [[rule(.kind, .isIn, "video")]])],
            isBlocked: [false, true, false, true]
        ),
        Row(
            name: "a client",
            filters: [.init(rules: [[rule(.clientID, .isIn, "one", "x")]])],
            isBlocked: [true, true, false, false]
        ),
        Row(
            name: "another client",
            filters: [.init(rules: [[rule(.clientID, .isNotIn, "one")]])],
            isBlocked: [false, false, true, true]
        ),
        Row(
            name: "inner rules all hold",
            filters: [.init(rules: [[rule(.clientID, .isIn, "one"), rule(.kind, .isIn, "audio")]])],
            isBlocked: [true, false, false, false]
        ),
        Row(
            name: "of outer rules one holds",
            filters: [.init(rules: [[rule(.clientID, .isIn, "one")], [rule(.kind, .isIn, "audio")]])],
            isBlocked: [true, true, true, false]
        ),
        Row(
            name: "only what is allowed",
            filters: [.init(action: .allow, rules: [[rule(.kind, .isIn, "audio")]])],
            isBlocked: [false, true, false, true]
        ),
        Row(
            name: "the greater priority decides",
            filters: [
                .init(name: "low", priority: 1, rules: [[rule(.kind, .isIn, "audio")]]),
                .init(name: "high", priority: 2, action: .allow, rules: [[rule(.clientID, .isIn, "one")]]),
            ],
            isBlocked: [false, false, true, true]
        ),
        Row(
            name: "of equals the older decides",
            filters: [
                .init(name: "older", rules: [[rule(.clientID, .isIn, "one")]]),
                .init(name: "newer", action: .allow, rules: [[]]),
            ],
            isBlocked: [true, true, false, false]
        ),
    ]

    @Test(arguments: rows.indices)
    func `filters block the tracks that match`(index: Int) throws {
        let row = Self.rows[index]
        let list = try FilterList(row.filters)
        var generator = SeededGenerator(seed: 5)
        let senders = ["one", "two"].map { (ParticipantID(using: &generator).value, $0) }
        var visited = 0
        let blocked = senders.flatMap { connectionID, clientID in
            let verdict = list.verdict(on: connectionID, clientID, visited: &visited)
            return [verdict.audio, verdict.video]
        }
        #expect(blocked == row.isBlocked, "\(row.name)")
    }

    @Test func `names are unique, versions are checked, and a changed priority moves a filter`() throws {
        var list = FilterList()
        try list.create(ForwardingFilter(name: "a", priority: 2, rules: [], version: "1"))
        try list.create(ForwardingFilter(name: "b", priority: 1, rules: []))
        #expect(throws: RoomError.filterExists) { try list.create(ForwardingFilter(name: "a", rules: [])) }
        #expect(throws: RoomError.filterUnknown) {
            try list.update(ForwardingFilter(name: "c", rules: []), expected: nil)
        }
        let after = ForwardingFilter(name: "a", priority: 0, rules: [], version: "2")
        #expect(throws: RoomError.filterVersionMismatch) { try list.update(after, expected: "0") }
        #expect(list.filters.map(\.name) == ["a", "b"])
        try list.update(after, expected: "1")
        #expect(list.filters.map(\.name) == ["b", "a"])
        #expect(throws: RoomError.filterVersionMismatch) { try list.delete("a", expected: "1") }
        try list.delete("a", expected: "2")
        try list.delete("b", expected: nil)
        #expect(list.isEmpty)
    }

    @Test func `the sizes of lists and filters are bounded`() throws {
        let text = String(repeating: "x", count: ForwardingFilter.textBytesMax + 1)
        let many = (0..<65).map { _ in [ForwardingFilter.Rule]() }
        let values = (0...ForwardingFilter.valuesMax).map { "\($0)" }
        let tooLarge = [
            ForwardingFilter(name: text, rules: []),
            ForwardingFilter(rules: [], version: text),
            ForwardingFilter(rules: many),
            ForwardingFilter(rules: [Array(repeating: Self.rule(.kind, .isIn), count: 65)]),
            ForwardingFilter(rules: [[.init(field: .clientID, operator: .isIn, values: values)]]),
            ForwardingFilter(rules: [[Self.rule(.clientID, .isIn, text)]]),
            ForwardingFilter(rules: [], metadataJSON: String(repeating: " ", count: 4_097)),
        ]
        for filter in tooLarge {
            #expect(throws: RoomError.filtersTooLarge) { try FilterList([filter]) }
        }
        let filters = (0...ForwardingFilter.filtersMax).map { ForwardingFilter(name: "\($0)", rules: []) }
        #expect(throws: RoomError.filtersTooLarge) { try FilterList(filters) }
        _ = try FilterList(Array(filters.dropLast()))
    }

    @Test func `the total rules and values of a list are bounded, and a replaced filter does not count`()
        throws
    {
        let filter = { (name: String, rules: Int, values: Int) in
            let names = (0..<values).map { "\($0)" }
            return ForwardingFilter(
                name: name,
                rules: (0..<rules).map { [.init(field: .clientID, operator: .isIn, values: $0 == 0 ? names : [])] }
            )
        }
        for (rules, values) in [(40, 0), (1, 600)] {
            var list = try FilterList([filter("a", rules, values)])
            #expect(throws: RoomError.filtersTooLarge) { try list.create(filter("b", rules, values)) }
            try list.create(filter("b", 1, 1))
            #expect(throws: RoomError.filtersTooLarge) { try list.update(filter("b", rules, values), expected: nil) }
            try list.update(filter("a", rules + 1, values), expected: nil)
            try list.delete("a", expected: nil)
            try list.update(filter("b", rules, values), expected: nil)
        }
    }
}

struct FilterTests {
    private static let noVideo = ForwardingFilter(
        name: "no video",
        rules: [[.init(field: .kind, operator: .isIn, values: ["video"])]]
    )
    private static let onlyVideo = ForwardingFilter(
        name: "only video",
        action: .allow,
        rules: [[.init(field: .kind, operator: .isIn, values: ["video"])]]
    )

    @Test func `a filter blocks and unblocks a receiver's tracks, and notifies the receiver`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv)
        let viewer = try bench.member(.recvonly)
        let slots = try bench.see(sender, by: viewer)
        let scope = FilterScope.participant(viewer)
        let news = { (isBlocked: Bool) in
            ChannelModel.Effect.notify(
                .forwarding(isBlocked: isBlocked, kind: .video, source: sender, destination: viewer),
                to: [viewer]
            )
        }
        let connect = { (source: PlacedTrack?) in
            ChannelModel.Effect.connect(slot: slots.video, to: source, location: bench.location(viewer))
        }
        #expect(try bench.model.perform(.createFilter(Self.noVideo, scope: scope)) == [news(true), connect(nil)])
        #expect(bench.slot(slots.audio)?.source != nil)
        let placed = bench.placed(sender, ModelBench.video)
        #expect(
            try bench.model.perform(.deleteFilter(name: "no video", scope: scope, expected: nil)) == [
                news(false), connect(placed),
            ]
        )
    }

    @Test(arguments: [true, false])
    func `a newcomer is notified of tracks that its own filter blocks, once it is connected`(isConnectedFirst: Bool)
        throws
    {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv)
        var request = JoinRequest(channel: ModelBench.channel, role: .recvonly, following: .everyone)
        request.filters = [Self.noVideo]
        let viewer = try bench.reserve(request)
        let peer = try #require(bench.peers[viewer])
        var effects = try bench.model.setupCompleted(viewer, publications: [], slots: [])
        if isConnectedFirst { effects += bench.model.received(.connected(over: .udp), from: peer) }
        effects += try bench.see(sender, by: viewer).effects
        if !isConnectedFirst { effects += bench.model.received(.connected(over: .udp), from: peer) }
        let own = effects.notifications.filter { $0.to == [viewer] }.map(\.content)
        guard case .created? = own.first else {
            Issue.record("\(own)")
            return
        }
        let blocked = Notification.Content.forwarding(
            isBlocked: true,
            kind: .video,
            source: sender,
            destination: viewer
        )
        #expect(Array(own.dropFirst()) == [blocked])
    }

    @Test func `the channel's filters block what a receiver's own filters allow`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let viewer = try bench.member(.recvonly) { $0.filters = [Self.onlyVideo] }
        let whep = try bench.viewer()
        let slots = try bench.see(sender, by: viewer)
        #expect(bench.slot(slots.audio)?.source == nil && bench.slot(slots.video)?.source != nil)
        _ = try bench.model.perform(.createFilter(Self.noVideo, scope: .channel))
        #expect(bench.slot(slots.audio)?.source == nil && bench.slot(slots.video)?.source == nil)
        #expect(bench.sources(of: whep) == [sender, nil], "it is for every receiver")
        #expect(try bench.model.filters(of: .channel) == [Self.noVideo])
        #expect(try bench.model.filters(of: .participant(viewer)) == [Self.onlyVideo])
    }

    @Test func `a channel's filters end with its session`() throws {
        var bench = ModelBench()
        let listener = ListenerID(rawValue: 1)
        try bench.model.listenerArrived(listener, at: ModelBench.channel)
        let scope = FilterScope.channel
        #expect(throws: RoomError.channelUnknown) { try bench.model.perform(.createFilter(Self.noVideo, scope: scope)) }
        let first = try bench.member(.sendonly)
        _ = try bench.model.perform(.createFilter(Self.noVideo, scope: scope))
        _ = bench.model.left(first, reason: .left)
        _ = try bench.member(.sendonly)
        #expect(try bench.model.filters(of: scope) == [])
    }

    @Test func `unknown participants and senders have no filters`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendonly)
        let name = ModelBench.channel
        let elsewhere = try bench.member(.recvonly, in: ChannelName("elsewhere")!)
        for id in [sender, elsewhere] {
            #expect(throws: RoomError.participantUnknown) {
                try bench.model.perform(.createFilter(Self.noVideo, scope: .participant(id)))
            }
        }
        let strange = ChannelSessionID(using: &bench.generator)
        #expect(throws: RoomError.sessionUnknown) {
            try bench.model.perform(.createFilter(Self.noVideo, scope: .channel), session: strange)
        }
        let session = try #require(bench.model.session(of: name)?.id)
        _ = try bench.model.perform(.createFilter(Self.noVideo, scope: .channel), session: session)
        var request = JoinRequest(channel: name, role: .recvonly, filters: [Self.noVideo, Self.noVideo])
        #expect(throws: RoomError.filterExists) { try bench.reserve(request) }
        request.filters = []
        _ = try bench.reserve(request)
    }
}
