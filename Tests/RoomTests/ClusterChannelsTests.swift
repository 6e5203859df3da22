import Base
import MediaTypes
import RoomTestSupport
import Speakers
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// Nodes of a cluster in one process.
private struct ClusterBench {
    final class Reports: Sendable {
        private let list = Mutex<[RoomReport]>([])
        func note(_ event: ChannelDirectory.Event) {
            if case .report(let report) = event { list.withLock { $0.append(report) } }
        }
        var all: [RoomReport] { list.withLock { $0 } }
    }
    final class Clock: Sendable {
        private let time = Mutex(
            RoomTime(instant: Instant(nanoseconds: 1_000_000_000_000), unixNanoseconds: 1_700_000_000_000_000_000)
        )
        var directory: RoomClock { RoomClock { [self] in time.withLock { $0 } } }
        func advance(seconds: Int64) {
            time.withLock { time in
                time.instant += .seconds(Int(seconds))
                time.unixNanoseconds += seconds * 1_000_000_000
            }
        }
    }
    struct Node {
        let incarnation: NodeIncarnation
        let bench: RoomsBench
        let reports: Reports
        var directory: ChannelDirectory { bench.directory }
    }

    let cluster = FakeCluster()
    let clock = Clock()
    let nodes: [Node]

    init(_ count: Int, limits: RoomLimits = RoomLimits()) {
        let cluster = cluster
        let environment = RoomEnvironment(clock: clock.directory) {
            var generator = SystemRandomNumberGenerator()
            return generator.next()
        }
        nodes = (1...count).map { number in
            let incarnation = NodeIncarnation(rawValue: UInt32(number))!
            let reports = Reports()
            let plane = FakeMediaPlane(MediaLocation(node: incarnation, loop: LoopIndex(rawValue: 0)))
            let directory = ChannelDirectory(
                planes: [plane],
                node: incarnation,
                limits: limits,
                environment: environment,
                cluster: cluster.seen(from: incarnation),
                onEvent: reports.note
            )
            cluster.add(directory, as: incarnation)
            return Node(
                incarnation: incarnation,
                bench: RoomsBench(planes: [plane], directory: directory),
                reports: reports
            )
        }
    }

    /// - Parameter settles: whether other nodes' news arrives before the client is connected, as it usually does.
    func join(
        _ role: Role,
        at node: Int,
        settles: Bool = false,
        _ change: (inout JoinRequest) -> Void = { _ in }
    ) async throws -> ChannelDirectory.Resource {
        let bench = nodes[node].bench
        var request = JoinRequest(channel: RoomsBench.channel, role: role, following: .currentPublisher)
        change(&request)
        let reservation = try await bench.directory.reserve(request)
        if settles { await settle() }
        let resource = try await bench.activate(reservation, role)
        await bench.report(.connected(over: .udp), from: resource.peer)
        return resource
    }

    func leave(_ resource: ChannelDirectory.Resource, at node: Int) async {
        await nodes[node].directory.end(resource.participant, reason: .left)
    }

    func settle() async { await cluster.settle() }

    /// Lets time pass at all nodes at once.
    func pass(seconds: Int64) async {
        clock.advance(seconds: seconds)
        for node in nodes { await node.directory.tick() }
        await settle()
    }

    /// Whether a node whose last member left some seconds ago keeps nothing of the channel.
    func isEmptySoon(at node: Int) async -> Bool {
        await pass(seconds: 2)
        return await nodes[node].directory.isEmpty
    }

    /// What all nodes reported of sessions, by their identifiers.
    var sessionReports: (created: [ChannelSessionID], destroyed: [ChannelSessionID]) {
        var reports: (created: [ChannelSessionID], destroyed: [ChannelSessionID]) = ([], [])
        for report in nodes.flatMap(\.reports.all) {
            switch report {
            case .sessionCreated(let session, _): reports.created.append(session.id)
            case .sessionDestroyed(let session, _): reports.destroyed.append(session.id)
            default: break
            }
        }
        return reports
    }

    func members(at node: Int) async -> Set<ParticipantID> {
        Set(await nodes[node].directory.connections(in: RoomsBench.channel).map(\.member.id))
    }

    func source(of viewer: ChannelDirectory.Resource, at node: Int) async -> PlacedTrack? {
        await nodes[node].bench.plane.sources[TrackID(peer: viewer.peer, mid: RoomsBench.mid)]
    }

    /// The channel as a node sees it.
    func model(at node: Int) async -> ChannelModel? {
        await nodes[node].directory.node.actor(of: RoomsBench.channel)?.model
    }

    func track(of publisher: ChannelDirectory.Resource) -> PlacedTrack {
        PlacedTrack(track: TrackID(peer: publisher.peer, mid: RoomsBench.mid), location: publisher.location)
    }
}

struct ClusterChannelsTests {
    private static let channel = RoomsBench.channel

    @Test func `a viewer plays the track of a publisher at another node`() async throws {
        let bench = ClusterBench(3)
        let viewer = try await bench.join(.recvonly, at: 1)
        let publisher = try await bench.join(.sendonly, at: 0)
        let late = try await bench.join(.recvonly, at: 2)
        await bench.settle()
        for (resource, node) in [(viewer, 1), (late, 2)] {
            #expect(await bench.source(of: resource, at: node) == bench.track(of: publisher))
        }
        await bench.leave(publisher, at: 0)
        await bench.settle()
        #expect(await bench.source(of: viewer, at: 1) == nil)
        #expect(await bench.members(at: 2) == [viewer.participant, late.participant])
    }

