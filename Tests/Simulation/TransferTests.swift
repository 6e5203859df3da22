import Base
import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Calls whose members are on different loops of the node.
@Suite struct TransferTests {
    private func startCall(
        seed: UInt64,
        loops: Int,
        rids: [RID] = [],
        _ prepare: (World) -> Void = { _ in }
    ) throws -> CallAcrossLoops {
        let world = try World(seed: seed, loops: loops)
        prepare(world)
        return try CallAcrossLoops(world, rids: rids)
    }

    @Test func `viewers on every loop get every packet, each handed over once a loop`() throws {
        let call = try startCall(seed: 501, loops: 3)
        let more = try (0..<10).map { _ in try call.world.watch(loop: 1) }
        for viewer in more { try call.world.connect(viewer, to: call.publisher) }
        call.world.run(for: .seconds(10))
        for viewer in call.viewers {
            #expect(viewer.client?.video?.lost == 0)
            #expect(viewer.client?.video?.duplicates == 0)
            #expect(viewer.client?.audioReceived?.lost == 0)
            #expect(viewer.client?.video?.framesDecoded ?? 0 > 290)
        }
        for viewer in more { #expect(viewer.client?.video?.framesDecoded ?? 0 > 280) }
        let received = call.world.loops[0].core.counters.rtpReceived
        let carried = try #require(call.world.links[0][1]).packetsCarried
        #expect(carried <= received, "eleven viewers of one loop cost one hand-over a packet")
        #expect(call.world.loops[1].core.gauges.mirroredTracks == 2)
        #expect(call.world.loops[0].core.gauges.mirroredTracks == 0)
    }

    @Test(arguments: [511, 512, 513] as [UInt64])
    func `what a viewer of another loop misses is repeated from that loop`(seed: UInt64) throws {
        let call = try startCall(seed: seed, loops: 2) { world in
            world.network.standard = LinkConditions(
                delay: .milliseconds(25),
                jitter: .milliseconds(8),
                loss: 0.03,
                duplication: 0.02,
                reordering: 0.02
            )
        }
        call.world.run(for: .seconds(15))
        call.publisher.client?.setSending(false)
        call.world.run(for: .seconds(2))
        let video = try #require(call.viewers[1].client?.video)
        #expect(video.duplicates == 0)
        #expect(video.lost <= 2, "missing \(video.missing) of \(video.packets)")
        #expect(call.world.loops[1].core.counters.retransmissionsSent > 0)
    }

    @Test func `a late viewer on another loop starts with a key frame made for it`() throws {
        let call = try startCall(seed: 521, loops: 2)
        call.world.run(for: .seconds(5))
        let before = call.publisher.client?.keyFramesMade ?? 0
        let late = try call.world.watch(loop: 1)
        try call.world.connect(late, to: call.publisher)
        let joined = call.world.now
        #expect(call.world.run(for: .seconds(2)) { late.client?.video?.framesDecoded ?? 0 > 0 })
        #expect(call.world.now - joined < .milliseconds(800))
        #expect(call.publisher.client?.keyFramesMade == before + 1)
    }

    @Test func `the last viewer of a loop takes its mirror along, and the origin hears of it`() throws {
        let call = try startCall(seed: 531, loops: 2)
        let link = try #require(call.world.links[0][1])
        call.world.remove(call.viewers[1])
        call.world.run(for: .milliseconds(100))
        #expect(call.world.loops[1].core.isEmpty)
        let carried = link.packetsCarried
        call.world.run(for: .seconds(2))
        #expect(link.packetsCarried == carried)
        #expect(call.viewers[0].client?.video?.lost == 0)
        let again = try call.world.watch(loop: 1)
        try call.world.connect(again, to: call.publisher)
        #expect(call.world.run(for: .seconds(2)) { again.client?.video?.framesDecoded ?? 0 > 0 })
    }

    @Test func `an unsubscription that was lost is said again when packets still come`() throws {
        let call = try startCall(seed: 541, loops: 2)
        let back = try #require(call.world.links[1][0])
        back.loses = { _ in true }
        call.world.remove(call.viewers[1])
        call.world.run(for: .seconds(1))
        #expect(call.world.loops[1].core.isEmpty)
        back.loses = { _ in false }
        call.world.run(for: .seconds(1))
        let link = try #require(call.world.links[0][1])
        let carried = link.packetsCarried
        call.world.run(for: .seconds(1))
        #expect(link.packetsCarried == carried)
    }

    @Test func `a publisher that leaves leaves nothing behind on any loop`() throws {
        let call = try startCall(seed: 551, loops: 2)
        call.world.remove(call.publisher)
        for viewer in call.viewers { try call.world.connect(viewer, to: nil) }
        call.world.run(for: .seconds(1))
        #expect(call.world.loops[1].core.gauges.mirroredTracks == 0)
        for viewer in call.viewers { call.world.remove(viewer) }
        call.world.run(for: .seconds(1))
        for loop in call.world.loops { #expect(loop.core.isEmpty) }
    }

    @Test func `viewers of one loop notice nothing of another whose link is full, and it recovers`() throws {
        let call = try startCall(seed: 561, loops: 2)
        let link = try #require(call.world.links[0][1])
        link.loses = { _ in true }
        let stalledAt = call.viewers[1].client?.video?.framesDecoded ?? 0
        call.world.run(for: .seconds(3))
        #expect(call.viewers[0].client?.video?.lost == 0)
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 <= stalledAt + 1)
        #expect(call.world.loops[0].core.counters.packetsNotTransferred > 100)
        link.loses = { _ in false }
        let resumed = call.world.now
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        #expect(call.world.run(for: .seconds(3)) { call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 10 })
        #expect(call.world.now - resumed < .seconds(3))
    }

    @Test(arguments: [571, 572, 573] as [UInt64])
    func `a link that loses records of every kind stops no picture for good`(seed: UInt64) throws {
        let call = try startCall(seed: seed, loops: 2)
        var generator = SeededGenerator(seed: seed)
        for link in [call.world.links[0][1], call.world.links[1][0]] {
            link?.loses = { _ in generator.next() % 50 == 0 }
        }
        call.world.run(for: .seconds(20))
        for link in [call.world.links[0][1], call.world.links[1][0]] { link?.loses = { _ in false } }
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        // Its requests for key frames have used up their budget by now.
        call.world.run(for: .seconds(8))
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 100)
        #expect(call.viewers[0].client?.video?.lost == 0)
    }

