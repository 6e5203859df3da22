import Base
import MediaTypes
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Cluster
@testable import Room

/// Messages about a channel from other nodes, which have the cluster's secret: each is decoded, encoded again, and acted upon
/// by a channel with members of its own.
func fuzzChannel(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    var run = ChannelRun()
    while !input.isAtEnd { run.step(&input) }
    run.end()
}

private enum World {
    static let nodes = (1...3).map { number -> (id: NodeID, media: NodeIncarnation) in
        guard let id = NodeID(rawValue: "n\(number)"), let media = NodeIncarnation(rawValue: UInt32(number)) else {
            fatalError("not a node")
        }
        return (id, media)
    }
    static let name = makeName()
    static let mid = makeMID("0")

    static func makeMID(_ text: String) -> MID {
        guard let mid = MID(text) else { fatalError("not a MID") }
        return mid
    }
    private static func makeName() -> ChannelName {
        guard let name = ChannelName("lobby") else { fatalError("not a channel") }
        return name
    }
}

/// The channel at one node: its members, and which other nodes have it.
private struct ChannelSide {
    var model = ChannelModel(name: World.name)
    var node: NodeModel
    var replicas: ChannelReplicas
    private var generator: SeededGenerator

    init(_ number: Int) {
        let own = World.nodes[number]
        node = NodeModel(node: own.media, locations: [MediaLocation(node: own.media, loop: LoopIndex(rawValue: 0))])
        replicas = ChannelReplicas(own: own.id)
        generator = SeededGenerator(seed: UInt64(number) + 1)
        model.joinCluster()
    }

    /// A member joins and its media connects.
    mutating func join(_ role: Role, at now: RoomTime) -> ParticipantID? {
        model.now = now
        let id = ParticipantID(using: &generator)
        let session = ChannelSessionID(using: &generator)
        let request = JoinRequest(
            channel: World.name,
            role: role,
            clientID: "c\(role)",
            notifyMetadataJSON: "{\"a\":1}"
        )
        let outcome = node.admit(request, id: id, check: model.checkAdmission(of: request), at: now)
        guard let place = try? outcome.result.get(),
            (try? model.joined(request, as: place, session: session)) != nil
        else { return nil }
        let publications = role.publishes ? [Publication(mid: World.mid, kind: .video)] : []
        let slots = role.watches ? [Slot(mid: World.makeMID("1"), kind: .video)] : []
        guard (try? model.setupCompleted(id, publications: publications, slots: slots)) != nil else { return nil }
        _ = model.received(.connected(over: .udp), from: place.peer)
        node.connected(id)
        return id
    }

    /// As ``Channel`` does.
    mutating func receive(_ news: ChannelUpdate, from sender: NodeIncarnation) {
        switch news {
        case .all(let session, let records, let register, _, let others):
            if let session { _ = model.sessionFound(session) }
            let present = Set(records.map(\.id)).union(others ?? [])
            for id in model.members(of: sender) where !present.contains(id) { _ = model.remoteLeft(id, .ended) }
            change(records, of: sender)
            _ = model.registerFound(register)
        case .changed(let records): change(records, of: sender)
        case .left(let departed):
            for member in departed where model.participants[member.id]?.location.node == sender {
                _ = model.remoteLeft(member.id, member.departure, at: member.time)
            }
        case .register(let register): _ = model.registerFound(register)
        case .labels: break
        }
    }

    private mutating func change(_ records: [MemberRecord], of sender: NodeIncarnation) {
        for record in records where record.node == sender {
            _ = model.remoteChanged(record) { node.nextOrder() }
        }
    }

    mutating func receive(_ command: ChannelCommand) {
        guard let effects = try? model.perform(command, by: .node).effects else { return }
        for case .ended(let id, let reason) in effects { node.left(id, reason: reason, at: model.now) }
    }

    /// All that the node tells of the channel.
    func news() -> [ChannelMessage] {
        ChannelUpdate.all(model.ownSession, members: model.ownMembers, model.register, labels: ["#a"])
            .map { .news(World.name, $0) }
    }
}

private struct ChannelRun {
    private static let start = RoomTime(
        instant: Instant(nanoseconds: 9_000_000_000),
        unixNanoseconds: 1_700_000_000_000_000_000
    )

    private var side = ChannelSide(0)
    private var now = Self.start
    private var own: [ParticipantID] = []

    init() {
        own = [Role.sendrecv, .recvonly].compactMap { side.join($0, at: now) }
        guard let session = side.model.ownSession.flatMap({ RoomSession($0) }) else { fatalError("no session") }
        _ = side.replicas.open(World.name, session, at: now.instant)
        for node in World.nodes.dropFirst() { _ = side.replicas.linkUp(node.id, media: node.media) }
    }

