import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Whether a viewer can play what was captured together together (RFC 3550 §6.4.1).
@Suite struct SynchronisationTests {
    /// How far each packet's capture time, as the viewer computes it from the sender reports, lies from the true one.
    private final class Errors {
        var milliseconds: [(at: Instant, source: UInt32, error: Double)] = []

        init(_ host: World.Host, _ kind: MediaKind) {
            guard let track = host.watched(kind) else { return }
            let previous = track.tap
            let offset = kind == .video ? SyntheticVideo.stampOffset : 0
            track.tap = { [weak self, weak track] packet, description, now in
                previous?(packet, description, now)
                let payload = packet.extracting(description.payloadRange)
                guard payload.byteCount > offset, let stream = track?.streams.last,
                    let stamp = MediaStamp(payload.extracting(offset..<payload.byteCount)),
                    let captured = stream.clock.senderNanoseconds(at: description.timestamp)
                else { return }
                let error = Double((captured &- stamp.sentAt.nanoseconds) % 1_000_000_000_000) / 1e6
                self?.milliseconds.append((now, stamp.source, error))
            }
        }

        func mean(_ source: UInt32, after start: Instant) -> Double? {
            let chosen = milliseconds.filter { $0.source == source && $0.at > start }
            return chosen.isEmpty ? nil : chosen.reduce(0) { $0 + $1.error } / Double(chosen.count)
        }
        func spread(_ source: UInt32, after start: Instant) -> Double {
            let chosen = milliseconds.filter { $0.source == source && $0.at > start }.map(\.error)
            return (chosen.max() ?? 0) - (chosen.min() ?? 0)
        }
    }

    @Test(
        arguments: [
            (seed: 111, LinkConditions.perfect),
            (
                seed: 112,
                LinkConditions(delay: .milliseconds(40), jitter: .milliseconds(12), loss: 0.04, reordering: 0.02)
            ),
        ] as [(seed: UInt64, LinkConditions)]
    )
    func `audio and video map to one clock, after a restart of the publisher too`(
        seed: UInt64,
        conditions: LinkConditions
    ) throws {
        let world = try World(seed: seed)
        world.network.standard = conditions
        let viewer = try world.watch()
        let audio = Errors(viewer, .audio)
        let video = Errors(viewer, .video)
        for source in 1...2 as ClosedRange<UInt32> {
            var settings = MediaClient.Settings()
            settings.sourceNumber = source
            settings.video?.bitrate = 300_000
            let publisher = try world.publish(settings)
            try world.connect(viewer, to: publisher)
            world.run(for: .seconds(4))
            let settled = world.now
            world.run(for: .seconds(6))
            let heard = try #require(audio.mean(source, after: settled))
            let seen = try #require(video.mean(source, after: settled))
            #expect(abs(heard - seen) < 3, "seed \(seed), source \(source): \(heard) and \(seen) ms")
            #expect(audio.spread(source, after: settled) < 15, "seed \(seed), source \(source)")
            #expect(video.spread(source, after: settled) < 15, "seed \(seed), source \(source)")
            world.remove(publisher)
            world.run(for: .milliseconds(700))
        }
    }

    @Test func `a slot that sends nothing ceases to report, and reports again with what it sends next`() throws {
        let world = try World(seed: 114)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(3))
        let slots = try MediaKind.allCases.map { try #require(world.nodeSlot(viewer, $0)) }
        func reports() -> [Bool] { slots.map { $0.senderInfo(at: world.now) != nil } }
        #expect(reports() == [true, true])
        for pause in [
            { try world.connect(viewer, to: nil) },
            { try world.connect(viewer, to: publisher, layer: .nothing) },
        ] {
            try pause()
            world.run(for: .milliseconds(2_500))
            #expect(reports() == [false, false])
            try world.connect(viewer, to: publisher)
            #expect(world.run(for: .milliseconds(500)) { reports() == [true, true] })
        }
        publisher.client?.setSending(false)
        world.run(for: .seconds(3))
        #expect(reports() == [false, false])
        let before = viewer.watched(.audio)?.streams.last?.lastSenderReport?.receivedAt
        world.run(for: .seconds(3))
        #expect(viewer.watched(.audio)?.streams.last?.lastSenderReport?.receivedAt == before)
        publisher.client?.setSending(true)
        #expect(world.run(for: .milliseconds(500)) { reports() == [true, true] })
    }

    @Test func `a source that sends no reports is reported on by arrival, but not before it had its chance`() throws {
        let world = try World(seed: 113)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        world.run(for: .seconds(1))
        publisher.client?.setSending(false)
        let before = viewer.watched(.audio)?.streams.count ?? 0
        var stream = try #require(HandMadeStream(world, publisher, .audio, codec: .opus, ssrc: 4_242))
        let slot = try #require(world.nodeSlot(viewer, .audio))
        var known: [Bool] = []
        for _ in 0..<400 {
            world.sendSecured(stream.next(step: 960, [1, 2, 3]), from: publisher)
            world.run(for: .milliseconds(20))
            known.append(slot.senderInfo(at: world.now) != nil)
        }
        #expect(before == 1)
        #expect(known[10..<230].allSatisfy { !$0 })
        #expect(known.last == true)
    }
}