    @Test func `the layer that plays is the origin's choice on every loop`() throws {
        let rids = ["q", "h", "f"].compactMap { RID($0) }
        let call = try startCall(seed: 581, loops: 2, rids: rids)
        let recordings = call.viewers.map { Recording($0, .video) }
        call.world.run(for: .seconds(8))
        for recording in recordings {
            #expect(recording.flaws.isEmpty, "\(recording.flaws)")
            #expect(recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 } == 2)
        }
    }

    @Test func `sender reports of both loops tie timestamps to the same clock`() throws {
        let call = try startCall(seed: 591, loops: 2)
        call.world.run(for: .seconds(10))
        let offsets = call.viewers.compactMap { viewer in
            viewer.client.flatMap { call.world.home(of: viewer).core.peer($0.id) }?
                .slots.compactMap { $0.source?.clockOffset.nanoseconds }
        }
        let flat = offsets.flatMap { $0 }
        #expect(flat.count == 4)
        let spread = (flat.max() ?? 0) - (flat.min() ?? 0)
        #expect(spread < 1_000_000, "nanoseconds apart: \(flat)")
    }

    @Test func `packets that come before their mirror is made do not end it`() throws {
        let call = try startCall(seed: 611, loops: 2)
        call.world.remove(call.viewers[1])
        call.world.run(for: .milliseconds(50))
        let (origin, core) = (call.world.loops[0].core, call.world.loops[1].core)
        let track = try #require(call.publisher.client).id
        let mid = try #require(call.world.publishedTrack(call.publisher, .video)).mid
        let relay = try core.makeMirrorID()
        let exported = try origin.exportTrack(
            TrackID(peer: track, mid: mid),
            as: relay,
            over: LinkID(rawValue: 1),
            at: call.world.now
        )
        // The call that makes the mirror takes its time, and packets are faster.
        call.world.run(for: .milliseconds(200))
        core.addMirror(exported, as: relay, from: LinkID(rawValue: 0), at: call.world.now)
        let viewer = try call.world.watch(loop: 1)
        try call.world.connect(viewer, to: call.publisher)
        #expect(call.world.run(for: .seconds(2)) { viewer.client?.video?.framesDecoded ?? 0 > 10 })
    }

    /// What a call over two loops came to.
    private struct Outcome: Equatable {
        var recordings: [[Int64]] = []
        var framesDecoded: [Int] = []
        var carried: [Int] = []
        var events = ""
    }

