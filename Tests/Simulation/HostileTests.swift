import Base
import Client
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What strangers and peers of bad will can do: be counted.
@Suite struct HostileTests {
    private struct Call {
        let world: World
        let publisher: World.Host
        let viewer: World.Host
    }

    private static let stranger = TransportAddress(ip: IPAddress(v4: 0xC000_0205), port: 9_999)

    private func startCall(seed: UInt64) throws -> Call {
        let world = try World(seed: seed)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 400_000
        let publisher = try world.publish(settings)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        #expect(world.run(for: .seconds(5)) { viewer.client?.video?.framesDecoded ?? 0 > 10 })
        return Call(world: world, publisher: publisher, viewer: viewer)
    }

    /// The call went on as if nothing had happened.
    private func expectUndisturbed(_ call: Call, since decoded: Int, frames: Int) {
        #expect(call.viewer.client?.video?.framesDecoded ?? 0 >= decoded + frames)
        #expect(call.viewer.client?.video?.lost == 0)
        #expect(call.viewer.client?.video?.duplicates == 0)
        #expect(call.viewer.client?.audioReceived?.lost == 0)
        #expect(call.viewer.client?.audioReceived?.duplicates == 0)
        #expect(call.viewer.client?.video?.longestGap ?? .zero < .milliseconds(60))
        #expect(!call.world.nodeEvents.contains { if case .closed = $0.1 { true } else { false } })
    }