    mutating func step(_ input: inout FuzzInput) {
        let sender = World.nodes[1 + input.choice(2)]
        switch input.choice(8) {
        case 0:
            now.instant += .milliseconds(100 * Int(input.byte()))
            now.unixNanoseconds += 100_000_000
            _ = side.model.tick(at: now)
            _ = side.replicas.handleDeadlines(at: now.instant)
        case 1:
            side.replicas.linkDown(sender.id, at: now.instant)
            for id in side.model.members(of: sender.media) { _ = side.model.remoteLeft(id, .timedOut) }
        case 2: _ = side.replicas.linkUp(sender.id, media: sender.media)
        case 3: receive(input.chunk(max: 8_000), from: sender)
        default: receive(LengthPrefix.prepend(to: input.chunk(max: 8_000)) + [1, 2], from: sender)
        }
        side.model.now = now
    }

    private mutating func receive(_ bytes: [UInt8], from sender: (id: NodeID, media: NodeIncarnation)) {
        guard let (message, attachment, _) = ChannelMessage.decode(bytes) else { return }
        guard let again = ChannelMessage.decode(message.encoded(with: attachment)) else {
            fatalError("broken: what was written reads")
        }
        require(again.message == message && again.attachment == attachment, "what was written reads the same")
        require(again.isWhole, "all that was written is known")
        side.model.now = now
        let (actions, isForChannel) = side.replicas.received(message, from: sender.id, at: now.instant)
        for case .lost(_, let media, _) in actions {
            for id in side.model.members(of: media) { _ = side.model.remoteLeft(id, .timedOut) }
        }
        guard isForChannel, message.channel == World.name else { return }
        switch message {
        case .news(_, let news): side.receive(news, from: sender.media)
        case .command(_, let command): side.receive(command)
        case .data, .gone, .want, .keep, .refused: break
        }
        let told = side.model.takeChanges()
        let members = told.changed.map { ChannelMessage.news(World.name, .changed([$0])) }
        for message in members {
            require(ChannelMessage.decode(message.encoded())?.message == message, "a member is told")
        }
        require(side.model.remoteMembers.isDisjoint(with: own), "own members stay own")
        require(
            side.model.memberCounts[sender.media, default: 0] == side.model.members(of: sender.media).count,
            "counted"
        )
        _ = side.model.summary
        _ = side.model.snapshot
    }

    mutating func end() {
        for id in side.model.remoteMembers { _ = side.model.remoteLeft(id, .ended) }
        require(side.model.remoteMembers.isEmpty, "no member of another node stays")
        for id in own { _ = side.model.left(id, reason: .left) }
        require(side.model.ownMembers.isEmpty, "no member stays")
    }
}

func seedsChannel() -> [(name: String, bytes: [UInt8])] {
    var other = ChannelSide(1)
    let now = RoomTime(instant: Instant(nanoseconds: 5_000_000_000), unixNanoseconds: 1_600_000_000_000_000_000)
    let ids = [Role.sendonly, .recvonly].compactMap { other.join($0, at: now) }
    let all = other.news()
    let records = other.model.ownMembers
    let departed = ids.map { ChannelUpdate.Departed(id: $0, departure: .left, time: now.unixNanoseconds) }
    let local = ChannelSide.localMember
    let commands: [ChannelCommand] = [
        .end(.participants([local]), .kicked), .setMuted(true, kinds: [.video], of: .participant(local)),
        .setRole(.audience, of: .participant(local)), .limitSending(to: local, bitsPerSecond: 500_000),
        .requestLayer(.richest, receiver: local, sender: ids.first), .requestHeight(360, receiver: local, sender: nil),
        .requestSpotlightLayers(nil, receiver: local, sender: nil), .requestKeyFrames(of: local),
        .subscribe(
            true,
            to: SubscriptionSelection(user: "u", kind: .video, source: nil),
            receiver: .participant(local)
        ),
        .focus(local, isFixed: true), .unfocus(local), .push(json: "{}", to: .participants([local])),
        .end(.all, .channelTerminated), .setSpotlightNumber(3),
    ]
    let scripts: [(String, [ChannelMessage])] =
        [
            ("all", all), ("changed", all + records.map { .news(World.name, .changed([$0])) }),
            ("left", all + [.news(World.name, .left(departed))]),
            ("register", all + [.news(World.name, .register(ChannelRegister(version: 9, spotlightNumber: 2)))]),
            ("labels", all + [.news(World.name, .labels(["#b"]))]),
            ("gone", all + [.want(World.name), .gone(World.name, ended: other.model.ownSession), .keep([World.name])]),
            ("data", all + [.data(World.name, sender: ids[0], label: "#a", isText: true)]),
        ] + commands.enumerated().map { ("command-\($0.offset + 1)", all + [.command(World.name, $0.element)]) }
    return scripts.map { name, messages in
        let bytes = SeedWriter.make { seed in
            for message in messages {
                seed.byte(0)
                seed.byte(4)
                seed.chunk(Array(message.encoded().dropFirst(LengthPrefix.bytes)))
            }
            seed.byte(0)
            seed.byte(0)
            seed.byte(200)
        }
        return (name, bytes)
    }
}

extension ChannelSide {
    /// The first member of the node that the messages go to.
    fileprivate static let localMember = {
        var generator = SeededGenerator(seed: 1)
        return ParticipantID(using: &generator)
    }()
}
