import Base
import MediaTypes
import Testing
import Wire

@testable import History

@Suite struct QualityTimelineTests {
    private static func sample(_ seconds: UInt32, _ body: (inout QualitySample) -> Void = { _ in }) -> QualitySample {
        var sample = QualitySample(seconds: seconds)
        body(&sample)
        return sample
    }

    @Test func `a long connection has few samples, whose intervals grow`() {
        var timeline = QualityTimeline()
        var seconds: UInt32 = 0
        // A day.
        while seconds < 86_400 {
            seconds += UInt32(timeline.interval)
            timeline.append(Self.sample(seconds))
            #expect(timeline.samples.count < QualityTimeline.countMax)
        }
        #expect(timeline.interval == 1_280)
        #expect(timeline.samples.map(\.seconds) == timeline.samples.map(\.seconds).sorted())
        #expect(timeline.samples.last?.seconds == seconds)
    }

    @Test func `merged samples keep what was worst, and count every freeze`() {
        let first = Self.sample(5) {
            $0.received = 1_000
            $0.sentLoss = 120
            $0.roundTrip = 40
            $0.freezes = 1
            $0.frozen = 900
            $0.reduced = 2
            $0.limit = .loss
            $0.quality = LinkQuality(uplink: .bad, downlink: .good)
        }
        let second = Self.sample(10) {
            $0.received = 3_000
            $0.receivedLoss = 7
            $0.roundTrip = 90
            $0.freezes = .max
            $0.frozen = .max
            $0.quality = LinkQuality(uplink: .good, downlink: .poor)
        }
        let merged = first.merged(with: second)
        #expect(merged.seconds == 10 && merged.received == 2_000)
        #expect(merged.sentLoss == 120 && merged.receivedLoss == 7 && merged.roundTrip == 90 && merged.reduced == 2)
        #expect(merged.freezes == .max && merged.frozen == .max)
        #expect(merged.limit == .loss && merged.quality == LinkQuality(uplink: .bad, downlink: .poor))
    }

    @Test func `loss is that of the interval, also when counting begins anew`() {
        func counts(received: Int64, lost: Int64, sent: UInt32, sentLost: Int?) -> StreamCounts {
            let (mid, ssrc) = (MID("0")!, SSRC(rawValue: 1))
            return StreamCounts(
                PeerStatistics(
                    isConnected: true,
                    received: [.init(mid: mid, kind: .audio, ssrc: ssrc, packets: received, packetsLost: lost)],
                    sent: [.init(mid: mid, kind: .audio, ssrc: ssrc, packets: sent, packetsLost: sentLost)]
                )
            )
        }
        let first = counts(received: 1_000, lost: 10, sent: 2_000, sentLost: nil)
        let later = counts(received: 1_090, lost: 20, sent: 2_200, sentLost: 50)
        let growth = later.growth(since: first)
        #expect(growth.receivedLoss == 100 && growth.sentLoss == 250)
        let anew = counts(received: 40, lost: -1, sent: 60, sentLost: 0).growth(since: later)
        #expect(anew.receivedLoss == 0 && anew.received == 40 && anew.sent == 60)
        #expect(StreamCounts().growth(since: first) == MediaTotals())
        var totals = MediaTotals()
        (totals.sentLost, totals.sent) = (.max, 1)
        #expect(totals.sentLoss == 1_000)
    }

    @Test func `videos count as reduced and paused by what is wanted of them`() {
        var statistics = PeerStatistics(isConnected: true, roundTrip: .milliseconds(70_000))
        let high = LayerDescription(rid: nil, spatialID: 2, temporalID: 2, height: 720, bitsPerSecond: 1_500_000)
        let low = LayerDescription(rid: nil, spatialID: 0, temporalID: 2, height: 180, bitsPerSecond: 150_000)
        let source = TrackID(peer: PeerID(rawValue: 1), mid: MID("0")!)
        func slot(_ wanted: LayerDescription?, _ current: LayerDescription?) -> PeerStatistics.Sent {
            PeerStatistics.Sent(
                mid: MID("1")!,
                kind: .video,
                ssrc: SSRC(rawValue: 1),
                source: source,
                wanted: wanted,
                current: current
            )
        }
        statistics.sent = [slot(high, high), slot(high, low), slot(high, nil), slot(nil, nil)]
        let sample = QualitySample(statistics, seconds: 5, growth: MediaTotals(), quality: .unknown)
        #expect(sample.videos == 3 && sample.reduced == 1 && sample.paused == 1)
        #expect(sample.roundTrip == .max)
    }
}
