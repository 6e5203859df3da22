package import Base
package import Wire

/// Tracks the missing packets of a received stream and decides when to send a NACK for them (RFC 4585 §6.2.1).
package struct NACKTracker: Sendable {
    /// Missing packets at once. Wider gaps recover with a key frame sooner than packet by packet.
    package static let missingMax = 256
    /// Packets missing at the start of a stream, in number those of a key frame.
    private static let startGapMax = 64
    /// Reordering is mostly within a few milliseconds, so an immediate NACK is usually unnecessary.
    package static let reorderingTolerance = Interval.milliseconds(5)
    /// Requests for one packet before it counts as lost, as in libwebrtc's NACK module.
    package static let attemptsMax = 10
    private static let retryMin = Interval.milliseconds(20)
    private static let retryMax = Interval.milliseconds(300)

    package enum Outcome: Equatable, Sendable { case inOrder, late, recovered, gapTooWide }

    struct Missing: Sendable {
        var sequence: ExtendedSequenceNumber
        var nextRequestAt: Instant
        var lastRequestAt: Instant?
        var attempts = 0
    }

    private(set) var missing: ContiguousArray<Missing> = []
    private var newest: ExtendedSequenceNumber?
    /// The oldest packet of the stream that arrived.
    private var oldest: ExtendedSequenceNumber?
    /// The first packet of the newest key frame.
    private var keyFrame: ExtendedSequenceNumber?
    /// The smoothed time from a request to the packet that answers it.
    private var roundTrip = Interval.milliseconds(80)

    package init() {}

    /// When `takeRequests` is due; `nil` while nothing is missing.
    package var nextDeadline: Instant? { missing.min { $0.nextRequestAt < $1.nextRequestAt }?.nextRequestAt }

    /// Notes the arrival of a packet, by itself or recovered from RTX.
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

    /// The first packets of a stream may arrive out of order. The packets between them are missing.
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

    /// Notes the first packet of a key frame: no picture from then on needs a packet before it.
    package mutating func keyFrameBegan(at sequence: ExtendedSequenceNumber) {
        keyFrame = keyFrame.map { max($0, sequence) } ?? sequence
    }

    /// What came of the packets that are due for a NACK.
    package struct Requests: Equatable, Sendable {
        /// Packets that are asked for.
        package var asked = 0
        /// Packets that count as lost.
        package var gaveUp = 0
        /// One of those is no older than the newest key frame, so pictures need another key frame.
        package var wantsKeyFrame = false
    }

    /// Appends the packets that are due for a NACK.
    package mutating func takeRequests(at now: Instant, into lost: inout [SequenceNumber]) -> Requests {
        var requests = Requests()
        let retry = min(max(Interval(nanoseconds: roundTrip.nanoseconds * 5 / 4), Self.retryMin), Self.retryMax)
        var index = 0
        while index < missing.count {
            guard missing[index].nextRequestAt <= now else {
                index += 1
                continue
            }
            guard missing[index].attempts < Self.attemptsMax else {
                let sequence = missing.remove(at: index).sequence
                requests.gaveUp += 1
                if keyFrame.map({ sequence >= $0 }) ?? true { requests.wantsKeyFrame = true }
                continue
            }
            missing[index].attempts += 1
            missing[index].lastRequestAt = now
            missing[index].nextRequestAt = now + retry
            lost.append(missing[index].sequence.wire)
            requests.asked += 1
            index += 1
        }
        return requests
    }
}
