import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// What operators decide about users: it holds for connections that the users make later.
struct OperatorTests {
    private static let host = MemberOptions(profile: .interactive, role: .host)

    private static func guest(_ request: inout JoinRequest) {
        request.clientID = "guest"
        request.user = UserIdentity("guest", .authorized)
        request.options = host
    }

    private static func contents(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Notification.Content] {
        effects.notifications.filter { $0.to.contains(id) }.map(\.content)
    }

    private func bench(limits: RoomLimits = RoomLimits()) -> ModelBench {
        var bench = ModelBench(limits: limits)
        bench.model.codesChannels = true
        return bench
    }

    // MARK: Roles

    @Test func `audience by an operator stays so until an operator makes it host, also when it joins again`() throws {
        var bench = bench()
        let other = try bench.member(.sendrecv) { $0.options = Self.host }
        let guest = try bench.member(.sendrecv, Self.guest)
        let down = try bench.model.userRole(.audience, of: "guest")
        #expect(down.changed == 1)
        #expect(Self.contents(down.effects, to: guest) == [.roleChanged(.audience, by: .operator)])
        #expect(Self.contents(down.effects, to: other).last == .userOffline("guest", .becameAudience))
        #expect(try bench.model.userRole(.audience, of: "guest").changed == 0)
        #expect(throws: RoomError.audienceByOperator) { try bench.model.changeRole(of: guest, to: .host) }
        #expect(try bench.model.changeRole(of: guest, to: .audience).isEmpty)

        _ = bench.model.left(guest, reason: .left)
        let again = try bench.member(.sendrecv, Self.guest)
        #expect(bench.model.connection(of: again)?.channelRole == .audience)
        #expect(throws: RoomError.audienceByOperator) { try bench.model.changeRole(of: again, to: .host) }
        #expect(throws: RoomError.audienceByOperator) { try bench.member(.sendonly, Self.guest) }
        // A client that does not know roles is audience too.
        let plain = try bench.member(.sendrecv) {
            Self.guest(&$0)
            $0.options = nil
        }
        #expect(bench.model.connection(of: plain)?.channelRole == .audience)
        _ = bench.model.left(plain, reason: .left)

        let up = try bench.model.userRole(.host, of: "guest")
        #expect(up.changed == 1 && Self.contents(up.effects, to: again).contains(.roleChanged(.host, by: .operator)))
        _ = try bench.model.changeRole(of: again, to: .audience)
        _ = try bench.model.changeRole(of: again, to: .host)
        #expect(bench.model.connection(of: again)?.channelRole == .host)
        for id in [again, other] { _ = bench.model.left(id, reason: .left) }
        #expect(bench.model.isEmpty)
    }

    @Test func `connections of new audience that only send end`() throws {
        var bench = bench()
        let other = try bench.member(.sendrecv) { $0.options = Self.host }
        let camera = try bench.member(.sendrecv, Self.guest)
        let screen = try bench.member(.sendonly) {
            Self.guest(&$0)
            $0.options?.source = .screen
        }
        let down = try bench.model.userRole(.audience, of: "guest")
        #expect(down.changed == 2 && down.effects.contains(.ended(screen, .madeAudience)))
        let offline = Self.contents(down.effects, to: other).filter {
            if case .userOffline = $0 { true } else { false }
        }
        #expect(offline == [.userOffline("guest", .becameAudience)])
        #expect(bench.model.connection(of: camera)?.channelRole == .audience)
    }

    @Test func `a user without a connection that can be host is not made host`() throws {
        var bench = bench(limits: RoomLimits(publishersPerChannelMax: 2))
        _ = try bench.member(.sendrecv) { $0.options = Self.host }
        _ = try bench.member(.recvonly) { $0.clientID = "viewer" }
        _ = try bench.member(.sendrecv) {
            $0.clientID = "forbidden"
            $0.options = MemberOptions(role: .audience)
            $0.mayPublish = false
        }
        _ = try bench.member(.sendrecv, Self.guest)
        _ = try bench.member(.sendrecv) {
            $0.clientID = "late"
            $0.options = MemberOptions(role: .audience)
        }
        let refusals: [(String, RoomError)] = [
            ("viewer", .roleUnavailable), ("forbidden", .publishingForbidden), ("late", .publishersFull),
            ("nobody", .participantUnknown),
        ]
        for (user, error) in refusals {
            #expect(throws: error) { try bench.model.userRole(.host, of: user) }
        }
        #expect(try bench.model.userRole(.host, of: "guest").changed == 0, "it is host already")
        let hall = ChannelName("hall")!
        _ = try bench.member(.sendrecv, in: hall, Self.plain)
        #expect(throws: RoomError.rolesUnused) { try bench.model.userRole(.audience, of: "guest", in: hall) }
    }

    private static func plain(_ request: inout JoinRequest) { request.clientID = "guest" }

