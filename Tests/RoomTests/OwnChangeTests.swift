import Base
import MediaTypes
import RoomTestSupport
import SeedSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// The budget of what members change of themselves: mutes, roles and metadata.
struct OwnChangeTests {
    private static let plain = MemberOptions(profile: .communication)
    private static let host = MemberOptions(profile: .interactive, role: .host)
    private static let audience = MemberOptions(profile: .interactive, role: .audience)

    private static func time(_ milliseconds: Int) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: 0) + .milliseconds(milliseconds), unixNanoseconds: 0)
    }

    /// What others are told of tracks.
    private static func tracks(_ effects: [ChannelModel.Effect]) -> [PublishedTracks] {
        effects.notifications.compactMap { content, _ in
            if case .tracksChanged(let tracks) = content { tracks } else { nil }
        }
    }

    /// How many receivers are notified, each notification by itself.
    private static func deliveries(_ effects: [ChannelModel.Effect]) -> Int {
        effects.notifications.reduce(0) { $0 + $1.to.count }
    }

    private static func snapshots(_ effects: [ChannelModel.Effect]) -> Int {
        effects.count { if case .channelChanged = $0 { true } else { false } }
    }

    /// Mutes and unmutes until the budget is empty: the member is not muted then.
    private static func spend(_ bench: inout ModelBench, by id: ParticipantID) throws {
        for number in 1...10 {
            let effects = try bench.model.mute(!number.isMultiple(of: 2), .audio, of: id, by: .member)
            #expect(tracks(effects).count == 1, "change \(number) is told at once")
        }
    }

    @Test func `a hundred mutes a second cost a channel of 300 two tellings a second`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        for _ in 0..<299 { _ = try bench.member(.recvonly) { $0.options = Self.plain } }
        let work = bench.model.workDone
        var effects: [ChannelModel.Effect] = []
        for step in 0..<1_000 {
            bench.model.now = Self.time(10 * step)
            effects += try bench.model.mute(step.isMultiple(of: 2), .audio, of: sender, by: .member)
            if step.isMultiple(of: 100) { effects += bench.model.tick(at: Self.time(10 * step)) }
        }
        // In ten seconds.
        let tellings = 10 + 2 * 10
        #expect((10...tellings).contains(Self.tracks(effects).count))
        #expect(Self.deliveries(effects) <= tellings * 299)
        #expect(Self.snapshots(effects) <= tellings, "readers of the channel's events are told as often")
        #expect(bench.model.workDone - work <= tellings * 300, "a change that waits looks at nobody")
        let limited = bench.model.channels[ModelBench.channel]?.limitedChanges ?? [:]
        #expect(limited[.delayed, default: 0] >= 1_000 - UInt64(tellings))
        // The last one unmutes. Others are told when it is quiet, if they did not know.
        for second in 10...12 { effects += bench.model.tick(at: Self.time(1_000 * second)) }
        #expect(Self.tracks(effects).last?.isAudioMuted == false)
        #expect(bench.model.connection(of: sender)?.muted == [])
    }

    @Test func `others are told of the latest change, and of none that was taken back`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        _ = try bench.member(.recvonly) { $0.options = Self.plain }
        try Self.spend(&bench, by: sender)
        #expect(try bench.model.mute(true, .audio, of: sender, by: .member).isEmpty)
        #expect(bench.model.connection(of: sender)?.muted == [], "what others know")
        #expect(try bench.model.mute(false, .audio, of: sender, by: .member).isEmpty)
        #expect(bench.model.tick(at: Self.time(1_000)).notifications.isEmpty)
        // Two are left after a second.
        #expect(Self.tracks(try bench.model.mute(true, .video, of: sender, by: .member)).count == 1)
        #expect(Self.tracks(try bench.model.mute(true, .audio, of: sender, by: .member)).count == 1)
        #expect(try bench.model.mute(false, .video, of: sender, by: .member).isEmpty)
        #expect(try bench.model.mute(false, .audio, of: sender, by: .member).isEmpty)
        let told = Self.tracks(bench.model.tick(at: Self.time(2_000)))
        #expect(told.count == 1 && told.first?.isVideoMuted == false && told.first?.isAudioMuted == false)
        #expect(bench.model.tick(at: Self.time(3_000)).notifications.isEmpty, "nothing is told twice")
    }

    @Test func `a change that waits is told with the next one, and without a token it goes on waiting`() throws {
        var bench = ModelBench(limits: RoomLimits(changesPerSecond: 1, changeBurst: 1))
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        _ = try bench.member(.recvonly) { $0.options = Self.plain }
        bench.model.now = Self.time(900)
        _ = try bench.model.mute(true, .video, of: sender, by: .member)
        #expect(try bench.model.mute(true, .audio, of: sender, by: .member).isEmpty)
        #expect(bench.model.tick(at: Self.time(1_000)).notifications.isEmpty, "a tenth of a second later")
        bench.model.now = Self.time(1_950)
        let told = Self.tracks(try bench.model.mute(false, .video, of: sender, by: .member))
        #expect(told.count == 1 && told.first?.isVideoMuted == false && told.first?.isAudioMuted == true)
        #expect(bench.model.channels[ModelBench.channel]?.changeDeadlines.isEmpty == true)
        #expect(bench.model.tick(at: Self.time(3_000)).notifications.isEmpty)
    }

    @Test func `a newcomer is told what others know, and of the change with them`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        let viewer = try bench.member(.recvonly) { $0.options = Self.plain }
        try Self.spend(&bench, by: sender)
        _ = try bench.model.mute(true, .audio, of: sender, by: .member)
        let (newcomer, effects) = try bench.join(.recvonly) { $0.options = Self.plain }
        let joined = effects.notifications.compactMap { content, _ in
            if case .channelJoined(let joined) = content { joined } else { nil }
        }
        #expect(joined.first?.users.first?.connections.first?.tracks.isAudioMuted == false)
        let later = bench.model.tick(at: Self.time(1_000)).notifications
        #expect(later.count == 1 && Set(later.first?.to ?? []) == [viewer, newcomer])
    }

    @Test func `an operator's mute is told at once, and keeps a change that waits waiting`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        _ = try bench.member(.recvonly) { $0.options = Self.plain }
        try Self.spend(&bench, by: sender)
        _ = try bench.model.mute(true, .video, of: sender, by: .member)
        for number in 1...20 {
            let muted = Self.tracks(
                try bench.model.mute(!number.isMultiple(of: 2), .audio, of: sender, by: .operator)
            )
            #expect(muted.map(\.isAudioMuted) == [!number.isMultiple(of: 2)] && muted.first?.isVideoMuted == false)
        }
        _ = try bench.model.mute(true, .video, of: sender, by: .operator)
        #expect(throws: RoomError.mutedByOperator) { try bench.model.mute(false, .video, of: sender, by: .member) }
        #expect(Self.tracks(bench.model.tick(at: Self.time(1_000))).isEmpty, "muted by either is muted")
        let free = Self.tracks(try bench.model.mute(false, .video, of: sender, by: .operator))
        #expect(free.isEmpty && bench.model.connection(of: sender)?.muted == [.video], "it muted itself, too")
    }

    @Test func `a role beyond the budget is refused, and an operator has none`() throws {
        var bench = ModelBench()
        _ = try bench.member(.sendrecv) { $0.options = Self.host }
        let guest = try bench.member(.sendrecv) { $0.options = Self.audience }
        for number in 1...10 {
            let role: ChannelRole = number.isMultiple(of: 2) ? .audience : .host
            #expect(try !bench.model.changeRole(of: guest, to: role).isEmpty)
            #expect(try bench.model.changeRole(of: guest, to: role).isEmpty, "the role that it has costs nothing")
        }
        #expect(throws: RoomError.changesTooFrequent) { try bench.model.changeRole(of: guest, to: .host) }
        #expect(bench.model.connection(of: guest)?.channelRole == .audience)
        #expect(try !bench.model.changeRole(of: guest, to: .host, by: .operator).isEmpty)
        #expect(throws: RoomError.changesTooFrequent) { try bench.model.changeRole(of: guest, to: .audience) }
        bench.model.now = Self.time(499)
        #expect(throws: RoomError.changesTooFrequent) { try bench.model.changeRole(of: guest, to: .audience) }
        bench.model.now = Self.time(500)
        #expect(try !bench.model.changeRole(of: guest, to: .audience).isEmpty)
        #expect(bench.model.channels[ModelBench.channel]?.limitedChanges == [.refused: 3])
    }

    @Test func `a role that is refused for another reason takes nothing of the budget`() throws {
        var bench = ModelBench(limits: RoomLimits(publishersPerChannelMax: 1, changeBurst: 1))
        let guest = try bench.member(.sendrecv) { $0.options = Self.audience }
        let host = try bench.member(.sendrecv) { $0.options = Self.host }
        for _ in 0..<5 {
            #expect(throws: RoomError.publishersFull) { try bench.model.changeRole(of: guest, to: .host) }
        }
        _ = bench.model.left(host, reason: .left)
        #expect(try !bench.model.changeRole(of: guest, to: .host).isEmpty)
    }

    @Test func `pushes beyond the budget are refused, and metadata without a push never is`() throws {
        var bench = ModelBench()
        let member = try bench.member(.sendrecv) { $0.options = Self.plain }
        let put = { (bench: inout ModelBench, json: String, isPushed: Bool) throws -> [ChannelModel.Effect] in
            try bench.model.change(of: member) { model throws(RoomError) in
                try model.metadataChanged(to: json, of: member, push: isPushed ? "{}" : nil)
            }
        }
        for number in 1...10 { _ = try put(&bench, "\(number)", true) }
        #expect(throws: RoomError.changesTooFrequent) { try put(&bench, "11", true) }
        #expect(bench.model.connection(of: member)?.member.metadataJSON == "10", "nothing has changed")
        for number in 12...50 { _ = try put(&bench, "\(number)", false) }
        #expect(bench.model.connection(of: member)?.member.metadataJSON == "50", "the next change is one of the latest")
    }

    @Test func `a channel that is stored and continued with tells what waited`() throws {
        var bench = ModelBench()
        bench.model.codesChannels = true
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        _ = try bench.member(.recvonly) { $0.options = Self.plain }
        try Self.spend(&bench, by: sender)
        #expect(try bench.model.mute(true, .audio, of: sender, by: .member).isEmpty)
        #expect(Self.tracks(bench.model.tick(at: Self.time(1_000))).first?.isAudioMuted == true)
    }

    @Test func `a change of a member whose connection is lost is told, and its return brings no new budget`() throws {
        var bench = ModelBench()
        let alice = UserIdentity("alice", .authorized)
        var request = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone, user: alice)
        request.options = Self.plain
        request.keepsPlace = true
        let sender = try bench.member(.sendrecv) { $0 = request }
        _ = try bench.member(.recvonly) { $0.options = Self.plain }
        try Self.spend(&bench, by: sender)
        _ = try bench.model.mute(true, .audio, of: sender, by: .member)
        request.resumeToken = bench.model.channels[ModelBench.channel]?.resumeToken(of: sender)
        _ = bench.model.left(sender, reason: .signalingLost)
        #expect(Self.tracks(bench.model.tick(at: Self.time(1_000))).first?.isAudioMuted == true)
        #expect(try bench.reserve(request) == sender)
        let publications = [
            Publication(mid: ModelBench.audio, kind: .audio), Publication(mid: ModelBench.video, kind: .video),
        ]
        _ = try bench.model.setupCompleted(sender, publications: publications, slots: [])
        _ = bench.receive(.connected(over: .udp), from: sender)
        // Of the two changes of a second, one is left.
        #expect(Self.tracks(try bench.model.mute(true, .video, of: sender, by: .member)).count == 1)
        #expect(try bench.model.mute(false, .video, of: sender, by: .member).isEmpty)
    }

    @Test func `a member that leaves leaves nothing that waits`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.plain }
        for number in 1...12 { _ = try bench.model.mute(!number.isMultiple(of: 2), .audio, of: sender, by: .member) }
        #expect(bench.model.channels[ModelBench.channel]?.changeDeadlines.isEmpty == false)
        _ = bench.model.left(sender, reason: .left)
        #expect(bench.model.isEmpty, "a channel that is not used holds nothing")
    }

    @Test func `what is limited is counted for the node`() async throws {
        let clock = RoomClock { RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0) }
        let environment = RoomEnvironment(clock: clock) { UInt64.random(in: 0...UInt64.max) }
        let limits = RoomLimits(publishersMax: 1)
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], limits: limits, environment: environment)
        var request = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone)
        request.options = Self.audience
        let reservation = try await directory.reserve(request)
        _ = try await directory.activate(reservation, remote: RoomsBench.remote, firstMediaKind: .audio, mids: [])
        let id = reservation.participant
        for number in 1...13 {
            try await directory.perform(
                .setMuted(!number.isMultiple(of: 2), kinds: [.audio], of: .participant(id)),
                by: id
            )
        }
        await #expect(throws: RoomError.changesTooFrequent) {
            try await directory.perform(.setRole(.host, of: .participant(id)), by: id)
        }
        await #expect(throws: RoomError.changesTooFrequent) {
            try await directory.perform(.setMetadata(json: "1", of: id, push: "{}"), by: id)
        }
        #expect(await directory.limitedChanges == [.delayed: 3, .refused: 2])
        // The place among the node's publishers is given back.
        _ = try await directory.reserve(JoinRequest(channel: ChannelName("hall")!, role: .sendonly))
        await directory.shutdown()
        #expect(await directory.isEmpty)
    }
}

