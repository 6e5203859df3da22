package import Base

/// Admits newcomers at half the rate at which the node can serve them, so that the clients of a node that died do not end the
/// calls of the node that they come to. Sans-IO: instants in, decisions out.
///
/// What the node can serve is measured while more joins are under way than its loops need to be busy. Until then it is a
/// constant for each media loop.
struct JoinLimiter: Sendable {
    /// Joins a second that a loop is taken to serve before anything is measured. Of the joins of 10,000 clients on 20 nodes
    /// with 4 loops, each node then admits 400 a second, and all are in after two.
    static let perLoop = 200.0
    /// The share of the capacity for newcomers; the rest is for those who are there.
    static let share = 0.5
    /// Joins under way for each loop from which on the loops count as busy.
    static let busyPerLoop = 8
    /// The shortest time that is measured.
    private static let periodMin = Interval.milliseconds(250)
    /// How much of the difference one measurement corrects.
    private static let gain = 0.25
    /// A measurement does not take the capacity further from the constant than by this factor, in either direction.
    private static let factorMax = 8.0
    /// The growth a second, up to the constant, while newcomers are refused although the node is not busy: what was measured
    /// then may be over.
    private static let recovery = 1.1

    private let assumed: Double
    private let busyMin: Int
    /// Joins a second that the node can serve.
    private(set) var capacity: Double
    private var places: TokenBucket
    private var recoveredAt: Instant
    private var underWay = 0
    /// The time since when the node is busy, and the joins that ended since; `nil` when it is not.
    private var busy: (since: Instant, joins: Int)?

    /// - Parameter loops: the media loops of the node, at least one.
    init(loops: Int, at now: Instant) {
        let loops = max(loops, 1)
        assumed = Self.perLoop * Double(loops)
        busyMin = Self.busyPerLoop * loops
        capacity = assumed
        places = TokenBucket(Self.rate(assumed))
        recoveredAt = now
    }

    /// Takes the place of one newcomer.
    /// - Returns: `false` when more join at once than the node serves beside its calls.
    mutating func take(at now: Instant) -> Bool {
        if places.take(at: now) { return true }
        if busy == nil, now - recoveredAt >= .seconds(1) {
            recoveredAt = now
            if capacity < assumed { setCapacity(min(assumed, capacity * Self.recovery)) }
        }
        return false
    }

    /// The node starts to set up the media of a newcomer.
    mutating func began(at now: Instant) {
        underWay += 1
        if busy == nil, underWay >= busyMin { busy = (now, 0) }
    }

    /// The media of a newcomer is set up, or refused.
    mutating func ended(at now: Instant) {
        underWay = max(underWay - 1, 0)
        guard var period = busy else { return }
        period.joins += 1
        busy = underWay >= busyMin ? period : nil
        let time = now - period.since
        guard time >= Self.periodMin else { return }
        let measured = Double(period.joins) / time.seconds
        let next = capacity + (measured - capacity) * Self.gain
        setCapacity(min(max(next, assumed / Self.factorMax), assumed * Self.factorMax))
        recoveredAt = now
        if busy != nil { busy = (now, 0) }
    }

    private mutating func setCapacity(_ joinsPerSecond: Double) {
        capacity = joinsPerSecond
        places.rate = Self.rate(joinsPerSecond)
    }

    /// The bucket holds the joins of a second.
    private static func rate(_ capacity: Double) -> TokenRate { TokenRate(max(Int(capacity * share), 1)) }
}

/// The ``JoinLimiter`` of a node, for all its protocols.
package actor JoinGate {
    private var limiter: JoinLimiter
    private let statistics: SignalingStatistics
    private let now: @Sendable () -> Instant

    /// - Parameters:
    ///   - loops: the media loops of the node.
    ///   - statistics: counts refusals.
    package init(
        loops: Int,
        statistics: SignalingStatistics,
        now: @escaping @Sendable () -> Instant
    ) {
        limiter = JoinLimiter(loops: loops, at: now())
        self.statistics = statistics
        self.now = now
    }

    /// Whether a newcomer may join now.
    package func take() -> Bool {
        let isAdmitted = limiter.take(at: now())
        if !isAdmitted { statistics.refused(.joinRate) }
        return isAdmitted
    }

    /// The media of a newcomer is being set up. ``ended()`` follows.
    package func began() { limiter.began(at: now()) }
    package func ended() { limiter.ended(at: now()) }
}
