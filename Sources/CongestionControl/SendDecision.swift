/// What a congestion controller decides after an event, and what it knows of the path. Rates are bits a second from the IP header
/// on.
///
/// A value of its own, because to read one property of a whole controller is to copy all of it (Swift 6.3.1).
package struct SendDecision: Sendable {
    /// The usual ``pacingBurst``.
    static let burst = 0.005

    /// For all media, repairs and padding together.
    package var target: Double
    /// What the path carries for longer: the target rate, or, while a queue is drained, what follows that.
    package var sustainedRate: Double
    /// The rate of the pacer.
    package var pacingRate: Double
    /// The time whose bytes may leave at once, in seconds, where the path is full.
    package var pacingBurst = Self.burst
    package var phase: Phase
    package var limit: Limit

    /// What the path carries and no more, by what it delivered while its queue never emptied; `nil` while that is not known.
    package var busyRate: Double?
    /// What pairs of packets tell of the bottleneck: what leaves faster waits there. `nil` while they do not agree, or while others
    /// fill its queue.
    package var bottleneckRate: Double?
    /// The rate at which packets arrive; 0 before any has.
    package var delivered = 0.0
    /// The standing queue in milliseconds.
    package var queueMS = 0.0
    /// The share of packets that were lost of late, 0…1.
    package var lossRatio: Double
    /// The share that the path loses at any rate, 0…1.
    package var inherentLoss = 0.0

    /// Nothing that the path did has shown whether it carries the target rate.
    package var isGuess = false
    /// A trial of layers without a probe raised the target to a rate that has not arrived yet.
    package var isTrying = false
    /// No more than the pacer's rate may leave, so that the path shows whose queue it has.
    package var isTestingCompetition = false
    /// Packets are to leave as ECT(1). No report has shown that the mark gets lost.
    package var marksPackets = true
    /// CE marks lead the target.
    package var isMarked = false
    /// A probe cluster is planned, or under way and not reported.
    package var isProbing: Bool
    /// A probe cluster is to be sent now.
    package var hasProbe: Bool
    /// Times in a row that the path carried a longer probe at the rate of barred layers.
    package var carriedLooks = 0
}

extension SendDecision {
    /// What decides about the target at the moment.
    package enum Phase: UInt8, Sendable {
        /// Probes raise the rate until the demand is met or the path is full.
        case start
        case steady
        /// A queue far too long is drained.
        case drain
        /// Others keep the queue full, and loss leads.
        case compete
        /// Reports stay away.
        case stale
    }

    /// What keeps the target rate from being higher.
    package enum Limit: UInt8, Sendable {
        /// Nothing: all that is wanted is sent.
        case demand
        /// The path's queue would grow, or nothing has shown yet that it would not.
        case delay
        /// The path loses packets at a higher rate, or a test finds out whether it does.
        case loss
        /// Others keep the path's queue full.
        case competition
        /// Reports stay away, or none has come yet.
        case silence
        /// The peer's own report of its limit (REMB).
        case receiver
        /// The maximum.
        case maximum
    }
}
