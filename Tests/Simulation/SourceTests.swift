import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// What a publisher may do with its sources under one negotiation.
@Suite struct SourceTests {
    private static let h264Key: [UInt8] = [0x65, 0x88, 0x84, 0x00]
    private static let h264Delta: [UInt8] = [0x61, 0x00, 0x00, 0x00]

    private func vp8(_ picture: Int, isKey: Bool) -> [UInt8] {
        [
            0x90, 0xE0, 0x80 | UInt8(picture >> 8 & 0x7F), UInt8(picture & 0xFF), UInt8(picture & 0xFF), 0x20,
            isKey ? 0 : 1,
        ]
    }

    @Test func `a viewer that comes before its publisher sees it from the first frame on`() throws {
        let world = try World(seed: 131)
        let viewer = try world.watch()
        world.run(for: .seconds(5))
        #expect(viewer.client?.isConnected == true)
        #expect(viewer.client?.video?.packets == 0)
        let publisher = try world.publish()
        try world.connect(viewer, to: publisher)
        let start = world.now
        #expect(world.run(for: .seconds(3)) { viewer.client?.video?.framesDecoded ?? 0 > 0 })
        #expect(world.now - start < .seconds(1))
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.lost == 0)
    }

    @Test func `viewers on any loop are told that a publisher shares a screen, and that it stopped`() throws {
        let world = try World(seed: 133, loops: 2, estimates: true)
        let publisher = try world.publishQuietly()
        let viewers = try [world.watch(), world.watch(loop: 1)]
        world.run(for: .seconds(1))
        for viewer in viewers { try world.connect(viewer, to: publisher) }
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 5_001))
        var picture = 0
        func send(_ frames: Int, isScreen: Bool) {
            for frame in 0..<frames {
                picture += 1
                let isKey = frame == 0
                world.sendSecured(stream.next(marker: false, vp8(picture, isKey: isKey)), from: publisher)
                // The picture's second packet is its last one.
                let contentType: UInt8? = isKey && isScreen ? 1 : nil
                let last = stream.next(step: 0, contentType: contentType, [0x80, 0x80, UInt8(picture & 0x7F), 0])
                world.sendSecured(last, from: publisher)
                world.run(for: .milliseconds(33))
            }
        }
        func isScreen() throws -> [Bool] {
            let track = try #require(world.nodePeer(publisher)?.tracks.first { $0.parameters.kind == .video })
            let mirror = try #require(world.loops[1].core.relays.mirrors[track.id]?.track)
            // The clients of the viewers read the extension as the server does.
            let received = try viewers.map { viewer in
                let peer = try #require(viewer.client.flatMap { viewer.core.peer($0.id) })
                return try #require(peer.tracks.first { $0.parameters.kind == .video })
            }
            return ([track, mirror] + received).map(\.isScreen)
        }
        send(30, isScreen: false)
        #expect(try isScreen() == [false, false, false, false])
        send(10, isScreen: true)
        #expect(try isScreen() == [true, true, true, true])
        let id = try #require(publisher.client).id
        let received = world.node.core.statistics(of: id, at: world.now)?.received
        #expect(received?.first { $0.kind == .video }?.isScreen == true)
        send(90, isScreen: true)
        #expect(try isScreen() == [true, true, true, true])
        send(100, isScreen: false)
        #expect(try isScreen() == [false, false, false, false])
    }

    @Test func `a new SSRC without a negotiation plays on as the same stream, and its RTX is known`() throws {
        let world = try World(seed: 132)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        let rtx = try #require(
            world.publishedTrack(publisher, .video)?.codecs.first?.rtxPayloadType
        )
        for ssrc in [5_001, 5_002] as [UInt32] {
            var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: ssrc))
            stream.sequence = UInt16(truncatingIfNeeded: ssrc &* 7_919)
            for frame in 0..<30 {
                let packet = stream.next(vp8(frame + Int(ssrc), isKey: frame == 0))
                if frame == 20 {
                    // Lost, and repeated under an SSRC that no description named.
                    var repeated = packet
                    let header = 12 + 4 + 4
                    repeated.insert(contentsOf: [packet[2], packet[3]], at: header)
                    repeated[1] = packet[1] & 0x80 | rtx.rawValue
                    repeated.store(bigEndian: 1, at: 2)
                    repeated[11] ^= 0x80
                    world.sendSecured(repeated, from: publisher)
                } else {
                    world.sendSecured(packet, from: publisher)
                }
                world.run(for: .milliseconds(33))
            }
        }
        world.run(for: .milliseconds(200))
        #expect(recording.packets.count == 60)
        #expect(recording.flaws == [])
        #expect(world.node.core.counters.retransmissionsReceived == 2)
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
    }

    @Test func `a change of codec within one SSRC goes out under the viewer's number for it`() throws {
        let world = try World(seed: 133)
        var h264 = CodecParameters.standard(.h264)
        h264.payloadType = PayloadType(wire: 120)
        h264.rtxPayloadType = PayloadType(wire: 121)
        let publisher = try world.publishQuietly(video: [.standard(.vp8), h264])
        let viewer = try world.watch()
        let narrow = try world.watch(video: [.standard(.vp8)])
        world.run(for: .seconds(1))
        let wide = Recording(viewer, .video)
        let restricted = Recording(narrow, .video)
        try world.connect(viewer, to: publisher)
        try world.connect(narrow, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 6_001))
        for round in 0..<2 {
            stream.payloadType = 96
            for frame in 0..<10 { send(&stream, vp8(round * 10 + frame, isKey: frame == 0)) }
            stream.payloadType = 120
            for frame in 0..<10 { send(&stream, frame == 0 ? Self.h264Key : Self.h264Delta) }
        }
        // Back to VP8 in the middle of a group of pictures: the narrow viewer waits for the key frame.
        stream.payloadType = 96
        for frame in 0..<5 { send(&stream, vp8(20 + frame, isKey: frame == 3)) }
        func send(_ stream: inout HandMadeStream, _ payload: [UInt8]) {
            world.sendSecured(stream.next(payload), from: publisher)
            world.run(for: .milliseconds(33))
        }
        world.run(for: .milliseconds(100))
        let expected: [UInt8] = [96, 106, 96, 106].flatMap { Array(repeating: $0, count: 10) }
        #expect(wide.bySequence.map(\.payloadType) == expected + Array(repeating: 96, count: 5))
        #expect(zip(wide.bySequence, wide.bySequence.dropFirst()).allSatisfy { $1.sequence == $0.sequence + 1 })
        let seen = restricted.bySequence
        #expect(seen.count == 22)
        #expect(seen.allSatisfy { $0.payloadType == 96 })
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $1.sequence == $0.sequence + 1 })
        #expect(seen.dropFirst(20).first?.startsKeyFrame == true)
        #expect(narrow.core.counters.nackedPacketsRequested == 0)
        let reports = world.nodeEvents.filter {
            if case .formatUnsupported = $0.1 { true } else { false }
        }
        #expect(reports.count == 1)
        #expect(reports.first?.0 == narrow.client?.id)
    }

    @Test func `a codec that one viewer lacks is reported once and disturbs no other`() throws {
        let world = try World(seed: 134)
        let publisher = try world.publishQuietly(video: [.standard(.h264)])
        let able = try world.watch()
        let unable = try world.watch(video: [.standard(.vp8)])
        world.run(for: .seconds(1))
        let recording = Recording(able, .video)
        let nothing = Recording(unable, .video)
        try world.connect(able, to: publisher)
        try world.connect(unable, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .h264, ssrc: 6_002))
        for frame in 0..<100 {
            world.sendSecured(stream.next(frame % 30 == 0 ? Self.h264Key : Self.h264Delta), from: publisher)
            world.run(for: .milliseconds(10))
        }
        world.run(for: .milliseconds(100))
        #expect(recording.packets.count == 100)
        #expect(nothing.packets.isEmpty)
        let slot = try #require(world.nodeSlot(unable, .video))
        let reported = world.nodeEvents.filter { $0.1 == .formatUnsupported(slot: slot.id.mid, codec: .h264) }
        #expect(reported.map(\.0) == [slot.id.peer])
    }

    @Test func `codecs that a viewer lacks are reported once each, however often they take turns`() throws {
        let world = try World(seed: 138)
        var vp9 = CodecParameters.standard(.vp9)
        vp9.payloadType = PayloadType(wire: 122)
        vp9.rtxPayloadType = PayloadType(wire: 123)
        let publisher = try world.publishQuietly(video: [.standard(.h264), vp9])
        let viewer = try world.watch(video: [.standard(.vp8)])
        world.run(for: .seconds(1))
        try world.connect(viewer, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .h264, ssrc: 6_005))
        let h264 = stream.payloadType
        func alternate() {
            for _ in 0..<20 {
                stream.payloadType = h264
                world.sendSecured(stream.next(Self.h264Key), from: publisher)
                stream.payloadType = 122
                world.sendSecured(stream.next([0x80 | 0x08, 1, 2, 3]), from: publisher)
                world.run(for: .milliseconds(20))
            }
        }
        func reported() -> [CodecName] {
            world.nodeEvents.compactMap { if case .formatUnsupported(_, let codec) = $0.1 { codec } else { nil } }
        }
        alternate()
        #expect(Set(reported()) == [.h264, .vp9])
        #expect(reported().count == 2)
        // Connected anew it is news again.
        try world.connect(viewer, to: nil)
        try world.connect(viewer, to: publisher)
        alternate()
        #expect(reported().count == 4)
    }

    @Test func `a stream of which a packet waits does not give way to another`() throws {
        let world = try World(seed: 139)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        let track = try #require(world.nodePeer(publisher)?.tracks.first { $0.parameters.kind == .video })
        // What the publisher sent by itself went silent, and gives way to the last of these.
        world.run(for: .seconds(3))
        var streams = try (0..<4 as Range<UInt32>).map {
            try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 7_001 + $0))
        }
        for index in streams.indices {
            world.deliverSecured([streams[index].next(vp8(index, isKey: index == 0))], from: publisher)
        }
        #expect(track.streams.map(\.ssrc) == streams.map(\.ssrc))
        let playing = track.streams[0]
        world.run(for: .seconds(3))
        #expect(recording.packets.count == 1)

        var padding = streams[0].next(step: 0, [0, 0, 0, 4])
        padding[0] |= 0x20
        var newcomer = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 7_100))
        world.deliverSecured([padding, newcomer.next(vp8(50, isKey: true))], from: publisher)
        #expect(track.streams.contains { $0 === playing })
        #expect(track.streams.contains { $0.ssrc == newcomer.ssrc })
        #expect(track.streams.count == ReceivedTrack.streamsMax)
        world.run(for: .milliseconds(100))
        #expect(recording.packets.count == 2)
    }

    @Test func `RED passes through to who takes it and loses its redundancy for who does not`() throws {
        let world = try World(seed: 135)
        let publisher = try world.publishQuietly(audio: [.standard(.opus), .standard(.red)])
        var opus = CodecParameters.standard(.opus)
        opus.payloadType = PayloadType(wire: 109)
        var red = CodecParameters.standard(.red)
        red.payloadType = PayloadType(wire: 110)
        red.format = [FormatParameter(key: "", value: "109/109")]
        let able = try world.watch(audio: [opus, red])
        let plain = try world.watch(audio: [.standard(.opus)])
        world.run(for: .seconds(1))
        let redundant = Recording(able, .audio)
        let stripped = Recording(plain, .audio)
        try world.connect(able, to: publisher)
        try world.connect(plain, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .audio, codec: .red, ssrc: 6_003))
        for number in 0..<50 as Range<UInt8> {
            world.sendSecured(
                stream.next(step: 960, [0x80 | 111, 0x0F, 0, 2, 111, number &- 1, 7, number, 8, 9]),
                from: publisher
            )
            world.run(for: .milliseconds(20))
        }
        world.run(for: .milliseconds(100))
        #expect(
            redundant.packets.map(\.payload) == (0..<50).map { [0x80 | 109, 0x0F, 0, 2, 109, $0 &- 1, 7, $0, 8, 9] }
        )
        #expect(redundant.packets.allSatisfy { $0.payloadType == 110 })
        #expect(stripped.packets.map(\.payload) == (0..<50).map { [$0, 8, 9] })
        #expect(stripped.packets.allSatisfy { $0.payloadType == 111 })
        // One that is no RED at all goes to no one who would have to read it.
        world.sendSecured(stream.next(step: 960, [0xFF, 0xFF]), from: publisher)
        world.run(for: .milliseconds(100))
        #expect(stripped.packets.count == 50)
    }

    @Test func `sound does not begin with a late packet, after which one would be missing`() throws {
        let world = try World(seed: 139)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        let sound = Recording(viewer, .audio)
        var stream = try #require(HandMadeStream(world, publisher, .audio, codec: .opus, ssrc: 6_004))
        let packets = (0..<5 as Range<UInt8>).map { stream.next(step: 960, [$0, 8, 9]) }
        for number in [0, 2] { world.sendSecured(packets[number], from: publisher) }
        world.run(for: .milliseconds(100))
        try world.connect(viewer, to: publisher)
        for number in [1, 3, 4] { world.sendSecured(packets[number], from: publisher) }
        world.run(for: .milliseconds(100))
        #expect(sound.packets.map(\.payload) == [[3, 8, 9], [4, 8, 9]])
    }

    @Test func `probing padding is not passed on and leaves no gap`() throws {
        let world = try World(seed: 136)
        let publisher = try world.publishQuietly()
        let viewer = try world.watch()
        world.run(for: .seconds(1))
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 6_004))
        for frame in 0..<40 {
            world.sendSecured(stream.next(vp8(frame, isKey: frame == 0)), from: publisher)
            for _ in 0..<(frame % 4) {
                var padding = stream.next(step: 0, [0, 0, 0, 4])
                padding[0] |= 0x20
                world.sendSecured(padding, from: publisher)
            }
            world.run(for: .milliseconds(33))
        }
        world.run(for: .milliseconds(100))
        #expect(recording.packets.count == 40)
        #expect(recording.flaws == [])
        #expect(viewer.core.counters.nackedPacketsRequested == 0)
    }

    @Test func `a track says when it starts, stops and starts again`() throws {
        let world = try World(seed: 137)
        let publisher = try world.publish()
        world.run(for: .seconds(2))
        publisher.client?.setSending(false)
        world.run(for: .seconds(4))
        publisher.client?.setSending(true)
        world.run(for: .seconds(1))
        let mid = try #require(world.publishedTrack(publisher, .video)?.mid)
        let events = world.nodeEvents.map(\.1).filter {
            $0 == .trackStarted(mid: mid, codec: .vp8) || $0 == .trackPaused(mid: mid)
        }
        #expect(
            events == [
                .trackStarted(mid: mid, codec: .vp8), .trackPaused(mid: mid), .trackStarted(mid: mid, codec: .vp8),
            ]
        )
    }
}
