import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Calls whose members are on different nodes, over sealed links.
@Suite struct MediaLinkTests {
    /// A publisher on the first node, and a viewer on each.
    func startCall(
        seed: UInt64,
        rids: [RID] = [],
        clockStep: Interval = .zero,
        link: LinkConditions? = nil
    ) throws -> CallAcrossLoops {
        let world = try World(seed: seed, nodes: 2, sealsMediaLinks: true, clockStep: clockStep)
        return try CallAcrossLoops(world, rids: rids) { call in
            if let link { call.setLink(link) }
        }
    }

    func drops(_ core: Forwarder) -> [DropReason: UInt64] {
        let reasons: [DropReason] = [
            .malformedRelay, .relayUnknownLink, .relayAddress, .relayAuthentication, .relayReplay,
        ]
        return Dictionary(uniqueKeysWithValues: reasons.map { ($0, core.counters[$0]) })
    }

    @Test func `a viewer on another node gets every packet, each sent there once`() throws {
        let call = try startCall(seed: 1_001)
        let more = try (0..<5).map { _ in try call.world.watch(loop: 1) }
        for viewer in more { try call.world.connect(viewer, to: call.publisher) }
        call.world.run(for: .seconds(10))
        for viewer in call.viewers + more {
            #expect(viewer.client?.video?.lost == 0 && viewer.client?.video?.duplicates == 0)
            #expect(viewer.client?.audioReceived?.lost == 0)
            #expect(viewer.client?.video?.framesDecoded ?? 0 > 280)
        }
        let (sent, received) = (call.origin.mediaLinkCounters.sent, call.edge.mediaLinkCounters.received)
        #expect(sent.packets <= call.origin.counters.rtpReceived, "six viewers cost one copy")
        #expect(sent.packets - received.packets < 100, "what came before the mirror was made is lost, and no more")
        #expect(sent.repairs == 0 && received.repairs == 0)
        #expect(call.origin.mediaLinkCounters.notSent == 0)
        #expect(drops(call.edge)[.relayAuthentication] == 0 && drops(call.edge)[.relayReplay] == 0)
        #expect(drops(call.origin).values.allSatisfy { $0 == 0 })
        for (core, other) in [(call.origin, 1), (call.edge, 0)] {
            let state = try #require(core.mediaLinkStates(at: call.world.now).first)
            #expect(state.location == call.world.location(ofLoop: other))
            #expect(state.isUsed && !state.isDown)
            #expect(state.roundTrip.map { abs(($0 - .milliseconds(40)).nanoseconds) < 1_000_000 } == true)
        }
        let hops = call.edge.mediaLinkCounters.hops
        #expect(hops.total > 0 && hops.sumNanoseconds / hops.total / 1_000_000 == 20)
        let place = try #require(HopTimes.boundsNanoseconds.firstIndex(of: 50_000_000))
        #expect(hops.counts[place - 1...place].reduce(0, +) == hops.total, "about 20 ms each")
    }

    @Test(arguments: [1_011, 1_012, 1_014] as [UInt64])
    func `the link repairs what it loses before a viewer misses it`(seed: UInt64) throws {
        let call = try startCall(
            seed: seed,
            link: LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(1), loss: 0.01)
        )
        call.world.run(for: .seconds(2))
        let keyFrames = call.edge.counters.keyFrameRequestsReceived + call.viewers[1].core.counters.pliSent
        let made = call.publisher.client?.keyFramesMade
        call.viewers[1].client?.beginWindow()
        call.world.run(for: .seconds(60))
        call.publisher.client?.setSending(false)
        call.world.run(for: .seconds(2))
        let viewer = try #require(call.viewers[1].client)
        let (video, audio) = (try #require(viewer.video), try #require(viewer.audioReceived))
        #expect(video.packets > 2_000 && audio.packets > 2_000)
        let counters = call.edge.mediaLinkCounters
        #expect(counters.missing > 20)
        let lost = video.lost + audio.lost
        #expect(lost * 10_000 <= video.packets + audio.packets, "lost \(lost), \(counters)")
        #expect(video.duplicates == 0 && audio.duplicates == 0)
        #expect(call.edge.counters.keyFrameRequestsReceived + call.viewers[1].core.counters.pliSent == keyFrames)
        #expect(call.publisher.client?.keyFramesMade == made, "nobody asked for a key frame")
        #expect(counters.received.repairs <= counters.missing * 2)
        #expect(call.viewers[0].client?.video?.lost == 0)
    }

