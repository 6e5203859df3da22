import Base
package import MediaTypes
import Wire

/// What a connection's media was like in one interval.
package struct QualitySample: Hashable, Sendable {
    /// The end of the interval, in seconds since the connection was up.
    package var seconds: UInt32
    /// What the node received from the client, in bit/s.
    package var received: UInt32 = 0
    /// What the node sent to the client, in bit/s.
    package var sent: UInt32 = 0
    /// What the client was to be sent, if its network carried it, in bit/s.
    package var demand: UInt32 = 0
    /// The share of the client's packets that did not arrive, in thousandths.
    package var receivedLoss: UInt16 = 0
    /// The share of the node's packets that did not arrive at the client, by its reports, in thousandths.
    package var sentLoss: UInt16 = 0
    /// Milliseconds; 0 before it is measured.
    package var roundTrip: UInt16 = 0
    /// The greatest of all streams in both directions, in milliseconds.
    package var jitter: UInt16 = 0
    /// The number of videos that the client was to be sent.
    package var videos: UInt16 = 0
    /// How many of them were in lower layers than wanted.
    package var reduced: UInt16 = 0
    /// How many of them were not sent at all.
    package var paused: UInt16 = 0
    /// Freezes of video that the client reported.
    package var freezes: UInt16 = 0
    /// Their length together, in milliseconds.
    package var frozen: UInt32 = 0
    package var quality = LinkQuality.unknown
    /// What kept the node from sending more.
    package var limit = SendingStatistics.Limit.demand

    package init(seconds: UInt32) { self.seconds = seconds }

    /// One sample for two intervals that follow each other: the mean of rates, the worse of everything else.
    func merged(with later: Self) -> Self {
        var sample = later
        sample.received = Self.mean(received, later.received)
        sample.sent = Self.mean(sent, later.sent)
        sample.demand = Self.mean(demand, later.demand)
        sample.receivedLoss = max(receivedLoss, later.receivedLoss)
        sample.sentLoss = max(sentLoss, later.sentLoss)
        sample.roundTrip = max(roundTrip, later.roundTrip)
        sample.jitter = max(jitter, later.jitter)
        sample.videos = max(videos, later.videos)
        sample.reduced = max(reduced, later.reduced)
        sample.paused = max(paused, later.paused)
        sample.freezes = UInt16(clamping: UInt32(freezes) + UInt32(later.freezes))
        sample.frozen = UInt32(clamping: UInt64(frozen) + UInt64(later.frozen))
        sample.quality = LinkQuality(
            uplink: Self.worse(quality.uplink, later.quality.uplink),
            downlink: Self.worse(quality.downlink, later.quality.downlink)
        )
        if later.limit == .demand { sample.limit = limit }
        return sample
    }

    private static func mean(_ one: UInt32, _ other: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: (UInt64(one) + UInt64(other)) / 2)
    }

    static func worse(_ one: LinkQuality.Level, _ other: LinkQuality.Level) -> LinkQuality.Level {
        one.rawValue > other.rawValue ? one : other
    }
}

/// The samples of a connection. However long it lasts, they stay below ``countMax``: then each two become one, and the next
/// intervals are twice as long.
package struct QualityTimeline: Hashable, Sendable {
    /// The most samples: ten minutes at the first interval.
    package static let countMax = 120
    /// The first interval, in seconds.
    package static let firstInterval = 5

    /// The present interval, in seconds.
    package private(set) var interval = Self.firstInterval
    package private(set) var samples: [QualitySample] = []

    package init() {}

    mutating func append(_ sample: QualitySample) {
        samples.append(sample)
        guard samples.count >= Self.countMax else { return }
        samples = stride(from: 0, to: samples.count - 1, by: 2).map { samples[$0].merged(with: samples[$0 + 1]) }
        interval &*= 2
    }
}

/// What a client reported of its playback since its media was negotiated.
package struct ClientPlayback: Hashable, Sendable {
    /// How often video froze.
    package var freezes: UInt64
    /// For how long together, in milliseconds.
    package var frozen: UInt64

    package init(freezes: UInt64 = 0, frozen: UInt64 = 0) {
        self.freezes = freezes
        self.frozen = frozen
    }
}

/// What was counted of a connection's media, of all its streams together.
struct MediaTotals: Hashable {
    var received: UInt64 = 0
    var receivedLost: UInt64 = 0
    var sent: UInt64 = 0
    var sentLost: UInt64 = 0
    var receivedBytes: UInt64 = 0
    var sentBytes: UInt64 = 0

