import Base
import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Tracks of another node that come to one loop of a node, its gateway, and go on from there to the other loops.
@Suite struct GatewayTests {
    private static let rids = ["q", "h", "f"].compactMap { RID($0) }

    /// A publisher on the first of two nodes with two loops each, and a viewer on each loop. The gateway of the second node
    /// is loop 2, from where tracks go on to loop 3.
    private func startCall(seed: UInt64, rids: [RID] = [], clockStep: Interval = .zero) throws -> CallAcrossLoops {
        let world = try World(seed: seed, nodes: 2, loops: 2, sealsMediaLinks: true, clockStep: clockStep)
        world.gateways = [1: 2]
        return try CallAcrossLoops(world, rids: rids)
    }

    private func track(_ call: CallAcrossLoops) throws -> TrackID {
        let mid = try #require(call.world.publishedTrack(call.publisher, .video)).mid
        return TrackID(peer: try #require(call.publisher.client).id, mid: mid)
    }

    @Test func `viewers on all loops of a node cost one copy between the nodes`() throws {
        let call = try startCall(seed: 1_401)
        call.world.run(for: .seconds(10))
        for viewer in call.viewers {
            #expect(viewer.client?.video?.lost == 0 && viewer.client?.video?.duplicates == 0)
            #expect(viewer.client?.audioReceived?.lost == 0)
            #expect(viewer.client?.video?.framesDecoded ?? 0 > 280)
        }
        let (origin, gateway, edge) = (
            call.world.loops[0].core, call.world.loops[2].core, call.world.loops[3].core
        )
        #expect(origin.mediaLinkCounters.sent.packets <= origin.counters.rtpReceived)
        #expect(edge.mediaLinkCounters.received.datagrams == 0 && edge.mediaLinkStates(at: call.world.now).isEmpty)
        let carried = try #require(call.world.links[2][3]).packetsCarried
        #expect(carried <= gateway.mediaLinkCounters.received.packets, "each goes on once")
        #expect(gateway.gauges.mirroredTracks == 2 && edge.gauges.mirroredTracks == 2)
    }

    @Test func `each loop plays the layer that it chose, and only those cross`() throws {
        let call = try startCall(seed: 1_411, rids: Self.rids)
        let recordings = call.viewers.map { Recording($0, .video) }
        func layer(_ viewer: Int) -> UInt32? {
            recordings[viewer].packets.last?.stamp.map { ($0.source - 1) / 0x10000 }
        }
        var rates: [UInt64] = []
        for (near, far) in [(0, 0), (0, 2), (2, 0), (1, 1), (0, 0)] {
            try call.world.connect(call.viewers[2], to: call.publisher, .video, layer: .level(near))
            try call.world.connect(call.viewers[3], to: call.publisher, .video, layer: .level(far))
            call.world.run(for: .seconds(4))
            #expect(layer(2) == UInt32(near) && layer(3) == UInt32(far), "\(near) \(far)")
            let before = call.world.loops[0].core.mediaLinkCounters.sent.bytes
            call.world.run(for: .seconds(3))
            rates.append(call.world.loops[0].core.mediaLinkCounters.sent.bytes - before)
        }
        #expect(rates[0] < rates[3] && rates[3] < rates[1], "\(rates)")
        #expect(Double(rates[2]) < Double(rates[1]) * 1.1, "both layers, whichever loop wants which: \(rates)")
        #expect(Double(rates[4]) < Double(rates[0]) * 1.1, "what is wanted no longer ceases to cross: \(rates)")
        for recording in recordings { #expect(recording.flaws == []) }
    }

    @Test func `a gateway goes on without viewers of its own while another loop plays the track`() throws {
        let call = try startCall(seed: 1_421, rids: Self.rids)
        let far = try #require(call.viewers[3].client)
        call.world.run(for: .seconds(2))
        far.beginWindow()
        call.world.remove(call.viewers[2])
        call.world.run(for: .seconds(10))
        #expect(far.video?.lost == 0 && far.video?.framesDecoded ?? 0 > 250)
        #expect(call.world.loops[2].core.gauges.mirroredTracks == 2)
        // A layer change of the far loop reaches the origin.
        let recording = Recording(call.viewers[3], .video)
        try call.world.connect(call.viewers[3], to: call.publisher, .video, layer: .level(0))
        call.world.run(for: .seconds(4))
        #expect(recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 } == 0)
        call.world.remove(call.viewers[3])
        call.world.run(for: .milliseconds(200))
        for loop in [2, 3] { #expect(call.world.loops[loop].core.isEmpty, "loop \(loop)") }
        let sent = call.world.loops[0].core.mediaLinkCounters.sent.packets
        call.world.run(for: .seconds(2))
        #expect(call.world.loops[0].core.mediaLinkCounters.sent.packets == sent)
    }

    @Test func `viewers of a gateway notice nothing of the end of another loop`() throws {
        let call = try startCall(seed: 1_431, rids: Self.rids)
        call.world.run(for: .seconds(2))
        try call.world.connect(call.viewers[2], to: call.publisher, .video, layer: .level(0))
        call.world.run(for: .seconds(3))
        let before = call.world.loops[0].core.mediaLinkCounters.sent.bytes
        call.world.run(for: .seconds(3))
        let both = call.world.loops[0].core.mediaLinkCounters.sent.bytes - before
        call.world.remove(call.viewers[3])
        call.world.run(for: .seconds(3))
        let after = call.world.loops[0].core.mediaLinkCounters.sent.bytes
        call.world.run(for: .seconds(3))
        #expect(call.world.loops[0].core.mediaLinkCounters.sent.bytes - after < both / 2)
        #expect(call.viewers[2].client?.video?.lost == 0)
        #expect(call.world.loops[2].core.relays.mirrors.values.allSatisfy { $0.track.exports.isEmpty })
    }

    @Test func `a late viewer behind a gateway starts with a key frame made for it`() throws {
        let call = try startCall(seed: 1_441)
        call.world.remove(call.viewers[3])
        call.world.run(for: .seconds(5))
        let before = call.publisher.client?.keyFramesMade ?? 0
        let late = try call.world.watch(loop: 3)
        try call.world.connect(late, to: call.publisher)
        let joined = call.world.now
        #expect(call.world.run(for: .seconds(2)) { late.client?.video?.framesDecoded ?? 0 > 0 })
        #expect(call.world.now - joined < .milliseconds(800))
        #expect(call.publisher.client?.keyFramesMade == before + 1)
        #expect(call.viewers[2].client?.video?.lost == 0)
    }

    @Test func `clocks and layer tables go on to the other loops`() throws {
        let call = try startCall(seed: 1_451, rids: Self.rids, clockStep: .seconds(3_600))
        call.world.run(for: .seconds(10))
        let offsets = call.viewers.map { viewer in
            viewer.client.flatMap { call.world.home(of: viewer).core.peer($0.id) }?
                .slots.compactMap { $0.source?.clockOffset.nanoseconds } ?? []
        }
        #expect(offsets.map(\.count) == [2, 2, 2, 2])
        for (near, far) in zip(offsets[2], offsets[3]) { #expect(abs(far - near) < 1_000, "\(offsets)") }
        let id = try track(call)
        let (near, far) = (
            try #require(call.world.loops[2].core.relays.mirrors[id]).track,
            try #require(call.world.loops[3].core.relays.mirrors[id]).track
        )
        func rates(_ track: ReceivedTrack) -> [Int: Int] {
            Dictionary(uniqueKeysWithValues: track.streams.map { (Int($0.layer), $0.bitrate) })
        }
        #expect(rates(near).count == 3 && rates(far) == rates(near))
    }

    @Test(arguments: [1_461, 1_462, 1_463] as [UInt64])
    func `records that are lost between the loops stop no picture for good`(seed: UInt64) throws {
        let call = try startCall(seed: seed, rids: Self.rids)
        var generator = SeededGenerator(seed: seed)
        let links = [call.world.links[2][3], call.world.links[3][2]]
        for link in links { link?.loses = { _ in generator.next() % 50 == 0 } }
        for level in [0, 2, 1, 2] {
            try call.world.connect(call.viewers[3], to: call.publisher, .video, layer: .level(level))
            call.world.run(for: .seconds(5))
        }
        for link in links { link?.loses = { _ in false } }
        let before = call.viewers[3].client?.video?.framesDecoded ?? 0
        call.world.run(for: .seconds(8))
        #expect(call.viewers[3].client?.video?.framesDecoded ?? 0 > before + 100)
        #expect(call.viewers[2].client?.video?.lost == 0)
    }

    @Test func `an end that could not be told is told again, also without packets`() throws {
        let call = try startCall(seed: 1_491)
        call.world.run(for: .seconds(1))
        let back = try #require(call.world.links[3][2])
        back.loses = { _ in true }
        call.world.remove(call.viewers[3])
        call.world.remove(call.viewers[2])
        call.world.remove(call.publisher)
        call.world.run(for: .seconds(2))
        back.loses = { _ in false }
        call.world.run(for: .seconds(2))
        #expect(call.world.loops[3].core.isEmpty && !call.world.loops[2].core.isEmpty)
        _ = call.world.loops[3].core.mirrorsToRenew(at: call.world.now)
        call.world.run(for: .milliseconds(100))
        for loop in [2, 3] { #expect(call.world.loops[loop].core.isEmpty, "loop \(loop)") }
    }

    @Test func `a node that left takes the mirrors of all loops along`() throws {
        let call = try startCall(seed: 1_471)
        let node = call.world.location(ofLoop: 0).node
        // Whichever loop hears of it first.
        for loop in [3, 2] { call.world.loops[loop].core.removeMediaLinks(to: node, at: call.world.now) }
        for loop in [2, 3] {
            #expect(call.world.loops[loop].core.gauges.mirroredTracks == 0)
            #expect(call.world.loops[loop].core.gauges.connectedSlots == 0)
        }
        for loop in [0, 1] {
            let left = call.world.location(ofLoop: 2).node
            call.world.loops[loop].core.removeMediaLinks(to: left, at: call.world.now)
        }
        call.world.run(for: .seconds(1))
        #expect(call.viewers[0].client?.video?.lost == 0 && call.viewers[1].client?.video?.lost == 0)
        let before = call.viewers[3].client?.video?.framesDecoded ?? 0
        for viewer in call.viewers[2...] { try call.world.connect(viewer, to: call.publisher) }
        #expect(call.world.run(for: .seconds(3)) { call.viewers[3].client?.video?.framesDecoded ?? 0 > before + 10 })
        for viewer in call.viewers { call.world.remove(viewer) }
        call.world.remove(call.publisher)
        call.world.run(for: .seconds(1))
        for loop in call.world.loops { #expect(loop.core.isEmpty) }
    }

    @Test func `another node cannot have a mirror sent on`() throws {
        let call = try startCall(seed: 1_481)
        let end = try call.world.loops[1].core.mediaLinkEnd(to: call.world.location(ofLoop: 2), at: call.world.now)
        let id = try track(call)
        #expect(throws: ForwarderError.unknownTrack(id)) {
            try call.world.loops[2].core.exportTrack(id, as: MirrorID(rawValue: 1), to: end, at: call.world.now)
        }
    }
}