    @Test func `a link that duplicates and reorders gives each packet once`() throws {
        let call = try startCall(
            seed: 1_021,
            link: LinkConditions(
                delay: .milliseconds(20),
                jitter: .milliseconds(12),
                loss: 0.02,
                duplication: 0.2,
                reordering: 0.05
            )
        )
        call.world.run(for: .seconds(20))
        call.publisher.client?.setSending(false)
        call.world.run(for: .seconds(2))
        let video = try #require(call.viewers[1].client?.video)
        #expect(video.duplicates == 0 && video.lost <= 1, "lost \(video.missing)")
        #expect(call.edge.mediaLinkCounters.late > 0)
        #expect(drops(call.edge)[.relayReplay] ?? 0 > 0)
    }

    @Test func `only the layers that are wanted cross, and a viewer changes between them`() throws {
        let rids = ["q", "h", "f"].compactMap { RID($0) }
        let call = try startCall(seed: 1_031, rids: rids)
        let recording = Recording(call.viewers[1], .video)
        func layer() -> UInt32? { recording.packets.last?.stamp.map { ($0.source - 1) / 0x10000 } }
        var rates: [UInt64] = []
        for level in [2, 0, 1] {
            try call.world.connect(call.viewers[1], to: call.publisher, .video, layer: .level(level))
            call.world.run(for: .seconds(4))
            #expect(layer() == UInt32(level))
            let before = call.origin.mediaLinkCounters.sent.bytes
            call.world.run(for: .seconds(3))
            rates.append(call.origin.mediaLinkCounters.sent.bytes - before)
        }
        #expect(rates[1] < rates[2] && rates[2] < rates[0], "\(rates)")
        #expect(recording.flaws == [])
    }

