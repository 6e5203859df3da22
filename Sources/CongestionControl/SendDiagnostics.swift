extension SendController {
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

    /// Values of the moment for metrics and tests.
    package struct Diagnostics: Sendable {
        package var phase: Phase
        package var limit: Limit
        /// The standing queue in milliseconds.
        package var queueMS: Double
        /// The rate at which packets arrive, in bits a second.
        package var delivered: Double
        /// What the bottleneck carries in all, as far as pairs of packets tell, in bits a second.
        package var capacityHint: Double?
        /// Microseconds.
        package var roundTrip: Int64
        /// The share of packets sent within the last second that were lost.
        package var lossRatio: Double
        /// The share of packets that the path loses at any rate.
        package var inherentLoss: Double
        /// The rate above which the path loses packets without a queue, in bits a second.
        package var lossCap: Double?
    }
}