    private func mutate(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes.removeLast(Int.random(in: 1...bytes.count, using: &generator))
        case 1:
            bytes += (0..<Int.random(in: 1...40, using: &generator)).map { _ in .random(in: 0...255, using: &generator)
            }
        default:
            for _ in 0...Int.random(in: 0...6, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] ^= UInt8.random(in: 1...255, using: &generator)
            }
        }
        return bytes
    }

    @Test(arguments: [151, 152] as [UInt64])
    func `what a stranger repeats, cuts and mutates of a call changes nothing, from its first datagram on`(
        seed: UInt64
    ) throws {
        let world = try World(seed: seed)
        var generator = SeededGenerator(seed: seed)
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 300_000
        // Every datagram to the node comes again from elsewhere, once whole and once mutated.
        world.onTransmit = { [unowned world] _, to, bytes in
            guard to == World.nodeAddress else { return }
            // A little later: whoever is faster than the sender on its own path could as well swallow the datagram.
            let later = world.now + .milliseconds(5)
            world.network.send(bytes, from: Self.stranger, to: to, at: later)
            world.network.send(self.mutate(bytes, using: &generator), from: Self.stranger, to: to, at: later)
        }
        let publisher = try world.publish(settings)
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        #expect(world.run(for: .seconds(5)) { viewer.client?.video?.framesDecoded ?? 0 > 10 })
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(5))
        expectUndisturbed(Call(world: world, publisher: publisher, viewer: viewer), since: decoded, frames: 145)
        let counters = world.node.core.counters
        #expect(world.node.core.peerCount == 2)
        #expect(counters.dtlsConnected == 2)
        #expect(counters[DropReason.unvalidatedAddress] > 500)
        #expect(counters[DropReason.stunUnauthenticated] > 0)
        #expect(counters[DropReason.srtpAuthentication] == 0)
        for host in [publisher, viewer] {
            #expect(world.nodePath(host) == host.address)
        }
    }

    @Test func `garbage of every first byte and length is counted and dropped`() throws {
        let call = try startCall(seed: 153)
        var generator = SeededGenerator(seed: 153)
        let before = call.world.node.core.counters
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        for first in 0...255 as ClosedRange<UInt8> {
            for count in [0, 1, 3, 11, 19, 40, 200, 1_400] {
                var bytes: [UInt8] = [first] + (0..<count).map { _ in .random(in: 0...255, using: &generator) }
                call.world.inject(bytes, from: Self.stranger)
                // From a peer's own address too, with a second byte that says RTCP in every other one.
                if bytes.count > 1 { bytes[1] = count % 2 == 0 ? 200 : 96 }
                call.world.send(bytes, from: call.viewer)
            }
        }
        call.world.run(for: .seconds(2))
        let after = call.world.node.core.counters
        expectUndisturbed(call, since: decoded, frames: 55)
        for reason in [DropReason.unknownProtocol, .malformedSTUN, .unvalidatedAddress] {
            #expect(after[reason] > before[reason], "\(reason)")
        }
        #expect(after[DropReason.srtpAuthentication] + after[DropReason.srtpOther] > 100)
    }

    @Test func `a ClientHello and media from an address that ICE has not validated change nothing`() throws {
        let world = try World(seed: 154)
        var hello: [UInt8]?
        world.onTransmit = { _, to, bytes in
            if to == World.nodeAddress, hello == nil, bytes[0] == 22 { hello = bytes }
        }
        // The first caller's hello is kept; it is a whole, correct one.
        let caller = try world.publish()
        world.run(for: .seconds(2))
        world.remove(caller)
        world.run(for: .seconds(1))
        world.onTransmit = nil
        let first = try #require(hello)
        #expect(world.node.core.isEmpty)
        var answers = 0
        world.onTransmit = { from, to, _ in if from == World.nodeAddress, to == Self.stranger { answers += 1 } }
        let before = world.node.core.counters
        for _ in 0..<50 { world.inject(first, from: Self.stranger) }
        for _ in 0..<50 { world.inject([0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3], from: Self.stranger) }
        world.run(for: .seconds(1))
        #expect(world.node.core.counters[DropReason.unvalidatedAddress] == before[DropReason.unvalidatedAddress] + 100)
        #expect(world.node.core.isEmpty)
        #expect(answers == 0)
    }

    @Test func `a peer's own datagrams, repeated and mutated on the way, do no harm`() throws {
        let call = try startCall(seed: 155)
        var generator = SeededGenerator(seed: 155)
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        let world = call.world
        let homes = [call.publisher.address, call.viewer.address]
        world.onTransmit = { [unowned world] from, to, bytes in
            guard to == World.nodeAddress, homes.contains(from) else { return }
            world.network.send(bytes, from: from, to: to, at: world.now + .milliseconds(1))
            world.network.send(self.mutate(bytes, using: &generator), from: from, to: to, at: world.now)
        }
        world.run(for: .seconds(8))
        world.onTransmit = nil
        expectUndisturbed(call, since: decoded, frames: 230)
        #expect(world.node.core.counters[DropReason.srtpReplay] > 500)
        #expect(world.node.core.counters[DropReason.srtpAuthentication] > 100)
    }

    // MARK: - Authenticated and hostile

    @Test(arguments: [156, 157] as [UInt64])
    func `authentic RTP that is nonsense harms nobody else`(seed: UInt64) throws {
        let call = try startCall(seed: seed)
        let world = call.world
        var generator = SeededGenerator(seed: seed)
        let hostile = try world.publish()
        let victim = try world.watch()
        try world.connect(victim, to: hostile)
        #expect(world.run(for: .seconds(5)) { victim.client?.video?.framesDecoded ?? 0 > 3 })
        var seeds: [[UInt8]] = []
        for kind in MediaKind.allCases {
            let codec: CodecName = kind == .audio ? .opus : .vp8
            var stream = try #require(HandMadeStream(world, hostile, kind, codec: codec, ssrc: 8_000))
            seeds.append(stream.next([0x90, 0xE0, 0x81, 0x23, 9, 0x20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
        }
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        for _ in 0..<300 {
            for var packet in seeds {
                // Often in the fixed header and the extensions, where forwarding looks.
                for _ in 0...Int.random(in: 0...3, using: &generator) {
                    packet[Int.random(in: 0..<packet.count, using: &generator)] = .random(
                        in: 0...255,
                        using: &generator
                    )
                }
                if Bool.random(using: &generator) { packet.removeLast(Int.random(in: 0..<8, using: &generator)) }
                world.sendSecured(packet, from: hostile)
            }
            world.run(for: .milliseconds(10))
        }
        world.run(for: .seconds(1))
        expectUndisturbed(call, since: decoded, frames: 110)
        #expect(world.nodePeer(hostile)?.streams.count ?? 0 <= Peer.streamsMax)
        #expect(victim.client?.isConnected == true)
    }

    @Test func `transport-wide numbers on packets of no known stream do not hold the loop`() throws {
        let world = try World(seed: 158)
        let hostile = try world.publish()
        #expect(world.run(for: .seconds(3)) { hostile.client?.isConnected == true })
        let other = try world.publish()
        hostile.client?.setSending(false)
        world.run(for: .seconds(1))
        // A peer that never sent a known packet: its first one has a number and a payload type of no track.
        let fresh = try world.publish()
        #expect(world.run(for: .seconds(3)) { fresh.client?.isConnected == true })
        fresh.client?.setSending(false)
        let map = try #require(world.publishedTrack(fresh, .audio)?.extensions)
        let number = try #require(map[.transportSequenceNumber]).rawValue
        var packet: [UInt8] = [0x90, 5, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0xBE, 0xDE, 0, 1, number << 4 | 1, 0, 7, 0]
        packet += [1, 2, 3]
        let feedback = world.node.core.counters.transportFeedbackSent
        for _ in 0..<5 {
            packet[3] &+= 1
            packet[18] &+= 1
            world.sendSecured(packet, from: fresh)
            world.run(for: .milliseconds(200))
        }
        #expect(world.node.core.counters[DropReason.unknownStream] >= 5)
        #expect(world.node.core.counters.transportFeedbackSent > feedback)
        #expect(world.nodePeer(other)?.transport.isConnected == true)
    }

    @Test func `a flood of sources by a publisher stays within its tables`() throws {
        let call = try startCall(seed: 159)
        let world = call.world
        let hostile = try world.publish()
        let victim = try world.watch()
        try world.connect(victim, to: hostile)
        #expect(world.run(for: .seconds(5)) { victim.client?.video?.framesDecoded ?? 0 > 3 })
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        for ssrc in 0..<400 as Range<UInt32> {
            var stream = try #require(HandMadeStream(world, hostile, .video, codec: .vp8, ssrc: 100_000 + ssrc))
            world.sendSecured(stream.next([0x10, 0, 0, 0]), from: hostile)
            if ssrc % 4 == 0 { world.run(for: .milliseconds(30)) }
            let peer = try #require(world.nodePeer(hostile))
            #expect(peer.streams.count <= Peer.streamsMax)
            #expect(peer.tracks.allSatisfy { $0.streams.count <= ReceivedTrack.streamsMax })
        }
        let counters = world.node.core.counters
        #expect(counters[DropReason.streamLimit] > 30)
        #expect(counters[DropReason.srtpSourceLimit] > 200)
        #expect(world.node.core.gauges.historyBytes < 12 * (PacketHistory.bytesMin + 64 * 256) + 4 * 1024 * 1024)
        expectUndisturbed(call, since: decoded, frames: 80)
        world.remove(hostile)
        world.remove(victim)
        world.remove(call.publisher)
        world.remove(call.viewer)
        world.run(for: .seconds(1))
        #expect(world.node.core.isEmpty)
    }

    @Test func `a flood of requests for packets is answered within a bound`() throws {
        let call = try startCall(seed: 160)
        let world = call.world
        let greedy = try world.watch()
        try world.connect(greedy, to: call.publisher)
        #expect(world.run(for: .seconds(3)) { greedy.client?.video?.framesDecoded ?? 0 > 30 })
        let slot = try #require(world.nodeSlot(greedy, .video))
        let newest = try #require(slot.rewriter.newestSequence).wire
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        let before = world.node.core.counters
        let start = world.now
        for round in 0..<200 {
            var nack = RTCPWriter()
            nack.appendNACK(
                sender: SSRC(rawValue: 1),
                media: slot.parameters.ssrc,
                lost: (0..<250).map { newest.advanced(by: $0 - 250 + round * 2) }
            )
            world.sendSecured(nack.bytes, isRTCP: true, from: greedy)
            world.run(for: .milliseconds(10))
        }
        let seconds = Int((world.now - start).seconds.rounded(.up))
        let answered = world.node.core.counters.retransmissionsSent - before.retransmissionsSent
        #expect(answered <= UInt64(RetransmissionLimiter.burstMax + seconds * RetransmissionLimiter.ratePerSecond))
        #expect(answered > 0)
        expectUndisturbed(call, since: decoded, frames: 55)
    }

    @Test(arguments: [161, 162, 163] as [UInt64])
    func `authentic RTCP that is nonsense harms nobody`(seed: UInt64) throws {
        let call = try startCall(seed: seed)
        let world = call.world
        var generator = SeededGenerator(seed: seed)
        let seeds = try reports(of: call)
        let decoded = call.viewer.client?.video?.framesDecoded ?? 0
        for _ in 0..<300 {
            for host in [call.publisher, call.viewer] {
                var packet = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
                for _ in 0..<Int.random(in: 0...4, using: &generator) {
                    packet[Int.random(in: 1..<packet.count, using: &generator)] = .random(
                        in: 0...255,
                        using: &generator
                    )
                }
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    packet += seeds[Int.random(in: 0..<seeds.count, using: &generator)]
                }
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    packet.removeLast(min(4 * Int.random(in: 0..<4, using: &generator), packet.count - 8))
                }
                world.sendSecured(packet, isRTCP: true, from: host)
            }
            world.run(for: .milliseconds(10))
        }
        world.run(for: .seconds(1))
        expectUndisturbed(call, since: decoded, frames: 110)
        #expect(world.node.core.counters[DropReason.malformedRTCP] > 0)
        // Key frames were asked for without end, and the publisher was asked for few.
        #expect(call.publisher.client?.keyFramesMade ?? .max <= 14)
    }

    /// One of each kind of RTCP packet, about the call's own streams.
    private func reports(of call: Call) throws -> [[UInt8]] {
        let publisher = try #require(call.world.nodePeer(call.publisher))
        let viewer = try #require(call.world.nodePeer(call.viewer))
        let sources = publisher.streams.map(\.ssrc) + viewer.slots.map(\.parameters.ssrc)
        return sources.flatMap { ssrc -> [[UInt8]] in
            let info = SenderInfo(
                ntp: NTPTimestamp(rawValue: .max),
                rtp: RTPTimestamp(rawValue: .max),
                packetCount: .max,
                octetCount: 0
            )
            let block = ReportBlock(
                ssrc: ssrc,
                fractionLost: 255,
                cumulativeLost: -0x80_0000,
                highestSequence: .max,
                jitter: .max,
                lastSR: .max,
                delaySinceLastSR: .max
            )
            func written(_ write: (inout RTCPWriter) -> Void) -> [UInt8] {
                var writer = RTCPWriter()
                write(&writer)
                return writer.bytes
            }
            let source = ssrc.rawValue
            return [
                written { $0.appendSenderReport(sender: ssrc, info: info, blocks: [block]) },
                written { $0.appendReceiverReport(sender: ssrc, blocks: Array(repeating: block, count: 31)) },
                written { $0.appendSourceDescription(ssrc: ssrc, cname: "somebody") },
                RTCPPackets.goodbye(source),
                written { $0.appendPictureLoss(sender: ssrc, media: ssrc) },
                RTCPPackets.fullIntraRequest(sender: source, media: source, sequence: 1),
                written {
                    $0.appendNACK(sender: ssrc, media: ssrc, lost: (0..<100).map { SequenceNumber(rawValue: $0 * 600) })
                },
                RTCPPackets.remb(sender: source, bitrate: .max, sources: [source]),
            ]
        }
    }
}
