import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// Who counts as there, and what others are told of those who are not.
struct AlivenessTests {
    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: second * 1_000_000_000)
    }

    private func bench() -> ModelBench {
        var bench = ModelBench()
        bench.model.codesChannels = true
        bench.model.now = moment(100)
        return bench
    }

    private static func contents(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Notification.Content] {
        effects.notifications.filter { $0.to.contains(id) }.map(\.content)
    }

    private static func offline(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Departure] {
        contents(effects, to: id).compactMap { if case .userOffline(_, let reason) = $0 { reason } else { nil } }
    }

    /// The tracks that send nothing, for hours, and in the end again.
    @Test(arguments: [[ModelBench.video], [ModelBench.audio, ModelBench.video]], [true, false])
    func `a member whose tracks stand still for hours stays online`(still: [MID], keepsPlace: Bool) throws {
        var bench = bench()
        let observer = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let viewer = try bench.viewer()
        _ = bench.receive(.connected(over: .udp), from: viewer)
        let sender = try bench.member(.sendrecv) {
            $0.options = MemberOptions()
            $0.keepsPlace = keepsPlace
        }
        for mid in [ModelBench.audio, ModelBench.video] {
            _ = bench.receive(.trackStarted(mid: mid, codec: mid == ModelBench.audio ? .opus : .vp8), from: sender)
        }
        let seen = try bench.see(sender, by: observer)
        var effects: [ChannelModel.Effect] = []
        for mid in still {
            let paused = bench.model.received(.trackPaused(mid: mid), from: bench.peers[sender]!)
            let told = Self.contents(paused, to: observer).count { if case .tracksChanged = $0 { true } else { false } }
            #expect(told == 1, "that nothing comes of the track is all that is told")
        }
        for second in stride(from: Int64(101), through: 100 + 3 * 3_600, by: 30) {
            effects += bench.model.tick(at: moment(second))
        }
        for effect in effects {
            switch effect {
            case .ended, .interrupted, .removePeer, .connect, .streamsChanged, .checkTransport:
                Issue.record("\(effect)")
            case .notify(let content, _):
                if case .updated = content { continue }
                Issue.record("\(content)")
            default: break
            }
        }
        #expect(bench.model.visibleStreams(to: observer).map(\.sender) == [sender])
        #expect(bench.slot(seen.video)?.source == bench.track(sender, ModelBench.video))
        #expect(bench.sources(of: viewer) == [sender, sender])
        let (_, joined) = try bench.join(.recvonly) { $0.options = MemberOptions() }
        guard case .channelJoined(let channel)? = joined.notifications.map(\.content).first(where: \.isChannelJoined)
        else {
            Issue.record("nothing is told of the channel")
            return
        }
        let tracks = channel.users.last?.connections.first?.tracks
        #expect(tracks?.audio == !still.contains(ModelBench.audio) && tracks?.video == false)
        for mid in still {
            #expect(
                bench.receive(.trackStarted(mid: mid, codec: .vp8), from: sender) == [
                    .channelChanged(ModelBench.channel)
                ]
            )
        }
    }

    @Test func `a newcomer is told who is interrupted`() throws {
        var bench = bench()
        let lost = try bench.member(.sendrecv) {
            $0.options = MemberOptions()
            $0.keepsPlace = true
        }
        let there = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        _ = bench.model.left(lost, reason: .signalingLost)
        let (_, effects) = try bench.join(.sendrecv) { $0.options = MemberOptions() }
        guard case .channelJoined(let channel)? = effects.notifications.map(\.content).first(where: \.isChannelJoined)
        else {
            Issue.record("nothing is told of the channel")
            return
        }
        let listed = channel.users.flatMap(\.connections).map { ($0.tracks.connection, $0.isInterrupted) }
        #expect(listed.map(\.0) == [lost, there] && listed.map(\.1) == [true, false])
    }

    @Test(arguments: [true, false])
    func `a member that does not answer pings goes offline because it timed out`(keepsPlace: Bool) throws {
        var bench = bench()
        let observer = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let silent = try bench.member(.sendrecv) { $0.keepsPlace = keepsPlace }
        var effects = bench.model.left(silent, reason: .pongTimedOut)
        if keepsPlace {
            #expect(
                effects.contains(.interrupted(silent, .pongTimedOut)) && Self.offline(effects, to: observer).isEmpty
            )
            effects = bench.model.tick(at: moment(115))
        }
        #expect(effects.contains(.ended(silent, .pongTimedOut)))
        #expect(Self.offline(effects, to: observer) == [.timedOut])
    }

    // MARK: Quality

    @Test func `the member itself, operators and others are told of the quality of its network`() throws {
        var bench = bench()
        let plain = try bench.member(.sendrecv)
        let id = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let viewer = try bench.reserve(whep)
        _ = try bench.activate(viewer)
        _ = bench.receive(.connected(over: .udp), from: viewer)
        let quality = LinkQuality(uplink: .good, downlink: .bad)
        let observer = id
        for (id, isTold, others) in [(plain, false, [observer]), (id, true, []), (viewer, true, [])] {
            let effects = bench.model.received(.qualityChanged(quality), from: bench.peers[id]!)
            let own = effects.notifications.filter { $0.content == .networkQuality(quality) }
            #expect(own.map(\.to) == (isTold ? [[id]] : []))
            let told = effects.notifications.filter { $0.content != .networkQuality(quality) }
            #expect(told.map(\.to) == (others.isEmpty ? [] : [others]))
            #expect(told.allSatisfy { if case .othersQuality(_, quality) = $0.content { true } else { false } })
            guard case .qualityChanged(let report)? = effects.reports.first else {
                Issue.record("operators are not told")
                continue
            }
            #expect(report.connection.quality == quality && report.connection.member.id == id)
            #expect(bench.model.received(.qualityChanged(quality), from: bench.peers[id]!).isEmpty)
        }
    }

    // MARK: Set-up

    @Test func `operators are told how far the set-up of a connection has come, by its first peer`() throws {
        var bench = bench()
        let id = try bench.reserve(whep)
        let early = PeerSetup(iceConnected: .milliseconds(3))
        #expect(bench.model.received(.setupAdvanced(early), from: bench.peers[id]!).isEmpty)
        _ = try bench.activate(id)
        let created = bench.model.received(.connected(over: .udp), from: bench.peers[id]!).reports
        #expect(
            created.contains { report in
                guard case .connectionCreated(let report) = report else { return false }
                return report.connection.setup.media == early && report.connection.setup.negotiation != nil
            }
        )
        let later = PeerSetup(iceConnected: .milliseconds(3), dtlsConnected: .milliseconds(9))
        let advanced = bench.model.received(.setupAdvanced(later), from: bench.peers[id]!).reports
        guard case .setupAdvanced(let report)? = advanced.first else {
            Issue.record("operators are not told")
            return
        }
        #expect(report.connection.setup.media == later)
    }

    private var whep: JoinRequest {
        JoinRequest(channel: ModelBench.channel, role: .recvonly, agent: ClientAgent(signaling: .whep))
    }

    @Test func `the quality of a new connection is not that of the old one`() throws {
        var bench = bench()
        _ = try bench.member(.sendrecv)
        let id = try bench.member(.sendrecv) { $0.keepsPlace = true }
        _ = bench.model.received(.qualityChanged(LinkQuality(uplink: .bad, downlink: .bad)), from: bench.peers[id]!)
        _ = bench.model.left(id, reason: .signalingLost)
        let participant = { bench.model.channels[ModelBench.channel]?.participants[id] }
        #expect(participant()?.quality == .disconnected)
        let token = try #require(bench.model.channels[ModelBench.channel]?.resumeToken(of: id))
        _ = try bench.reserve(resuming(token))
        #expect(participant()?.quality == .unknown)
    }

    private func resuming(_ token: String) -> JoinRequest {
        var request = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone)
        request.resumeToken = token
        return request
    }
}

extension Notification.Content {
    var isChannelJoined: Bool { if case .channelJoined = self { true } else { false } }
}
