import CongestionControl

/// Compares the spacing of packets at the sender with their spacing at the receiver, group by group.
///
/// Packets that left within 5 ms of the first form a group; the groups' last packets are compared. A queue on the path
/// shows as arrivals that are further apart than the sendings. The constants are those of libwebrtc's
/// `InterArrivalDelta`.
struct PacketGroups: Sendable {
    /// What lies between the last two complete groups, in milliseconds.
    struct Delta: Equatable, Sendable {
        var sendMS: Double
        var arrivalMS: Double
    }

    private struct Group {
        var firstSentAt: Int64
        var sentAt: Int64
        var firstArrivedAt: Int64
        var arrivedAt: Int64
        /// When the report with the group's last packet came.
        var reportedAt: Int64

        init(_ packet: PacketResult, reportedAt: Int64) {
            firstSentAt = packet.sentAt
            sentAt = packet.sentAt
            firstArrivedAt = packet.arrivedAt
            arrivedAt = packet.arrivedAt
            self.reportedAt = reportedAt
        }
    }

    private static let lengthUS: Int64 = 5_000
    private static let burstGapUS: Int64 = 5_000
    private static let burstLengthMaxUS: Int64 = 100_000
    private static let arrivalJumpUS: Int64 = 3_000_000
    private static let reorderedMax = 3

    private var current: Group?
    private var previous: Group?
    private var reordered = 0

    init() {}

    /// Adds a received packet; packets come in the order of their arrival.
    /// - Returns: the difference between the two groups before, when this packet begins a new one.
    mutating func add(_ packet: PacketResult, reportedAt: Int64) -> Delta? {
        guard var group = current else {
            current = Group(packet, reportedAt: reportedAt)
            return nil
        }
        guard packet.sentAt >= group.firstSentAt else { return nil }
        if beginsGroup(packet, after: group) {
            var delta: Delta?
            if let previous {
                let arrival = group.arrivedAt &- previous.arrivedAt
                if arrival &- (group.reportedAt &- previous.reportedAt) >= Self.arrivalJumpUS {
                    self = PacketGroups()
                    return nil
                }
                if arrival < 0 {
                    reordered += 1
                    if reordered >= Self.reorderedMax { self = PacketGroups() }
                    return nil
                }
                reordered = 0
                delta = Delta(sendMS: Double(group.sentAt &- previous.sentAt) / 1e3, arrivalMS: Double(arrival) / 1e3)
            }
            previous = group
            current = Group(packet, reportedAt: reportedAt)
            return delta
        }
        group.sentAt = max(group.sentAt, packet.sentAt)
        group.arrivedAt = packet.arrivedAt
        group.reportedAt = reportedAt
        current = group
        return nil
    }

    private func beginsGroup(_ packet: PacketResult, after group: Group) -> Bool {
        let arrivalGap = packet.arrivedAt &- group.arrivedAt
        let sendGap = packet.sentAt &- group.sentAt
        if sendGap == 0 { return false }
        // Packets that were held up together arrive together, though they left apart.
        let isBurst =
            arrivalGap < sendGap && arrivalGap <= Self.burstGapUS
            && packet.arrivedAt &- group.firstArrivedAt < Self.burstLengthMaxUS
        return !isBurst && packet.sentAt &- group.firstSentAt > Self.lengthUS
    }
}
