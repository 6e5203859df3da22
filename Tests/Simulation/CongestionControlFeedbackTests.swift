import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// A viewer whose reports are those of RFC 8888, written by hand.
@Suite struct CongestionControlFeedbackTests {
    private struct Reporter {
        let world: World
        let viewer: World.Host
        var reported: [SSRC: UInt16] = [:]

        /// Reports all packets since the report before as received now.
        mutating func report(_ ecn: ECNCodepoint) throws {
            func bytes(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
            var body: [UInt8] = []
            for slot in try #require(world.nodePeer(viewer)).slots {
                guard let newest = slot.rewriter.newestSequence?.wire.rawValue else { continue }
                let ssrc = slot.parameters.ssrc
                let first = (reported[ssrc] ?? newest &- 1) &+ 1
                reported[ssrc] = newest
                let count = newest &- first &+ 1
                guard (1...500).contains(count) else { continue }
                body += bytes(ssrc.rawValue) + bytes(UInt32(first) << 16 | UInt32(count))
                for _ in 0..<count { body += [0x80 | ecn.rawValue << 5, 0] }
                if count % 2 == 1 { body += [0, 0] }
            }
            body += bytes(UInt32(truncatingIfNeeded: world.now.nanoseconds / 1_000_000 * 65_536 / 1_000))
            let length = UInt16(body.count / 4 + 1)
            let header: [UInt8] = [0x8B, 205, UInt8(length >> 8), UInt8(length & 0xFF), 0, 0, 0, 1]
            world.sendSecured(header + body, isRTCP: true, from: viewer)
        }

        mutating func run(for steps: Int, _ ecn: ECNCodepoint) throws {
            for _ in 0..<steps {
                world.run(for: .milliseconds(25))
                try report(ecn)
            }
        }
    }

    private func codec(_ name: CodecName) -> CodecParameters {
        var codec = CodecParameters.standard(name)
        codec.feedback.insert(.congestionControlFeedback)
        return codec
    }

    @Test func `its packets are found and marked, until the path clears the mark or it leaves`() throws {
        let world = try World(seed: 61, estimates: true)
        let publisher = try world.publish()
        let viewer = try world.watch(audio: [codec(.opus)], video: [codec(.vp8)])
        try world.connect(viewer, to: publisher)
        #expect(world.run(for: .seconds(3)) { viewer.client?.video?.framesDecoded ?? 0 > 3 })
        let peer = try #require(world.nodePeer(viewer))
        let path = try #require(peer.transport.selectedPath)
        #expect(world.node.core.takeMarkings() == [PathMarking(path: path, isMarked: true)])

        var reporter = Reporter(world: world, viewer: viewer)
        try reporter.run(for: 120, .capable1)
        let sending = peer.sendingStatistics(at: world.now)
        #expect(sending.feedback == .congestionControlFeedback)
        #expect(sending.delivered ?? 0 > 300_000)
        #expect(sending.target > 600_000)
        #expect(world.node.core.takeMarkings().isEmpty)

        try reporter.run(for: 40, .notCapable)
        #expect(world.node.core.takeMarkings() == [PathMarking(path: path, isMarked: false)])
        #expect(peer.sendingStatistics(at: world.now).feedback == .congestionControlFeedback)
    }

    @Test func `a path is not marked any more when its viewer has left`() throws {
        let world = try World(seed: 62, estimates: true)
        let viewer = try world.watch(audio: [codec(.opus)], video: [codec(.vp8)])
        let plain = try world.watch()
        #expect(world.run(for: .seconds(3)) { [viewer, plain].allSatisfy { $0.client?.isConnected == true } })
        let path = try #require(world.nodePeer(viewer)?.transport.selectedPath)
        #expect(world.node.core.takeMarkings() == [PathMarking(path: path, isMarked: true)])
        world.remove(viewer)
        world.remove(plain)
        #expect(world.node.core.takeMarkings() == [PathMarking(path: path, isMarked: false)])
    }
}
