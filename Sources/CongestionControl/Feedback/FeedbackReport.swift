/// What one feedback report says that earlier ones did not.
///
/// One value serves many reports and peers: a reader fills it, the controller reads it, and its storage stays.
package struct FeedbackReport: Sendable {
    /// When the report arrived, in microseconds of the sender's clock.
    package var arrivedAt: Int64
    /// Packets that the report names for the first time, or as received after an earlier report named them as lost, in the
    /// order of their numbers.
    package var packets: ContiguousArray<PacketResult>
    /// Packets with the CE mark that earlier reports named as received without it: a copy of them came with the mark.
    package var lateMarks = 0
    /// Statuses of packets that were never sent, are no longer known, or are more than a reader takes from one report.
    package var unknownPackets = 0
    /// Reports that were lost between the one before and this one, as far as reports are numbered.
    package var lostReports = 0

    package init(arrivedAt: Int64 = 0, packets: ContiguousArray<PacketResult> = []) {
        self.arrivedAt = arrivedAt
        self.packets = packets
    }

    /// Whether it says anything.
    package var hasNews: Bool { !packets.isEmpty || lateMarks > 0 }

    /// Empties the report for the next one and keeps its storage.
    mutating func begin(at now: Int64) {
        arrivedAt = now
        packets.removeAll(keepingCapacity: true)
        lateMarks = 0
        unknownPackets = 0
        lostReports = 0
    }

    /// Puts the packets in the order of their numbers: those of one stream are in it already. In place, by Shell's method, as
    /// `sort` would allocate.
    mutating func sortPackets() {
        var gap = packets.count / 2
        while gap > 0 {
            defer { gap /= 2 }
            for index in gap..<packets.count {
                let packet = packets[index]
                var hole = index
                while hole >= gap, packets[hole - gap].sequence > packet.sequence {
                    packets[hole] = packets[hole - gap]
                    hole -= gap
                }
                packets[hole] = packet
            }
        }
    }
}