    @Test func `the nodes have one session and all members, and each counts its own`() async throws {
        let bench = ClusterBench(2)
        let first = try await bench.join(.sendrecv, at: 0)
        let second = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        let sessions = [
            await bench.nodes[0].directory.channelSession(of: Self.channel),
            await bench.nodes[1].directory.channelSession(of: Self.channel),
        ]
        #expect(sessions[0] != nil && sessions[0] == sessions[1])
        for node in 0..<2 {
            #expect(await bench.members(at: node) == [first.participant, second.participant])
            let counts = await bench.nodes[node].directory.counts(of: Self.channel)
            #expect(counts == ChannelCounts(sendrecv: 1, recvonly: 1))
            #expect(await bench.nodes[node].directory.counts.connections.connections == 1)
        }
        await bench.leave(first, at: 0)
        await bench.settle()
        #expect(await bench.isEmptySoon(at: 0))
        #expect(await bench.nodes[1].directory.channelSession(of: Self.channel) == sessions[0])
        await bench.leave(second, at: 1)
        await bench.settle()
        #expect(await bench.nodes[1].directory.isEmpty)
    }

    @Test func `members whose records follow stay, and those that are not told of leave`() async throws {
        let bench = ClusterBench(2)
        let first = try await bench.join(.sendonly, at: 0)
        let second = try await bench.join(.recvonly, at: 0)
        let own = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        let records = try #require(await bench.nodes[0].directory.node.actor(of: Self.channel)?.model.ownMembers)
        func tell(_ others: [ParticipantID]?) async {
            let news = ChannelUpdate.all(nil, [records[0]], ChannelRegister(), labels: [], others: others)
            await bench.nodes[1].directory.received(news, of: Self.channel, from: bench.nodes[0].incarnation)
        }
        await tell([second.participant])
        #expect(await bench.members(at: 1) == [first.participant, second.participant, own.participant])
        await tell(nil)
        #expect(await bench.members(at: 1) == [first.participant, own.participant])
    }

