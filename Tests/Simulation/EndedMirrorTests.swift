import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Mirrors to which their origin, or the gateway of another node's track, sends nothing any more.
@Suite struct EndedMirrorTests {
    /// Two loops of one node.
    private func startCall(seed: UInt64) throws -> CallAcrossLoops {
        try CallAcrossLoops(World(seed: seed, loops: 2))
    }

    /// Two nodes with two loops each; the second one's gateway is loop 2, from where tracks go on to loop 3.
    private func startGatewayCall(seed: UInt64) throws -> CallAcrossLoops {
        let world = try World(seed: seed, nodes: 2, loops: 2, sealsMediaLinks: true)
        world.gateways = [1: 2]
        return try CallAcrossLoops(world)
    }

    private func isEnd(_ record: TransferRecord) -> Bool { if case .ended = record.message { true } else { false } }

    /// Ends what a loop sends to the mirrors of another one, without a word to it.
    private func endExports(from core: Forwarder, to other: Forwarder) {
        for id in other.relays.mirrors.keys {
            let track = core.peer(id.peer)?.track(id.mid) ?? core.relays.mirrors[id]?.track
            if let track { core.relays.endExports(of: track) }
        }
    }

    /// The slots whose loss of their source was told.
    private func lostSlots(_ world: World) -> Set<TrackID> {
        Set(
            world.nodeEvents.compactMap { peer, event in
                if case .sourceLost(let slot) = event { TrackID(peer: peer, mid: slot) } else { nil }
            }
        )
    }

    private func frames(_ viewer: World.Host) -> Int { viewer.client?.video?.framesDecoded ?? 0 }

