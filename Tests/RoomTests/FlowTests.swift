import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// What others are told of the media that comes from a publisher.
struct FlowTests {
    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: second * 1_000_000_000)
    }

    private func bench() -> ModelBench {
        var bench = ModelBench()
        bench.model.codesChannels = true
        bench.model.now = moment(100)
        return bench
    }

    /// The flows that a member is told, as `audio`, `video`, and whether the audio is muted.
    private static func flows(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [[Bool]] {
        effects.notifications.filter { $0.to.contains(id) }
            .compactMap { notification in
                guard case .tracksChanged(let tracks) = notification.content else { return nil }
                return [tracks.audio, tracks.video, tracks.isAudioMuted]
            }
    }

    private static func isInterruption(_ content: Notification.Content) -> Bool? {
        switch content {
        case .interrupted: true
        case .resumed: false
        default: nil
        }
    }

    private static func interruptions(_ effects: [ChannelModel.Effect], to id: ParticipantID) -> [Bool] {
        effects.notifications.filter { $0.to.contains(id) }.compactMap { isInterruption($0.content) }
    }

    @Test func `a kind that stops and comes again is told to everybody, and mute stays mute`() throws {
        var bench = bench()
        let knowing = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let plain = try bench.member(.sendrecv)
        let viewer = try bench.viewer()
        _ = bench.receiveAll(.connected(over: .udp), from: viewer)
        let sender = try bench.member(.sendrecv)
        var effects = bench.receiveAll(.trackStarted(mid: ModelBench.audio, codec: .opus), from: sender)
        #expect(Self.flows(effects, to: knowing) == [[true, false, false]])
        #expect(Self.flows(effects, to: plain).isEmpty, "it knows from the announcement that there is audio")
        effects = bench.receiveAll(.trackStarted(mid: ModelBench.video, codec: .vp8), from: sender)
        #expect(Self.flows(effects, to: knowing) == [[true, true, false]])
        effects = bench.receiveAll(.trackPaused(mid: ModelBench.video), from: sender)
        for member in [knowing, plain, viewer] { #expect(Self.flows(effects, to: member) == [[true, false, false]]) }
        #expect(Self.flows(effects, to: sender).isEmpty)
        #expect(
            effects.reports.contains {
                if case .flowChanged(let report) = $0 { report.connection.flowing == [.audio] } else { false }
            }
        )
        effects = try bench.model.perform(
            .setMuted(true, kinds: [.audio], of: .participant(sender)),
            by: .member(sender)
        )
        for member in [knowing, plain] { #expect(Self.flows(effects, to: member) == [[true, false, true]]) }
        #expect(!effects.reports.contains { if case .flowChanged = $0 { true } else { false } })
        effects = bench.receiveAll(.trackStarted(mid: ModelBench.video, codec: .vp8), from: sender)
        for member in [knowing, plain, viewer] { #expect(Self.flows(effects, to: member) == [[true, true, true]]) }
    }

    @Test func `a picture is not reported before its publishing`() throws {
        var bench = bench()
        let (sender, _) = try bench.join(.sendrecv)
        let early = bench.receiveAll(.setupAdvanced(PeerSetup(firstFrameReceived: .seconds(1))), from: sender)
        let later = bench.receiveAll(.trackStarted(mid: ModelBench.video, codec: .vp8), from: sender)
        func names(_ effects: [ChannelModel.Effect]) -> [String] {
            effects.reports.compactMap { report in
                switch report {
                case .publishingBegan: "publish"
                case .firstFrameReceived: "picture"
                default: nil
                }
            }
        }
        #expect(names(early) == [] && names(later) == ["publish", "picture"])
    }

    @Test func `publishing begins with the first packet, and a picture is reported once`() throws {
        var bench = bench()
        let observer = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let (sender, joined) = try bench.join(.sendrecv)
        func begins(_ effects: [ChannelModel.Effect]) -> Int {
            effects.reports.count {
                if case .publishingBegan(let report) = $0 { report.connection.hasPublished } else { false }
            }
        }
        #expect(begins(joined) == 0)
        #expect(begins(bench.receiveAll(.trackStarted(mid: ModelBench.audio, codec: .opus), from: sender)) == 1)
        #expect(begins(bench.receiveAll(.trackPaused(mid: ModelBench.audio), from: sender)) == 0)
        #expect(begins(bench.receiveAll(.trackStarted(mid: ModelBench.audio, codec: .opus), from: sender)) == 0)
        bench.model.now = moment(102)
        let setup = PeerSetup(firstFrameReceived: .seconds(1))
        let shown = bench.receiveAll(.setupAdvanced(setup), from: sender)
        #expect(
            shown.reports.count {
                if case .firstFrameReceived(let report) = $0 { report.elapsedMilliseconds == 2_000 } else { false }
            } == 1
        )
        let told = shown.notifications.filter { $0.to == [observer] }
        #expect(
            told.contains { if case .firstFrame(_, elapsedMilliseconds: 2_000) = $0.content { true } else { false } }
        )
        let again = bench.receiveAll(
            .setupAdvanced(
                PeerSetup(firstFrameReceived: .seconds(1), firstFrameSent: .init(at: .seconds(2), waited: .zero))
            ),
            from: sender
        )
        #expect(!again.reports.contains { if case .firstFrameReceived = $0 { true } else { false } })
        let ended = bench.model.left(sender, reason: .left)
        #expect(
            ended.reports.contains {
                if case .connectionDestroyed(let report, _) = $0 { report.connection.hasPublished } else { false }
            }
        )
    }

    @Test func `a host's publishing begins and ends with its role`() throws {
        var bench = bench()
        let host = try bench.member(.sendrecv) { $0.options = MemberOptions(profile: .interactive) }
        _ = bench.receiveAll(.trackStarted(mid: ModelBench.audio, codec: .opus), from: host)
        let down = try bench.model.perform(.setRole(.audience, of: .participant(host)))
        #expect(
            down.reports.contains {
                if case .roleChanged(let report, _) = $0 { report.connection.hasPublished } else { false }
            }
        )
        #expect(!down.reports.contains { if case .publishingBegan = $0 { true } else { false } })
        // Its packets have come all the time.
        let up = try bench.model.perform(.setRole(.host, of: .participant(host)))
        #expect(up.reports.contains { if case .publishingBegan = $0 { true } else { false } })
    }

    @Test(arguments: [true, false])
    func `a publisher of which nothing comes is interrupted, and its end is told once`(keepsPlace: Bool) throws {
        var bench = bench()
        let knowing = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let plain = try bench.member(.sendrecv)
        let sender = try bench.member(.sendrecv) { $0.keepsPlace = keepsPlace }
        var effects = bench.receiveAll(.silenceChanged(isSilent: true), from: sender)
        for member in [knowing, plain] { #expect(Self.interruptions(effects, to: member) == [true]) }
        #expect(effects.reports.contains { if case .connectionInterrupted = $0 { true } else { false } })
        #expect(bench.model.connection(of: sender)?.state == .interrupted)
        #expect(bench.receiveAll(.silenceChanged(isSilent: true), from: sender).isEmpty)
        effects = bench.receiveAll(.silenceChanged(isSilent: false), from: sender)
        for member in [knowing, plain] { #expect(Self.interruptions(effects, to: member) == [false]) }
        #expect(effects.reports.contains { if case .connectionResumed = $0 { true } else { false } })
        _ = bench.receiveAll(.silenceChanged(isSilent: true), from: sender)
        effects = bench.receiveAll(.closed(.consentExpired), from: sender)
        #expect(Self.interruptions(effects, to: knowing).isEmpty, "it was told before")
        #expect(effects.contains(.ended(sender, .transport(.consentExpired))) != keepsPlace)
        #expect(effects.contains(.interrupted(sender, .transport(.consentExpired))) == keepsPlace)
    }

    @Test func `others are told of the quality of a publisher's network, where that are not too many messages`() throws
    {
        var bench = bench()
        let knowing = try bench.member(.recvonly) { $0.options = MemberOptions() }
        let plain = try bench.member(.sendrecv)
        let sender = try bench.member(.sendrecv)
        let poor = LinkQuality(uplink: .poor, downlink: .good)
        func told(_ effects: [ChannelModel.Effect]) -> [[ParticipantID]] {
            effects.notifications.filter { if case .othersQuality(_, poor) = $0.content { true } else { false } }.map(
                \.to
            )
        }
        #expect(told(bench.receiveAll(.qualityChanged(poor), from: sender)) == [[knowing]])
        #expect(told(bench.receiveAll(.qualityChanged(poor), from: plain)) == [[knowing]])
        #expect(told(bench.receiveAll(.qualityChanged(poor), from: knowing)).isEmpty, "it publishes nothing")
        #expect(ChannelModel.qualityDeliveriesMax == 50 * 50)
        for _ in 2..<50 { _ = try bench.member(.sendrecv) }
        for _ in 1..<50 { _ = try bench.member(.recvonly) { $0.options = MemberOptions() } }
        #expect(told(bench.receiveAll(.qualityChanged(.unknown), from: sender)).isEmpty)
        #expect(told(bench.receiveAll(.qualityChanged(poor), from: sender)).first?.count == 50)
        _ = try bench.member(.recvonly) { $0.options = MemberOptions() }
        #expect(told(bench.receiveAll(.qualityChanged(.unknown), from: sender)).isEmpty)
        #expect(told(bench.receiveAll(.qualityChanged(poor), from: sender)).isEmpty, "one receiver too many")
    }

    @Test func `a viewer is never interrupted by silence, and neither is who became audience`() throws {
        var bench = bench()
        let host = try bench.member(.sendrecv) { $0.options = MemberOptions(profile: .interactive) }
        let viewer = try bench.member(.recvonly)
        #expect(bench.receiveAll(.silenceChanged(isSilent: true), from: viewer).isEmpty)
        _ = bench.receiveAll(.silenceChanged(isSilent: true), from: host)
        _ = try bench.model.perform(.setRole(.audience, of: .participant(host)))
        #expect(bench.model.connection(of: host)?.state == .connected)
        #expect(bench.receiveAll(.silenceChanged(isSilent: false), from: host).isEmpty)
    }
}

extension ModelBench {
    /// What an event of a participant's peer leads to, notifications included.
    fileprivate mutating func receiveAll(_ event: PeerEvent, from id: ParticipantID) -> [ChannelModel.Effect] {
        model.received(event, from: peers[id]!)
    }
}
