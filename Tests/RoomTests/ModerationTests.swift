import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// What moderators do to others, and raised hands.
struct ModerationTests {
    private static func options(_ role: ChannelRole? = nil) -> MemberOptions {
        MemberOptions(profile: .interactive, role: role, source: .camera)
    }

    private static func contents(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Notification.Content] {
        effects.notifications.filter { $0.to.contains(id) }.map(\.content)
    }

    private static func host(
        _ user: String,
        in bench: inout ModelBench,
        moderates: Bool = false
    ) throws -> ParticipantID {
        try bench.member(.sendrecv) { request in
            request.clientID = user
            request.options = options(.host)
            request.mayModerate = moderates
        }
    }

    private static func audience(_ user: String, in bench: inout ModelBench) throws -> ParticipantID {
        try bench.member(.sendrecv) { request in
            request.clientID = user
            request.displayName = "The \(user)"
            request.options = options(.audience)
            request.mayModerate = true
        }
    }

    @Test func `a moderator's mute stops forwarding until the member unmutes itself`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let sender = try Self.host("anna", in: &bench)
        let seen = try bench.see(sender, by: moderator)
        let mute = ChannelCommand.mute(.user("anna"), kinds: [.audio])
        let muted = try bench.model.perform(mute, by: .member(moderator))
        #expect(bench.slot(seen.audio)?.source == nil && bench.slot(seen.video)?.source != nil)
        #expect(Self.contents(muted, to: sender) == [.muted(.audio, isMuted: true, by: .moderator)])
        let tracks = Self.contents(muted, to: moderator)
            .compactMap { if case .tracksChanged(let tracks) = $0 { tracks } else { nil } }
        #expect(tracks.map(\.isAudioMuted) == [true] && tracks.map(\.isVideoMuted) == [false])
        #expect(bench.model.connection(of: sender)?.muted == [.audio])
        #expect(try bench.model.perform(mute, by: .member(moderator)).isEmpty, "it is muted already")
        _ = try bench.model.mute(true, .audio, of: sender, by: .member)
        _ = try bench.model.mute(false, .audio, of: sender, by: .member)
        #expect(bench.slot(seen.audio)?.source != nil)
        #expect(bench.model.connection(of: sender)?.muted == [])
        // An operator's mute is another one, which it cannot undo.
        _ = try bench.model.perform(mute, by: .member(moderator))
        _ = try bench.model.mute(true, .audio, of: sender, by: .operator)
        #expect(throws: RoomError.mutedByOperator) { try bench.model.mute(false, .audio, of: sender, by: .member) }
        _ = try bench.model.mute(false, .audio, of: sender, by: .operator)
        #expect(bench.slot(seen.audio)?.source != nil, "an operator unmutes what a moderator muted, too")
    }

    @Test func `a moderator mutes all others at once, and not its own user`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let tablet = try Self.host("mo", in: &bench)
        let others = try ["anna", "ben"].map { try Self.host($0, in: &bench) }
        _ = try bench.model.perform(.mute(.all, kinds: [.audio]), by: .member(moderator))
        for id in others { #expect(bench.model.connection(of: id)?.muted == [.audio]) }
        for id in [moderator, tablet] { #expect(bench.model.connection(of: id)?.muted == []) }
    }

    @Test func `who came back in its place is told that it is muted`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let sender = try bench.member(.sendrecv) { request in
            request.clientID = "anna"
            request.options = Self.options(.host)
            request.keepsPlace = true
        }
        _ = try bench.model.perform(.mute(.user("anna"), kinds: [.video]), by: .member(moderator))
        _ = bench.model.received(.closed(.consentExpired), from: bench.peers[sender]!)
        let token = try #require(bench.model.channels[ModelBench.channel]?.resumeToken(of: sender))
        var request = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone)
        request.clientID = "anna"
        request.options = Self.options(.host)
        request.keepsPlace = true
        request.resumeToken = token
        #expect(try bench.reserve(request) == sender)
        _ = try bench.activate(sender)
        let back = bench.model.received(.connected(over: .udp), from: bench.peers[sender]!)
        #expect(Self.contents(back, to: sender).contains(.muted(.video, isMuted: true, by: .moderator)))
    }

    @Test func `a moderator lets in, moves down and removes`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let guest = try Self.audience("gen", in: &bench)
        let up = try bench.model.perform(.setRole(.host, of: .user("gen")), by: .member(moderator))
        #expect(Self.contents(up, to: guest) == [.roleChanged(.host, by: .moderator)])
        _ = try bench.model.perform(.setRole(.audience, of: .user("gen")), by: .member(moderator))
        #expect(bench.model.connection(of: guest)?.channelRole == .audience)
        #expect(throws: RoomError.audienceByOperator, "it stays down until it is let in again") {
            try bench.model.changeRole(of: guest, to: .host)
        }
        _ = try bench.model.perform(.setRole(.host, of: .user("gen")), by: .member(moderator))
        let end = ChannelCommand.end(.user("gen"), .kicked)
        let removed = try bench.model.perform(end, by: .member(moderator))
        #expect(
            removed.contains { if case .ended(guest, .kicked) = $0 { true } else { false } }
        )
        #expect(throws: RoomError.participantUnknown) { try bench.model.perform(end, by: .member(moderator)) }
    }

    @Test func `who cannot unmute itself, and who does not publish, is not muted`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let plain = try bench.member(.sendrecv) { $0.clientID = "plain" }
        let guest = try Self.audience("gen", in: &bench)
        let all = try bench.model.perform(.mute(.all, kinds: [.audio]), by: .member(moderator))
        #expect(all.isEmpty)
        for id in [plain, guest] { #expect(bench.model.connection(of: id)?.muted == []) }
    }

    @Test func `the hand of a user goes down with the connection that raised it`() throws {
        var bench = ModelBench()
        let observer = try Self.host("mo", in: &bench)
        let camera = try Self.host("anna", in: &bench)
        _ = try Self.host("anna", in: &bench)
        _ = try bench.model.perform(.raiseHand(true, of: camera), by: .member(camera))
        let left = bench.model.left(camera, reason: .left)
        let lowered = Hand(user: "anna", displayName: nil, isRaised: false)
        #expect(Self.contents(left, to: observer).contains(.handChanged(lowered)))
    }

    @Test func `only a host that may moderate does`() throws {
        var bench = ModelBench()
        let host = try Self.host("anna", in: &bench)
        let audience = try Self.audience("gen", in: &bench)
        let commands: [ChannelCommand] = [
            .mute(.user("anna"), kinds: [.audio]), .mute(.all, kinds: [.audio]), .setRole(.audience, of: .user("anna")),
            .end(.user("anna"), .kicked),
        ]
        for id in [host, audience] {
            for command in commands {
                #expect(throws: RoomError.moderatorsOnly) { try bench.model.perform(command, by: .member(id)) }
            }
        }
        _ = try bench.model.changeRole(of: audience, to: .host)
        for command in commands { _ = try bench.model.perform(command, by: .member(audience)) }
    }

    @Test func `what a moderator does counts among its changes`() throws {
        var bench = ModelBench(limits: RoomLimits(changeBurst: 3))
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        _ = try Self.host("anna", in: &bench)
        let mute = ChannelCommand.mute(.all, kinds: [.audio])
        for _ in 1...3 { _ = try bench.model.perform(mute, by: .member(moderator)) }
        #expect(throws: RoomError.changesTooFrequent) { try bench.model.perform(mute, by: .member(moderator)) }
    }

    @Test func `everybody sees the hand of a host, and moderators that of the audience`() throws {
        var bench = ModelBench()
        let moderator = try Self.host("mo", in: &bench, moderates: true)
        let host = try Self.host("anna", in: &bench)
        let guest = try Self.audience("gen", in: &bench)
        func hand(_ user: String, _ isRaised: Bool) -> Notification.Content {
            .handChanged(Hand(user: user, displayName: user == "gen" ? "The gen" : nil, isRaised: isRaised))
        }
        let own = try bench.model.perform(.raiseHand(true, of: host), by: .member(host))
        for id in [moderator, host, guest] { #expect(Self.contents(own, to: id) == [hand("anna", true)]) }
        let asked = try bench.model.perform(.raiseHand(true, of: guest), by: .member(guest))
        #expect(Self.contents(asked, to: host).isEmpty)
        let second = try Self.audience("second", in: &bench)
        let promoted = try bench.model.changeRole(of: second, to: .host)
        #expect(Self.contents(promoted, to: second).contains(hand("gen", true)), "it moderates from now on")
        for id in [moderator, guest] { #expect(Self.contents(asked, to: id) == [hand("gen", true)]) }
        #expect(try bench.model.perform(.raiseHand(true, of: guest), by: .member(guest)).isEmpty)
        for (moderates, users) in [(true, ["anna", "gen"]), (false, ["anna"])] {
            let (newcomer, effects) = try bench.join(.sendrecv) { request in
                request.options = Self.options(.host)
                request.mayModerate = moderates
            }
            let joined = Self.contents(effects, to: newcomer)
                .compactMap { if case .channelJoined(let joined) = $0 { joined } else { nil } }
            #expect(joined.first?.hands.map(\.user) == users && joined.first?.mayModerate == moderates)
        }
        let up = try bench.model.perform(.setRole(.host, of: .user("gen")), by: .member(moderator))
        #expect(Self.contents(up, to: guest).first == hand("gen", false))
        #expect(Self.contents(up, to: moderator).first == hand("gen", false))
        let last = try Self.audience("last", in: &bench)
        _ = try bench.model.perform(.raiseHand(true, of: last), by: .member(last))
        let left = bench.model.left(last, reason: .left)
        let lowered = Hand(user: "last", displayName: "The last", isRaised: false)
        #expect(Self.contents(left, to: moderator).contains(.handChanged(lowered)))
        #expect(Self.contents(left, to: host).isEmpty)
    }
}
