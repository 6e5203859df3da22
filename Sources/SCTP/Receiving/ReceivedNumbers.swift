internal import Wire

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
    /// Numbers above: rising, not touching.
    private(set) var ranges: [ClosedRange<Int64>] = []
    private var duplicates: [UInt32] = []
    /// Packets with data since the last SACK.
    private var packets = 0
    private var isFirst = true
    private(set) var isDue = false
    /// When a delayed SACK is due.
    private(set) var deadline: Instant?

    init(firstTSN: UInt32) { cumulative = SerialNumber.start(firstTSN) - 1 }

    func extend(_ tsn: UInt32) -> Int64 { SerialNumber.extend(tsn, near: cumulative) }

    /// What a chunk with this number would be.
    func classify(_ tsn: Int64) -> Arrival {
        if tsn <= cumulative { return .duplicate }
        if tsn > cumulative + Self.aheadMax { return .tooFar }
        // Most numbers are above all ranges.
        for range in ranges.reversed() {
            if tsn > range.upperBound { return .new }
            if range.contains(tsn) { return .duplicate }
        }
        return .new
    }

    /// Whether the number is above the cumulative one and below everything else that arrived.
    func fillsLowestGap(_ tsn: Int64) -> Bool {
        guard let first = ranges.first else { return tsn == cumulative + 1 }
        return tsn > cumulative && tsn < first.lowerBound
    }

    mutating func insert(_ tsn: Int64) {
        if tsn == cumulative + 1 {
            cumulative = tsn
            absorb()
            return
        }
        isDue = true
        var index = ranges.count
        while index > 0, ranges[index - 1].lowerBound > tsn { index -= 1 }
        let joinsPrevious = index > 0 && ranges[index - 1].upperBound + 1 == tsn
        let joinsNext = index < ranges.count && ranges[index].lowerBound - 1 == tsn
        switch (joinsPrevious, joinsNext) {
        case (true, true):
            ranges[index - 1] = ranges[index - 1].lowerBound...ranges[index].upperBound
            ranges.remove(at: index)
        case (true, false): ranges[index - 1] = ranges[index - 1].lowerBound...tsn
        case (false, true): ranges[index] = tsn...ranges[index].upperBound
        case (false, false): ranges.insert(tsn...tsn, at: index)
        }
    }

    mutating func duplicated(_ tsn: Int64) {
        isDue = true
        if duplicates.count < Acknowledgement.listMax { duplicates.append(SerialNumber.raw(tsn)) }
    }

    /// The sender gave up all up to this number.
    mutating func forward(to tsn: Int64) {
        isDue = true
        guard tsn > cumulative else { return }
        cumulative = tsn
        while let first = ranges.first, first.upperBound <= cumulative { ranges.removeFirst() }
        if let first = ranges.first, first.lowerBound <= cumulative { cumulative = first.upperBound }
        absorb()
    }

    private mutating func absorb() {
        guard let first = ranges.first, first.lowerBound <= cumulative + 1 else { return }
        cumulative = max(cumulative, first.upperBound)
        ranges.removeFirst()
    }

    // MARK: - SACK

    /// A packet with data ended.
    mutating func endPacket(isImmediate: Bool, at now: Instant) {
        packets += 1
        if isImmediate || isFirst || packets >= 2 || !ranges.isEmpty { isDue = true }
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

    mutating func take(window: Int) -> Acknowledgement {
        isDue = false
        deadline = nil
        packets = 0
        let gaps = ranges.prefix(Acknowledgement.listMax).map {
            Acknowledgement.Gap(
                start: UInt16(truncatingIfNeeded: $0.lowerBound - cumulative),
                end: UInt16(truncatingIfNeeded: $0.upperBound - cumulative)
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
