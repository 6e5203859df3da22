import Base
package import MediaTypes

/// What this node carries of one channel at one moment, for metrics. Members of other nodes are not included.
package struct ChannelActivity: Hashable, Sendable {
    /// What the members' transports carry.
    package struct Media: Hashable, Sendable {
        /// Bytes/s of RTP packets from the members, over the last second.
        package var receivedBytesPerSecond = 0
        /// Bytes/s of RTP packets to the members, over the last second.
        package var sentBytesPerSecond = 0
        /// The longest round trip of a member in seconds; `nil` where none is known.
        package var roundTripMax: Double?
        /// The highest share of lost packets that a member reported on a track, 0…1; `nil` without reports.
        package var lossMax: Double?

        package init() {}
    }

    package let channel: ChannelName
    /// When its session began, in nanoseconds since 1970 UTC.
    package let createdAt: Int64
    /// The connected members by role.
    package let counts: ChannelCounts
    /// Connected members whose media arrives poorly or not at all: ``LinkQuality/Level/poor`` and worse.
    package var poorUplinks = 0
    /// Connected members to whom media goes poorly or not at all.
    package var poorDownlinks = 0
    /// `nil` where there were too many members to measure.
    package var media: Media?

    package init(channel: ChannelName, createdAt: Int64, counts: ChannelCounts) {
        self.channel = channel
        self.createdAt = createdAt
        self.counts = counts
    }

    /// Counts the quality of one member's network.
    package mutating func add(_ quality: LinkQuality) {
        if quality.uplink.rawValue >= LinkQuality.Level.poor.rawValue { poorUplinks += 1 }
        if quality.downlink.rawValue >= LinkQuality.Level.poor.rawValue { poorDownlinks += 1 }
    }
}

extension ChannelActivity.Media {
    /// Adds what one member's transport carries.
    package mutating func add(_ statistics: PeerStatistics) {
        for received in statistics.received { receivedBytesPerSecond &+= received.bitsPerSecond / 8 }
        for sent in statistics.sent {
            sentBytesPerSecond &+= sent.bitsPerSecond / 8
            if let loss = sent.fractionLost { lossMax = max(lossMax ?? 0, loss) }
        }
        if let roundTrip = statistics.roundTrip {
            roundTripMax = max(roundTripMax ?? 0, Double(roundTrip.nanoseconds) / 1e9)
        }
    }
}