/// Random changes of two members, told to a third.
struct OwnChangePropertyTests {
    @Test(arguments: Seeds.cases(0..<10))
    func `others know what holds once it is quiet, and are told within the budget`(seeds: Seeds) async {
        for failure in await seeds.failures(of: Self.self, Self.run) { Issue.record("\(failure)") }
    }

    private static func run(_ run: SeededRun) throws {
        var bench = ModelBench()
        let options = MemberOptions(profile: .communication)
        let sender = try bench.member(.sendrecv) { $0.options = options }
        let observer = try bench.member(.recvonly) { $0.options = options }
        var (own, operators): (Set<MediaKind>, Set<MediaKind>) = ([], [])
        var known: Set<MediaKind> = []
        var (milliseconds, tellings, decisions) = (0, 0, 0)
        func hear(_ effects: [ChannelModel.Effect]) {
            for (content, receivers) in effects.notifications where receivers.contains(observer) {
                guard case .tracksChanged(let tracks) = content else { continue }
                known = []
                if tracks.isAudioMuted { known.insert(.audio) }
                if tracks.isVideoMuted { known.insert(.video) }
                tellings += 1
            }
        }
        try run.takeSteps(300) { generator in
            let kind: MediaKind = Bool.random(using: &generator) ? .audio : .video
            let isMuted = Bool.random(using: &generator)
            switch Int.random(in: 0..<20, using: &generator) {
            case 0:
                run.note("an operator changes \(kind)")
                hear(try bench.model.mute(isMuted, kind, of: sender, by: .operator))
                if isMuted { operators.insert(kind) } else { operators.remove(kind) }
                decisions += 1
            case 1...4:
                milliseconds += Int.random(in: 0..<400, using: &generator)
                run.note("it is \(milliseconds) ms")
                let now = RoomTime(instant: Instant(nanoseconds: 0) + .milliseconds(milliseconds), unixNanoseconds: 0)
                hear(bench.model.tick(at: now))
            default:
                run.note("\(kind) is \(isMuted ? "muted" : "unmuted")")
                guard isMuted || !operators.contains(kind) else { return }
                hear(try bench.model.mute(isMuted, kind, of: sender, by: .member))
                if isMuted { own.insert(kind) } else { own.remove(kind) }
            }
            run.expect(bench.model.connection(of: sender)?.muted == known, "what the API says is what others know")
            run.expect(tellings <= 10 + milliseconds / 500 + decisions, "\(tellings) tellings in \(milliseconds) ms")
        }
        for _ in 0..<2 {
            milliseconds += 1_000
            let now = RoomTime(instant: Instant(nanoseconds: 0) + .milliseconds(milliseconds), unixNanoseconds: 0)
            hear(bench.model.tick(at: now))
        }
        run.expect(known == own.union(operators), "others know \(known), not \(own) and \(operators)")
        for id in [sender, observer] { _ = bench.model.left(id, reason: .left) }
        run.expect(bench.model.isEmpty, "the model is empty")
    }
}