    @Test func `each connection and the session are reported once, by one node`() async throws {
        let bench = ClusterBench(2)
        let first = try await bench.join(.sendonly, at: 0)
        let second = try await bench.join(.recvonly, at: 1, settles: true)
        await bench.settle()
        await bench.leave(first, at: 0)
        await bench.settle()
        await bench.leave(second, at: 1)
        await bench.settle()
        var names: [[String]] = []
        for node in bench.nodes {
            names.append(
                node.reports.all.map { report in
                    switch report {
                    case .sessionCreated: "session created"
                    case .sessionDestroyed: "session destroyed"
                    case .connectionCreated(let report): "created \(report.connection.member.id)"
                    case .connectionDestroyed(let report, _): "destroyed \(report.connection.member.id)"
                    default: "other"
                    }
                }
            )
        }
        #expect(
            names[0] == ["session created", "created \(first.participant)", "destroyed \(first.participant)"]
        )
        #expect(
            names[1] == ["created \(second.participant)", "destroyed \(second.participant)", "session destroyed"]
        )
    }

    enum FirstNews: CaseIterable { case reservation, listener, lookUp }

    @Test(arguments: FirstNews.allCases)
    func `a session is reported once when another node knows it before a member is connected`(
        _ news: FirstNews
    ) async throws {
        let bench = ClusterBench(2)
        let (one, other) = (bench.nodes[0].bench, bench.nodes[1].bench)
        let request = { (role: Role) in
            JoinRequest(channel: Self.channel, role: role, following: .currentPublisher)
        }
        switch news {
        case .reservation: break
        case .listener: _ = try await other.directory.listen(to: Self.channel)
        case .lookUp: _ = await other.directory.joinContext(of: Self.channel)
        }
        let first = try await one.directory.reserve(request(.sendonly))
        let second = try await other.directory.reserve(request(.recvonly))
        await bench.settle()
        for (node, reservation, role) in [(one, first, Role.sendonly), (other, second, .recvonly)] {
            let resource = try await node.activate(reservation, role)
            await node.report(.connected(over: .udp), from: resource.peer)
            await bench.settle()
        }
        #expect(bench.sessionReports.created == [first.channelSession])
        #expect(second.channelSession == first.channelSession)
    }

    /// Members of three nodes leave while messages between the nodes are under way.
    @Test(arguments: 0..<50 as Range<UInt64>)
    func `the end of a session over nodes is reported once`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let bench = ClusterBench(3)
        var present: [(resource: ChannelDirectory.Resource, node: Int)] = []
        for number in 0..<6 {
            present.append((try await bench.join(.sendonly, at: number % 3, settles: true), number % 3))
        }
        await bench.settle()
        let session = try #require(await bench.nodes[0].directory.channelSession(of: Self.channel)?.id)
        present.shuffle(using: &generator)
        if seed % 2 == 0 {
            for (resource, node) in present {
                await bench.leave(resource, at: node)
                for _ in 0..<Int.random(in: 0..<6, using: &generator) {
                    _ = await bench.cluster.deliverOne(using: &generator)
                }
            }
        } else {
            _ = await bench.nodes[Int.random(in: 0..<3, using: &generator)].directory.terminate(Self.channel)
            while await bench.cluster.deliverOne(using: &generator) {}
        }
        await bench.settle()
        let reports = bench.sessionReports
        #expect(reports.created == [session])
        #expect(reports.destroyed == [session])
        for node in 0..<3 { #expect(await bench.isEmptySoon(at: node)) }
        let next = try await bench.join(.sendonly, at: 0)
        #expect(await bench.nodes[0].directory.channelSession(of: Self.channel)?.id != session)
        await bench.leave(next, at: 0)
    }

    @Test func `a session that ended does not begin again while another node listens`() async throws {
        let bench = ClusterBench(2)
        _ = try await bench.nodes[1].directory.listen(to: Self.channel)
        for _ in 0..<2 {
            let publisher = try await bench.join(.sendonly, at: 0)
            await bench.settle()
            await bench.leave(publisher, at: 0)
            await bench.settle()
        }
        let reports = bench.sessionReports
        #expect(Set(reports.created).count == 2 && reports.destroyed == reports.created)
    }

    @Test func `a member that comes while the last one of another node leaves is known there`() async throws {
        let bench = ClusterBench(2)
        for node in bench.nodes { _ = try await node.directory.listen(to: Self.channel) }
        let first = try await bench.join(.sendonly, at: 0)
        let last = try await bench.join(.sendonly, at: 1, settles: true)
        await bench.settle()
        await bench.leave(first, at: 0)
        await bench.settle()
        await bench.leave(last, at: 1)
        // The departure of the last one is still under way.
        let next = try await bench.join(.sendonly, at: 0)
        await bench.settle()
        #expect(await bench.members(at: 1) == [next.participant])
        let (here, there) = (bench.nodes[0].directory, bench.nodes[1].directory)
        #expect(await here.channelSession(of: Self.channel) == there.channelSession(of: Self.channel))
    }

    @Test func `the session of members counts, not an older one that the directory listed`() async throws {
        let bench = ClusterBench(2)
        let (here, there) = (bench.nodes[0].directory, bench.nodes[1].directory)
        _ = try await there.listen(to: Self.channel)
        _ = try await bench.join(.sendonly, at: 0)
        let live = try #require(await here.channelSession(of: Self.channel))
        var generator = SeededGenerator(seed: 1)
        let listed = ChannelSession(
            id: ChannelSessionID(using: &generator),
            channel: Self.channel,
            createdAt: live.createdAt - 1
        )
        let news = ChannelUpdate.all(listed, [], ChannelRegister(), labels: [])
        await there.received(news, of: Self.channel, from: bench.nodes[0].incarnation)
        await bench.settle()
        #expect(await there.channelSession(of: Self.channel) == live)
    }

    @Test func `a channel is one app's at all nodes`() async throws {
        let bench = ClusterBench(3)
        let (lobby, stage) = (Self.channel, try #require(ChannelName("stage")))
        _ = try await bench.join(.sendonly, at: 0) { $0.app = "a" }
        _ = try await bench.nodes[1].directory.listen(to: stage)
        _ = try await bench.nodes[0].directory.listen(to: stage, app: "a")
        _ = try await bench.nodes[2].directory.listen(to: stage)
        for node in [1, 2] {
            let directory = bench.nodes[node].directory
            _ = try await directory.listen(to: lobby)
            await bench.settle()
            for channel in [lobby, stage] {
                var request = JoinRequest(channel: channel, role: .recvonly, following: .currentPublisher)
                request.app = "b"
                await #expect(throws: RoomError.appMismatch) { _ = try await directory.reserve(request) }
                await #expect(throws: RoomError.appMismatch) { _ = try await directory.listen(to: channel, app: "b") }
                await #expect(throws: RoomError.appMismatch) { try await directory.checkApp("b", of: channel) }
                try await directory.checkApp("a", of: channel)
            }
        }
    }

    @Test func `a channel's lifetime is that of its session at all nodes`() async throws {
        var limits = RoomLimits()
        limits.channelLifetime = .seconds(3_600)
        let bench = ClusterBench(2, limits: limits)
        _ = try await bench.nodes[1].directory.listen(to: Self.channel)
        await bench.pass(seconds: 7_200)
        _ = try await bench.join(.sendonly, at: 0)
        await bench.settle()
        await bench.pass(seconds: 3_000)
        let late = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        await bench.pass(seconds: 599)
        #expect(await bench.members(at: 0).count == 2)
        await bench.pass(seconds: 1)
        #expect(await bench.nodes[1].directory.connection(of: late.participant) == nil)
        #expect(bench.sessionReports.destroyed.count == 1)
    }

    @Test func `members are notified of those at other nodes`() async throws {
        let bench = ClusterBench(2)
        let directory = bench.nodes[0].directory
        var request = JoinRequest(channel: Self.channel, role: .sendrecv, following: .everyone)
        request.receivesNotifications = true
        let reservation = try await directory.reserve(request)
        let events = await directory.events(of: reservation.participant)
        let host = try await bench.nodes[0].bench.activate(reservation, .sendrecv)
        await bench.nodes[0].bench.report(.connected(over: .udp), from: host.peer)
        let guest = try await bench.join(.sendonly, at: 1) { $0.clientID = "guest" }
        await bench.settle()
        await bench.leave(guest, at: 1)
        await bench.settle()
        await bench.leave(host, at: 0)
        var seen: [String] = []
        for await event in events {
            guard case .notification(let notification) = event else { continue }
            switch notification.content {
            case .created(let member, _, _, let counts, nil):
                seen.append("created \(member.clientID) of \(counts.connections)")
            case .destroyed(let member, _, _, let counts):
                seen.append("destroyed \(member.clientID) of \(counts.connections)")
            default: break
            }
        }
        #expect(seen == ["created guest of 2", "destroyed guest of 1"])
    }

    @Test func `an operator asks any node`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0) { request in
            request.clientID = "p"
            request.expiry = AccessExpiry(unixSeconds: 1_700_000_500)
        }
        _ = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        let directory = bench.nodes[1].directory
        try await directory.perform(.requestKeyFrames(of: publisher.participant), in: Self.channel)
        try await directory.perform(.setMuted(true, kinds: [.video], of: .user("p")), in: Self.channel)
        let later = AccessExpiry(unixSeconds: 1_700_009_000)
        try await directory.perform(.extendAccess(of: publisher.participant, until: later), in: Self.channel)
        await bench.settle()
        #expect(await bench.nodes[0].directory.connection(of: publisher.participant)?.expiry == later)
        #expect(await bench.nodes[0].bench.plane.keyFrameRequests == [publisher.peer])
        #expect(await bench.nodes[0].directory.connection(of: publisher.participant)?.muted == [.video])
        #expect(await directory.connection(of: publisher.participant)?.muted == [.video])
        #expect(await directory.statistics(of: publisher.participant) == nil)
        #expect(await directory.kick("p", from: Self.channel) == [publisher.participant])
        await bench.settle()
        #expect(await bench.isEmptySoon(at: 0))
        #expect(await bench.members(at: 1).count == 1)
    }

    @Test func `a moderator mutes members of other nodes, and sees their hands`() async throws {
        let bench = ClusterBench(2)
        let sender = try await bench.join(.sendonly, at: 0) { request in
            request.clientID = "p"
            request.options = MemberOptions()
        }
        let moderator = try await bench.join(.sendonly, at: 1) { request in
            request.options = MemberOptions()
            request.mayModerate = true
        }
        await bench.settle()
        let (first, second) = (bench.nodes[0].directory, bench.nodes[1].directory)
        try await second.perform(.mute(.user("p"), kinds: [.audio]), by: moderator.participant)
        await bench.settle()
        for directory in [first, second] {
            #expect(await directory.connection(of: sender.participant)?.muted == [.audio])
        }
        try await first.perform(
            .setMuted(false, kinds: [.audio], of: .participant(sender.participant)),
            by: sender.participant
        )
        try await first.perform(.raiseHand(true, of: sender.participant), by: sender.participant)
        await bench.settle()
        #expect(await second.connection(of: sender.participant)?.muted == [])
        let told = try await second.joinedChannel(asToldTo: moderator.participant)
        #expect(told.hands.map(\.user) == ["p"] && told.mayModerate)
    }

    @Test func `other nodes are told of a member's changes within its budget, and of the latest`() async throws {
        let bench = ClusterBench(2)
        let member = try await bench.join(.sendonly, at: 0)
        _ = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        let (directory, id) = (bench.nodes[0].directory, member.participant)
        for number in 1...100 {
            try await directory.perform(
                .setMuted(number.isMultiple(of: 2), kinds: [.video], of: .participant(id)),
                by: id
            )
            try await directory.perform(.setMetadata(json: "\(number)", of: id, push: nil), by: id)
        }
        var generator = SeededGenerator(seed: 1)
        var messages = 0
        while await bench.cluster.deliverOne(using: &generator) { messages += 1 }
        #expect(messages == 10)
        #expect(await directory.connection(of: id)?.member.metadataJSON == "100", "its own node has the latest")
        await bench.pass(seconds: 1)
        let known = try #require(await bench.nodes[1].directory.connection(of: id))
        #expect(known.member.metadataJSON == "100" && known.muted == [.video])
    }

    @Test func `what an operator asks for a receiver is done at its node`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0)
        let viewer = try await bench.join(.recvonly, at: 1) { $0.clientID = "v" }
        await bench.settle()
        let directory = bench.nodes[0].directory
        let height = ChannelCommand.requestHeight(180, receiver: viewer.participant, sender: nil)
        try await directory.perform(height, in: Self.channel)
        await bench.settle()
        let slot = TrackID(peer: viewer.peer, mid: RoomsBench.mid)
        #expect(await bench.nodes[1].bench.plane.preferences[slot]?.height == 180)
        for (isSubscribed, source) in [(false, nil), (true, bench.track(of: publisher))] {
            let selection = SubscriptionSelection(kind: .video)
            let command = ChannelCommand.subscribe(isSubscribed, to: selection, receiver: .user("v"))
            #expect(try await directory.perform(command, in: Self.channel).participants == [viewer.participant])
            await bench.settle()
            #expect(await bench.source(of: viewer, at: 1) == source)
        }
        await #expect(throws: RoomError.spotlightUnused) {
            let reset = ChannelCommand.requestSpotlightLayers(nil, receiver: viewer.participant, sender: nil)
            try await directory.perform(reset, in: Self.channel)
        }
        let ids = [(publisher.participant, nil), (viewer.participant, viewer.participant)]
        for (receiver, sender) in ids as [(ParticipantID, ParticipantID?)] {
            await #expect(throws: RoomError.participantUnknown) {
                let command = ChannelCommand.requestLayer(.nothing, receiver: receiver, sender: sender)
                try await bench.nodes[1].directory.perform(command, in: Self.channel)
            }
        }
    }

    @Test func `messages and the focus of an operator reach the members of every node`() async throws {
        let bench = ClusterBench(2)
        var members: [(id: ParticipantID, peer: PeerID, events: ParticipantEvents)] = []
        for node in bench.nodes {
            members.append(
                try await node.bench.member(.sendrecv) { request in
                    request.agent = ClientAgent(signaling: .sora)
                    request.receivesNotifications = true
                    request.spotlight = Spotlight(focus: .richest, unfocus: .level(0))
                }
            )
            await bench.settle()
        }
        let directory = bench.nodes[0].directory
        let all = ChannelCommand.push(json: "1", to: .all)
        #expect(try await directory.perform(all, in: Self.channel).participants == members.map(\.id))
        try await directory.perform(.push(json: "2", to: .participants([members[1].id])), in: Self.channel)
        try await directory.perform(.focus(members[1].id, isFixed: true), in: Self.channel)
        await bench.settle()
        try await directory.perform(.unfocus(members[1].id), in: Self.channel)
        await bench.settle()
        await bench.nodes[1].directory.end(members[1].id, reason: .left)
        var seen: [String] = []
        for await event in members[1].events {
            switch event {
            case .push(let text): seen.append(text)
            case .notification(let notification):
                switch notification.content {
                case .spotlightFocused(let member, let isFixed):
                    seen.append("focused \(member.id == members[1].id) \(isFixed)")
                case .spotlightUnfocused(let member, _): seen.append("unfocused \(member.id == members[1].id)")
                default: break
                }
            default: break
            }
        }
        #expect(seen == ["1", "2", "focused true true", "unfocused true"])
    }

    @Test func `a node that shuts down ends its own members only`() async throws {
        let bench = ClusterBench(2)
        _ = try await bench.join(.sendonly, at: 0)
        let viewer = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        await bench.nodes[0].directory.shutdown()
        await bench.settle()
        #expect(await bench.members(at: 1) == [viewer.participant])
    }

    @Test(arguments: [false, true])
    func `a listener learns of members at other nodes`(_ listensThereToo: Bool) async throws {
        let bench = ClusterBench(2)
        let listener = try await bench.nodes[1].directory.listen(to: Self.channel)
        if listensThereToo { _ = try await bench.nodes[0].directory.listen(to: Self.channel) }
        await bench.settle()
        let publisher = try await bench.join(.sendonly, at: 0)
        await bench.settle()
        #expect(await bench.members(at: 1) == [publisher.participant])
        await bench.nodes[1].directory.stopListening(listener.id)
        #expect(await bench.nodes[1].directory.isEmpty)
    }

    @Test func `a call about a channel of other nodes knows their members meanwhile`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0) { $0.clientID = "p" }
        let directory = bench.nodes[1].directory
        #expect(await bench.members(at: 1).isEmpty)
        let ended = await directory.withRemoteParticipants(of: Self.channel) {
            await bench.settle()
            return await directory.kick("p", from: Self.channel)
        }
        #expect(ended == [publisher.participant])
        await bench.settle()
        #expect(await directory.isEmpty)
        #expect(await bench.nodes[0].directory.isEmpty)
    }

    @Test func `filters, the profile and holds are the same at all nodes`() async throws {
        let bench = ClusterBench(3)
        let publisher = try await bench.join(.sendonly, at: 0)
        let viewer = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        let filter = ForwardingFilter(rules: [[.init(field: .kind, operator: .isIn, values: ["video"])]])
        try await bench.nodes[0].directory.perform(.createFilter(filter, scope: .channel), in: Self.channel)
        await bench.settle()
        #expect(try await bench.nodes[1].directory.filters(of: .channel, in: Self.channel) == [filter])
        #expect(await bench.source(of: viewer, at: 1) == nil)
        let late = try await bench.join(.recvonly, at: 2)
        await bench.settle()
        #expect(await bench.source(of: late, at: 2) == nil)
        let delete = ChannelCommand.deleteFilter(name: filter.name, scope: .channel, expected: nil)
        try await bench.nodes[2].directory.perform(delete, in: Self.channel)
        await bench.settle()
        for (resource, node) in [(viewer, 1), (late, 2)] {
            #expect(await bench.source(of: resource, at: node) == bench.track(of: publisher))
        }
    }

    @Test func `a node that refuses its part of a command says so`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0)
        _ = try await bench.join(.recvonly, at: 0)
        _ = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        // The other node has not heard of its end yet.
        await bench.leave(publisher, at: 0)
        let command = ChannelCommand.requestKeyFrames(of: publisher.participant)
        let elsewhere = ChannelName("elsewhere")!
        await bench.nodes[0].directory.received(command, of: Self.channel, from: bench.nodes[1].incarnation)
        await bench.nodes[0].directory.received(command, of: elsewhere, from: bench.nodes[1].incarnation)
        #expect(bench.cluster.refusals == [.participantUnknown, .channelUnknown])
    }

    @Test func `a host of another node becomes audience and host again`() async throws {
        let bench = ClusterBench(2)
        let interactive = { (request: inout JoinRequest) in
            request.options = MemberOptions(profile: .interactive, role: .host, source: .camera)
            request.mayPublish = true
        }
        let host = try await bench.join(.sendrecv, at: 0, interactive)
        let viewer = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        for (role, source) in [(ChannelRole.audience, nil), (.host, bench.track(of: host))] {
            let command = ChannelCommand.setRole(role, of: .participant(host.participant))
            try await bench.nodes[1].directory.perform(command, in: Self.channel)
            await bench.settle()
            #expect(await bench.source(of: viewer, at: 1) == source)
            #expect(await bench.nodes[0].directory.connection(of: host.participant)?.channelRole == role)
        }
    }

    @Test func `a connection to another node's track that failed is made a second later`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0)
        await bench.settle()
        let (directory, plane) = (bench.nodes[1].directory, bench.nodes[1].bench.plane)
        await plane.setRefused(bench.track(of: publisher).location)
        let viewers = [try await bench.join(.recvonly, at: 1), try await bench.join(.recvonly, at: 1)]
        await bench.settle()
        let leaving = viewers[1]
        #expect(await plane.sources.isEmpty)
        let before = await plane.connectCount
        await directory.tick()
        await bench.settle()
        #expect(await plane.connectCount == before + 2)
        await plane.setRefused(nil)
        await bench.leave(leaving, at: 1)
        await directory.tick()
        await bench.settle()
        #expect(await bench.source(of: viewers[0], at: 1) == bench.track(of: publisher))
        #expect(await plane.connectCount == before + 3, "only for the viewer that stayed")
        await directory.tick()
        await bench.settle()
        #expect(await plane.connectCount == before + 3)
        // A failed connection to a track that left is forgotten.
        await bench.nodes[1].bench.report(.sourceLost(slot: RoomsBench.mid), from: viewers[0].peer)
        await bench.leave(publisher, at: 0)
        await bench.settle()
        let last = await plane.connectCount
        await directory.tick()
        await bench.settle()
        #expect(await plane.connectCount == last)
    }

    @Test func `a slot that lost its source gets it again a second later`() async throws {
        let bench = ClusterBench(2)
        let publisher = try await bench.join(.sendonly, at: 0)
        let viewer = try await bench.join(.recvonly, at: 1) { $0.videoHeight = 180 }
        await bench.settle()
        let (directory, plane) = (bench.nodes[1].directory, bench.nodes[1].bench.plane)
        let slot = TrackID(peer: viewer.peer, mid: RoomsBench.mid)
        await plane.dropSource(of: slot)
        await bench.nodes[1].bench.report(.sourceLost(slot: slot.mid), from: slot.peer)
        await directory.tick()
        await bench.settle()
        #expect(await bench.source(of: viewer, at: 1) == bench.track(of: publisher))
        #expect(await plane.preferences[slot]?.height == 180)
    }

    @Test func `a node tells of its own members and peers only`() async throws {
        let bench = ClusterBench(3)
        let own = try await bench.join(.recvonly, at: 0)
        let foreign = try await bench.join(.sendonly, at: 1)
        let hostile = try await bench.join(.sendonly, at: 2)
        await bench.settle()
        let (victim, hostileNode) = (bench.nodes[0], bench.nodes[2].incarnation)
        // The peer that the node makes next.
        var claiming = try #require(await bench.model(at: 2)?.participants[hostile.participant])
        claiming.peer = PeerID(node: victim.incarnation, number: own.peer.number + 1)
        // The member of a third node.
        var impersonating = try #require(await bench.model(at: 1)?.participants[foreign.participant])
        impersonating.peer = PeerID(node: hostileNode, number: 99)
        impersonating.location = hostile.location
        for participant in [claiming, impersonating] {
            let news = ChannelUpdate.changed([MemberRecord(participant)])
            await victim.directory.received(news, of: Self.channel, from: hostileNode)
        }
        let late = try await bench.join(.recvonly, at: 0)
        await bench.settle()
        #expect(late.peer == claiming.peer)
        #expect(await bench.model(at: 0)?.participants[foreign.participant]?.peer == foreign.peer)
        #expect(await bench.members(at: 0).count == 4)
    }

    @Test func `a node knows ten thousand members of others at most`() throws {
        var bench = ModelBench()
        _ = try bench.viewer()
        var model = try #require(bench.model.channels[ModelBench.channel])
        let node = try #require(NodeIncarnation(rawValue: 2))
        let request = JoinRequest(channel: ModelBench.channel, role: .recvonly)
        let most = ChannelModel.remoteMembersMax
        let records = (0...most).map { number in
            let place = ParticipantLocation(
                participant: ParticipantID(using: &bench.generator),
                peer: PeerID(node: node, number: UInt64(number + 1)),
                location: MediaLocation(node: node, loop: LoopIndex(rawValue: 0)),
                order: 0
            )
            return MemberRecord(Participant(request, role: .recvonly, as: place, at: model.now))
        }
        for (number, record) in records.enumerated() { _ = model.remoteChanged(record) { UInt64(100 + number) } }
        let last = records[most].id
        #expect(model.memberCount == most + 1, "with the node's own")
        #expect(model.participants[last] == nil)
        // One that left makes room.
        _ = model.remoteLeft(records[0].id, .left)
        _ = model.remoteChanged(records[most]) { UInt64(100 + most) }
        #expect(model.participants[last]?.isRemote == true)
    }

    @Test func `a node that gets the channel later knows who is fixed in focus`() async throws {
        let bench = ClusterBench(4)
        let spotlight = { (request: inout JoinRequest) in
            request.following = .everyone
            request.spotlight = Spotlight(number: 1, focus: .richest, unfocus: .level(0))
        }
        let (first, second) = (
            try await bench.join(.sendrecv, at: 0, spotlight), try await bench.join(.sendrecv, at: 1, spotlight)
        )
        await bench.settle()
        func focused(at node: Int) async -> [ParticipantID]? {
            await bench.model(at: node)?.state.session?.speakers.focused
        }
        try await bench.nodes[0].directory.perform(.focus(second.participant, isFixed: true), in: Self.channel)
        await bench.settle()
        _ = try await bench.join(.recvonly, at: 2, spotlight)
        await bench.settle()
        for node in 0..<3 { #expect(await focused(at: node) == [second.participant], "node \(node)") }
        // Any node changes it.
        try await bench.nodes[2].directory.perform(.focus(first.participant, isFixed: true), in: Self.channel)
        try await bench.nodes[2].directory.perform(.unfocus(second.participant), in: Self.channel)
        await bench.settle()
        _ = try await bench.join(.recvonly, at: 3, spotlight)
        await bench.settle()
        for node in 0..<4 { #expect(await focused(at: node) == [first.participant], "node \(node)") }
        await bench.leave(first, at: 0)
        await bench.settle()
        for node in 1..<4 { #expect(await bench.model(at: node)?.register.fixed == [], "node \(node)") }
    }

    @Test func `the members of a lost node leave, and are back when it is`() async throws {
        let bench = ClusterBench(2)
        let (one, other) = (bench.nodes[0].incarnation, bench.nodes[1].incarnation)
        let publisher = try await bench.join(.sendonly, at: 0)
        let viewer = try await bench.join(.recvonly, at: 1)
        await bench.settle()
        bench.cluster.cut(one, other)
        await bench.cluster.giveUp(one, other)
        await bench.settle()
        #expect(await bench.source(of: viewer, at: 1) == nil)
        #expect(await bench.members(at: 0) == [publisher.participant])
        let late = try await bench.join(.recvonly, at: 1)
        bench.cluster.heal(one, other)
        await bench.settle()
        for resource in [viewer, late] {
            #expect(await bench.source(of: resource, at: 1) == bench.track(of: publisher))
        }
        #expect(await bench.members(at: 0) == bench.members(at: 1))
    }

    @Test func `a user that joins again at another node replaces itself`() async throws {
        let bench = ClusterBench(2)
        let user = { (request: inout JoinRequest) in
            request.user = UserIdentity("ann", .authorized)
            request.duplicateUsers = .replace
        }
        let first = try await bench.join(.sendonly, at: 0, user)
        await bench.pass(seconds: 1)
        let second = try await bench.join(.sendonly, at: 1, user)
        await bench.settle()
        #expect(first.participant != second.participant)
        #expect(await bench.isEmptySoon(at: 0))
        #expect(await bench.members(at: 1) == [second.participant])
    }

    @Test func `a client that chooses the name of a client of another node does not put it out`() async throws {
        let bench = ClusterBench(2)
        let copied = { (request: inout JoinRequest) in
            request.user = UserIdentity("ann", .chosen)
            request.duplicateUsers = .replace
        }
        let first = try await bench.join(.sendonly, at: 0, copied)
        await bench.pass(seconds: 1)
        let second = try await bench.join(.sendonly, at: 1, copied)
        await bench.settle()
        for node in 0..<2 {
            #expect(await bench.members(at: node) == [first.participant, second.participant])
        }
    }

    /// A member with one channel of messages, which is open.
    private func joinWithData(
        _ bench: ClusterBench,
        at node: Int,
        _ label: String,
        receives: Bool = true,
        header: DataChannelPlan.Header = .none,
        bundle: String? = nil
    ) async throws -> ChannelDirectory.Reservation {
        let one = bench.nodes[node].bench
        var request = JoinRequest(channel: Self.channel, role: .sendonly, following: .everyone)
        let use = DataChannelPlan.Use.messages(sends: true, receives: receives)
        request.data = DataPlan([DataChannelPlan(DataChannelParameters(label: label), use: use, header: header)])
        request.bundleID = bundle
        request.bundleScope = bundle.map { _ in .granted }
        let reservation = try await one.directory.reserve(request)
        _ = try await one.directory.activate(
            reservation,
            remote: RoomsBench.remote,
            data: DataTransportParameters(),
            firstMediaKind: .video,
            mids: []
        )
        let opened = DataEvent.opened(
            DataChannelID(rawValue: 1),
            DataChannelParameters(label: label),
            isIncoming: false,
            lease: nil
        )
        await one.report(.data(opened), from: reservation.peer)
        await bench.settle()
        return reservation
    }

    @Test func `messages of data channels reach the members of other nodes`() async throws {
        let bench = ClusterBench(3)
        let sender = try await joinWithData(bench, at: 0, "#chat", bundle: "b")
        let plain = try await joinWithData(bench, at: 1, "#chat")
        let headed = try await joinWithData(bench, at: 2, "#chat", header: .connection)
        let companion = try await joinWithData(bench, at: 2, "#chat", bundle: "b")
        _ = try await joinWithData(bench, at: 1, "#other")
        let message = DataMessage(Array("hi".utf8), isText: true)
        await bench.nodes[0].bench.report(.data(.message(DataChannelID(rawValue: 1), message)), from: sender.peer)
        await bench.settle()
        var got: [ParticipantID: [[UInt8]]] = [:]
        for (reservation, node) in [(sender, 0), (plain, 1), (headed, 2), (companion, 2)] {
            let address = DataAddress(peer: reservation.peer, channel: DataChannelID(rawValue: 1))
            got[reservation.participant] = await bench.nodes[node].bench.plane.dataCommands.compactMap { command in
                if case .send(let sent, let to) = command, to.contains(address) { sent.bytes } else { nil }
            }
        }
        #expect(got[plain.participant] == [message.bytes])
        #expect(got[headed.participant] == [Array(sender.participant.value.utf8) + message.bytes])
        #expect(got[companion.participant] == [] && got[sender.participant] == [])
    }

    @Test func `messages reach a client of another node that opened its channel itself`() async throws {
        let bench = ClusterBench(2)
        let sender = try await joinWithData(bench, at: 0, "#chat")
        let one = bench.nodes[1].bench
        let request = JoinRequest(channel: Self.channel, role: .recvonly, following: .currentPublisher)
        let viewer = try await one.directory.reserve(request)
        _ = try await one.directory.activate(
            viewer,
            remote: RoomsBench.remote,
            data: DataTransportParameters(),
            firstMediaKind: .video,
            mids: []
        )
        let opened = DataEvent.opened(
            DataChannelID(rawValue: 4),
            DataChannelParameters(label: "#chat"),
            isIncoming: true,
            lease: nil
        )
        await one.report(.data(opened), from: viewer.peer)
        await bench.settle()
        let message = DataMessage(Array("hi".utf8), isText: true)
        await bench.nodes[0].bench.report(.data(.message(DataChannelID(rawValue: 1), message)), from: sender.peer)
        await bench.settle()
        let address = DataAddress(peer: viewer.peer, channel: DataChannelID(rawValue: 4))
        let got = await one.plane.dataCommands.contains { command in
            if case .send(_, let to) = command { to.contains(address) } else { false }
        }
        #expect(got)
    }

    /// Members come and go at three nodes while links are cut and heal. In the end every node knows all members, and viewers
    /// at all nodes play the same publisher.
    @Test(arguments: 0..<20) func `nodes agree in the end`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let bench = ClusterBench(3)
        var present: [(resource: ChannelDirectory.Resource, node: Int, role: Role)] = []
        for _ in 0..<60 {
            let node = Int.random(in: 0..<3, using: &generator)
            let other = (node + 1) % 3
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...4:
                let role: Role = Bool.random(using: &generator) ? .sendonly : .recvonly
                present.append((try await bench.join(role, at: node), node, role))
            case 5, 6:
                guard let index = present.indices.randomElement(using: &generator) else { continue }
                let member = present.remove(at: index)
                await bench.leave(member.resource, at: member.node)
            case 7: bench.cluster.cut(bench.nodes[node].incarnation, bench.nodes[other].incarnation)
            case 8: bench.cluster.heal(bench.nodes[node].incarnation, bench.nodes[other].incarnation)
            default: break
            }
            for _ in 0..<Int.random(in: 0..<4, using: &generator) {
                _ = await bench.cluster.deliverOne(using: &generator)
            }
        }
        for node in 0..<3 {
            bench.cluster.heal(bench.nodes[node].incarnation, bench.nodes[(node + 1) % 3].incarnation)
        }
        await bench.settle()
        let all = Set(present.map(\.resource.participant))
        var playing: Set<PlacedTrack?> = []
        for node in Set(present.map(\.node)) {
            #expect(await bench.members(at: node) == all, "node \(node)")
        }
        for member in present where member.role == .recvonly {
            playing.insert(await bench.source(of: member.resource, at: member.node))
        }
        #expect(playing.count <= 1, "\(playing)")
        for member in present { await bench.leave(member.resource, at: member.node) }
        await bench.settle()
        for node in bench.nodes { #expect(await node.directory.isEmpty) }
    }
}
