import CongestionControl

/// The receiver of a flow: which packets the next report names.
struct Receiver {
    private static let clockOffset: Int64 = 123_456_000
    /// The steps of a receiver's clock in transport-cc.
    private static let clockStep: Int64 = 250

    /// The highest packet that arrived.
    private(set) var highest = -1
    /// The highest packet of a report.
    private var reported = -1
    /// The lowest packet that arrived since the last report.
    private var lowest = Int.max
    var isReportScheduled = false
    /// Reports that are still to be lost in a row.
    var reportsToLose = 0
    /// Reports on their way over a link.
    var reportsUnderWay: [FeedbackReport] = []

    mutating func arrived(_ sequence: Int) {
        highest = max(highest, sequence)
        lowest = min(lowest, sequence)
    }

    /// Makes the report of what arrived until now.
    mutating func makeReport(_ records: inout [Flow.Record], at now: Int64) -> FeedbackReport? {
        let first = min(reported + 1, lowest)
        lowest = .max
        guard first <= highest else { return nil }
        var packets: ContiguousArray<PacketResult> = []
        for sequence in first...highest where !records[sequence].isReported {
            let record = records[sequence]
            let arrivedAt = record.arrivedAt
            if arrivedAt == nil, record.isReportedLost { continue }
            if arrivedAt == nil { records[sequence].isReportedLost = true } else { records[sequence].isReported = true }
            packets.append(
                PacketResult(
                    sequence: Int64(sequence),
                    sentAt: record.sentAt,
                    arrivedAt: arrivedAt.map { $0 / Self.clockStep * Self.clockStep + Self.clockOffset },
                    bytes: record.bytes,
                    cluster: record.cluster,
                    wasReportedLost: record.isReportedLost,
                    ecn: record.ecn
                )
            )
        }
        reported = max(reported, highest)
        return packets.isEmpty ? nil : FeedbackReport(arrivedAt: now, packets: packets)
    }

    /// About what a transport-cc report takes on the wire, from the IP header on.
    static func bytes(of report: FeedbackReport) -> Int { 70 + report.packets.count * 5 / 4 }
}
