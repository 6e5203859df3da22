import Base
import Deflate
import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelData
@testable import ChannelTypes
@testable import Room

/// Messages between participants, and between participants and their signaling.
@Suite(.timeLimit(.minutes(10)))
struct DataChannelTests {
    private struct Member {
        let id: ParticipantID
        let peer: PeerID
        let events: ParticipantEvents
    }

    /// A member whose transport is up.
    private func join(
        _ bench: RoomsBench,
        _ plan: DataPlan?,
        hasData: Bool = true,
        bundle: String? = nil,
        user: String? = nil,
        name: String? = nil,
        options: MemberOptions? = nil
    ) async throws -> Member {
        var request = JoinRequest(
            channel: RoomsBench.channel,
            role: .sendonly,
            following: .everyone,
            displayName: name,
            clientID: user
        )
        request.data = plan
        request.bundleID = bundle
        request.options = options
        let reservation = try await bench.directory.reserve(request)
        let events = await bench.directory.events(of: reservation.participant)
        _ = try await bench.directory.activate(
            reservation,
            remote: RoomsBench.remote,
            data: hasData ? DataTransportParameters() : nil,
            firstMediaKind: .video,
            mids: []
        )
        await bench.report(.connected(over: .udp), from: reservation.peer)
        await bench.directory.settle()
        return Member(id: reservation.participant, peer: reservation.peer, events: events)
    }

    private static func channel(
        _ label: String,
        sends: Bool = true,
        receives: Bool = true,
        isCompressed: Bool = false,
        header: DataChannelPlan.Header = .none
    ) -> DataChannelPlan {
        DataChannelPlan(
            DataChannelParameters(label: label),
            use: .messages(sends: sends, receives: receives),
            isCompressed: isCompressed,
            header: header
        )
    }

    private static func signaling(_ label: String, isCompressed: Bool = true) -> DataChannelPlan {
        DataChannelPlan(
            DataChannelParameters(label: label),
            use: .signaling(sends: true),
            isCompressed: isCompressed
        )
    }

    /// The plane reports that a channel is open. Its identifier is the number.
    private func open(
        _ bench: RoomsBench,
        _ member: Member,
        _ label: String,
        _ number: UInt64,
        isIncoming: Bool = false
    )
        async
    {
        let id = DataChannelID(rawValue: number)
        let parameters = DataChannelParameters(label: label)
        await bench.report(.data(.opened(id, parameters, isIncoming: isIncoming, lease: nil)), from: member.peer)
    }

    private func send(_ bench: RoomsBench, _ member: Member, _ number: UInt64, _ bytes: [UInt8], isText: Bool = false)
        async
    {
        let message = DataMessage(bytes, isText: isText)
        await bench.report(.data(.message(DataChannelID(rawValue: number), message)), from: member.peer)
        await bench.directory.settle()
    }

    /// What was sent to a channel of a member.
    private func messages(_ bench: RoomsBench, to member: Member, _ number: UInt64) async -> [DataMessage] {
        let address = DataAddress(peer: member.peer, channel: DataChannelID(rawValue: number))
        return await bench.plane.dataCommands.compactMap { command in
            if case .send(let message, let receivers) = command, receivers.contains(address) { message } else { nil }
        }
    }

    private func labelsOpened(_ bench: RoomsBench, of member: Member) async -> [String] {
        await bench.plane.dataCommands.compactMap { command in
            if case .open(member.peer, let parameters) = command { parameters.label } else { nil }
        }
    }

    private func next(_ member: Member) async -> ParticipantDataEvent? {
        for await case .data(let event) in member.events { return event }
        return nil
    }

