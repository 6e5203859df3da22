import Base

/// Which numbers have arrived, and when to say so (RFC 9260 §6.2).
struct ReceivedNumbers: Sendable {
    /// How far above the cumulative number a chunk is accepted.
    static let aheadMax: Int64 = 4_096
    /// RFC 9260 §6.2 has 200 ms at most; short delays keep a sender with a small window going.
    private static let delay = Interval.milliseconds(50)

    enum Arrival: Hashable {
        case new, duplicate
        /// Too far ahead to be remembered.
        case tooFar
    }

    /// All numbers up to this one have arrived or are skipped.
    private(set) var cumulative: Int64
    /// Numbers above that have arrived.
    private var ahead = NumberSet(window: Int(aheadMax))
    /// The highest of them; not above ``cumulative`` when there is none.
    private var highest: Int64
    private var duplicates: [UInt32] = []
    /// Packets with data since the last SACK.
    private var packets = 0
    private var isFirst = true
    private(set) var isDue = false
    /// When a delayed SACK is due.
    private(set) var deadline: Instant?

    init(firstTSN: UInt32) {
        cumulative = SerialNumber.start(firstTSN) - 1
        highest = cumulative
    }

    func extend(_ tsn: UInt32) -> Int64 { SerialNumber.extend(tsn, near: cumulative) }

    /// What a chunk with this number would be.
    func classify(_ tsn: Int64) -> Arrival {
        if tsn <= cumulative { return .duplicate }
        if tsn > cumulative + Self.aheadMax { return .tooFar }
        return ahead.contains(tsn) ? .duplicate : .new
    }

    /// Whether the number is above the cumulative one and below everything else that arrived.
    func fillsLowestGap(_ tsn: Int64, _ work: inout WorkMeter) -> Bool {
        guard !ahead.isEmpty else { return tsn == cumulative + 1 }
        return tsn > cumulative && ahead.first(in: cumulative + 1...max(tsn, cumulative + 1), &work) == nil
    }

    mutating func insert(_ tsn: Int64, _ work: inout WorkMeter) {
        if tsn == cumulative + 1 {
            cumulative = tsn
            absorb(&work)
        } else {
            isDue = true
            ahead.insert(tsn)
            highest = max(highest, tsn)
        }
    }

    mutating func duplicated(_ tsn: Int64) {
        isDue = true
        if duplicates.count < Acknowledgement.listMax { duplicates.append(SerialNumber.raw(tsn)) }
    }

    /// The sender gave up all up to this number.
    mutating func forward(to tsn: Int64, _ work: inout WorkMeter) {
        isDue = true
        guard tsn > cumulative else { return }
        while let skipped = ahead.first(in: cumulative + 1...tsn, &work) {
            cumulative = skipped
            ahead.remove(skipped)
            work.add()
            if skipped == tsn { break }
        }
        cumulative = tsn
        absorb(&work)
    }

    private mutating func absorb(_ work: inout WorkMeter) {
        while ahead.contains(cumulative + 1) {
            cumulative += 1
            ahead.remove(cumulative)
            work.add()
        }
    }

    // MARK: - SACK

    /// A packet with data ended.
    mutating func endPacket(isImmediate: Bool, at now: Instant) {
        packets += 1
        if isImmediate || isFirst || packets >= 2 || !ahead.isEmpty { isDue = true }
        isFirst = false
        if !isDue, deadline == nil { deadline = now + Self.delay }
    }

    /// Whatever happens, a SACK is due.
    mutating func demand() { isDue = true }

    mutating func handleTimeout(at now: Instant) {
        if let deadline, deadline <= now { isDue = true }
    }

    /// Whether a SACK can go along with other chunks.
    var isPending: Bool { isDue || deadline != nil }

    mutating func take(window: Int, _ work: inout WorkMeter) -> Acknowledgement {
        isDue = false
        deadline = nil
        packets = 0
        var gaps: [Acknowledgement.Gap] = []
        var next = cumulative + 1
        while gaps.count < Acknowledgement.listMax, next <= highest,
            let start = ahead.first(in: next...highest, &work)
        {
            next = ahead.first(in: start...highest, isMissing: true, &work) ?? highest + 1
            gaps.append(
                Acknowledgement.Gap(
                    start: UInt16(truncatingIfNeeded: start - cumulative),
                    end: UInt16(truncatingIfNeeded: next - 1 - cumulative)
                )
            )
        }
        defer { duplicates = [] }
        return Acknowledgement(
            cumulative: SerialNumber.raw(cumulative),
            window: UInt32(truncatingIfNeeded: max(window, 0)),
            gaps: gaps,
            duplicates: duplicates
        )
    }
}
