import Base
import Deflate
import MediaTypes
import RoomTestSupport
import Testing

@testable import Admission
@testable import ChannelData
@testable import ChannelTypes
@testable import Room

/// A router with participants, without actors and in virtual time.
struct DataRouterBench {
    var router: DataRouter
    var now = Instant(nanoseconds: 1_000_000_000)
    /// What the node says that the channel may have of its deliveries.
    var part: Int?
    private var numberNext: UInt64 = 1

    init(limits: RoomLimits = RoomLimits()) { router = DataRouter(limits: limits) }

    /// A participant, with open channels. The identifier of the first is 1.
    /// - Parameter isHandled: whether the events that open them are.
    mutating func join(_ channels: [DataChannelPlan], isHandled: Bool = true, bundle: String? = nil) throws -> PeerID {
        let plan = DataPlan(channels)
        let (participant, place) = try participant(plan, bundle: bundle)
        _ = router.joined(participant.forData, plan: plan, at: now)
        for (index, channel) in channels.enumerated() {
            let id = DataChannelID(rawValue: UInt64(index) + 1)
            router.enqueue(
                .opened(id, channel.parameters, isIncoming: false, lease: nil),
                from: place.peer,
                at: now
            )
        }
        if isHandled { _ = run() }
        return place.peer
    }

    /// A participant that has not joined the router: one of another node.
    mutating func participant(
        _ plan: DataPlan? = nil,
        bundle: String? = nil
    ) throws -> (Participant, ParticipantLocation) {
        let number = numberNext
        numberNext += 1
        var request = JoinRequest(channel: RoomsBench.channel, role: .sendonly)
        request.bundleID = bundle
        request.data = plan
        let place = ParticipantLocation(
            participant: try #require(ParticipantID("0123456789ABCDEFGHJKMN\(String(10_000 + number).dropFirst())")),
            peer: PeerID(rawValue: number),
            location: 0,
            order: number
        )
        let time = RoomTime(instant: now, unixNanoseconds: 0)
        return (Participant(request, role: .sendonly, as: place, at: time), place)
    }

    mutating func send(_ bytes: [UInt8], from peer: PeerID, channel: UInt64 = 1, lease: DataLease? = nil) {
        let message = DataMessage(bytes, isText: false, lease: lease)
        router.enqueue(.message(DataChannelID(rawValue: channel), message), from: peer, at: now)
    }

    /// Handles what can be handled now.
    mutating func run() -> (effects: [DataRouter.Effect], work: Int) {
        var effects: [DataRouter.Effect] = []
        var work = 0
        while let step = next() {
            effects += step.effects
            work += step.work
        }
        return (effects, work)
    }

    mutating func next() -> DataRouter.Step? {
        let part = part
        return router.next(at: now, part: { _ in part })
    }

    /// Lets time pass, and handles what can be handled every 10 ms.
    mutating func run(for time: Interval) -> [DataRouter.Effect] {
        let end = now + time
        var effects = run().effects
        while now < end {
            now += .milliseconds(10)
            effects += run().effects
        }
        return effects
    }

    static func signaling(_ label: String, sends: Bool = true) -> DataChannelPlan {
        DataChannelPlan(DataChannelParameters(label: label), use: .signaling(sends: sends), isCompressed: true)
    }

    static func messages(
        _ label: String = "#a",
        isReliable: Bool = true,
        isCompressed: Bool = false,
        header: DataChannelPlan.Header = .none
    ) -> DataChannelPlan {
        DataChannelPlan(
            DataChannelParameters(label: label, reliability: isReliable ? .reliable : .retransmissions(0)),
            use: .messages(sends: true, receives: true),
            isCompressed: isCompressed,
            header: header
        )
    }
}

extension [DataRouter.Effect] {
    /// What was posted to participants.
    var posts: [ParticipantDataEvent] {
        compactMap { if case .post(let event, to: _) = $0 { event } else { nil } }
    }

