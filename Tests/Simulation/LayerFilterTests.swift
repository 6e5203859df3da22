import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Slots that are sent a part of a stream's layers.
@Suite struct LayerFilterTests {
    /// A publisher whose packets are made by hand, and a viewer of its video.
    private struct Call {
        let world: World
        let publisher: World.Host
        let viewer: World.Host
        let recording: Recording
        let slot: SendSlot
        var stream: HandMadeStream
        private var picture: UInt16 = 100
        private var tl0: UInt8 = 7
        private var frame = 0

        init(seed: UInt64) throws {
            world = try World(seed: seed)
            publisher = try world.publish()
            viewer = try world.watch()
            world.run(for: .seconds(2))
            publisher.client?.setSending(false)
            world.run(for: .milliseconds(200))
            recording = Recording(viewer, .video)
            try world.connect(viewer, to: publisher)
            stream = try #require(HandMadeStream(world, publisher, .video, codec: .vp8, ssrc: 7_001))
            slot = try #require(world.nodeSlot(viewer, .video))
        }

        /// Sends pictures of three temporal layers, two packets each; every eighth one begins with sync frames.
        mutating func send(_ count: Int, spacing: Interval = .milliseconds(33)) {
            for _ in 0..<count {
                let layer: UInt8 = [0, 2, 1, 2][frame % 4]
                let isSync = [1, 2].contains(frame % 8)
                if layer == 0 { tl0 &+= 1 }
                picture = (picture &+ 1) & 0x7FFF
                for part in 0..<2 {
                    let payload: [UInt8] = [
                        part == 0 ? 0x90 : 0x80, 0xE0, 0x80 | UInt8(picture >> 8), UInt8(picture & 0xFF), tl0,
                        layer << 6 | (isSync ? 0x20 : 0), part == 0 && frame == 0 ? 0 : 1, 0,
                    ]
                    let packet = stream.next(step: part == 0 ? 3_000 : 0, marker: part == 1, payload)
                    world.sendSecured(packet, from: publisher)
                }
                frame += 1
                world.run(for: spacing)
            }
        }

        func target(_ temporalID: UInt8) throws {
            let stream = try #require(slot.source?.streams.last)
            slot.setTarget(
                .layer(stream: stream.id, spatialID: temporalID == .max ? .max : 0, temporalID: temporalID),
                at: world.now
            )
        }

        /// The temporal layer of each packet that arrived from one on.
        func layers(from first: Int) -> [UInt8] { recording.packets.dropFirst(first).map { $0.payload[5] >> 6 } }
    }

    /// Numbers and picture ids follow each other, and TL0PICIDX counts the lowest layer.
    private func expectCompact(_ call: Call) {
        let packets = call.recording.bySequence
        for (before, after) in zip(packets, packets.dropFirst()) {
            #expect(after.sequence == before.sequence + 1)
            let isSame = before.timestamp == after.timestamp
            #expect((after.pictureID &- before.pictureID) & 0x7FFF == (isSame ? 0 : 1))
            #expect(after.tl0 &- before.tl0 == (isSame || after.payload[5] >> 6 != 0 ? 0 : 1))
        }
        #expect(call.viewer.core.counters.nackedPacketsRequested == 0)
    }

    @Test(arguments: [false, true])
    func `a slot gets the temporal layers of its target`(isPaced: Bool) throws {
        var call = try Call(seed: isPaced ? 981 : 980)
        if isPaced {
            // A packet leaves every 9 ms, which lets the queue grow with all layers and empty with two.
            var next = call.world.now
            call.world.nodePeer(call.viewer)?.setSendPolicy(
                .deciding { _, now in
                    guard now >= next else { return .later(next) }
                    next = now + .milliseconds(9)
                    return .now
                },
                at: call.world.now
            )
        }
        let spacing = Interval.milliseconds(isPaced ? 17 : 33)
        call.send(8, spacing: spacing)
        call.world.run(for: .milliseconds(200))
        #expect(call.layers(from: 0).contains(2))
        for target in [1, 0, 1, 2, 0, .max] as [UInt8] {
            let before = call.recording.packets.count
            try call.target(target)
            call.send(24, spacing: spacing)
            call.world.run(for: .milliseconds(200))
            let layers = call.layers(from: before)
            #expect(layers.allSatisfy { $0 <= target })
            #expect(layers.suffix(12).max() == min(target, 2))
            #expect(call.slot.currentLayers?.temporalID == min(target, 2))
        }
        expectCompact(call)
        // Without a limit the packets are plain again after a while.
        call.send(80, spacing: spacing)
        call.world.run(for: .milliseconds(200))
        #expect(unsafe call.slot.state.pointee.filter == nil || isPaced)
        expectCompact(call)
    }
}