    mutating func add(_ growth: Self) {
        received &+= growth.received
        receivedLost &+= growth.receivedLost
        sent &+= growth.sent
        sentLost &+= growth.sentLost
        receivedBytes &+= growth.receivedBytes
        sentBytes &+= growth.sentBytes
    }

    /// The share of packets that were lost on the way to the node, in thousandths.
    var receivedLoss: UInt16 { Self.share(receivedLost, of: received &+ receivedLost) }
    /// The share of packets that were lost on the way to the client, in thousandths.
    var sentLoss: UInt16 { Self.share(sentLost, of: sent) }

    private static func share(_ part: UInt64, of whole: UInt64) -> UInt16 {
        guard whole > 0 else { return 0 }
        return UInt16(clamping: Int(min(Double(part) / Double(whole), 1) * 1_000 + 0.5))
    }
}

/// What each present stream of a connection has counted. Streams come and go with publishers, and begin anew when the client
/// connects again, so only counts of the same stream are compared.
struct StreamCounts: Hashable {
    private struct Stream: Hashable {
        let mid: MID
        let ssrc: SSRC
    }

    private struct Count: Hashable {
        let packets: UInt64
        let lost: UInt64
        let bytes: UInt64

        /// - Parameter earlier: `nil` for a stream that is new.
        func since(_ earlier: Self?) -> Self {
            guard let earlier, packets >= earlier.packets, bytes >= earlier.bytes else { return self }
            // Packets that arrive late or twice reduce the number of lost ones.
            let newlyLost = lost > earlier.lost ? lost &- earlier.lost : 0
            return Self(packets: packets &- earlier.packets, lost: newlyLost, bytes: bytes &- earlier.bytes)
        }
    }

    private var received: [Stream: Count] = [:]
    private var sent: [Stream: Count] = [:]

    init() {}

    init(_ statistics: PeerStatistics) {
        for stream in statistics.received {
            received[Stream(mid: stream.mid, ssrc: stream.ssrc)] = Count(
                packets: UInt64(clamping: stream.packets),
                lost: UInt64(clamping: stream.packetsLost),
                bytes: stream.bytes
            )
        }
        for slot in statistics.sent {
            sent[Stream(mid: slot.mid, ssrc: slot.ssrc)] = Count(
                packets: UInt64(slot.packets),
                lost: UInt64(clamping: slot.packetsLost ?? 0),
                bytes: slot.bytes
            )
        }
    }

    /// What was counted since an earlier state.
    func growth(since earlier: Self) -> MediaTotals {
        var totals = MediaTotals()
        for (stream, count) in received {
            let growth = count.since(earlier.received[stream])
            totals.received &+= growth.packets
            totals.receivedLost &+= growth.lost
            totals.receivedBytes &+= growth.bytes
        }
        for (stream, count) in sent {
            let growth = count.since(earlier.sent[stream])
            totals.sent &+= growth.packets
            totals.sentLost &+= growth.lost
            totals.sentBytes &+= growth.bytes
        }
        return totals
    }
}

extension QualitySample {
    /// - Parameter growth: of the totals in the interval.
    init(_ statistics: PeerStatistics, seconds: UInt32, growth: MediaTotals, quality: LinkQuality) {
        self.init(seconds: seconds)
        received = UInt32(clamping: statistics.received.reduce(0) { $0 &+ $1.bitsPerSecond })
        sent = UInt32(clamping: statistics.sent.reduce(0) { $0 &+ $1.bitsPerSecond })
        demand = UInt32(clamping: statistics.sending.demand)
        receivedLoss = growth.receivedLoss
        sentLoss = growth.sentLoss
        roundTrip = Self.milliseconds(statistics.roundTrip ?? .zero)
        let jitters = statistics.received.map(\.jitter) + statistics.sent.compactMap(\.jitter)
        jitter = Self.milliseconds(jitters.max() ?? .zero)
        for slot in statistics.sent where slot.kind == .video && slot.source != nil {
            guard let wanted = slot.wanted else { continue }
            videos &+= 1
            guard let current = slot.current else {
                paused &+= 1
                continue
            }
            if Self.isLower(current, than: wanted) { reduced &+= 1 }
        }
        limit = statistics.sending.limit
        self.quality = quality
    }

    private static func isLower(_ current: LayerDescription, than wanted: LayerDescription) -> Bool {
        if current.rid != wanted.rid {
            return (current.height ?? 0, current.bitsPerSecond) < (wanted.height ?? 0, wanted.bitsPerSecond)
        }
        return (current.spatialID, current.temporalID) < (wanted.spatialID, wanted.temporalID)
    }

    private static func milliseconds(_ interval: Interval) -> UInt16 {
        UInt16(clamping: interval.nanoseconds / 1_000_000)
    }
}
