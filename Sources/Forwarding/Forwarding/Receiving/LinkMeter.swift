package import Base
package import MediaTypes

/// Rates one direction of the network between a peer and us, once a second.
///
/// So that the level does not flap, it gets worse in the second worse second in a row, and better in the third better one.
/// The first level and silence count at once.
package struct LinkMeter: Sendable {
    /// Measurements of the last second.
    package struct Sample: Sendable {
        /// 0…1; `nil` for too few packets to tell.
        package var fractionLost: Double?
        /// Of both directions together; `nil` where it is not measured.
        package var roundTrip: Interval?
        /// The bit rate that the network carries by the rate that is wanted, 0…1; `nil` where it is not known.
        package var rateShare: Double?
        /// Whether nothing at all has arrived from the peer for ``silenceMax``.
        package var isSilent = false

        package init(
            fractionLost: Double? = nil,
            roundTrip: Interval? = nil,
            rateShare: Double? = nil,
            isSilent: Bool = false
        ) {
            self.fractionLost = fractionLost
            self.roundTrip = roundTrip
            self.rateShare = rateShare
            self.isSilent = isSilent
        }
    }

    /// Where the levels from ``LinkQuality/Level/good`` on begin, for the share of lost packets. Retransmission hides 1 %;
    /// from 8 % on video stutters and from 15 % on speech suffers.
    static let fractionsLost = [0.01, 0.03, 0.08, 0.15, 0.4]
    /// The same for round trips. Up to 150 ms people do not notice it in a conversation (ITU-T G.114 says so of 150 ms one
    /// way, of which devices and jitter buffers take half); from half a second on they interrupt each other.
    static let roundTrips: [Interval] = [
        .milliseconds(150), .milliseconds(250), .milliseconds(500), .milliseconds(800), .milliseconds(2_000),
    ]
    /// The level is the next one where the share of the wanted rate is below this.
    static let rateShares = [0.9, 0.75, 0.5, 0.3, 0.1]
    /// Clients send a connectivity check at least every five seconds or so (RFC 7675 §5.1); one of them may be lost.
    package static let silenceMax = Interval.seconds(10)
    private static let secondsUntilWorse = 2
    private static let secondsUntilBetter = 3
    /// After this long without a measurement the level is unknown. Receivers of audio alone report about every five
    /// seconds, and silence is noticed before.
    private static let secondsUntilUnknown = 12

    package private(set) var level = LinkQuality.Level.unknown
    /// Consecutive seconds that were worse, or better, than the level.
    private var seconds = 0
    /// The level of those seconds that is nearest to the current one.
    private var nearest = LinkQuality.Level.unknown
    private var secondsWithoutMeasurement = 0

    package init() {}

    /// Rates one second.
    package mutating func rate(_ sample: Sample) {
        let rating = Self.rating(of: sample)
        secondsWithoutMeasurement = rating == .unknown ? secondsWithoutMeasurement + 1 : 0
        guard rating != .unknown else {
            if level == .disconnected || secondsWithoutMeasurement >= Self.secondsUntilUnknown { set(.unknown) }
            return
        }
        guard level != .unknown, !sample.isSilent else { return set(rating) }
        guard rating != level else {
            seconds = 0
            return
        }
        let isWorse = rating.rawValue > level.rawValue
        if seconds > 0, (nearest.rawValue > level.rawValue) == isWorse {
            seconds += 1
            if (rating.rawValue < nearest.rawValue) == isWorse { nearest = rating }
        } else {
            seconds = 1
            nearest = rating
        }
        if seconds >= (isWorse ? Self.secondsUntilWorse : Self.secondsUntilBetter) { set(nearest) }
    }

    private mutating func set(_ level: LinkQuality.Level) {
        self.level = level
        seconds = 0
    }

    /// The level of one second by itself: the worst of its figures. The round trip alone, without media in the
    /// direction, says nothing.
    static func rating(of sample: Sample) -> LinkQuality.Level {
        guard !sample.isSilent else { return .disconnected }
        guard sample.fractionLost != nil || sample.rateShare != nil else { return .unknown }
        let steps = max(
            sample.fractionLost.map { lost in fractionsLost.count { lost >= $0 } } ?? 0,
            sample.roundTrip.map { roundTrip in roundTrips.count { roundTrip >= $0 } } ?? 0,
            sample.rateShare.map { share in rateShares.count { share < $0 } } ?? 0
        )
        return LinkQuality.Level(rawValue: LinkQuality.Level.excellent.rawValue + steps) ?? .disconnected
    }
}