    /// The messages to participants, once for each receiver.
    var deliveries: [DataMessage] {
        flatMap { effect -> [DataMessage] in
            guard case .deliver(let message, let receivers, _) = effect else { return [] }
            return [DataMessage](repeating: message, count: receivers.count)
        }
    }

    /// Why messages were dropped, once for each.
    var drops: [MessageDropReason] {
        compactMap { if case .drop(let reason) = $0 { reason } else { nil } }
    }
}

/// What messages of a hostile participant may cost a channel.
@Suite struct DataRouterTests {
    /// 256 KiB of zeros, in fewer than 400 bytes.
    private static let bomb = Zlib.compress([UInt8](repeating: 0, count: 262_144))

    @Test func `a message where a participant only receives ends it, and nothing is decompressed`() throws {
        var bench = DataRouterBench()
        let client = try bench.join([
            DataRouterBench.signaling("signaling"), DataRouterBench.signaling("push", sends: false),
        ])
        for _ in 0..<600 { bench.send(Self.bomb, from: client, channel: 2) }
        bench.send(Zlib.compress([1]), from: client)
        let (effects, work) = bench.run()
        #expect(effects.posts == [.refused(label: "push", .notPermitted)])
        #expect(work == 1)
        // What is still on its way is not even queued.
        bench.send(Self.bomb, from: client, channel: 2)
        #expect(!bench.router.hasNext(at: bench.now))
    }

    @Test func `a message that expands as no text does ends its sender, at a fraction of its content`() throws {
        var bench = DataRouterBench()
        let client = try bench.join([DataRouterBench.signaling("stats")])
        for _ in 0..<600 { bench.send(Self.bomb, from: client) }
        let (effects, work) = bench.run()
        #expect(effects.posts == [.refused(label: "stats", .tooLong)])
        #expect(work <= 1 + 60_000 / 4_096)
    }

    @Test func `content for signaling takes bytes while it is made, and a sender beyond them is ended`() throws {
        var bench = DataRouterBench()
        let client = try bench.join([DataRouterBench.signaling("signaling")])
        // As much as any stream may have: 40 bytes that become 16 KB.
        let stream = Zlib.compress([UInt8](repeating: 32, count: 16_000))
        for _ in 0..<900 { bench.send(stream, from: client) }
        let posts = bench.run().effects.posts
        let content = posts.reduce(0) { if case .message(_, let bytes, _) = $1 { $0 + bytes.count } else { $0 } }
        #expect(posts.last == .refused(label: "signaling", .rate))
        #expect(((4 << 20) - 16_000...(4 << 20) + 16_000).contains(content))
    }

    @Test func `small messages to signaling take tokens, which come back in time`() throws {
        var bench = DataRouterBench()
        let client = try bench.join([DataRouterBench.signaling("signaling")])
        let stream = Zlib.compress([1])
        for _ in 0..<1_000 { bench.send(stream, from: client) }
        #expect(bench.run().effects.posts.count == 1_000)
        bench.now += .seconds(1)
        for _ in 0..<100 { bench.send(stream, from: client) }
        #expect(bench.run().effects.posts.allSatisfy { $0 == .message(label: "signaling", [1], lease: nil) })
        for _ in 0..<100 { bench.send(stream, from: client) }
        #expect(bench.run().effects.posts.last == .refused(label: "signaling", .rate))
    }

