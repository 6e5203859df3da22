import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

/// A publisher and a viewer behind a bottleneck, and what the viewer gets.
final class MeasuredCall {
    typealias Step = PictureModel.Step

    /// Simulcast of 180p, 360p and 720p with three temporal layers each, or a screen.
    enum Source { case camera, screen }

    static let rids = ["r0", "r1", "r2"].compactMap { RID($0) }
    static let bitrates = [150_000, 500_000, 2_500_000]
    static let tick = Interval.milliseconds(50)

    let world: World
    let publisher: World.Host
    let viewer: World.Host
    let peer: Peer
    let picture: PictureModel
    let link: LinkLog
    /// When the node's peer of the viewer was connected.
    let start: Instant
    private let fault: AdaptationFault?
    /// What is looked at after each tick. Rates are in bit/s.
    struct Sample {
        let at: Instant
        let target: Int
        /// `nil` for an unlimited link.
        let capacity: Int?
        /// Padding and copies that were sent so far.
        let paddingBytes: UInt64
    }
    private(set) var samples: [Sample] = []
    /// The longest time that an audio packet was under way, in ms.
    private(set) var audioDelayMax = 0.0
    /// Called each 50 ms.
    var onTick: (() -> Void)?

    static func settings(
        _ source: Source,
        bitrates: [Int] = bitrates,
        hasTemporalLayers: Bool = true
    ) -> MediaClient.Settings {
        var settings = MediaClient.Settings()
        // 50 kbit/s from the IP header on.
        settings.audioBitrate = 24_000
        settings.layerBitrates = bitrates
        settings.video?.hasTemporalLayers = source == .camera && hasTemporalLayers
        settings.video?.keyFrameFactor = source == .camera ? 6 : 12
        settings.video?.keyFrameDelay = .milliseconds(150)
        settings.video?.sizeVariation = 0.3
        settings.video?.bitrate = 2_500_000
        return settings
    }

    /// - Parameters:
    ///   - rate: of the viewer's link in bit/s.
    ///   - roundTrip: of that link.
    ///   - queue: the longest wait in that link's queue.
    ///   - bitrates: of the camera's layers in bit/s.
    init(
        seed: UInt64,
        _ fault: AdaptationFault?,
        rate: Int?,
        roundTrip: Interval = .milliseconds(100),
        queue: Interval = .milliseconds(300),
        source: Source = .camera,
        bitrates: [Int] = bitrates,
        hasTemporalLayers: Bool = true,
        preference: LayerPreference = LayerPreference(),
        audio: [CodecParameters] = [.standard(.opus)],
        video: [CodecParameters] = [.standard(.vp8)],
        uplink: LinkConditions = LinkConditions(delay: .milliseconds(10))
    ) throws {
        self.fault = fault
        world = try World(seed: seed, estimates: true, sendRate: fault?.sendRate ?? SendRateSettings())
        world.network.standard = LinkConditions(delay: .milliseconds(10))
        publisher = try world.publish(
            Self.settings(source, bitrates: bitrates, hasTemporalLayers: hasTemporalLayers),
            rids: source == .camera ? Self.rids : [],
            layersAscend: true
        )
        world.network.conditions[publisher.address] = uplink
        world.run(for: .milliseconds(Int.random(in: 3_000..<3_100, using: &world.generator)))
        viewer = try world.watch(audio: audio, video: video)
        world.network.conditions[viewer.address] = LinkConditions(
            delay: Interval(nanoseconds: roundTrip.nanoseconds / 2),
            rate: rate,
            queue: queue
        )
        link = LinkLog(viewer.address)
        picture = PictureModel(viewer)
        try world.connect(viewer, to: publisher)
        let peer = try #require(world.nodePeer(viewer))
        self.peer = peer
        for slot in peer.slots where slot.parameters.kind == .video { slot.choose(preference, at: world.now) }
        world.run(for: .seconds(10)) { peer.transport.isConnected }
        start = world.now
        LinkLog.attach([link], to: world)
        let audio = viewer.watched(.audio)
        let previous = audio?.tap
        audio?.tap = { [weak self] packet, description, now in
            previous?(packet, description, now)
            guard let self, let stamp = MediaStamp(packet.extracting(description.payloadRange)) else { return }
            audioDelayMax = max(audioDelayMax, (now - stamp.sentAt).seconds * 1_000)
        }
    }

    deinit { AdaptationPlot.recorder?.add(AdaptationPlot.svg(self)) }

    func run(_ seconds: Double) {
        let end = world.now + Interval(nanoseconds: Int64(seconds * 1e9))
        while world.now < end {
            fault?.apply(to: peer, at: world.now)
            onTick?()
            world.run(for: min(Self.tick, end - world.now))
            let sending = peer.sendingStatistics(at: world.now)
            samples.append(
                Sample(at: world.now, target: sending.target, capacity: rate, paddingBytes: sending.paddingBytes)
            )
            guard let client = viewer.client, picture.wantsKeyFrame(at: world.now) else { continue }
            viewer.core.requestKeyFrame(of: client.id, at: world.now)
            world.settle(viewer)
        }
    }

    var rate: Int? {
        get { world.network.conditions[viewer.address]?.rate }
        set { world.network.conditions[viewer.address]?.rate = newValue }
    }

    func choose(_ preference: LayerPreference) {
        for slot in peer.slots where slot.parameters.kind == .video { slot.choose(preference, at: world.now) }
        world.settle(world.node)
    }

    // MARK: - Figures

    func at(_ seconds: Double) -> Instant { start + Interval(nanoseconds: Int64(seconds * 1e9)) }

    /// Seconds until a step shows that stays for a second; 1,000 for never.
    func time(to step: Step, after moment: Instant) -> Double {
        picture.began(step, after: moment, until: world.now).map { ($0 - moment).seconds } ?? 1_000
    }

    /// The lowest target rate of a time, in Mbit/s.
    func targetMin(from begin: Instant, until end: Instant) -> Double {
        Double(samples.filter { $0.at >= begin && $0.at < end }.map(\.target).min() ?? 0) / 1e6
    }

    /// Audio packets that did not arrive, in %.
    var audioLossPercent: Double {
        guard let audio = viewer.client?.audioReceived else { return 100 }
        return 100 * Double(max(audio.lost, 0)) / Double(max(audio.packets + max(audio.lost, 0), 1))
    }

    /// Padding and copies that were sent, in % of what the link would have carried.
    var paddingOfCapacityPercent: Double {
        let capacity = Double(rate ?? 1) / 8 * (world.now - start).seconds
        return 100 * Double(peer.sendingStatistics(at: world.now).paddingBytes) / capacity
    }

    /// Padding, copies and retransmissions that were sent, in % of all bytes.
    var overheadPercent: Double {
        let retransmissions = peer.slots.reduce(0) { $0 + Double($1.retransmitted) * 1_100 }
        let padding = Double(peer.sendingStatistics(at: world.now).paddingBytes)
        return 100 * (padding + retransmissions) / Double(max(link.bytes(from: start, until: world.now), 1))
    }
}
