import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

struct RoleTests {
    private static func options(
        _ profile: ChannelProfile? = .interactive,
        _ role: ChannelRole? = nil,
        source: VideoSource = .camera
    ) -> MemberOptions {
        MemberOptions(profile: profile, role: role, source: source)
    }

    private static func contents(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Notification.Content] {
        effects.notifications.filter { $0.to.contains(id) }.map(\.content)
    }

    @Test func `the first member that knows profiles sets the profile, until the channel is unused`() throws {
        var bench = ModelBench()
        let plain = try bench.member(.sendrecv)
        let first = try bench.member(.sendrecv) { $0.options = Self.options(.interactive) }
        #expect(throws: RoomError.profileMismatch) {
            try bench.member(.sendrecv) { $0.options = Self.options(.communication) }
        }
        let second = try bench.member(.recvonly) { $0.options = Self.options(nil) }
        #expect(bench.model.channels[ModelBench.channel]?.profile == .interactive)
        for id in [first, second] { _ = bench.model.left(id, reason: .left) }
        #expect(throws: RoomError.profileMismatch) {
            try bench.member(.sendrecv) { $0.options = Self.options(.communication) }
        }
        _ = bench.model.left(plain, reason: .left)
        let last = try bench.member(.sendrecv) { $0.options = Self.options(nil) }
        #expect(bench.model.channels[ModelBench.channel]?.profile == .communication)
        _ = bench.model.left(last, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test func `nobody is notified of the audience, which counts as receiving`() throws {
        var bench = ModelBench()
        let host = try bench.member(.sendrecv) { $0.options = Self.options() }
        let plain = try bench.member(.sendrecv)
        let (listener, effects) = try bench.join(.sendrecv) { $0.options = Self.options(nil, .audience) }
        let (viewer, more) = try bench.join(.recvonly)
        for id in [host, plain] {
            #expect(Self.contents(effects, to: id).isEmpty && Self.contents(more, to: id).isEmpty)
        }
        #expect(effects.streamsChanged.isEmpty)
        #expect(bench.model.counts(of: ModelBench.channel) == ChannelCounts(sendrecv: 2, recvonly: 2))
        #expect(bench.model.visibleStreams(to: host).map(\.sender) == [plain])
        #expect(bench.model.connection(of: listener)?.channelRole == .audience)
        #expect(bench.model.connection(of: listener)?.publications.isEmpty == true)
        let connected = Self.contents(effects, to: listener)
        guard case .created(_, _, _, _, let others?) = connected.first,
            case .channelJoined(let joined) = connected.last
        else {
            Issue.record("\(connected)")
            return
        }
        #expect(others.map(\.id) == [host, plain])
        #expect(joined.role == .audience && joined.users.map(\.user.id) == [host.value, plain.value])
        let end = bench.model.left(viewer, reason: .left)
        #expect(end.notifications.isEmpty)
    }

    @Test func `a member of the audience becomes host, and audience again`() throws {
        var bench = ModelBench()
        let host = try bench.member(.sendrecv) { $0.options = Self.options() }
        let plain = try bench.member(.recvonly)
        let guest = try bench.member(.sendrecv) { request in
            request.options = Self.options(nil, .audience)
            request.clientID = "guest"
            request.displayName = "Guest"
        }
        let seen = try bench.see(host, by: guest)
        let up = try bench.model.changeRole(of: guest, to: .host)
        #expect(up.streamsChanged == [host, plain] && up.connects.isEmpty)
        #expect(bench.model.visibleStreams(to: plain).map(\.sender) == [host, guest])
        #expect(Self.contents(up, to: guest) == [.roleChanged(.host, by: .member)])
        guard case .created(let member, _, _, let counts, nil) = Self.contents(up, to: plain).first else {
            Issue.record("plain clients are not told")
            return
        }
        #expect(member.role == .sendrecv && counts == ChannelCounts(sendrecv: 2, recvonly: 1))
        let user = ChannelUser(id: "guest", displayName: "Guest", role: .host, notifyMetadataJSON: nil)
        let tracks = PublishedTracks(
            user: "guest",
            connection: guest,
            source: .camera,
            audio: false,
            video: false,
            isAudioMuted: false,
            isVideoMuted: false
        )
        #expect(Self.contents(up, to: host).dropFirst() == [.userOnline(user), .tracksChanged(tracks)])
        let watched = try bench.see(guest, by: plain)
        #expect(bench.slot(watched.video)?.source == bench.track(guest, ModelBench.video))

        let again = try bench.model.changeRole(of: guest, to: .host)
        #expect(again.isEmpty)

        let down = try bench.model.changeRole(of: guest, to: .audience)
        #expect(bench.slot(watched.video)?.source == nil && down.streamsChanged == [host, plain])
        #expect(Self.contents(down, to: host).last == .userOffline("guest", .becameAudience))
        guard case .destroyed(let gone, _, _, let rest) = Self.contents(down, to: plain).first else {
            Issue.record("plain clients are not told")
            return
        }
        #expect(gone.role == .sendrecv && rest == ChannelCounts(sendrecv: 1, recvonly: 2))
        #expect(bench.slot(seen.video)?.source == bench.track(host, ModelBench.video), "it still receives")
        _ = try bench.model.changeRole(of: guest, to: .host)
        #expect(bench.slot(watched.video)?.source == bench.track(guest, ModelBench.video))
    }

    @Test func `roles that a member cannot take are refused`() throws {
        var bench = ModelBench(limits: RoomLimits(publishersPerChannelMax: 1))
        let host = try bench.member(.sendonly) { $0.options = Self.options() }
        let viewer = try bench.member(.recvonly)
        let forbidden = try bench.member(.sendrecv) { request in
            request.options = Self.options(nil, .audience)
            request.mayPublish = false
        }
        let another = try bench.member(.sendrecv) { $0.options = Self.options(nil, .audience) }
        let refusals: [(ParticipantID, ChannelRole, RoomError)] = [
            (host, .audience, .roleUnavailable), (viewer, .host, .roleUnavailable),
            (forbidden, .host, .publishingForbidden), (another, .host, .publishersFull),
        ]
        for (id, role, error) in refusals {
            #expect(throws: error) { try bench.model.changeRole(of: id, to: role) }
        }
        let other = ChannelName("other")!
        let member = try bench.member(.sendrecv, in: other) { $0.options = Self.options(.communication, .audience) }
        #expect(throws: RoomError.rolesUnused) { try bench.model.changeRole(of: member, to: .audience) }
        #expect(bench.model.connection(of: member)?.channelRole == .host)
    }

    @Test func `viewers of the current publisher follow changes of roles`() throws {
        var bench = ModelBench()
        let first = try bench.member(.sendrecv) { $0.options = Self.options() }
        let second = try bench.member(.sendrecv) { $0.options = Self.options(nil, .audience) }
        let (viewer, fan) = (try bench.viewer(), try bench.viewer(.participant(first)))
        #expect(bench.sources(of: viewer) == [first, first])
        _ = try bench.model.changeRole(of: second, to: .host)
        #expect(bench.sources(of: viewer) == [second, second])
        _ = try bench.model.changeRole(of: first, to: .audience)
        #expect(bench.sources(of: fan) == [nil, nil])
        _ = try bench.model.changeRole(of: first, to: .host)
        #expect(bench.sources(of: fan) == [first, first] && bench.sources(of: viewer) == [first, first])
        for id in [first, second, viewer, fan] { _ = bench.model.left(id, reason: .left) }
        #expect(bench.model.isEmpty)
    }

    @Test func `an operator's mute stops forwarding, and only an operator undoes it`() throws {
        var bench = ModelBench()
        let sender = try bench.member(.sendrecv) { $0.options = Self.options(.communication) }
        let viewer = try bench.member(.recvonly) { $0.options = Self.options(nil) }
        let seen = try bench.see(sender, by: viewer)
        _ = bench.receive(.trackStarted(mid: ModelBench.video, codec: .vp8), from: sender)
        let own = try bench.model.mute(true, .video, of: sender, by: .member)
        #expect(own.connects.isEmpty && Self.contents(own, to: sender).isEmpty)
        guard case .tracksChanged(let tracks) = Self.contents(own, to: viewer).first else {
            Issue.record("nobody is told")
            return
        }
        #expect(tracks.isVideoMuted && !tracks.isAudioMuted && tracks.video)
        let muted = try bench.model.mute(true, .audio, of: sender, by: .operator)
        #expect(bench.slot(seen.audio)?.source == nil && bench.slot(seen.video)?.source != nil)
        #expect(Self.contents(muted, to: sender) == [.muted(.audio, isMuted: true, by: .operator)])
        #expect(throws: RoomError.mutedByOperator) {
            try bench.model.mute(false, .audio, of: sender, by: .member)
        }
        #expect(bench.model.connection(of: sender)?.muted == [.audio, .video])
        #expect(bench.model.snapshot(of: ModelBench.channel)?.participants.first?.muted == [.audio, .video])
        let free = try bench.model.mute(false, .audio, of: sender, by: .operator)
        #expect(bench.slot(seen.audio)?.source != nil)
        #expect(Self.contents(free, to: sender) == [.muted(.audio, isMuted: false, by: .operator)])
    }

    @Test func `a user's camera and screen are one user`() throws {
        var bench = ModelBench()
        let observer = try bench.member(.recvonly) { $0.options = Self.options() }
        let user = { (source: VideoSource, request: inout JoinRequest) in
            request.clientID = "anna"
            request.bundleID = "anna"
            request.options = Self.options(nil, source: source)
        }
        let (camera, first) = try bench.join(.sendrecv) { user(.camera, &$0) }
        let (screen, second) = try bench.join(.sendonly) { user(.screen, &$0) }
        let kinds = { (effects: [ChannelModel.Effect]) in
            Self.contents(effects, to: observer).compactMap { content in
                switch content {
                case .userOnline: "online"
                case .userOffline(_, let reason): "offline \(reason.rawValue)"
                case .tracksChanged(let tracks): "\(tracks.source.rawValue) \(tracks.video)"
                default: nil
                }
            }
        }
        #expect(kinds(first) == ["online", "camera false"] && kinds(second) == ["screen false"])
        let started = bench.model.received(
            .trackStarted(mid: ModelBench.video, codec: .vp8),
            from: bench.peers[screen]!
        )
        #expect(kinds(started) == ["screen true"])
        #expect(!Self.contents(second, to: camera).contains { if case .tracksChanged = $0 { true } else { false } })
        #expect(kinds(bench.model.left(camera, reason: .left)) == ["camera false"])
        #expect(kinds(bench.model.left(screen, reason: .tokenExpired)) == ["offline token-expired"])
    }
}

extension SynchronousNode {
    mutating func changeRole(
        of id: ParticipantID,
        to role: ChannelRole,
        by initiator: Initiator.Kind = .member
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.roleRequested(role, of: id, by: initiator) }
    }

    mutating func mute(
        _ isMuted: Bool,
        _ kind: MediaKind,
        of id: ParticipantID,
        by initiator: Initiator.Kind
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.muteRequested(isMuted, [kind], of: id, by: initiator)
        }
    }
}
