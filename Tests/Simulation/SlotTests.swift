import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// Slots that come and go in a call, and what is told of a peer's media.
@Suite struct SlotTests {
    private func video(_ world: World, _ viewer: World.Host) throws -> SendTrackParameters {
        let id = try #require(viewer.client).id
        return try #require(world.slots[id]?.first { $0.kind == .video })
    }

    @Test func `slots are added and removed while the call goes on`() throws {
        let world = try World(seed: 801)
        let publisher = try world.publish()
        let viewer = try world.watch(hasSlots: false)
        let recording = Recording(viewer, .video)
        #expect(world.run(for: .seconds(2)) { viewer.client?.isConnected == true })
        let id = try #require(viewer.client).id
        let slots = try #require(world.slots[id])
        try world.changeSlots(of: viewer, add: slots, remove: [])
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(3))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > 75)
        #expect(viewer.client?.audioReceived?.packets ?? 0 > 130)

        var video = try video(world, viewer)
        try world.changeSlots(of: viewer, add: [], remove: [video.mid])
        world.run(for: .milliseconds(100))
        let (seen, heard) = (recording.packets.count, viewer.client?.audioReceived?.packets ?? 0)
        world.run(for: .seconds(2))
        #expect(recording.packets.count == seen)
        #expect(viewer.client?.audioReceived?.packets ?? 0 > heard + 90)
        #expect(world.node.core.gauges.slots == 1)

        // The same section with SSRCs of its own is another slot to the core.
        let used = video.ssrc
        video.ssrc = SSRC(rawValue: used.rawValue ^ 0x5555)
        video.rtxSSRC = video.rtxSSRC.map { SSRC(rawValue: $0.rawValue ^ 0x5555) }
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        try world.changeSlots(of: viewer, add: [video], remove: [])
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 50)
        #expect(viewer.client?.isConnected == true)
        #expect(world.node.core.counters[DropReason.srtpOther] == 0)
    }

    @Test func `a stream does not begin again at a key frame that is older than what was sent of it`() throws {
        let world = try World(seed: 802)
        let viewer = try world.watch(video: [.standard(.h264)])
        let publisher = try world.publishQuietly(video: [.standard(.h264)])
        #expect(viewer.client?.isConnected == true)
        let recording = Recording(viewer, .video)
        try world.connect(viewer, to: publisher)
        var stream = try #require(HandMadeStream(world, publisher, .video, codec: .h264, ssrc: 7_001))
        let (keyFrame, delta) = ([0x65, 0x88, 0x84] as [UInt8], [0x61, 0, 0] as [UInt8])
        /// The new packets that one of the publisher makes for the viewer; what the viewer asks for again is none.
        func received(_ packet: [UInt8]) -> Int {
            let newest = recording.packets.map(\.sequence).max() ?? 0
            world.sendSecured(packet, from: publisher)
            world.run(for: .milliseconds(60))
            return recording.packets.count { $0.sequence > newest }
        }
        #expect(received(stream.next(keyFrame)) == 1)
        let late = stream.next(keyFrame)
        #expect(received(stream.next(delta)) == 1)
        try world.connect(viewer, to: nil)
        try world.connect(viewer, to: publisher)
        // With it the viewer would see again what it saw, and every packet in between would leave under a second number.
        #expect(received(late) == 0)
        #expect(received(stream.next(delta)) == 0)
        #expect(received(stream.next(keyFrame)) == 1)
        #expect(received(stream.next(delta)) == 1)
    }

    @Test func `a change that is refused changes nothing`() throws {
        let world = try World(seed: 811)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(2))
        let id = try #require(viewer.client).id
        let slots = try #require(world.slots[id])
        var fresh = slots[0]
        fresh.mid = try #require(MID("fresh"))
        let before = world.nodePeer(viewer)?.slots.map(\.id)
        #expect(throws: ForwarderError.ssrcUsed(fresh.ssrc)) {
            try world.changeSlots(of: viewer, add: [fresh], remove: [slots[1].mid])
        }
        fresh.ssrc = SSRC(rawValue: 77)
        fresh.rtxSSRC = nil
        fresh.mid = slots[1].mid
        #expect(throws: ForwarderError.duplicateSlot(TrackID(peer: id, mid: slots[1].mid))) {
            try world.changeSlots(of: viewer, add: [fresh], remove: [slots[1].mid])
        }
        fresh.mid = try #require(MID("fresh"))
        #expect(throws: ForwarderError.self) {
            try world.changeSlots(of: viewer, add: [fresh, fresh], remove: [])
        }
        #expect(throws: ForwarderError.unknownPeer(PeerID(rawValue: 99))) {
            try world.node.core.changeSlots(of: PeerID(rawValue: 99), add: [], remove: [], at: world.now)
        }
        #expect(world.nodePeer(viewer)?.slots.map(\.id) == before)
        // SSRCs of a slot that went stay used.
        try world.changeSlots(of: viewer, add: [fresh], remove: [try #require(MID("never"))])
        try world.changeSlots(of: viewer, add: [], remove: [fresh.mid])
        fresh.mid = try #require(MID("fresher"))
        #expect(throws: ForwarderError.ssrcUsed(fresh.ssrc)) {
            try world.changeSlots(of: viewer, add: [fresh], remove: [])
        }
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 25)
    }

    @Test func `a thousand slots come and go and leave nothing`() throws {
        let world = try World(seed: 821)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(1))
        let id = try #require(viewer.client).id
        let template = try video(world, viewer)
        let mid = try #require(world.publishedTrack(publisher, .video)).mid
        let track = TrackID(peer: try #require(publisher.client).id, mid: mid)
        let bytes = world.node.core.gauges.stateBytes
        for round in 0..<50 as Range<UInt32> {
            let added = (0..<20 as Range<UInt32>).map { index in
                var slot = template
                slot.ssrc = SSRC(rawValue: 1_000_000 + round * 100 + index)
                slot.rtxSSRC = SSRC(rawValue: 2_000_000 + round * 100 + index)
                slot.mid = MID("s\(round)-\(index)") ?? template.mid
                return slot
            }
            try world.changeSlots(of: viewer, add: added, remove: [])
            for slot in added {
                try world.node.core.connect(slot: TrackID(peer: id, mid: slot.mid), to: track, at: world.now)
            }
            world.run(for: .milliseconds(60))
            #expect(world.nodePeer(viewer)?.slot(added[19].mid)?.parameters.ssrc == added[19].ssrc)
            try world.changeSlots(of: viewer, add: [], remove: added.map(\.mid))
        }
        #expect(world.node.core.gauges.slots == 2)
        #expect(world.node.core.gauges.connectedSlots == 2)
        #expect(world.node.core.gauges.stateBytes == bytes)
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.lost == 0)
        world.remove(viewer)
        world.remove(publisher)
        #expect(world.node.core.isEmpty)
    }

    @Test func `viewers that leave in any order take nothing of the others along`() throws {
        let world = try World(seed: 822)
        let publisher = try world.publish()
        var viewers = try (0..<6).map { _ in try world.watch() }
        for viewer in viewers { try world.connect(viewer, to: publisher) }
        world.run(for: .seconds(2))
        for place in [0, 4, 2, 1, 1, 0] {
            world.remove(viewers.remove(at: place))
            let track = try #require(world.nodePeer(publisher)?.tracks.first { $0.parameters.kind == .video })
            #expect(track.slots.count == viewers.count)
            #expect(track.slots.map(\.place) == Array(0..<viewers.count))
            #expect(unsafe track.slots.map(\.state) == Array(track.states))
            let decoded = viewers.map { $0.client?.video?.framesDecoded ?? 0 }
            world.run(for: .seconds(1))
            for (viewer, before) in zip(viewers, decoded) {
                #expect(viewer.client?.video?.framesDecoded ?? 0 > before + 25)
                #expect(viewer.client?.video?.lost == 0)
            }
        }
        world.remove(publisher)
        #expect(world.node.core.isEmpty)
    }

    @Test func `a peer is asked for a key frame of every layer that flows`() throws {
        let world = try World(seed: 831)
        let rids = try ["a", "b", "c"].map { try #require(RID($0)) }
        let publisher = try world.publish(rids: rids)
        world.run(for: .seconds(2))
        publisher.client?.setSending(false, layer: rids[1])
        world.run(for: .seconds(3))
        let before = publisher.client?.keyFramesMade ?? 0
        let id = try #require(publisher.client).id
        world.node.core.requestKeyFrame(of: id, at: world.now)
        world.node.core.requestKeyFrame(of: PeerID(rawValue: 99), at: world.now)
        world.settle(world.node)
        world.run(for: .milliseconds(400))
        #expect(publisher.client?.keyFramesMade == before + 2)
    }

    @Test func `statistics tell bitrates, layers, loss and key frame requests`() throws {
        let world = try World(seed: 841)
        world.network.standard = LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(4), loss: 0.02)
        let rids = try ["a", "b"].map { try #require(RID($0)) }
        let publisher = try world.publish(rids: rids, layersAscend: true)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher, layer: .level(1))
        world.run(for: .seconds(8))
        func statistics(_ host: World.Host) throws -> PeerStatistics {
            let id = try #require(host.client).id
            return try #require(world.node.core.statistics(of: id, at: world.now))
        }
        let received = try statistics(publisher).received
        #expect(Set(received.compactMap(\.rid)) == Set(rids))
        for stream in received where stream.kind == .video {
            #expect(stream.bytes > 100_000)
            #expect(stream.keyFrameRequests > 0 || stream.rid == rids[0])
        }
        let sent = try statistics(viewer).sent
        let video = try #require(sent.first { $0.kind == .video })
        #expect(video.rid == rids[1])
        #expect((1_000_000...2_500_000).contains(video.bitsPerSecond))
        #expect(video.packetsLost != nil)
        #expect(video.jitter ?? .zero > .zero)
        let audio = try #require(sent.first { $0.kind == .audio })
        #expect(audio.rid == nil)
        #expect((40_000...120_000).contains(audio.bitsPerSecond))
    }

    // MARK: - Speech

    /// Sends a packet of audio every 20 ms.
    private func say(
        _ levels: [UInt8?],
        _ stream: inout HandMadeStream,
        _ world: World,
        _ publisher: World.Host
    ) {
        for level in levels {
            world.sendSecured(stream.next(step: 960, level: level, [UInt8](repeating: 7, count: 60)), from: publisher)
            world.run(for: .milliseconds(20))
        }
    }

    @Test func `who speaks is told by the audio levels`() throws {
        let world = try World(seed: 851)
        var settings = MediaClient.Settings()
        settings.sendsAudio = false
        let publisher = try world.publish(settings)
        #expect(world.run(for: .seconds(2)) { publisher.client?.isConnected == true })
        var stream = try #require(HandMadeStream(world, publisher, .audio, codec: .opus, ssrc: 4_711))
        #expect(stream.levelID != nil)
        func told() -> [PeerEvent] {
            world.nodeEvents.map(\.1).filter { if case .speech = $0 { true } else { false } }
        }
        say(Array(repeating: 110, count: 50), &stream, world, publisher)
        say(Array(repeating: nil, count: 50), &stream, world, publisher)
        #expect(told() == [])
        say(Array(repeating: 25, count: 50), &stream, world, publisher)
        #expect(told() == [.speech(mid: stream.mid, isSpeaking: true)])
        // Silence by sending nothing at all.
        world.run(for: .seconds(2))
        #expect(told() == [.speech(mid: stream.mid, isSpeaking: true), .speech(mid: stream.mid, isSpeaking: false)])
    }

    @Test func `hostile levels make few events`() throws {
        let world = try World(seed: 861)
        let publisher = try world.publish()
        #expect(world.run(for: .seconds(2)) { publisher.client?.isConnected == true })
        var stream = try #require(HandMadeStream(world, publisher, .audio, codec: .opus, ssrc: 4_711))
        for round in 0..<1_000 {
            let level = UInt8(truncatingIfNeeded: round &* 0x9E37_79B1 >> 7)
            world.sendSecured(stream.next(step: 960, level: level, [1, 2, 3]), from: publisher)
            if round % 3 == 0 { world.run(for: .milliseconds(10)) }
        }
        world.run(for: .seconds(3))
        let count = world.nodeEvents.count { if case .speech = $0.1 { true } else { false } }
        #expect(count <= 10)
        #expect(publisher.client?.isConnected == true)
    }
}