    @Test func `the channels of a plan are opened when the participant is active, and all are reported once`()
        async throws
    {
        let bench = RoomsBench()
        let plan = DataPlan([Self.signaling("signaling"), Self.signaling("notify"), Self.channel("#a")])
        let member = try await join(bench, plan)
        #expect(await labelsOpened(bench, of: member) == ["signaling", "notify", "#a"])
        await open(bench, member, "#a", 3)
        await open(bench, member, "signaling", 1)
        await open(bench, member, "notify", 2)
        await send(bench, member, 1, Zlib.compress([7]))
        #expect(await next(member) == .opened)
        #expect(await next(member) == .message(label: "signaling", [7], lease: nil))
    }

    @Test func `a participant that declines data channels gets none`() async throws {
        let bench = RoomsBench()
        let member = try await join(bench, DataPlan([Self.signaling("signaling")]), hasData: false)
        #expect(await bench.plane.dataCommands.isEmpty)
        await open(bench, member, "signaling", 1)
        await bench.directory.send([[1]], on: "signaling", to: member.id)
        await bench.directory.settle()
        #expect(await bench.plane.dataCommands.isEmpty)
    }

    @Test func `signaling sends compressed and plain messages`() async throws {
        let bench = RoomsBench()
        let plan = DataPlan([Self.signaling("signaling"), Self.signaling("plain", isCompressed: false)])
        let member = try await join(bench, plan)
        await open(bench, member, "signaling", 1)
        await open(bench, member, "plain", 2)
        await bench.directory.send([[1, 2], [3]], on: "signaling", to: member.id)
        await bench.directory.send([[4]], on: "plain", to: member.id)
        await bench.directory.send([[5]], on: "unknown", to: member.id)
        await bench.directory.settle()
        let compressed = await messages(bench, to: member, 1)
        #expect(try compressed.map { try Zlib.decompress($0.bytes, bytesMax: 10) } == [[1, 2], [3]])
        #expect(compressed.allSatisfy { !$0.isText })
        #expect(await messages(bench, to: member, 2) == [DataMessage([4], isText: true)])
    }

    @Test func `a damaged message of signaling is refused, and so is all that follows`() async throws {
        let bench = RoomsBench()
        let member = try await join(bench, DataPlan([Self.signaling("signaling")]))
        await open(bench, member, "signaling", 1)
        await send(bench, member, 1, [1, 2, 3])
        await send(bench, member, 1, [1, 2, 3])
        await bench.report(
            .data(.closed(DataChannelID(rawValue: 1), label: "signaling", .closed)),
            from: member.peer
        )
        await bench.directory.end(member.id, reason: .left)
        var events: [ParticipantDataEvent] = []
        while let event = await next(member) { events.append(event) }
        #expect(events == [.opened, .refused(label: "signaling", .malformed)])
    }

    @Test func `a burst of messages takes many jobs of the control loop, so that other channels go between`()
        async throws
    {
        var limits = RoomLimits()
        limits.dataMessagesPerSecond = 100_000
        let loop = TestControlLoop()
        let bench = RoomsBench(directory: { plane in
            ChannelDirectory(planes: [plane], limits: limits, controlLoops: [loop])
        })
        let sender = try await join(bench, DataPlan([Self.channel("#a")]))
        let receiver = try await join(bench, DataPlan([Self.channel("#a")]))
        for member in [sender, receiver] { await open(bench, member, "#a", 1) }
        let (count, before) = (3_200, loop.jobCount)
        for _ in 0..<count {
            let message = DataMessage([1], isText: false)
            await bench.plane.report(.data(.message(DataChannelID(rawValue: 1), message)), from: sender.peer)
        }
        await bench.directory.takeEvents()
        await bench.directory.settle()
        #expect(await messages(bench, to: receiver, 1).count == count)
        #expect(loop.jobCount - before >= count / Channel.dataWorkPerJob)
    }

