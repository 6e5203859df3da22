/// A TCP sender with CUBIC (RFC 9438): slow start, one decrease a round trip, a timeout; no hybrid slow start. Times
/// are microseconds, windows packets.
struct CubicSender {
    struct Settings: Sendable {
        var startAt = 0.0
        /// After this time nothing new is sent, in seconds.
        var endAt = Double.infinity
        /// The bytes of the first transfer.
        var bytes = Double.infinity
        /// Whether others of 100 kB to 1 MB follow, after pauses of 10 s on average.
        var repeats = false
    }

    static let packetBytes = 1_500
    static let timerInterval: Int64 = 200_000
    private static let decrease = 0.7
    private static let scale = 0.4
    /// A packet is lost when one this much later is acknowledged.
    private static let reordering = 3

    let settings: Settings
    private var window = 10.0
    private var threshold = Double.infinity
    private var windowMax = 0.0
    private var epochAt: Int64?
    private var inFlight: [(sequence: Int, sentAt: Int64)] = []
    private var next = 0
    private(set) var remaining: Double
    private var highestAcked = -1
    private var recoverUntil = -1
    private var lastAckAt: Int64 = 0
    private var roundTrip = 0.1
    private(set) var isRunning = false
    /// When the last transfer ended.
    private(set) var doneAt: Int64?

    init(_ settings: Settings) {
        self.settings = settings
        remaining = settings.bytes
    }

    mutating func start(bytes: Double, at now: Int64) {
        remaining = bytes
        window = 10
        threshold = .infinity
        epochAt = nil
        windowMax = 0
        isRunning = true
        lastAckAt = now
    }

    /// - Returns: the sequence number of a packet to send now.
    mutating func takePacket(at now: Int64) -> Int? {
        guard isRunning, remaining > 0, Double(inFlight.count) < window, Double(now) / 1e6 < settings.endAt else {
            return nil
        }
        defer { next += 1 }
        inFlight.append((next, now))
        remaining -= Double(Self.packetBytes)
        return next
    }

    mutating func handleTimeout(at now: Int64) {
        guard !inFlight.isEmpty, Double(now - lastAckAt) > max(4e6 * roundTrip, 400_000) else { return }
        threshold = max(window / 2, 2)
        window = 2
        remaining += Double(Self.packetBytes * inFlight.count)
        inFlight.removeAll()
        lastAckAt = now
        epochAt = nil
    }

    mutating func acknowledged(_ sequence: Int, at now: Int64) {
        lastAckAt = now
        if let index = inFlight.firstIndex(where: { $0.sequence == sequence }) {
            roundTrip = 0.875 * roundTrip + 0.125 * Double(now - inFlight[index].sentAt) / 1e6
            inFlight.remove(at: index)
        }
        highestAcked = max(highestAcked, sequence)
        let lost = inFlight.prefix { $0.sequence < highestAcked - Self.reordering }
        if let last = lost.last {
            remaining += Double(Self.packetBytes * lost.count)
            inFlight.removeFirst(lost.count)
            if last.sequence > recoverUntil { reduce(at: now) }
        } else if window < threshold {
            window += 1
        } else {
            grow(at: now)
        }
        if remaining <= 0, inFlight.isEmpty {
            isRunning = false
            doneAt = now
        }
    }

    private mutating func reduce(at now: Int64) {
        recoverUntil = next
        windowMax = window
        window = max(window * Self.decrease, 2)
        threshold = window
        epochAt = now
    }

    private mutating func grow(at now: Int64) {
        let epoch = epochAt ?? now
        epochAt = epoch
        let seconds = Double(now - epoch) / 1e6
        let distance = seconds + roundTrip - cubeRoot(windowMax * (1 - Self.decrease) / Self.scale)
        let goal = Self.scale * distance * distance * distance + windowMax
        let reno = windowMax * Self.decrease + 0.53 * seconds / roundTrip
        window = max(window + max(goal - window, 0.01) / window, min(reno, window + 1))
    }
}