    private func runCall(seed: UInt64, encodesRelays: Bool) throws -> Outcome {
        let rids = ["q", "h", "f"].compactMap { RID($0) }
        let world = try World(seed: seed, loops: 2, encodesRelays: encodesRelays)
        world.network.standard = LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(5), loss: 0.02)
        let publisher = try world.publish(rids: rids)
        let viewers = try [0, 1, 1].map { try world.watch(loop: $0) }
        for (place, viewer) in viewers.enumerated() {
            try world.connect(viewer, to: publisher, layer: place == 2 ? .level(0) : .richest)
        }
        let recordings = viewers.map { Recording($0, .video) }
        world.run(for: .seconds(6))
        try world.connect(viewers[2], to: publisher, layer: .level(2))
        world.run(for: .seconds(6))
        world.remove(viewers[1])
        world.run(for: .seconds(2))
        var outcome = Outcome()
        outcome.recordings = recordings.map { $0.packets.map(\.sequence) }
        outcome.framesDecoded = viewers.map { $0.client?.video?.framesDecoded ?? 0 }
        outcome.carried = [world.links[0][1], world.links[1][0]].map { $0?.packetsCarried ?? 0 }
        outcome.events = "\(world.nodeEvents)"
        #expect(outcome.framesDecoded.allSatisfy { $0 > 100 }, "seed \(seed): \(outcome.framesDecoded)")
        return outcome
    }

    @Test(arguments: [641, 642, 643] as [UInt64])
    func `an encoded link gives the same call as the memory of one node`(seed: UInt64) throws {
        let inMemory = try runCall(seed: seed, encodesRelays: false)
        #expect(try runCall(seed: seed, encodesRelays: true) == inMemory)
    }

    @Test func `a mirror knows the bit rates of its layers`() throws {
        let rids = ["q", "h", "f"].compactMap { RID($0) }
        let call = try startCall(seed: 631, loops: 2, rids: rids)
        call.world.run(for: .seconds(5))
        let mirror = try #require(
            call.world.loops[1].core.relays.mirrors.values.map(\.track).first { $0.parameters.kind == .video }
        )
        let origin = try #require(call.world.loops[0].core.peer(mirror.id.peer)?.track(mirror.id.mid))
        let stream = try #require(mirror.streams.first { $0.rid == rids[2] })
        let known = try #require(origin.streams.first { $0.rid == rids[2] })
        #expect(known.bitrate > 0)
        #expect(stream.bitrate == known.typicalBitrate)
    }

    @Test func `garbage over an encoded link is a counted drop`() throws {
        let call = try startCall(seed: 651, loops: 2)
        let core = call.world.loops[1].core
        let relay = try #require(core.relays.mirrors.values.first { $0.track.parameters.kind == .video }?.relay)
        let before = core.counters[.malformedRTP]
        let bodies: [[UInt8]] = [[], [0], [0x80, 96], Array(repeating: 0xFF, count: 40)]
        for number in [Int64.min, -1, 0, Int64.max] {
            for bytes in bodies {
                let packet = TransferMessage.Packet(
                    relay: relay,
                    stream: 77,
                    ssrc: SSRC(rawValue: 1),
                    layer: .max,
                    choices: .max,
                    exactChoices: .max,
                    isRTXRecovered: false,
                    sequence: ExtendedSequenceNumber(rawValue: number)
                )
                core.receiveTransferred(
                    TransferRecord(.packet(packet)),
                    unsafe bytes.span.bytes,
                    from: LinkID(rawValue: 0),
                    at: call.world.now,
                    into: call.world.loops[1].batch
                )
            }
        }
        #expect(core.counters[.malformedRTP] == before + 16)
        call.world.run(for: .seconds(1))
        #expect(call.viewers[1].client?.video?.lost == 0)
    }

    @Test func `there is a limit to the mirrors of a loop`() throws {
        let core = try World(seed: 621).node.core
        let relays = try (0..<TransferTable.mirrorsMax).map { _ in try core.makeMirrorID() }
        #expect(Set(relays).count == relays.count)
        #expect(throws: ForwarderError.tooManyMirrors(limit: TransferTable.mirrorsMax)) { try core.makeMirrorID() }
        core.discardMirrorID(relays[7])
        #expect(try core.makeMirrorID().place == relays[7].place)
    }

    @Test func `records of an earlier mirror of the same place mean nothing to the next`() throws {
        let call = try startCall(seed: 601, loops: 2)
        let core = call.world.loops[1].core
        let first = try #require(core.relays.mirrors.values.first?.relay)
        call.world.remove(call.viewers[1])
        call.world.run(for: .milliseconds(50))
        let second = try core.makeMirrorID()
        let third = try core.makeMirrorID()
        #expect(![second, third].contains(first))
        #expect([second.place, third.place].contains(first.place))
        let bytes = [UInt8](repeating: 0, count: 64)
        let packet = TransferMessage.Packet(
            relay: first,
            stream: 1,
            ssrc: SSRC(rawValue: 1),
            layer: .max,
            choices: 0,
            exactChoices: 0,
            isRTXRecovered: false,
            sequence: ExtendedSequenceNumber(rawValue: 1)
        )
        core.receiveTransferred(
            TransferRecord(.packet(packet)),
            unsafe bytes.span.bytes,
            from: LinkID(rawValue: 0),
            at: call.world.now,
            into: call.world.loops[1].batch
        )
        #expect(core.gauges.mirroredTracks == 0)
    }
}
