import Base
import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What one publisher or viewer of bad will costs the others of its call.
@Suite struct FairnessTests {
    private func vp8(_ picture: Int, isKey: Bool, bytes: Int = 8) -> [UInt8] {
        let header: [UInt8] = [
            0x90, 0xE0, 0x80 | UInt8(picture >> 8 & 0x7F), UInt8(picture & 0xFF), UInt8(picture & 0xFF), 0x20,
            isKey ? 0 : 1,
        ]
        return header + Array(repeating: 7, count: max(bytes - header.count, 0))
    }

    // MARK: - Sequence jumps

    /// Why viewers do not see the packets around a publisher's jumps.
    enum Hindrance: CaseIterable { case tooLongToSendOn, lostOnTheWay, none }

    @Test(arguments: Hindrance.allCases)
    func `after the jumps of one publisher viewers decrypt every packet of the next`(_ hindrance: Hindrance) throws {
        let world = try World(seed: 301)
        let (jumper, honest) = (try world.publishQuietly(), try world.publishQuietly())
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        try world.connect(viewer, to: jumper)
        var jumping = try #require(HandMadeStream(world, jumper, .video, codec: .vp8, ssrc: 7_001))
        for frame in 0..<10 {
            world.deliverSecured([jumping.next(vp8(frame, isKey: frame == 0))], from: jumper)
            world.run(for: .milliseconds(10))
        }
        world.run(for: .milliseconds(100))
        if hindrance == .lostOnTheWay {
            world.alters = { from, bytes in
                guard from == World.nodeAddress, bytes.count > 20, bytes[0] >> 6 == 2 else { return bytes }
                return bytes.map { ~$0 }
            }
        }
        for jump in 0..<10 {
            jumping.sequence &+= 30_000
            let bytes = hindrance == .tooLongToSendOn ? 1_498 : 8
            world.deliverSecured([jumping.next(vp8(10 + jump, isKey: false, bytes: bytes))], from: jumper)
            world.run(for: .milliseconds(10))
        }
        world.deliverSecured([jumping.next(vp8(20, isKey: false))], from: jumper)
        world.run(for: .milliseconds(100))
        world.alters = nil
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: honest)
        var stream = try #require(HandMadeStream(world, honest, .video, codec: .vp8, ssrc: 7_002))
        for frame in 0..<420 {
            world.sendSecured(stream.next(vp8(frame, isKey: frame == 0, bytes: 40)), from: honest)
            world.run(for: .milliseconds(5))
        }
        world.run(for: .milliseconds(200))
        // What was lost before may come again meanwhile.
        let seen = recording.bySequence.filter { $0.payload.count == 40 }
        #expect(seen.count == 420)
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $1.sequence == $0.sequence + 1 })
    }

    // MARK: - Requests for key frames

    private func flood(_ world: World, _ viewers: [World.Host], for duration: Interval) throws {
        let end = world.now + duration
        var sequence: UInt8 = 0
        while world.now < end {
            for viewer in viewers {
                let slot = try #require(world.nodeSlot(viewer, .video))
                var request = RTCPWriter()
                request.appendPictureLoss(sender: SSRC(rawValue: 1), media: slot.parameters.ssrc)
                sequence &+= 1
                let media = slot.parameters.ssrc.rawValue
                let second = RTCPPackets.fullIntraRequest(sender: 1, media: media, sequence: sequence)
                world.sendSecured(request.bytes + second, isRTCP: true, from: viewer)
            }
            world.run(for: .milliseconds(100))
        }
    }

    @Test(arguments: [1, 6])
    func `viewers that ask for key frames without end get few, and a newcomer its own at once`(count: Int) throws {
        let world = try World(seed: 302)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 300_000
        let publisher = try world.publish(settings)
        let greedy = try (0..<count).map { _ in try world.watch() }
        for viewer in greedy { try world.connect(viewer, to: publisher) }
        world.run(for: .seconds(3))
        let before = world.node.core.counters.pliSent
        try flood(world, greedy, for: .seconds(60))
        let asked = world.node.core.counters.pliSent - before
        // The burst, and then one in three seconds for a viewer, one in two for all viewers of a layer.
        #expect(asked <= (count == 1 ? 27 : 40), "\(asked)")
        let counters = world.node.core.counters
        #expect(counters[KeyFrameThrottle.repeated] > 100)
        #expect(counters[KeyFrameThrottle.viewerBudget] > 0)
        if count > 1 { #expect(counters[KeyFrameThrottle.layerBudget] > 0) }

        let newcomer = try world.watch()
        #expect(world.run(for: .seconds(3)) { newcomer.client?.isConnected == true })
        try world.connect(newcomer, to: publisher)
        let start = world.now
        while newcomer.client?.video?.framesDecoded ?? 0 == 0, world.now - start < .seconds(5) {
            try flood(world, greedy, for: .milliseconds(100))
        }
        #expect(world.now - start <= .milliseconds(900), "\(world.now - start)")
    }

    @Test func `a viewer that loses its picture gets a new one at once beside greedy ones, and again after a while`()
        throws
    {
        let world = try World(seed: 303)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 300_000
        let publisher = try world.publish(settings)
        let honest = try world.watch()
        let greedy = try world.watch()
        for viewer in [honest, greedy] { try world.connect(viewer, to: publisher) }
        world.run(for: .seconds(3))
        try flood(world, [greedy], for: .seconds(30))
        for _ in 0..<3 {
            let slot = try #require(world.nodeSlot(honest, .video))
            var request = RTCPWriter()
            request.appendPictureLoss(sender: SSRC(rawValue: 1), media: slot.parameters.ssrc)
            let before = world.node.core.counters.keyFramesReceived
            world.sendSecured(request.bytes, isRTCP: true, from: honest)
            #expect(world.run(for: .milliseconds(700)) { world.node.core.counters.keyFramesReceived > before })
            try flood(world, [greedy], for: .seconds(8))
        }
    }

    // MARK: - A publisher's rate

    private func settings(bitrate: Int) -> MediaClient.Settings {
        var settings = MediaClient.Settings()
        settings.video?.bitrate = bitrate
        return settings
    }

    @Test func `video beyond a publisher's rate is left out in whole groups of pictures, and audio goes on`() throws {
        let world = try World(seed: 311)
        let publisher = try world.publish(settings(bitrate: 3_000_000), bitsPerSecondMax: 1_000_000)
        let viewer = try world.watch()
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        let start = world.now
        world.run(for: .seconds(40))
        let counters = world.node.core.counters
        #expect(counters[DropReason.publishRateVideo] > 1_000)
        #expect(counters[DropReason.publishRateAudio] == 0)
        #expect(counters.layersShed > 1)
        #expect(viewer.client?.audioReceived?.lost == 0)
        #expect(viewer.client?.audioReceived?.packets ?? 0 > 1_900)
        let bits = recording.packets.reduce(0) { $0 + $1.payload.count * 8 }
        #expect(bits <= Int(1_000_000 * ((world.now - start).seconds + 1)))
        #expect(recording.packets.count > 200, "the picture comes back")
        // Whatever follows a time without begins with a key frame.
        for (before, after) in zip(recording.bySequence, recording.bySequence.dropFirst())
        where after.arrivedAt - before.arrivedAt > .milliseconds(500) {
            #expect(after.startsKeyFrame)
        }
    }

    @Test func `of layers beyond a publisher's rate the highest is left out, and viewers go on with the next`() throws {
        let world = try World(seed: 312)
        let rids = try ["q", "h", "f"].map { try #require(RID($0)) }
        let publisher = try world.publish(settings(bitrate: 2_000_000), rids: rids, bitsPerSecondMax: 1_200_000)
        let viewer = try world.watch()
        let low = try world.watch()
        let recording = Recording(viewer, .video)
        let lowest = Recording(low, .video)
        try world.connect(viewer, to: publisher)
        try world.connect(low, to: publisher, layer: .level(0))
        let start = world.now
        world.run(for: .seconds(30))
        #expect(world.node.core.counters.layersShed > 0)
        #expect(viewer.client?.audioReceived?.lost == 0)
        #expect(recording.longestGap(from: start + .seconds(2)) < .milliseconds(1_500))
        #expect(lowest.longestGap(from: start + .seconds(2)) < .milliseconds(200))
        #expect(lowest.flaws == [])
    }

    @Test func `a publisher within its rate loses nothing, whatever another one sends`() throws {
        let world = try World(seed: 313)
        let honest = try world.publish(settings(bitrate: 900_000), bitsPerSecondMax: 1_200_000)
        let greedy = try world.publish(settings(bitrate: 4_000_000), bitsPerSecondMax: 1_200_000)
        let viewer = try world.watch()
        let other = try world.watch()
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: honest)
        try world.connect(other, to: greedy)
        world.run(for: .seconds(20))
        #expect(recording.flaws == [])
        #expect(viewer.client?.video?.lost == 0)
        #expect(viewer.client?.video?.framesDecoded ?? 0 > 550)
        #expect(viewer.client?.audioReceived?.lost == 0)
        let peer = try #require(world.nodePeer(honest))
        #expect(peer.streams.allSatisfy { !$0.shedding.isActive })
        #expect(world.node.core.counters[DropReason.publishRateVideo] > 0)
    }

    // MARK: - Reports

    @Test func `a datagram full of sender reports is one message to another loop`() throws {
        let world = try World(seed: 314, loops: 2)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch(loop: 1)
        try world.connect(viewer, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 7_100))
        for frame in 0..<5 {
            world.sendSecured(stream.next(vp8(frame, isKey: frame == 0)), from: publisher)
            world.run(for: .milliseconds(33))
        }
        var clocks = 0
        world.links[0][1]?.loses = { record in
            if case .clock = record.message { clocks += 1 }
            return false
        }
        for round in 0..<10 as Range<UInt64> {
            var reports = RTCPWriter()
            for number in 0..<40 as Range<UInt64> {
                reports.appendSenderReport(
                    sender: stream.ssrc,
                    info: SenderInfo(
                        ntp: NTPTimestamp(rawValue: 0xE900_0000_0000_0000 + (round * 40 + number) << 24),
                        rtp: RTPTimestamp(rawValue: stream.timestamp),
                        packetCount: 5,
                        octetCount: 50
                    )
                )
            }
            world.sendSecured(reports.bytes, isRTCP: true, from: publisher)
            world.run(for: .milliseconds(100))
        }
        #expect(clocks >= 4)
        #expect(clocks <= 12, "of 400 reports")
    }

    @Test func `a viewer that reports under a new SSRC for each newcomer is heard for as long as it stays`() throws {
        let world = try World(seed: 315)
        let publisher = try world.publish(settings(bitrate: 300_000))
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(3))
        let slot = try #require(world.nodeSlot(viewer, .video))
        for number in 0..<300 as Range<UInt32> {
            var request = RTCPWriter()
            request.appendPictureLoss(sender: SSRC(rawValue: 70_000 + number), media: slot.parameters.ssrc)
            let before = world.node.core.counters.keyFrameRequestsReceived
            world.sendSecured(request.bytes, isRTCP: true, from: viewer)
            world.run(for: .milliseconds(500))
            #expect(world.node.core.counters.keyFrameRequestsReceived == before + 1, "SSRC \(number)")
        }
        #expect(world.node.core.counters[DropReason.srtpSourceLimit] == 0)
        #expect(viewer.client?.video?.lost == 0)
        #expect(try #require(world.nodePeer(viewer)).directory.reporters.count <= 64)
    }
}
