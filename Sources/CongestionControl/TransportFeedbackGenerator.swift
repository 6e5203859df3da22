public import Wire

/// Makes the transport-wide feedback that a sender estimates its bandwidth from
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01): what arrived of one peer's packets, and when.
///
/// Every sequence number between the oldest unreported packet and the newest is reported on. One that arrives after it
/// was reported missing is reported again, with the ones behind it, as libwebrtc does.
public struct TransportFeedbackGenerator: Sendable {
    /// Between feedbacks: libwebrtc's default.
    public static let defaultInterval = Interval.milliseconds(100)
    /// The limits that libwebrtc keeps the interval to.
    public static let intervalLimits = Interval.milliseconds(50)...Interval.milliseconds(250)
    /// Sequence numbers looked back on. At 100 ms this is 80,000 packets a second.
    public static let windowMax = 8192
    /// How long a reported arrival is kept, to be repeated when an older packet comes late (libwebrtc's back window).
    public static let backWindow = Interval.milliseconds(500)
    /// After this many packets in a row that are older than the window, the sender is taken to have started anew.
    private static let tooOldRunMax = 64
    private static let tickNS: Int64 = 250_000
    private static let missing = Int64.min

    /// Time between feedbacks; kept within 50 to 250 ms.
    public var interval: Interval {
        didSet { interval = Self.clamp(interval) }
    }
    /// The most bytes of one feedback packet.
    public let bytesMax: Int
    /// Arrivals not counted because they were older than the window, or repeated a number.
    public private(set) var ignoredCount = 0

    /// Arrival times by sequence number modulo the ring's size, which is a power of two; `missing` where none.
    private var ring: [Int64]
    /// The numbers that the ring holds.
    private var window: Range<Int64> = 0..<0
    /// The first number to report on next; `window.upperBound` when nothing is to be reported.
    private var unreported: Int64 = 0
    /// Numbers have left the window at its lower end.
    private var culled = false
    private var tooOldRun = 0
    private var deadline: Instant?
    private var lastFeedbackAt: Instant?
    private var feedbackCount: UInt8 = 0

    /// - Parameter bytesMax: of one feedback packet; at least 64.
    public init(interval: Interval = defaultInterval, bytesMax: Int = 1200) {
        precondition(bytesMax >= 64)
        self.interval = Self.clamp(interval)
        self.bytesMax = bytesMax
        ring = Array(repeating: Self.missing, count: 256)
    }

    /// When to call ``makeFeedback(at:writer:senderSSRC:mediaSSRC:)``; `nil` while nothing is to be reported.
    public var nextDeadline: Instant? { deadline }

    /// Takes note of a packet's arrival. A repeated number keeps its first arrival.
    public mutating func received(_ number: TransportSequenceNumber, at now: Instant) {
        let sequence = extend(number)
        guard place(sequence), arrival(sequence) == Self.missing else {
            ignoredCount &+= 1
            return
        }
        ring[slot(sequence)] = now.nanoseconds
        unreported = min(unreported, sequence)
        if deadline == nil { deadline = max(now, (lastFeedbackAt ?? now) + interval) }
    }

    /// Appends one feedback packet of at most `bytesMax` bytes. What does not fit into it stays due at once, so call
    /// this, with the datagram sent in between, until it answers `false`.
    /// - Returns: whether there was something to report.
    public mutating func makeFeedback(
        at now: Instant,
        writer: inout RTCPWriter,
        senderSSRC: SSRC,
        mediaSSRC: SSRC
    ) -> Bool {
        guard let first = firstArrived(from: unreported) else {
            deadline = nil
            return false
        }
        var encoder = TransportFeedbackEncoder(
            base: TransportSequenceNumber(rawValue: UInt16(truncatingIfNeeded: unreported)),
            firstArrivalTicks: ticks(first),
            bytesMax: bytesMax
        )
        var next: Int64? = first
        while let sequence = next {
            let missing = Int(sequence - unreported)
            guard encoder.append(missing: missing, arrivalTicks: ticks(sequence)) else { break }
            unreported = sequence + 1
            next = firstArrived(from: unreported)
        }
        precondition(encoder.statusCount > 0, "the first arrival always fits")
        writer.appendTransportFeedback(
            sender: senderSSRC,
            media: mediaSSRC,
            feedbackCount: feedbackCount,
            encoder
        )
        feedbackCount &+= 1
        lastFeedbackAt = now
        deadline = next == nil ? nil : now
        cull(before: now - Self.backWindow)
        return true
    }