    @Test func `a link that was cut goes on when it heals`() throws {
        let call = try startCall(seed: 1_041)
        call.world.run(for: .seconds(2))
        let cutAt = call.world.now
        var conditions = LinkConditions.perfect
        conditions.outages = [cutAt..<cutAt + .seconds(5)]
        call.setLink(conditions)
        call.world.run(for: .milliseconds(4_900))
        for core in [call.origin, call.edge] {
            #expect(core.mediaLinkStates(at: call.world.now).allSatisfy { $0.isDown })
        }
        #expect(call.viewers[0].client?.video?.lost == 0)
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        call.world.run(for: .seconds(3))
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 50)
        for core in [call.origin, call.edge] {
            #expect(core.mediaLinkStates(at: call.world.now).allSatisfy { !$0.isDown && $0.isUsed })
        }
    }

    @Test func `what is forged, replayed, or from elsewhere is counted and does nothing else`() throws {
        let call = try startCall(seed: 1_051)
        var seen: [[UInt8]] = []
        let (from, to) = call.addresses
        call.world.onTransmit = { if $0 == from, $1 == to { seen.append($2) } }
        call.world.run(for: .seconds(1))
        call.world.onTransmit = nil
        // What is under way arrives before its copies do.
        call.world.run(for: .milliseconds(100))
        let before = drops(call.edge)
        let received = call.edge.mediaLinkCounters.received.datagrams
        var forged: [[UInt8]] = []
        for (index, datagram) in seen.prefix(100).enumerated() {
            var changed = datagram
            changed[4] = 1
            changed[datagram.count - 1 - index % 16] ^= 1
            forged.append(changed)
        }
        let edge = call.world.loops[1]
        let elsewhere = TransportAddress(ip: IPAddress(v4: 0x0101_0101), port: 7_000)
        for datagram in seen.prefix(50) {
            call.world.deliver(datagram, from: from, to: edge)
            call.world.deliver(datagram, from: elsewhere, to: edge)
        }
        for datagram in forged { call.world.deliver(datagram, from: from, to: edge) }
        var unknown = seen[0]
        unknown[3] ^= 0xFF
        call.world.deliver(unknown, from: from, to: edge)
        for bytes in [[0xD0], [0xDF] + [UInt8](repeating: 1, count: 60), [UInt8](repeating: 0xD1, count: 28)] {
            call.world.deliver(bytes, from: from, to: edge)
        }
        let after = drops(call.edge)
        #expect(after[.relayReplay] == (before[.relayReplay] ?? 0) + 50)
        #expect(after[.relayAddress] == (before[.relayAddress] ?? 0) + 50)
        #expect(after[.relayAuthentication] == (before[.relayAuthentication] ?? 0) + 100)
        #expect(after[.relayUnknownLink] == (before[.relayUnknownLink] ?? 0) + 1)
        #expect(after[.malformedRelay] == (before[.malformedRelay] ?? 0) + 3)
        #expect(call.edge.mediaLinkCounters.received.datagrams == received)
        call.world.run(for: .seconds(3))
        let video = try #require(call.viewers[1].client?.video)
        #expect(video.lost == 0 && video.duplicates == 0)
    }

    @Test func `an end with another secret opens nothing`() throws {
        let call = try startCall(seed: 1_061)
        let origin = call.world.location(ofLoop: 0)
        let wrong = MediaLinkEnd(
            location: origin,
            addresses: [call.addresses.origin],
            link: 0,
            secret: LinkSecret { 7 }
        )
        _ = try call.edge.joinMediaLink(wrong, at: call.world.now)
        let before = call.edge.mediaLinkCounters.received.datagrams
        call.world.run(for: .seconds(1))
        #expect(call.edge.mediaLinkCounters.received.datagrams == before)
        #expect(drops(call.edge)[.relayAuthentication] ?? 0 > 10)
        #expect(drops(call.origin)[.relayAuthentication] ?? 0 > 0)
        // The right one is told again.
        let right = try call.origin.mediaLinkEnd(to: call.world.location(ofLoop: 1), at: call.world.now)
        _ = try call.edge.joinMediaLink(right, at: call.world.now)
        let decoded = call.viewers[1].client?.video?.framesDecoded ?? 0
        call.world.run(for: .seconds(4))
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > decoded + 60)
    }

    @Test func `clocks that differ by an hour keep audio and video together`() throws {
        let call = try startCall(seed: 1_071, clockStep: .seconds(3_600))
        call.world.run(for: .seconds(10))
        let state = try #require(call.edge.mediaLinkStates(at: call.world.now).first)
        let hour: Int64 = 3_600_000_000_000
        #expect(state.clockOffset.map { abs($0 + hour) < 1_000_000 } == true)
        let offsets = call.viewers.map { viewer in
            viewer.client.flatMap { call.world.home(of: viewer).core.peer($0.id) }?
                .slots.compactMap { $0.source?.clockOffset.nanoseconds } ?? []
        }
        #expect(offsets.map(\.count) == [2, 2])
        for (here, there) in zip(offsets[0], offsets[1]) {
            #expect(abs(there - here - hour) < 2_000_000, "nanoseconds: \(offsets)")
        }
    }

    @Test func `the last viewer of a node ends the export, and silence follows`() throws {
        let call = try startCall(seed: 1_081)
        call.world.remove(call.viewers[1])
        call.world.run(for: .milliseconds(200))
        #expect(call.edge.isEmpty)
        let sent = call.origin.mediaLinkCounters.sent
        call.world.run(for: .seconds(5))
        #expect(call.origin.mediaLinkCounters.sent.packets == sent.packets)
        #expect(call.origin.mediaLinkCounters.sent.datagrams <= sent.datagrams + 1)
        #expect(call.origin.mediaLinkStates(at: call.world.now).allSatisfy { !$0.isUsed && !$0.isDown })
        let again = try call.world.watch(loop: 1)
        try call.world.connect(again, to: call.publisher)
        #expect(call.world.run(for: .seconds(2)) { again.client?.video?.framesDecoded ?? 0 > 0 })
        #expect(call.edge.mediaLinkStates(at: call.world.now).count == 1, "the same link")
    }

    @Test func `a link that neither end needs ends after a minute, and another one is made`() throws {
        let call = try startCall(seed: 1_082)
        let world = call.world
        /// Lets time pass in which loops look for what is to be asked for again.
        func pass(_ seconds: Int, _ cores: [Forwarder]) {
            for _ in 0..<seconds {
                world.run(for: .seconds(1))
                for core in cores { #expect(core.mirrorsToRenew(at: world.now) == []) }
            }
        }
        pass(62, [call.origin, call.edge])
        world.remove(call.viewers[1])
        pass(30, [call.origin, call.edge])
        // Asked for, and not used after all.
        let end = try call.edge.mediaLinkEnd(to: world.location(ofLoop: 0), at: world.now)
        pass(40, [call.origin, call.edge])
        #expect(call.origin.mediaLinkStates(at: world.now) == [] && call.edge.hasMediaLink(end))
        let again = try world.watch(loop: 1)
        try world.connect(again, to: call.publisher)
        #expect(world.run(for: .seconds(2)) { again.client?.video?.framesDecoded ?? 0 > 0 })
        // A minute after the last viewer one end is gone and the other one is not.
        world.remove(again)
        pass(62, [call.edge])
        #expect(call.edge.mediaLinkStates(at: world.now) == [] && !call.edge.hasMediaLink(end))
        #expect(call.origin.mediaLinkStates(at: world.now).count == 1)
        let last = try world.watch(loop: 1)
        try world.connect(last, to: call.publisher)
        #expect(world.run(for: .seconds(2)) { last.client?.video?.framesDecoded ?? 0 > 0 })
    }

    @Test func `the end of a link stays while the other one sends`() throws {
        let call = try startCall(seed: 1_083)
        let world = call.world
        call.publisher.client?.setSending(false)
        world.run(for: .seconds(2))
        // The end of the mirror is lost, and no packet shows that it is not known.
        var conditions = LinkConditions.perfect
        conditions.outages = [world.now..<world.now + .seconds(1)]
        call.setLink(conditions)
        world.remove(call.viewers[1])
        for _ in 0..<70 {
            world.run(for: .seconds(1))
            _ = call.edge.mirrorsToRenew(at: world.now)
        }
        #expect(call.edge.mediaLinkStates(at: world.now).map(\.isUsed) == [false])
        #expect(call.origin.mediaLinkStates(at: world.now).map(\.isUsed) == [true])
        call.publisher.client?.setSending(true)
        world.run(for: .seconds(2))
        #expect(call.origin.mediaLinkStates(at: world.now).map(\.isUsed) == [false])
    }

    @Test func `a lost end of a subscription is said again`() throws {
        let call = try startCall(seed: 1_091)
        var conditions = LinkConditions.perfect
        conditions.outages = [call.world.now..<call.world.now + .milliseconds(300)]
        call.setLink(conditions)
        call.world.remove(call.viewers[1])
        call.world.run(for: .seconds(1))
        let sent = call.origin.mediaLinkCounters.sent.packets
        call.world.run(for: .seconds(1))
        #expect(call.origin.mediaLinkCounters.sent.packets == sent)
    }

    @Test func `nodes that play each other's tracks share one pair of ends`() throws {
        let call = try startCall(seed: 1_101)
        let other = try call.world.publish(loop: 1)
        let viewer = try call.world.watch(loop: 0)
        try call.world.connect(viewer, to: other)
        call.world.run(for: .seconds(5))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > 100)
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > 100)
        #expect(viewer.client?.video?.lost == 0 && call.viewers[1].client?.video?.lost == 0)
        for core in [call.origin, call.edge] {
            #expect(core.mediaLinkStates(at: call.world.now).count == 1)
            #expect(core.gauges.mirroredTracks == 2)
        }
    }

    @Test func `a node that left takes links, exports and mirrors along`() throws {
        let call = try startCall(seed: 1_111)
        call.edge.removeMediaLinks(to: call.world.location(ofLoop: 0).node, at: call.world.now)
        #expect(call.edge.mediaLinkStates(at: call.world.now) == [])
        #expect(call.edge.gauges.mirroredTracks == 0 && call.edge.gauges.connectedSlots == 0)
        call.world.run(for: .seconds(1))
        #expect(drops(call.edge)[.relayUnknownLink] ?? 0 > 0)
        call.origin.removeMediaLinks(to: call.world.location(ofLoop: 1).node, at: call.world.now)
        #expect(call.origin.mediaLinkStates(at: call.world.now) == [])
        call.world.run(for: .seconds(1))
        #expect(call.viewers[0].client?.video?.lost == 0)
        // They find each other again.
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        try call.world.connect(call.viewers[1], to: call.publisher)
        #expect(call.world.run(for: .seconds(3)) { call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 10 })
        for viewer in call.viewers { call.world.remove(viewer) }
        call.world.remove(call.publisher)
        call.world.run(for: .seconds(1))
        for core in [call.origin, call.edge] { #expect(core.isEmpty) }
    }

    @Test func `one side's loss of a link does not bring a nonce back`() throws {
        let call = try startCall(seed: 1_121)
        var keys: [[UInt8]] = []
        var count = 0
        let (from, to) = (call.addresses.edge, call.addresses.origin)
        call.world.onTransmit = {
            guard $0 == from, $1 == to else { return }
            count += 1
            keys.append(Array($2.prefix(12)))
        }
        call.world.run(for: .seconds(1))
        // The edge forgets, the origin does not.
        call.edge.removeMediaLinks(to: call.world.location(ofLoop: 0).node, at: call.world.now)
        try call.world.connect(call.viewers[1], to: call.publisher)
        let before = call.viewers[1].client?.video?.framesDecoded ?? 0
        call.world.run(for: .seconds(3))
        #expect(call.viewers[1].client?.video?.framesDecoded ?? 0 > before + 10)
        #expect(count > 20 && drops(call.origin)[.relayReplay] == 0)
    }

    @Test func `a track goes to a limited number of nodes, and to any loop of those`() throws {
        let call = try startCall(seed: 1_141)
        let mid = try #require(call.world.publishedTrack(call.publisher, .video)).mid
        let track = TrackID(peer: try #require(call.publisher.client).id, mid: mid)
        func export(to number: Int, loop: UInt16 = 0) throws {
            let node = try #require(NodeIncarnation(rawValue: 1_000 + UInt32(number)))
            let end = MediaLinkEnd(
                location: MediaLocation(node: node, loop: LoopIndex(rawValue: loop)),
                addresses: [call.addresses.edge],
                link: 0,
                secret: LinkSecret { 7 }
            )
            let relay = MirrorID(place: number, generation: loop)
            _ = try call.origin.exportTrack(track, as: relay, to: end, at: call.world.now)
        }
        // The call's other node is one of them.
        let others = Forwarder.nodesPerTrackMax - 1
        for number in 0..<others { try export(to: number) }
        #expect(throws: ForwarderError.tooManyNodes(track, limit: Forwarder.nodesPerTrackMax)) {
            try export(to: others)
        }
        try export(to: 0, loop: 1)
        let left = try #require(NodeIncarnation(rawValue: 1_000))
        call.origin.removeMediaLinks(to: left, at: call.world.now)
        try export(to: others)
    }

    @Test func `there is a limit to links, and their numbers are used again`() throws {
        let call = try startCall(seed: 1_131)
        var made = 1
        var next: UInt16 = 1
        let node = call.world.location(ofLoop: 1).node
        while made < MediaLinkTable.linksMax {
            _ = try call.origin.mediaLinkEnd(
                to: MediaLocation(node: node, loop: LoopIndex(rawValue: next)),
                at: call.world.now
            )
            next += 1
            made += 1
        }
        let beyond = MediaLocation(node: node, loop: LoopIndex(rawValue: next))
        #expect(throws: ForwarderError.tooManyMediaLinks(limit: MediaLinkTable.linksMax)) {
            try call.origin.mediaLinkEnd(to: beyond, at: call.world.now)
        }
        call.origin.removeMediaLinks(to: node, at: call.world.now)
        _ = try call.origin.mediaLinkEnd(to: beyond, at: call.world.now)
    }

    @Test func `ends that cannot be sent to are refused`() throws {
        let call = try startCall(seed: 1_141)
        let origin = call.world.location(ofLoop: 0)
        func end(version: UInt8 = TransferMessage.version, at location: MediaLocation) -> MediaLinkEnd {
            MediaLinkEnd(
                location: location,
                addresses: [call.addresses.origin],
                link: 0,
                version: version,
                secret: LinkSecret { 1 }
            )
        }
        #expect(throws: ForwarderError.linkFailed(origin)) {
            try call.edge.joinMediaLink(end(version: TransferMessage.version &+ 1, at: origin), at: call.world.now)
        }
        let other = MediaLocation(node: origin.node, loop: LoopIndex(rawValue: 9))
        #expect(throws: ForwarderError.unknownLocation(other)) {
            try call.edge.joinMediaLink(end(at: other), at: call.world.now)
        }
        let own = call.world.location(ofLoop: 1)
        #expect(throws: ForwarderError.unknownLocation(own)) { try call.edge.mediaLinkEnd(to: own, at: call.world.now) }
        call.world.run(for: .seconds(1))
        #expect(call.viewers[1].client?.video?.lost == 0)
    }
}

extension CallAcrossLoops {
    var origin: Forwarder { world.loops[0].core }
    var edge: Forwarder { world.loops[1].core }
    var addresses: (origin: TransportAddress, edge: TransportAddress) {
        (world.loops[0].address, world.loops[1].address)
    }

    /// Sets how the network between the nodes is, both ways.
    func setLink(_ conditions: LinkConditions) {
        let ends = [addresses.origin, addresses.edge]
        world.network.between = { ends.contains($0) && ends.contains($1) ? conditions : nil }
    }
}