    @Test func `messages go to all others with the label, by their directions`() async throws {
        let bench = RoomsBench()
        let sender = try await join(bench, DataPlan([Self.channel("#a", receives: false)]))
        let both = try await join(bench, DataPlan([Self.channel("#a"), Self.channel("#b")]))
        let receiver = try await join(bench, DataPlan([Self.channel("#a", sends: false)]))
        let other = try await join(bench, DataPlan([Self.channel("#b")]))
        for (member, label) in [(sender, "#a"), (both, "#a"), (receiver, "#a"), (other, "#b")] {
            await open(bench, member, label, 1)
        }
        await open(bench, both, "#b", 2)
        await send(bench, sender, 1, [1], isText: true)
        await send(bench, both, 1, [2])
        await send(bench, receiver, 1, [3])
        await send(bench, both, 2, [4])
        #expect(await messages(bench, to: sender, 1) == [])
        #expect(await messages(bench, to: both, 1) == [DataMessage([1], isText: true)])
        #expect(await messages(bench, to: both, 2) == [])
        #expect(
            await messages(bench, to: receiver, 1) == [DataMessage([1], isText: true), DataMessage([2], isText: false)]
        )
        #expect(await messages(bench, to: other, 1) == [DataMessage([4], isText: false)])
        #expect(await bench.directory.droppedMessages == [.notPermitted: 1])
    }

    @Test func `each receiver gets the form of its own channel`() async throws {
        let bench = RoomsBench()
        let plain = try await join(bench, DataPlan([Self.channel("#a")]))
        let compressed = try await join(bench, DataPlan([Self.channel("#a", isCompressed: true)]))
        let named = try await join(bench, DataPlan([Self.channel("#a", header: .connection)]))
        let both = try await join(bench, DataPlan([Self.channel("#a", isCompressed: true, header: .connection)]))
        for member in [plain, compressed, named, both] { await open(bench, member, "#a", 1) }
        await send(bench, plain, 1, [1, 2, 3])
        let stream = Zlib.compress([9, 9])
        await send(bench, compressed, 1, stream)
        #expect(await messages(bench, to: plain, 1).map(\.bytes) == [[9, 9]])
        #expect(
            try await messages(bench, to: compressed, 1).map { try Zlib.decompress($0.bytes, bytesMax: 99) } == [
                [1, 2, 3]
            ]
        )
        let first = Array(plain.id.value.utf8) + [1, 2, 3]
        let second = Array(compressed.id.value.utf8) + [9, 9]
        #expect(first.count == 29)
        #expect(await messages(bench, to: named, 1).map(\.bytes) == [first, second])
        #expect(
            try await messages(bench, to: both, 1).map { try Zlib.decompress($0.bytes, bytesMax: 99) } == [
                first, second,
            ]
        )
        await send(bench, compressed, 1, [1, 2])
        #expect(await bench.directory.droppedMessages == [.malformed: 1])
    }

    @Test func `a receiver that asks for it is told the user of each sender`() async throws {
        let bench = RoomsBench()
        let hanako = try await join(bench, DataPlan([Self.channel("#a")]), user: "hanako", name: "花子")
        let nameless = try await join(bench, DataPlan([Self.channel("#a")]))
        let receiver = try await join(bench, DataPlan([Self.channel("#a", header: .user)]))
        for member in [hanako, nameless, receiver] { await open(bench, member, "#a", 1) }
        // What a sender says of itself is content.
        let claim = Array((nameless.id.value + "\u{0}\u{6}hanako").utf8)
        await send(bench, hanako, 1, [1], isText: true)
        await send(bench, nameless, 1, claim)
        let first = Array(hanako.id.value.utf8) + [0, 6] + Array("hanako".utf8) + [0, 6] + Array("花子".utf8) + [1]
        let id = Array(nameless.id.value.utf8)
        let second = id + [0, UInt8(id.count)] + id + [0, 0] + claim
        #expect(await messages(bench, to: receiver, 1).map(\.bytes) == [first, second])
        #expect(await messages(bench, to: receiver, 1).allSatisfy { !$0.isText })
        #expect(await messages(bench, to: nameless, 1) == [DataMessage([1], isText: true)])
    }

    /// What a member is told of the chat before it joined.
    private func history(_ member: Member) async -> [String] {
        for await case .notification(let notification) in member.events {
            guard case .chatHistory(let messages) = notification.content else { continue }
            return messages.map { "\($0.displayName ?? $0.user): \($0.text)" }
        }
        return []
    }

    @Test func `who joins later is told what was written in the chat, until the channel is empty`() async throws {
        let bench = RoomsBench(limits: RoomLimits(chatHistoryMax: 2))
        let plan = DataPlan([Self.channel("#chat"), Self.channel("#a")])
        let alone = try await join(bench, plan, user: "anna", name: "Anna")
        await open(bench, alone, "#chat", 1)
        await open(bench, alone, "#a", 2)
        await send(bench, alone, 2, Array("other label".utf8))
        for text in ["first", "second", "third"] { await send(bench, alone, 1, Array(text.utf8)) }
        await send(bench, alone, 1, [0xFF])
        await send(bench, alone, 1, Array(repeating: 0x61, count: ChatHistory.messageBytesMax + 1))
        let later = try await join(bench, plan, options: MemberOptions())
        await open(bench, later, "#chat", 1)
        #expect(await history(later) == ["Anna: second", "Anna: third"])
        for member in [alone, later] { await bench.report(.closed(.closedByPeer), from: member.peer) }
        await bench.directory.settle()
        let next = try await join(bench, plan, user: "ben", options: MemberOptions())
        await open(bench, next, "#chat", 1)
        await send(bench, next, 1, Array("new".utf8))
        let last = try await join(bench, plan, options: MemberOptions())
        await open(bench, last, "#chat", 1)
        #expect(await history(last) == ["ben: new"])
    }

    @Test func `a chat keeps a bounded number of bytes`() {
        var history = ChatHistory(limits: RoomLimits(chatHistoryMax: 1_000))
        let text = String(repeating: "a", count: 1_000)
        for second in 0..<100 {
            history.append(ChatMessage(user: "u", displayName: "n", text: text, unixSeconds: Int64(second)))
        }
        #expect(history.messages.count == ChatHistory.bytesMax / 1_066 && history.messages.last?.unixSeconds == 99)
        var off = ChatHistory(limits: RoomLimits(chatHistoryMax: 0))
        off.append(ChatMessage(user: "u", displayName: nil, text: "a", unixSeconds: 0))
        #expect(off.messages.isEmpty)
    }

    @Test func `members of one bundle do not get each other's messages`() async throws {
        let bench = RoomsBench()
        let camera = try await join(bench, DataPlan([Self.channel("#a")]), bundle: "desk")
        let screen = try await join(bench, DataPlan([Self.channel("#a")]), bundle: "desk")
        let other = try await join(bench, DataPlan([Self.channel("#a")]))
        for member in [camera, screen, other] { await open(bench, member, "#a", 1) }
        await send(bench, camera, 1, [1])
        #expect(await messages(bench, to: screen, 1) == [])
        #expect(await messages(bench, to: other, 1).count == 1)
    }

    @Test func `a participant without a plan opens channels itself`() async throws {
        let bench = RoomsBench()
        let whip = try await join(bench, nil)
        let sora = try await join(bench, DataPlan([Self.signaling("signaling"), Self.channel("#a")]))
        await open(bench, whip, "#a", 5, isIncoming: true)
        await open(bench, whip, "#a", 6, isIncoming: true)
        await open(bench, whip, "chat", 7, isIncoming: true)
        await open(bench, sora, "#a", 1)
        await open(bench, sora, "#own", 9, isIncoming: true)
        await send(bench, whip, 5, [1])
        await send(bench, whip, 6, [2])
        await send(bench, whip, 7, [3])
        await send(bench, sora, 1, [4])
        await send(bench, sora, 9, [5])
        #expect(await messages(bench, to: sora, 1).map(\.bytes) == [[1]])
        #expect(await messages(bench, to: whip, 5).map(\.bytes) == [[4]])
        let id = DataChannelID(rawValue: 5)
        await bench.report(.data(.closed(id, label: "#a", .closed)), from: whip.peer)
        await send(bench, sora, 1, [6])
        #expect(await messages(bench, to: whip, 5).map(\.bytes) == [[4]], "nothing to a closed channel")
        await open(bench, whip, "#a", 8, isIncoming: true)
        await send(bench, sora, 1, [7])
        #expect(await messages(bench, to: whip, 8).map(\.bytes) == [[7]])
    }

    @Test func `messages beyond a participant's rate are dropped and counted`() async throws {
        var limits = RoomLimits()
        limits.dataMessagesPerSecond = 0
        let bench = RoomsBench(limits: limits)
        let sender = try await join(bench, DataPlan([Self.channel("#a")]))
        let receiver = try await join(bench, DataPlan([Self.channel("#a")]))
        for member in [sender, receiver] { await open(bench, member, "#a", 1) }
        for number in UInt8(0)..<10 { await send(bench, sender, 1, [number]) }
        #expect(await messages(bench, to: receiver, 1).isEmpty)
        #expect(await bench.directory.droppedMessages == [.rate: 10])
    }

    @Test
    func `a closed channel of a plan is reported, and the end of a participant closes all after the last message`()
        async throws
    {
        let bench = RoomsBench()
        let plan = DataPlan([Self.signaling("signaling", isCompressed: false), Self.channel("#a")]) { reason in
            reason == .kicked ? ("signaling", [1, 2]) : nil
        }
        let kicked = try await join(bench, plan)
        let leaving = try await join(bench, plan)
        let plain = try await join(bench, nil, hasData: false)
        for member in [kicked, leaving] { await open(bench, member, "signaling", 1) }
        await bench.report(
            .data(.closed(DataChannelID(rawValue: 2), label: "#a", .refused)),
            from: kicked.peer
        )
        #expect(await next(kicked) == .closed(label: "#a"))
        await bench.directory.end(kicked.id, reason: .kicked)
        await bench.directory.end(leaving.id, reason: .left)
        await bench.directory.end(plain.id, reason: .left)
        await bench.directory.settle()
        #expect(await messages(bench, to: kicked, 1).map(\.bytes) == [[1, 2]])
        #expect(await messages(bench, to: leaving, 1) == [])
        let closed = await bench.plane.dataCommands.compactMap { command in
            if case .closeAll(let peer) = command { peer } else { nil }
        }
        #expect(closed == [kicked.peer, leaving.peer])
        #expect(await bench.plane.removed == [plain.peer])
    }

    @Test func `nothing is left of participants that ended`() {
        var router = DataRouter()
        var request = JoinRequest(channel: RoomsBench.channel, role: .sendonly)
        request.data = DataPlan([Self.channel("#a")])
        for number in UInt64(1)...20 {
            let place = ParticipantLocation(
                participant: ParticipantID("0123456789ABCDEFGHJKMNPQR\(number % 10)")!,
                peer: PeerID(rawValue: number),
                location: 0,
                order: number
            )
            let participant = Participant(
                request,
                role: .sendonly,
                as: place,
                at: RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)
            )
            let now = Instant(nanoseconds: 0)
            #expect(router.joined(participant.forData, plan: request.data, at: now).count == 1)
            for _ in 0..<2 {
                router.enqueue(
                    .opened(
                        DataChannelID(rawValue: 1),
                        DataChannelParameters(label: "#a"),
                        isIncoming: false,
                        lease: nil
                    ),
                    from: place.peer,
                    at: now
                )
            }
            let step = router.next(at: now, part: { _ in nil })
            #expect(step != nil, "the other waits until the participant has left")
            #expect(router.endsPeer(place.peer))
            #expect(router.left(place.participant, reason: .left).count == 1)
            #expect(router.left(place.participant, reason: .left).isEmpty)
        }
        #expect(router.isEmpty)
    }
}