    @Test func `an interrupted member that is made audience comes back as audience`() throws {
        var bench = bench()
        let other = try bench.member(.sendrecv) { $0.options = Self.host }
        let guest = try bench.member(.sendrecv) {
            Self.guest(&$0)
            $0.keepsPlace = true
        }
        _ = bench.model.left(guest, reason: .signalingLost)
        let down = try bench.model.userRole(.audience, of: "guest")
        #expect(down.changed == 1)
        #expect(Self.contents(down.effects, to: other).last == .userOffline("guest", .becameAudience))
        #expect(try bench.model.userMute(true, [.audio], of: "guest").changed == 1)

        let token = try #require(bench.model.channels[ModelBench.channel]?.resumeToken(of: guest))
        var request = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone)
        Self.guest(&request)
        request.resumeToken = token
        let place = try bench.model.joinRequested(
            request,
            id: ParticipantID(using: &bench.generator),
            session: ChannelSessionID(using: &bench.generator)
        )
        #expect(place.participant == guest)
        var effects = try bench.model.setupCompleted(guest, publications: [], slots: [])
        effects += bench.model.received(.connected(over: .udp), from: place.peer)
        let told = Self.contents(effects, to: guest)
        #expect(told.contains(.muted(.audio, isMuted: true, by: .operator)))
        #expect(told.contains { if case .channelJoined(let joined) = $0 { joined.role == .audience } else { false } })
        #expect(throws: RoomError.audienceByOperator) { try bench.model.changeRole(of: guest, to: .host) }
    }

    // MARK: Mutes

    @Test func `a mute holds for connections that the user makes later`() throws {
        var bench = bench()
        let viewer = try bench.member(.recvonly) { $0.options = MemberOptions(profile: .interactive) }
        let first = try bench.member(.sendrecv, Self.guest)
        let seen = try bench.see(first, by: viewer)
        let muted = try bench.model.userMute(true, [.audio, .video], of: "guest")
        #expect(muted.changed == 1)
        #expect(bench.slot(seen.audio)?.source == nil && bench.slot(seen.video)?.source == nil)
        #expect(throws: RoomError.mutedByOperator) { try bench.model.mute(false, .audio, of: first, by: .member) }
        #expect(try bench.model.userMute(false, [.video], of: "guest").changed == 1)
        #expect(bench.slot(seen.audio)?.source == nil && bench.slot(seen.video)?.source != nil)

        let (second, effects) = try bench.join(.sendrecv, Self.guest)
        #expect(bench.model.connection(of: second)?.muted == [.audio])
        #expect(Self.contents(effects, to: second).last == .muted(.audio, isMuted: true, by: .operator))
        let tracks = Self.contents(effects, to: viewer).compactMap { content in
            if case .tracksChanged(let tracks) = content { tracks } else { nil }
        }
        #expect(tracks.map(\.isAudioMuted) == [true] && tracks.map(\.isVideoMuted) == [false])
        #expect(try bench.model.userMute(false, [.audio], of: "guest").changed == 2)
        #expect(try bench.model.userMute(false, [.audio], of: "guest").changed == 0)
        #expect(throws: RoomError.participantUnknown) { try bench.model.userMute(true, [.audio], of: "nobody") }
    }

    @Test func `what holds ends with the session, and a nameless client's with its connection`() throws {
        var bench = bench()
        let guest = try bench.member(.sendrecv, Self.guest)
        let nameless = try bench.member(.sendrecv) { $0.options = Self.host }
        for user in ["guest", nameless.value] {
            _ = try bench.model.userRole(.audience, of: user)
            _ = try bench.model.userMute(true, [.video], of: user)
        }
        _ = bench.model.left(nameless, reason: .left)
        let channel = try #require(bench.model.channels[ModelBench.channel])
        #expect(channel.hold(of: nameless.value) == OperatorOverrides.Hold() && channel.hold(of: "guest").isAudience)
        _ = bench.model.left(guest, reason: .left)
        let again = try bench.member(.sendrecv, Self.guest)
        #expect(bench.model.connection(of: again)?.channelRole == .host)
        #expect(bench.model.connection(of: again)?.muted.isEmpty == true)
    }

    @Test func `the number of users with a hold is bounded`() {
        var holds = OperatorOverrides()
        for number in 0..<(OperatorOverrides.usersMax + 1) {
            holds.change("\(number)", isPresent: { $0 == "7" }, { $0.isAudience = true })
        }
        #expect(holds["7"].isAudience && holds["\(OperatorOverrides.usersMax)"].isAudience && !holds["8"].isAudience)
    }

    // MARK: Apps

    private func join(_ bench: inout ModelBench, _ app: String?, _ user: String) throws -> ParticipantID {
        try bench.member(.sendrecv) {
            $0.app = app
            $0.clientID = user
        }
    }

    @Test func `the first app owns a channel until nobody uses it`() throws {
        var bench = bench()
        let first = try join(&bench, nil, "jwt")
        let owner = try join(&bench, "a", "alice")
        #expect(throws: RoomError.appMismatch) { try join(&bench, "b", "bob") }
        #expect(bench.model.node.admissions.refused[.otherApp] == 1)
        _ = bench.model.left(owner, reason: .left)
        #expect(throws: RoomError.appMismatch) { try join(&bench, "b", "bob") }
        let colleague = try join(&bench, "a", "carol")
        for id in [first, colleague] { _ = bench.model.left(id, reason: .left) }
        let next = try join(&bench, "b", "bob")
        #expect(bench.model.connection(of: next)?.app == "b")
        #expect(bench.model.channels[ModelBench.channel]?.app == "b")
        _ = bench.model.left(next, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test func `a user of another app does not take a member's place`() throws {
        var bench = bench()
        let whip = { (app: String) in
            var request = JoinRequest(
                channel: ModelBench.channel,
                role: .sendonly,
                user: UserIdentity("u", .authorized)
            )
            request.agent = ClientAgent(signaling: .whip)
            request.keepsPlace = true
            request.duplicateUsers = .replace
            request.app = app
            return request
        }
        let id = try bench.reserve(whip("a"))
        _ = try bench.activate(id)
        _ = bench.receive(.connected(over: .udp), from: id)
        let channel = try #require(bench.model.channels[ModelBench.channel])
        #expect(channel.resumable(by: whip("a")) == id && channel.resumable(by: whip("b")) == nil)
        #expect(throws: RoomError.appMismatch) { try bench.reserve(whip("b")) }
    }

    @Test func `a reader of events keeps the channel for its app`() throws {
        var model = ChannelModel(name: ModelBench.channel)
        model.listenerArrived(ListenerID(rawValue: 1), app: "a")
        #expect(model.isAppMismatched("b") && !model.isAppMismatched("a") && !model.isAppMismatched(nil))
        model.listenerLeft(ListenerID(rawValue: 1))
        #expect(!model.isAppMismatched("b"))
    }

    // MARK: The life of a channel

    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: second * 1_000_000_000)
    }

    @Test func `a channel ends with its own reason when it has lived for as long as it may`() throws {
        var bench = bench(limits: RoomLimits(channelLifetime: .seconds(48 * 3_600)))
        bench.model.now = moment(100)
        let other = try bench.member(.sendrecv) { $0.options = Self.host }
        bench.model.now = moment(100 + 24 * 3_600)
        let late = try bench.member(.sendrecv) {
            Self.guest(&$0)
            $0.keepsPlace = true
        }
        _ = bench.model.left(late, reason: .signalingLost)
        let end: Int64 = 100 + 48 * 3_600
        let before = bench.model.tick(at: moment(end - 1))
        #expect(
            before.contains(.ended(late, .signalingLost)) && !before.contains { $0 == .ended(other, .channelExpired) }
        )
        let last = bench.model.tick(at: moment(end))
        #expect(last.contains(.ended(other, .channelExpired)) && bench.model.isEmpty)
        // The name can be used again, for as long.
        let again = try bench.member(.sendrecv) { $0.options = Self.host }
        #expect(bench.model.tick(at: moment(2 * end - 101)).filter { $0 == .ended(again, .channelExpired) }.isEmpty)
        #expect(bench.model.tick(at: moment(2 * end - 100)).contains(.ended(again, .channelExpired)))
    }

    @Test func `without a limit a channel has no end`() throws {
        var bench = bench()
        bench.model.now = moment(100)
        let id = try bench.member(.sendrecv)
        let effects = bench.model.tick(at: moment(1_000_000))
        #expect(!effects.contains { if case .ended = $0 { true } else { false } })
        #expect(bench.model.connection(of: id) != nil)
    }
}

extension SynchronousNode {
    mutating func userRole(
        _ role: ChannelRole,
        of user: String,
        in channel: ChannelName = ModelBench.channel
    ) throws(RoomError) -> (changed: Int, effects: [Effect]) {
        try changed(.setRole(role, of: .user(user)), in: channel)
    }

    mutating func changed(
        _ command: ChannelCommand,
        in channel: ChannelName = ModelBench.channel
    ) throws(RoomError) -> (changed: Int, effects: [Effect]) {
        var changed = 0
        let effects = try change(channel) { model throws(RoomError) in
            let result = try model.perform(command, by: .operator)
            changed = result.reply.participants.count
            return result.effects
        }
        return (changed, effects)
    }

    mutating func userMute(
        _ isMuted: Bool,
        _ kinds: Set<MediaKind>,
        of user: String
    ) throws(RoomError) -> (changed: Int, effects: [Effect]) {
        try changed(.setMuted(isMuted, kinds: kinds, of: .user(user)))
    }
}
