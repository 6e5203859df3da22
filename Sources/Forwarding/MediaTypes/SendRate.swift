public import Base
public import Wire

/// How much peers may be sent, and how it is found out. Rates are bits a second from the IP header on.
public struct SendRateSettings: Hashable, Sendable {
    /// The target rate never falls below this. 5,000…`maximum`.
    public var minimum = 30_000
    /// The target rate of a path that nothing is known of.
    public var start = 600_000
    /// The target rate never exceeds this.
    public var maximum = 20_000_000
    /// Without it every peer is sent what it asks for, whether its network carries it or not.
    public var isEstimating = true
    /// Without it the target rate rises only as fast as media show that the path carries more.
    public var isProbing = true

    public init() {}
}

/// How much one peer is sent, and why, as it is now. Rates are bits a second from the IP header on.
public struct SendingStatistics: Hashable, Sendable {
    /// What decides about the target rate.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Nothing is estimated: the peer reports nothing, or estimation is off.
        case unlimited
        /// Probes raise the rate until the demand is met or the path is full.
        case start
        /// The queue of the path leads.
        case steady
        /// A queue far too long is drained.
        case drain
        /// Other traffic keeps the queue full, and loss leads.
        case compete
        /// No reports arrive.
        case stale
    }

    /// What keeps the target rate from being higher.
    public enum Limit: String, Hashable, Sendable, CaseIterable {
        /// Nothing: all that is wanted is sent.
        case demand
        /// The path's queue would grow.
        case delay
        /// The path loses packets.
        case loss
        /// Other traffic takes its share.
        case competition
        /// No reports arrive.
        case silence
        /// The peer's own report of its limit: REMB.
        case receiver
        /// A grant, the operator or the settings.
        case maximum
    }

    /// The reports that the estimate is made from.
    public enum Feedback: String, Hashable, Sendable, CaseIterable {
        case none
        case transportCC = "transport-cc"
        /// RFC 8888.
        case congestionControlFeedback = "ccfb"
        case remb
        /// RFC 3550 §6.4.
        case receiverReports = "receiver-reports"
    }

    public var state: State
    public var limit: Limit
    public var feedback: Feedback
    /// What all media, retransmissions and padding together may take.
    public var target: Int
    /// What the wanted layers and audio would take, all together.
    public var demand: Int
    /// What arrives, by the reports of about the last second; `nil` before the first.
    public var delivered: Int?
    /// The rate at which queued packets leave.
    public var pacing: Int
    /// The standing queue of the path.
    public var queueDelay: Interval
    /// How long packets wait in the pacer at present.
    public var pacerDelay: Interval
    /// The share of packets of the last second that was lost, 0…1.
    public var lossRatio: Double
    /// The share of the bytes of the last second that were retransmissions, 0…1.
    public var retransmissionShare: Double
    /// Probe clusters sent since the peer connected.
    public var probes: UInt64
    /// Bytes of padding and of copies that probes were made of, since the peer connected.
    public var paddingBytes: UInt64

    public init(
        state: State = .unlimited,
        limit: Limit = .demand,
        feedback: Feedback = .none,
        target: Int = 0,
        demand: Int = 0,
        delivered: Int? = nil,
        pacing: Int = 0,
        queueDelay: Interval = .zero,
        pacerDelay: Interval = .zero,
        lossRatio: Double = 0,
        retransmissionShare: Double = 0,
        probes: UInt64 = 0,
        paddingBytes: UInt64 = 0
    ) {
        self.state = state
        self.limit = limit
        self.feedback = feedback
        self.target = target
        self.demand = demand
        self.delivered = delivered
        self.pacing = pacing
        self.queueDelay = queueDelay
        self.pacerDelay = pacerDelay
        self.lossRatio = lossRatio
        self.retransmissionShare = retransmissionShare
        self.probes = probes
        self.paddingBytes = paddingBytes
    }
}

/// One picture of a source: the layers of it that a slot is sent, could be sent, or is to be sent.
public struct LayerDescription: Hashable, Sendable {
    /// The simulcast layer; `nil` without simulcast.
    public var rid: RID?
    /// The highest spatial layer within the stream; 0 is the lowest.
    public var spatialID: Int
    /// The highest temporal layer; 0 is the lowest.
    public var temporalID: Int
    /// Pixels; `nil` while the size is not known.
    public var height: Int?
    public var bitsPerSecond: Int

    public init(rid: RID? = nil, spatialID: Int = 0, temporalID: Int = 0, height: Int? = nil, bitsPerSecond: Int = 0) {
        self.rid = rid
        self.spatialID = spatialID
        self.temporalID = temporalID
        self.height = height
        self.bitsPerSecond = bitsPerSecond
    }
}
