import Base
import Wire

/// The datagrams of a link that did not arrive, as ranges of their counters, and when the sender was told.
struct MissingDatagrams {
    private struct Gap: BitwiseCopyable {
        var first: UInt64
        /// One past its last counter.
        var end: UInt64
        var reports: UInt8
        var reportedAt: Instant
    }

    /// Reports that name a gap: one of them may be lost itself.
    private static let reportsMax: UInt8 = 3
    /// Between two reports of one gap.
    private static let repeatSpacing = Interval.milliseconds(30)
    /// Datagrams behind a single missing one, after which it is taken as lost and not as late.
    private static let reorderingMax: UInt64 = 2
    /// Datagrams of one gap that are asked for; those before them are given up.
    static let gapMax: UInt64 = 4_096

    private var gaps: [32 of Gap] = .init(
        repeating: Gap(first: 0, end: 0, reports: 0, reportedAt: Instant(nanoseconds: 0))
    )
    private var count = 0
    /// Gaps that were given up because there were too many.
    private(set) var overflows: UInt64 = 0

    var isEmpty: Bool { count == 0 }

    /// Notes that the counters in `range` are missing, which is above all ranges before.
    mutating func note(_ range: Range<UInt64>) {
        guard !range.isEmpty else { return }
        let first = max(range.lowerBound, range.upperBound - min(range.upperBound, Self.gapMax))
        append(Gap(first: first, end: range.upperBound, reports: 0, reportedAt: Instant(nanoseconds: 0)))
    }

    /// Notes that a counter came after all.
    /// - Returns: whether it was missing.
    mutating func received(_ counter: UInt64) -> Bool {
        var index = count - 1
        while index >= 0 {
            let gap = gaps[index]
            if counter >= gap.end { return false }
            guard counter >= gap.first else {
                index -= 1
                continue
            }
            if counter == gap.first {
                gaps[index].first += 1
            } else {
                gaps[index].end = counter
            }
            if gaps[index].first == gaps[index].end {
                remove(index)
            } else if counter > gap.first, counter + 1 < gap.end {
                // The rest behind the counter is a gap of its own.
                var rest = gap
                rest.first = counter + 1
                insert(rest, index + 1)
            }
            return true
        }
        return false
    }

    /// Whether the sender should be told at once: of a gap that it does not know, and that no reordering explains.
    func isUrgent(newest: UInt64) -> Bool {
        var index = count - 1
        while index >= 0 {
            let gap = gaps[index]
            if gap.reports == 0, gap.end - gap.first >= 2 || newest - (gap.end - 1) >= Self.reorderingMax {
                return true
            }
            index -= 1
        }
        return false
    }

    /// The ranges for a report that is sent now.
    mutating func takeReport(at now: Instant) -> [TransferFeedback.Missing] {
        guard count > 0 else { return [] }
        var missing: [TransferFeedback.Missing] = []
        var index = 0
        while index < count {
            let gap = gaps[index]
            guard gap.reports == 0 || now - gap.reportedAt >= Self.repeatSpacing else {
                index += 1
                continue
            }
            missing.append(.init(first: gap.first, count: UInt16(clamping: gap.end - gap.first)))
            gaps[index].reports += 1
            gaps[index].reportedAt = now
            if gaps[index].reports >= Self.reportsMax { remove(index) } else { index += 1 }
        }
        return missing
    }

    private mutating func append(_ gap: Gap) {
        if count == gaps.count {
            overflows &+= 1
            remove(0)
        }
        gaps[count] = gap
        count += 1
    }

    private mutating func insert(_ gap: Gap, _ place: Int) {
        var place = place
        if count == gaps.count {
            overflows &+= 1
            remove(0)
            place -= 1
        }
        var index = count
        while index > place {
            gaps[index] = gaps[index - 1]
            index -= 1
        }
        gaps[place] = gap
        count += 1
    }

    private mutating func remove(_ place: Int) {
        var index = place
        while index + 1 < count {
            gaps[index] = gaps[index + 1]
            index += 1
        }
        count -= 1
    }
}
