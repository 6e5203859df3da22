import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// One SRTP index must never protect two different packets (RFC 3711 §9.1, RFC 7714 §8.4).
@Suite struct RepetitionTests {
    /// The packets that the node sent to one address, by source and sequence number.
    private final class Sent {
        private var packets: [UInt64: [UInt8]] = [:]
        private(set) var differing = 0
        private(set) var repeated = 0

        func note(_ bytes: [UInt8]) {
            guard bytes.count > 12, PacketProtocol(firstByte: bytes[0]) == .rtp, !(192...223).contains(bytes[1]) else {
                return
            }
            let source = bytes[8..<12].reduce(0) { $0 << 8 | UInt64($1) }
            let key = source << 16 | UInt64(bytes[2]) << 8 | UInt64(bytes[3])
            if let known = packets[key] {
                repeated += 1
                if known != bytes { differing += 1 }
            }
            packets[key] = bytes
        }
    }

    private func codecs(withRTX: Bool) -> [CodecParameters] {
        [CodecName.vp8, .h264].map { name in
            var codec = CodecParameters.standard(name)
            if !withRTX { codec.rtxPayloadType = nil }
            return codec
        }
    }

    @Test(arguments: [(141, false), (142, false), (143, true)] as [(seed: UInt64, withRTX: Bool)])
    func `nothing goes out twice under one number but the same bytes`(seed: UInt64, withRTX: Bool) throws {
        let world = try World(seed: seed)
        let viewer = try world.watch(video: codecs(withRTX: withRTX))
        let sent = Sent()
        let home = viewer.address
        world.onTransmit = { from, to, bytes in
            if from == World.nodeAddress, to == home { sent.note(bytes) }
        }
        world.run(for: .seconds(1))
        world.network.standard = LinkConditions(
            delay: .milliseconds(15),
            jitter: .milliseconds(10),
            loss: 0.05,
            duplication: 0.02,
            reordering: 0.05
        )
        var settings = MediaClient.Settings()
        settings.video?.bitrate = 500_000
        let rids = try ["q", "h"].map { try #require(RID($0)) }
        for source in 1...3 as ClosedRange<UInt32> {
            settings.sourceNumber = source
            let publisher = try world.publish(settings, rids: source == 2 ? rids : [])
            try world.connect(viewer, to: publisher)
            world.run(for: .seconds(3))
            // Off and on again: the same source, with packets of the time between under way.
            for _ in 0..<3 {
                try world.connect(viewer, to: nil)
                world.run(for: .milliseconds(150))
                try world.connect(viewer, to: publisher)
                world.run(for: .milliseconds(700))
            }
            if source == 2 {
                publisher.client?.setSending(false, layer: rids[1])
                world.run(for: .seconds(4))
            }
            world.remove(publisher)
        }
        world.run(for: .seconds(1))
        #expect(sent.differing == 0, "seed \(seed)")
        #expect(withRTX || sent.repeated > 20, "seed \(seed): \(sent.repeated)")
        #expect(!withRTX || sent.repeated == 0, "seed \(seed)")
        #expect(viewer.client?.video?.duplicates == 0, "seed \(seed)")
    }

    @Test func `a request for a packet of the source before does not confuse the present one's formats`() throws {
        let world = try World(seed: 144)
        let viewer = try world.watch(video: codecs(withRTX: true))
        let first = try world.publish(video: [.standard(.vp8)])
        try world.connect(viewer, to: first)
        #expect(world.run(for: .seconds(3)) { viewer.client?.video?.framesDecoded ?? 0 > 10 })
        // The second publisher's H.264 has the number of the first one's VP8.
        var h264 = CodecParameters.standard(.h264)
        h264.payloadType = PayloadType(wire: 96)
        h264.rtxPayloadType = PayloadType(wire: 97)
        let second = try world.publishQuietly(video: [h264])
        let recording = Recording(viewer, .video)
        let slot = try #require(world.nodeSlot(viewer, .video))
        try world.connect(viewer, to: second)
        world.run(for: .milliseconds(100))
        let newest = try #require(slot.rewriter.newestSequence).wire
        let repeatedBefore = world.node.core.counters.retransmissionsSent
        var nack = RTCPWriter()
        nack.appendNACK(sender: SSRC(rawValue: 1), media: slot.parameters.ssrc, lost: [newest])
        world.sendSecured(nack.bytes, isRTCP: true, from: viewer)
        world.run(for: .milliseconds(100))
        #expect(world.node.core.counters.retransmissionsSent == repeatedBefore + 1)
        let before = recording.packets.count
        var stream = try #require(HandMadeStream(world, second, .video, codec: .h264, ssrc: 7_001))
        for frame in 0..<10 {
            world.sendSecured(stream.next(frame == 0 ? [0x65, 0x88, 0x84] : [0x61, 0, 0]), from: second)
            world.run(for: .milliseconds(33))
        }
        world.run(for: .milliseconds(100))
        let types = recording.packets.dropFirst(before).map(\.payloadType)
        #expect(types == Array(repeating: CodecParameters.standard(.h264).payloadType.rawValue, count: 10))
    }
}
