package import Wire

/// Finds the packets of a received stream that are missing and decides when to ask for them (RFC 4585 §6.2.1).
package struct LossDetector: Sendable {
    /// A gap wider than this is not asked for packet by packet: a key frame mends it sooner.
    package static let missingMax = 256
    /// A key frame's worth of packets.
    private static let startGapMax = 64
    /// Reordering on real paths is mostly within a few milliseconds; asking at once would ask in vain.
    package static let reorderingTolerance = Interval.milliseconds(5)
    /// As libwebrtc's NACK module: ten requests, then it is given up.
    package static let attemptsMax = 10
    private static let retryMin = Interval.milliseconds(20)
    private static let retryMax = Interval.milliseconds(300)

    package enum Outcome: Equatable, Sendable { case inOrder, late, recovered, gapTooWide }

    private struct Missing: Sendable {
        var sequence: ExtendedSequenceNumber
        var nextRequestAt: Instant
        var lastRequestAt: Instant?
        var attempts = 0
    }

    private var missing: ContiguousArray<Missing> = []
    private var newest: ExtendedSequenceNumber?
    /// Where the stream is known to have begun, as far as arrivals tell.
    private var oldest: ExtendedSequenceNumber?
    /// From a request to the packet it brought, smoothed.
    private var roundTrip = Interval.milliseconds(80)

    package init() {}

    package var missingCount: Int { missing.count }

    /// When `takeRequests` is due; `nil` while nothing is missing.
    package var nextDeadline: Instant? { missing.min { $0.nextRequestAt < $1.nextRequestAt }?.nextRequestAt }

    /// Notes an arrival, by itself or restored from RTX.
    package mutating func received(_ sequence: ExtendedSequenceNumber, at now: Instant) -> Outcome {
        guard let newest else {
            self.newest = sequence
            oldest = sequence
            return .inOrder
        }
        if sequence <= newest {
            if let oldest, sequence < oldest { return startedEarlier(at: sequence, than: oldest, now) }
            guard let index = missing.firstIndex(where: { $0.sequence == sequence }) else { return .late }
            if missing[index].attempts == 1, let asked = missing[index].lastRequestAt {
                let sample = max(now - asked, .milliseconds(1))
                roundTrip = Interval(nanoseconds: (roundTrip.nanoseconds * 7 + sample.nanoseconds) / 8)
            }
            missing.remove(at: index)
            return .recovered
        }
        let gap = newest.distance(to: sequence) - 1
        self.newest = sequence
        guard gap > 0 else { return .inOrder }
        guard gap + missing.count <= Self.missingMax else {
            missing.removeAll(keepingCapacity: true)
            return .gapTooWide
        }
        for offset in 1...gap {
            missing.append(
                Missing(sequence: newest.advanced(by: offset), nextRequestAt: now + Self.reorderingTolerance)
            )
        }
        return .inOrder
    }

    /// A stream that begins with a burst may be overtaken by its own second packet; what lies between is missing.
    private mutating func startedEarlier(
        at sequence: ExtendedSequenceNumber,
        than oldest: ExtendedSequenceNumber,
        _ now: Instant
    ) -> Outcome {
        let gap = sequence.distance(to: oldest) - 1
        guard gap + missing.count <= Self.startGapMax else { return .late }
        self.oldest = sequence
        guard gap > 0 else { return .late }
        for offset in 1...gap {
            missing.append(
                Missing(sequence: sequence.advanced(by: offset), nextRequestAt: now + Self.reorderingTolerance)
            )
        }
        return .late
    }

    /// What to ask for now, and how many packets were given up.
    package mutating func takeRequests(at now: Instant, into lost: inout [SequenceNumber]) -> (gaveUp: Int, asked: Int)
    {
        var gaveUp = 0
        var asked = 0
        let retry = min(max(Interval(nanoseconds: roundTrip.nanoseconds * 5 / 4), Self.retryMin), Self.retryMax)
        var index = 0
        while index < missing.count {
            guard missing[index].nextRequestAt <= now else {
                index += 1
                continue
            }
            guard missing[index].attempts < Self.attemptsMax else {
                missing.remove(at: index)
                gaveUp += 1
                continue
            }
            missing[index].attempts += 1
            missing[index].lastRequestAt = now
            missing[index].nextRequestAt = now + retry
            lost.append(missing[index].sequence.wire)
            asked += 1
            index += 1
        }
        return (gaveUp, asked)
    }
}