    @Test func `content holds the credit of its sender until it is read`() throws {
        var bench = DataRouterBench()
        let client = try bench.join([DataRouterBench.signaling("signaling")])
        let credit = DataCredit(bytesMax: 1 << 20)
        bench.send(Zlib.compress([UInt8](repeating: 32, count: 16_000)), from: client, lease: credit.lease(bytes: 40))
        let before = credit.bytesTaken
        do {
            let posts = bench.run().effects.posts
            withExtendedLifetime(posts) { #expect(credit.bytesTaken == before + 16_000) }
        }
        #expect(credit.bytesTaken == 0)
    }

    @Test func `messages right behind the event that opens their channel are neither lost nor out of order`() throws {
        var bench = DataRouterBench()
        let plan = ["signaling", "notify", "push", "stats"].map { DataRouterBench.signaling($0) }
        let client = try bench.join(plan, isHandled: false)
        for byte in UInt8(1)...3 { bench.send(Zlib.compress([byte]), from: client, channel: 4) }
        let messages = (UInt8(1)...3).map { ParticipantDataEvent.message(label: "stats", [$0], lease: nil) }
        #expect(bench.run().effects.posts == [.opened] + messages)
    }

    @Test func `participants take turns, however much one of them has sent`() throws {
        var bench = DataRouterBench()
        let busy = try bench.join([DataRouterBench.signaling("signaling")])
        let other = try bench.join([DataRouterBench.signaling("signaling")])
        for _ in 0..<500 { bench.send(Zlib.compress([1]), from: busy) }
        bench.send(Zlib.compress([2]), from: other)
        let steps = (0..<3).compactMap { _ in bench.next() }
        #expect(steps.flatMap(\.effects).posts.contains(.message(label: "signaling", [2], lease: nil)))
    }

    // MARK: - Messages to others

    @Test func `messages to others that expand as no text does are dropped, at a fraction of their content`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages(isCompressed: true)])
        for _ in 0..<4 { _ = try bench.join([DataRouterBench.messages()]) }
        // 20 kB in; 74 MB would go out.
        for _ in 0..<72 { bench.send(Self.bomb, from: sender) }
        let effects = bench.run(for: .seconds(3))
        #expect(effects.deliveries.isEmpty)
        #expect(effects.drops.filter { $0 == .malformed }.count < 72 && effects.drops.count == 72)
    }

    @Test func `compressed messages to others take bytes by their content`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages(isCompressed: true)])
        for _ in 0..<4 { _ = try bench.join([DataRouterBench.messages()]) }
        let stream = Zlib.compress([UInt8](repeating: 32, count: 16_000))
        for _ in 0..<600 { bench.send(stream, from: sender) }
        let first = bench.run().effects.deliveries.reduce(0) { $0 + $1.bytes.count }
        #expect((4 * DataRouter.bytesBurst...4 * (DataRouter.bytesBurst + 16_000)).contains(first))
        let next = bench.run(for: .seconds(1)).deliveries.reduce(0) { $0 + $1.bytes.count }
        #expect((4 * 900_000...4 * 1_016_000).contains(next))
    }

    @Test func `what is compressed for receivers takes bytes, too`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages()])
        _ = try bench.join([DataRouterBench.messages(isCompressed: true, header: .connection)])
        for _ in 0..<100 { bench.send([UInt8](repeating: 32, count: 10_000), from: sender) }
        let (effects, work) = bench.run()
        #expect(effects.deliveries.count == DataRouter.bytesBurst / 20_026 + 1)
        // To compress takes longer than all else, and counts as more.
        #expect(work >= effects.deliveries.count * 10_026 / 512)
    }

    @Test func `a reliable sender is slowed down by its credit, and loses nothing`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages()])
        _ = try bench.join([DataRouterBench.messages()])
        let credit = DataCredit(bytesMax: 512 << 10)
        for number in UInt8(0)..<100 {
            let lease = credit.lease(bytes: 10_000)
            bench.send([UInt8](repeating: number, count: 10_000), from: sender, lease: lease)
        }
        let first = bench.run().effects.deliveries.map { $0.bytes[0] }
        #expect(first.count == DataRouter.bytesBurst / 10_000 + 1)
        #expect(!credit.hasRoom, "what waits keeps the sender from sending more")
        let rest = bench.run(for: .seconds(1)).deliveries.map { $0.bytes[0] }
        #expect(first + rest == Array(0..<100))
        #expect(credit.bytesTaken == 0)
    }

    @Test func `what would wait for more than two seconds is dropped and counted`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages()])
        _ = try bench.join([DataRouterBench.messages()])
        for _ in 0..<400 { bench.send([UInt8](repeating: 1, count: 10_000), from: sender) }
        let effects = bench.run(for: .seconds(3))
        #expect((210...222).contains(effects.deliveries.count))
        #expect(effects.drops.count == 400 - effects.deliveries.count)
        #expect(effects.drops.allSatisfy { $0 == .rate })
        #expect(bench.router.nextDeadline == nil && !bench.router.hasNext(at: bench.now))
    }

    @Test func `where messages may be lost they wait for a tenth of a second`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages(isReliable: false)])
        _ = try bench.join([DataRouterBench.messages()])
        for _ in 0..<100 { bench.send([UInt8](repeating: 1, count: 10_000), from: sender) }
        let effects = bench.run(for: .milliseconds(150))
        #expect((27...32).contains(effects.deliveries.count))
        #expect(effects.drops.count == 100 - effects.deliveries.count)
    }

    @Test func `messages that wait delay neither their sender's signaling nor the messages of others`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.signaling("signaling"), DataRouterBench.messages()])
        let other = try bench.join([DataRouterBench.messages()])
        for _ in 0..<100 { bench.send([UInt8](repeating: 1, count: 10_000), from: sender, channel: 2) }
        _ = bench.run()
        bench.send(Zlib.compress([7]), from: sender)
        bench.send([8], from: other)
        let effects = bench.run().effects
        #expect(effects.posts == [.message(label: "signaling", [7], lease: nil)])
        #expect(effects.deliveries.map(\.bytes) == [[8]])
    }

    @Test(arguments: [UInt64(1), 9])
    func `messages that go to nobody slow their sender down, too`(channel: UInt64) throws {
        var bench = DataRouterBench()
        let receives = DataChannelPlan(
            DataChannelParameters(label: "#a"),
            use: .messages(sends: false, receives: true)
        )
        // Where it only receives, and on a channel that its application opened.
        let sender = try bench.join([receives])
        _ = try bench.join([DataRouterBench.messages()])
        let credit = DataCredit(bytesMax: 512 << 10)
        for _ in 0..<1_500 { bench.send([1], from: sender, channel: channel, lease: credit.lease(bytes: 1)) }
        let (effects, work) = bench.run()
        #expect(effects.deliveries.isEmpty && work <= 1_001)
        #expect(credit.bytesTaken == 500 * 513)
        _ = bench.run(for: .seconds(1))
        #expect(credit.bytesTaken == 0)
    }

    // MARK: - Deliveries

    @Test func `a thousand messages a second to 500 members are as many deliveries as a sender may cause`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages()])
        for _ in 0..<500 { _ = try bench.join([DataRouterBench.messages()]) }
        for _ in 0..<1_000 { bench.send([1], from: sender) }
        let (effects, work) = bench.run()
        #expect(effects.deliveries.count == 20_000, "a second's worth")
        #expect(work <= 1 + 40 * (1 + 501 / 64))
        let later = bench.run(for: .seconds(3))
        // Of two seconds; what would have waited longer is dropped.
        #expect((38_000...40_500).contains(later.deliveries.count))
        #expect(later.drops.allSatisfy { $0 == .deliveries })
        #expect(later.drops.count == 1_000 - (effects.deliveries.count + later.deliveries.count) / 500)
    }

    @Test func `a malformed message takes the deliveries of a short one, because its receivers are looked for`() throws
    {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages(isCompressed: true)])
        for _ in 0..<500 { _ = try bench.join([DataRouterBench.messages()]) }
        for _ in 0..<1_000 { bench.send([1], from: sender) }
        let (effects, work) = bench.run()
        #expect(effects.drops == [MessageDropReason](repeating: .malformed, count: 40), "a second's worth")
        // A step for the message that waits then.
        let expected = 40 * (1 + 501 / 64)
        #expect(work == expected || work == expected + 1)
    }

    @Test func `receivers that are looked at in vain take deliveries of their sender, and are work`() throws {
        var limits = RoomLimits()
        limits.dataDeliveriesPerSecond = 1_000
        var bench = DataRouterBench(limits: limits)
        let members = try (0..<160).map { _ in try bench.join([DataRouterBench.messages()], bundle: "one") }
        for _ in 0..<1_000 { bench.send([1], from: members[0]) }
        let (expected, work) = (100 * (1 + 160 / 64), bench.run().work)
        #expect(work == expected || work == expected + 1, "ten deliveries a message")
    }

    @Test func `senders together cause no more deliveries than their channel may`() throws {
        var limits = RoomLimits()
        limits.dataDeliveriesPerSecond = 1_000
        limits.channelDeliveriesPerSecond = 2_000
        var bench = DataRouterBench(limits: limits)
        let members = try (0..<21).map { _ in try bench.join([DataRouterBench.messages()]) }
        for _ in 0..<100 {
            for member in members.prefix(3) { bench.send([1], from: member) }
        }
        #expect(bench.run().effects.deliveries.count == 2_000)
        let next = bench.run(for: .seconds(1)).deliveries
        #expect((1_960...2_040).contains(next.count))
        // They take turns.
        let counts = Dictionary(grouping: next, by: \.source).mapValues(\.count)
        #expect(counts.count == 3 && counts.values.allSatisfy { (620...720).contains($0) }, "\(counts)")
    }

    @Test func `a channel has its part of the node's deliveries while the node has too many`() throws {
        var limits = RoomLimits()
        limits.channelDeliveriesPerSecond = 1_000
        var bench = DataRouterBench(limits: limits)
        let sender = try bench.join([DataRouterBench.messages()])
        for _ in 0..<10 { _ = try bench.join([DataRouterBench.messages()]) }
        bench.part = 100
        for _ in 0..<100 { bench.send([1], from: sender) }
        #expect(bench.run().effects.deliveries.count == 100)
        #expect(bench.run(for: .seconds(1)).deliveries.count <= 110)
    }

    @Test func `the node is beyond its limit when its channels are together, and each has an equal part`() {
        var deliveries = NodeDeliveries()
        let now = Instant(nanoseconds: 5_000_000_000)
        #expect(deliveries.take(999, by: 1, perSecond: 1_000, at: now) == nil)
        #expect(deliveries.take(100, by: 2, perSecond: 1_000, at: now) == nil, "there was room")
        #expect(deliveries.take(1, by: 1, perSecond: 1_000, at: now) == 500)
        #expect(deliveries.take(1, by: 3, perSecond: 1_000, at: now) == 333)
        // The channels of the second before count, too, until there is room again.
        #expect(deliveries.take(900, by: 1, perSecond: 1_000, at: now + .seconds(1)) == nil)
        #expect(deliveries.take(1, by: 1, perSecond: 1_000, at: now + .seconds(1)) == 333)
        #expect(deliveries.take(1, by: 1, perSecond: 1_000, at: now + .seconds(9)) == nil)
    }

    @Test func `a long message is as many deliveries as it takes packets`() throws {
        var limits = RoomLimits()
        limits.dataDeliveriesPerSecond = 100
        var bench = DataRouterBench(limits: limits)
        let sender = try bench.join([DataRouterBench.messages()])
        _ = try bench.join([DataRouterBench.messages()])
        for _ in 0..<3 { bench.send([UInt8](repeating: 1, count: 1_160 * 50 + 1), from: sender) }
        #expect(bench.run().effects.deliveries.count == 2)
        #expect(bench.run(for: .seconds(1)).deliveries.count == 1)
        // More than ten seconds' worth is not sent at all.
        bench.now += .seconds(60)
        bench.send([UInt8](repeating: 1, count: 1_160 * 999), from: sender)
        bench.send([UInt8](repeating: 1, count: 1_160 * 1_001), from: sender)
        #expect(bench.run().effects.deliveries.count == 1)
        bench.now += .seconds(60)
        bench.send([UInt8](repeating: 1, count: 1_160 * 1_001), from: sender)
        let effects = bench.run().effects
        #expect(effects.deliveries.isEmpty && effects.drops == [.deliveries])
    }

    @Test func `participants of other nodes take deliveries, and one more than are counted takes those of the channel`()
        throws
    {
        var limits = RoomLimits()
        limits.dataDeliveriesPerSecond = 10
        limits.channelDeliveriesPerSecond = 100_000
        var bench = DataRouterBench(limits: limits)
        for _ in 0..<10 { _ = try bench.join([DataRouterBench.messages()]) }
        let others = try (0...DataRouter.remoteSendersMax).map { _ in try bench.participant().0 }
        func drops(_ sender: Participant) -> [MessageDropReason] {
            let message = RemoteMessage(sender: sender.id, label: "#a", isText: false, bytes: [1])
            return bench.router.received(message, from: sender.forData, at: bench.now) { _ in nil }.effects.drops
        }
        #expect(others.allSatisfy { drops($0).isEmpty })
        #expect(others.dropLast().allSatisfy { drops($0) == [.deliveries] })
        #expect(drops(others[others.count - 1]).isEmpty)
        // Debts that are paid make room.
        bench.now += .seconds(2)
        #expect(drops(others[others.count - 1]).isEmpty)
        #expect(drops(others[others.count - 1]) == [.deliveries])
    }

    @Test func `other nodes are told when a label gets its first receiver and loses its last one`() throws {
        var bench = DataRouterBench()
        func isTold() -> Bool {
            defer { bench.router.labelsChanged = false }
            return bench.router.labelsChanged
        }
        let first = try bench.join([DataRouterBench.messages()])
        #expect(isTold() && bench.router.labels == ["#a"])
        let second = try bench.join([DataRouterBench.messages()])
        #expect(!isTold())
        bench.router.enqueue(.closed(DataChannelID(rawValue: 1), label: "#a", .closed), from: first, at: bench.now)
        _ = bench.run()
        #expect(!isTold())
        bench.router.enqueue(.closed(DataChannelID(rawValue: 1), label: "#a", .closed), from: second, at: bench.now)
        _ = bench.run()
        #expect(isTold() && bench.router.labels.isEmpty)
    }

    @Test func `channels that a participant opens take a token each`() throws {
        var limits = RoomLimits()
        limits.dataMessagesPerSecond = 10
        var bench = DataRouterBench(limits: limits)
        let peer = try bench.join([])
        for number in 1...100 as ClosedRange<UInt64> {
            let parameters = DataChannelParameters(label: "#\(number)")
            let id = DataChannelID(rawValue: number)
            bench.router.enqueue(.opened(id, parameters, isIncoming: true, lease: nil), from: peer, at: bench.now)
        }
        var handled: [Int] = []
        for _ in 0..<12 {
            var count = 0
            while let step = bench.next() {
                #expect(step.effects.drops.isEmpty)
                count += 1
            }
            handled.append(count)
            bench.now += .seconds(1)
        }
        #expect(handled[0] < 50)
        // Each wait is a step, too.
        #expect(handled.reduce(0, +) >= 100, "none is left out: \(handled)")
    }

    @Test func `channels are opened where messages are forbidden`() throws {
        var limits = RoomLimits()
        limits.dataMessagesPerSecond = 0
        var bench = DataRouterBench(limits: limits)
        let peer = try bench.join([])
        let parameters = DataChannelParameters(label: "#a")
        bench.router.enqueue(
            .opened(DataChannelID(rawValue: 1), parameters, isIncoming: true, lease: nil),
            from: peer,
            at: bench.now
        )
        let step = bench.next()
        #expect(step?.effects.drops.isEmpty == true)
    }

    @Test func `nothing waits of a participant that left`() throws {
        var bench = DataRouterBench()
        let sender = try bench.join([DataRouterBench.messages()])
        _ = try bench.join([DataRouterBench.messages()])
        let credit = DataCredit(bytesMax: 512 << 10)
        for _ in 0..<100 {
            bench.send([UInt8](repeating: 1, count: 10_000), from: sender, lease: credit.lease(bytes: 10_000))
        }
        _ = bench.run()
        #expect(bench.router.nextDeadline != nil)
        let id = try #require(ParticipantID("0123456789ABCDEFGHJKMN0001"))
        _ = bench.router.left(id, reason: .left)
        #expect(bench.router.nextDeadline == nil && credit.bytesTaken == 0)
    }
}