    @Test func `a mirror of a track of this node goes when its origin does not know it`() throws {
        let call = try startCall(seed: 1_501)
        let (origin, edge) = (call.world.loops[0].core, call.world.loops[1].core)
        endExports(from: origin, to: edge)
        var ends = 0
        try #require(call.world.links[0][1]).loses = { record in
            if isEnd(record) { ends += 1 }
            return false
        }
        call.world.run(for: .seconds(2))
        #expect(edge.gauges.mirroredTracks == 0 && edge.gauges.connectedSlots == 0)
        #expect(ends == 2, "one for each track")
        // The next call makes another one.
        let before = frames(call.viewers[1])
        try call.world.connect(call.viewers[1], to: call.publisher)
        #expect(call.world.run(for: .seconds(2)) { frames(call.viewers[1]) > before + 10 })
        #expect(call.viewers[0].client?.video?.lost == 0)
    }

    @Test func `an end that is lost is told again`() throws {
        let call = try startCall(seed: 1_511)
        let link = try #require(call.world.links[0][1])
        link.loses = isEnd
        endExports(from: call.world.loops[0].core, to: call.world.loops[1].core)
        call.world.run(for: .seconds(3))
        #expect(call.world.loops[1].core.gauges.mirroredTracks == 2)
        link.loses = { _ in false }
        call.world.run(for: .seconds(2))
        #expect(call.world.loops[1].core.gauges.mirroredTracks == 0)
    }

    @Test func `requests of mirrors that are not known are answered once each, and answers are not answered`() throws {
        let call = try startCall(seed: 1_521)
        let (origin, edge) = (call.world.loops[0], call.world.loops[1])
        let unknown = MirrorID(place: 77, generation: 3)
        var answers: [TransferMessage] = []
        try #require(call.world.links[0][1]).loses = { record in
            if record.message.relay == unknown { answers.append(record.message) }
            return false
        }
        var others = 0
        try #require(call.world.links[1][0]).loses = { record in
            if record.message.relay == unknown { others += 1 }
            return false
        }
        func tell(_ message: TransferMessage, to host: World.Host, from loop: UInt32) {
            host.core.receiveTransferred(
                TransferRecord(message),
                RawSpan(),
                from: LinkID(rawValue: loop),
                at: call.world.now,
                into: host.batch
            )
        }
        let requests: [TransferMessage] = [
            .subscribe(TransferMessage.Subscription(relay: unknown, choices: 1, layers: .all)),
            .keyFrameRequest(unknown, stream: nil), .keyFrameRequest(unknown, stream: 1),
            .repairRequest(unknown, stream: 1), .hold(unknown, stream: 1),
        ]
        for request in requests { tell(request, to: origin, from: 1) }
        #expect(answers == Array(repeating: .ended(unknown), count: requests.count))
        tell(.unsubscribe(unknown), to: origin, from: 1)
        tell(.ended(unknown), to: origin, from: 1)
        tell(.ended(unknown), to: edge, from: 0)
        // Only the link that a mirror's packets come over ends it.
        for mirror in edge.core.relays.mirrors.values { tell(.ended(mirror.relay), to: edge, from: 9) }
        call.world.run(for: .seconds(1))
        #expect(answers.count == requests.count && others == 0)
        #expect(edge.core.gauges.mirroredTracks == 2 && call.viewers[1].client?.video?.lost == 0)
    }

    @Test func `a mirror of another node's track stays and is asked for again`() throws {
        let world = try World(seed: 1_531, nodes: 2, sealsMediaLinks: true)
        let call = try CallAcrossLoops(world)
        let (origin, edge) = (call.world.loops[0].core, call.world.loops[1].core)
        #expect(edge.endedMirrors() == [])
        endExports(from: origin, to: edge)
        world.run(for: .seconds(2))
        let ended = edge.endedMirrors()
        #expect(ended.count == 2 && edge.gauges.mirroredTracks == 2)
        #expect(edge.endedMirrors() == [], "once, until it is told again")
        for mirror in ended {
            #expect(mirror.origin == world.location(ofLoop: 0) && !mirror.isBehindLoop)
            let end = try edge.mediaLinkEnd(to: mirror.origin, at: world.now)
            let answer = try origin.exportTrack(mirror.track, as: mirror.relay, to: end, at: world.now)
            _ = try edge.joinMediaLink(answer.origin, at: world.now)
            edge.mirrorAnswered(mirror)
        }
        let before = frames(call.viewers[1])
        #expect(world.run(for: .seconds(3)) { frames(call.viewers[1]) > before + 10 })
        #expect(edge.endedMirrors() == [])
        for core in [origin, edge] { #expect(core.counters[.malformedRelay] == 0) }
    }

    @Test func `a mirror that is asked for in vain goes after a few times, and its owner is told`() throws {
        let world = try World(seed: 1_541, nodes: 2, sealsMediaLinks: true)
        let call = try CallAcrossLoops(world)
        let (origin, edge) = (call.world.loops[0].core, call.world.loops[1].core)
        endExports(from: origin, to: edge)
        var rounds = 0
        while edge.gauges.mirroredTracks > 0, rounds < 20 {
            world.run(for: .milliseconds(1_100))
            for mirror in edge.endedMirrors() { edge.mirrorNotAnswered(mirror, at: world.now) }
            rounds += 1
        }
        #expect((5...7).contains(rounds), "\(rounds)")
        #expect(edge.gauges.connectedSlots == 0)
        world.run(for: .milliseconds(100))
        let viewer = call.viewers[1]
        let slots = viewer.client.flatMap { edge.peer($0.id) }?.slots.map(\.id) ?? []
        #expect(slots.count == 2 && lostSlots(world) == Set(slots))
        let before = frames(viewer)
        try world.connect(viewer, to: call.publisher)
        #expect(world.run(for: .seconds(3)) { frames(viewer) > before + 10 })
    }

    /// The race between a loop that asks the gateway and the end of the gateway's mirror.
    @Test func `a mirror behind a gateway that has ended its own is replaced, and its slots play on`() throws {
        let call = try startGatewayCall(seed: 1_551)
        let world = call.world
        let (gateway, edge) = (world.loops[2].core, world.loops[3].core)
        // The other loop was told already, and then got the track from this one.
        gateway.removeMediaLinks(to: world.location(ofLoop: 0).node, at: world.now)
        world.run(for: .seconds(2))
        let ended = edge.endedMirrors()
        #expect(ended.count == 2 && edge.gauges.connectedSlots == 2)
        for mirror in ended {
            #expect(mirror.isBehindLoop && mirror.origin == world.location(ofLoop: 0))
            let relay = try edge.makeMirrorID()
            let end = try edge.mediaLinkEnd(to: mirror.origin, at: world.now)
            let answer = try world.loops[0].core.exportTrack(mirror.track, as: relay, to: end, at: world.now)
            let link = try edge.joinMediaLink(answer.origin, at: world.now)
            edge.replaceMirror(mirror, by: answer.track, as: relay, from: link, at: world.now)
            edge.mirrorAnswered(mirror)
        }
        let before = frames(call.viewers[3])
        #expect(world.run(for: .seconds(3)) { frames(call.viewers[3]) > before + 10 })
        #expect(edge.gauges.mirroredTracks == 2 && edge.endedMirrors() == [])
        let viewerOfEdge = try #require(call.viewers[3].client).id
        #expect(!lostSlots(world).contains { $0.peer == viewerOfEdge })
        #expect(edge.mediaLinkStates(at: world.now).count == 1, "it is the gateway now")
        for viewer in call.viewers { world.remove(viewer) }
        world.remove(call.publisher)
        world.run(for: .seconds(1))
        #expect(edge.isEmpty && gateway.isEmpty)
    }

    @Test func `what comes for a mirror that went meanwhile is given back`() throws {
        let call = try startGatewayCall(seed: 1_561)
        let world = call.world
        let (gateway, edge) = (world.loops[2].core, world.loops[3].core)
        let link = LinkID(rawValue: 2)
        endExports(from: gateway, to: edge)
        world.run(for: .seconds(2))
        let ended = try #require(edge.endedMirrors().first)
        let relay = try edge.makeMirrorID()
        let answer = try gateway.exportTrack(ended.track, as: relay, over: LinkID(rawValue: 3), at: world.now)
        world.remove(call.viewers[3])
        edge.replaceMirror(ended, by: answer, as: relay, from: link, at: world.now)
        #expect(edge.gauges.mirroredTracks == 0)
        world.run(for: .seconds(1))
        #expect(edge.isEmpty)
        #expect(gateway.relays.mirrors.values.allSatisfy { $0.track.exports.isEmpty })
        #expect(try edge.makeMirrorID().place == relay.place, "the name is free again")
    }
}