    /// The number with its roll-overs, by the shortest distance from the newest.
    private func extend(_ number: TransportSequenceNumber) -> Int64 {
        // The first is placed a cycle up, so that one reordered ahead of it does not become negative.
        guard !window.isEmpty else { return 0x1_0000 + Int64(number.rawValue) }
        let newest = window.upperBound - 1
        let wire = TransportSequenceNumber(rawValue: UInt16(truncatingIfNeeded: newest))
        return newest + Int64(wire.distance(to: number))
    }

    /// Widens the window to hold `sequence`.
    /// - Returns: `false` when it is too old for that.
    private mutating func place(_ sequence: Int64) -> Bool {
        if window.contains(sequence) {
            tooOldRun = 0
            return true
        }
        if window.isEmpty || sequence - window.upperBound >= Int64(Self.windowMax) {
            restart(at: sequence)
            return true
        }
        if sequence >= window.upperBound {
            let lower = max(window.lowerBound, sequence + 1 - Int64(Self.windowMax))
            changeWindow(to: lower..<(sequence + 1))
            unreported = max(unreported, lower)
            tooOldRun = 0
            return true
        }
        // Below the window: welcome only while nothing has left it, when the first packets came reordered.
        if !culled, window.upperBound - sequence <= Int64(Self.windowMax) {
            changeWindow(to: sequence..<window.upperBound)
            tooOldRun = 0
            return true
        }
        tooOldRun += 1
        guard tooOldRun == Self.tooOldRunMax else { return false }
        restart(at: sequence)
        return true
    }

    /// Starts anew, as the sender did: what lies between the window and `sequence` was never sent.
    private mutating func restart(at sequence: Int64) {
        for old in window { ring[slot(old)] = Self.missing }
        window = sequence..<(sequence + 1)
        unreported = sequence
        culled = false
        tooOldRun = 0
    }

    /// Changes the window to `wanted`, which lacks some of its oldest numbers and has more behind it, or has more before
    /// it. New numbers are missing, as is everything in the ring outside the window.
    private mutating func changeWindow(to wanted: Range<Int64>) {
        let dropped = window.lowerBound..<max(window.lowerBound, min(wanted.lowerBound, window.upperBound))
        for sequence in dropped { ring[slot(sequence)] = Self.missing }
        if wanted.count > ring.count {
            var size = ring.count
            while size < wanted.count { size *= 2 }
            var larger = Array(repeating: Self.missing, count: size)
            for sequence in window.clamped(to: wanted) { larger[Int(sequence) & (size - 1)] = arrival(sequence) }
            ring = larger
        }
        culled = culled || !dropped.isEmpty
        window = wanted
    }

    /// Forgets what was reported and arrived before `limit`.
    private mutating func cull(before limit: Instant) {
        var lower = window.lowerBound
        // The newest stays: it is what the next number is extended from.
        while lower < min(unreported, window.upperBound - 1), arrival(lower) < limit.nanoseconds {
            ring[slot(lower)] = Self.missing
            lower += 1
        }
        guard lower > window.lowerBound else { return }
        culled = true
        window = lower..<window.upperBound
    }

    private func firstArrived(from start: Int64) -> Int64? {
        var sequence = start
        while sequence < window.upperBound {
            if arrival(sequence) != Self.missing { return sequence }
            sequence += 1
        }
        return nil
    }

    private func slot(_ sequence: Int64) -> Int { Int(sequence) & (ring.count - 1) }
    private func arrival(_ sequence: Int64) -> Int64 { ring[slot(sequence)] }
    private func ticks(_ sequence: Int64) -> Int64 { arrival(sequence).floorDivided(by: Self.tickNS) }

    private static func clamp(_ interval: Interval) -> Interval {
        max(intervalLimits.lowerBound, min(intervalLimits.upperBound, interval))
    }
}
