public import Base
public import Wire

/// Generates transport-wide congestion control feedback for one peer: the arrival times of its packets, from which the
/// peer estimates the bandwidth (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// Each feedback reports every sequence number from the oldest unreported packet to the newest. A packet that arrives
/// after it was reported as lost is reported again, with the later ones, as in libwebrtc.
public struct TransportFeedbackGenerator: Sendable {
    /// The default interval between feedback packets, as in libwebrtc.
    public static let defaultInterval = Interval.milliseconds(100)
    /// The range of the interval, as in libwebrtc.
    public static let intervalLimits = Interval.milliseconds(50)...Interval.milliseconds(250)
    /// The most sequence numbers in the window: 80,000 packets per second at 100 ms.
    static let windowMax = 8192
    /// How long a reported arrival is kept, to be reported again after a late packet (libwebrtc's back window).
    static let backWindow = Interval.milliseconds(500)
    /// After this many packets in a row from before the window, the sender is assumed to have restarted its sequence
    /// numbers.
    private static let tooOldRunMax = 64
    private static let tickNS: Int64 = 250_000
    private static let missing = Int64.min

    /// The interval between feedback packets, clamped to ``intervalLimits``.
    public var interval: Interval {
        didSet { interval = Self.clamp(interval) }
    }
    /// The most bytes of one feedback packet.
    public let bytesMax: Int

    /// Arrival times in nanoseconds by sequence number modulo the ring's size, which is a power of two; `missing` for
    /// packets that did not arrive.
    private var ring: [Int64]
    /// The sequence numbers in the ring.
    private var window: Range<Int64> = 0..<0
    /// The first sequence number to report next; `window.upperBound` when there is nothing to report.
    private var unreported: Int64 = 0
    /// Whether sequence numbers were removed from the start of the window.
    private var culled = false
    private var tooOldRun = 0
    private var deadline: Instant?
    private var lastFeedbackAt: Instant?
    private var feedbackCount: UInt8 = 0

    /// - Parameter bytesMax: the most bytes of one feedback packet; at least 64.
    public init(interval: Interval = defaultInterval, bytesMax: Int = 1200) {
        precondition(bytesMax >= 64)
        self.interval = Self.clamp(interval)
        self.bytesMax = bytesMax
        ring = Array(repeating: Self.missing, count: 256)
    }

    /// When to call ``makeFeedback(at:writer:senderSSRC:mediaSSRC:)``; `nil` when there is nothing to report.
    public var nextDeadline: Instant? { deadline }

    /// Records the arrival of a packet. Duplicates, and packets from before the window, are ignored.
    public mutating func received(_ number: TransportSequenceNumber, at now: Instant) {
        let sequence = extend(number)
        guard place(sequence), arrival(sequence) == Self.missing else { return }
        ring[slot(sequence)] = now.nanoseconds
        unreported = min(unreported, sequence)
        if deadline == nil { deadline = max(now, (lastFeedbackAt ?? now) + interval) }
    }

    /// Appends one feedback packet of at most ``bytesMax`` bytes. The rest is due at once: send the datagram and call
    /// this again until it returns `false`.
    /// - Returns: whether a feedback packet was appended.
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

    /// The extended sequence number, by the shortest distance from the newest one.
    private func extend(_ number: TransportSequenceNumber) -> Int64 {
        // The first number starts one cycle up, so that earlier numbers do not become negative.
        guard !window.isEmpty else { return 0x1_0000 + Int64(number.rawValue) }
        let newest = window.upperBound - 1
        let wire = TransportSequenceNumber(rawValue: UInt16(truncatingIfNeeded: newest))
        return newest + Int64(wire.distance(to: number))
    }

    /// Widens the window to hold `sequence`.
    /// - Returns: `false` when it is too old.
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
        // Before the window: accepted only while nothing was removed, when the first packets were reordered.
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

    /// Resets the window to `sequence`, because the sender restarted: the numbers in between were never sent.
    private mutating func restart(at sequence: Int64) {
        for old in window { ring[slot(old)] = Self.missing }
        window = sequence..<(sequence + 1)
        unreported = sequence
        culled = false
        tooOldRun = 0
    }

    /// Changes the window to `wanted`, which drops some of the oldest numbers and adds newer ones, or adds older ones.
    /// New numbers are `missing`, as is everything in the ring outside the window.
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

    /// Removes what was reported and arrived before `limit`.
    private mutating func cull(before limit: Instant) {
        var lower = window.lowerBound
        // The newest stays, because the next number is extended from it.
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
