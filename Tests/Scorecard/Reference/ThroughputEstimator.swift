import CongestionControl

/// The rate at which packets arrive: the lesser of the rates at which the packets of a window were sent and received
/// (libwebrtc's `RobustThroughputEstimator`).
///
/// The window holds at least 20 packets and 1 s, and at most 500 packets or 5 s.
struct ThroughputEstimator: Sendable {
    private struct Entry: BitwiseCopyable {
        var sentAt: Int64
        var arrivedAt: Int64
        var bytes: Int
    }

    private static let packetsMin = 20
    private static let packetsMax = 500
    private static let packetsRequired = 10
    private static let durationMinUS: Int64 = 1_000_000
    private static let durationMaxUS: Int64 = 5_000_000
    private static let reorderingMaxUS: Int64 = 1_000_000

    /// In the order of arrival; those before `head` have left the window.
    private var entries: ContiguousArray<Entry> = []
    private var head = 0
    /// The latest sending of a packet that left the window.
    private var discardedSentAt = Int64.min

    init() {}

    mutating func add(_ packet: PacketResult) {
        if entries.count > head, let last = entries.last, last.arrivedAt &- packet.arrivedAt > Self.reorderingMaxUS {
            entries.removeAll(keepingCapacity: true)
            head = 0
        }
        entries.append(Entry(sentAt: packet.sentAt, arrivedAt: packet.arrivedAt, bytes: packet.bytes))
        var index = entries.count - 1
        while index > head, entries[index].arrivedAt < entries[index - 1].arrivedAt {
            entries.swapAt(index, index - 1)
            index -= 1
        }
        while isFirstOutside {
            discardedSentAt = max(discardedSentAt, entries[head].sentAt)
            head += 1
        }
        if head >= Self.packetsMax {
            entries.removeFirst(head)
            head = 0
        }
    }

    private var isFirstOutside: Bool {
        let count = entries.count - head
        guard count > 1 else { return false }
        let duration = entries[entries.count - 1].arrivedAt &- entries[head].arrivedAt
        return count > Self.packetsMax || duration > Self.durationMaxUS
            || (count > Self.packetsMin && duration > Self.durationMinUS)
    }

    /// Bits a second; `nil` before ten packets have arrived.
    var rate: Double? {
        guard entries.count - head >= Self.packetsRequired else { return nil }
        var largestGap: Int64 = 0
        var secondGap: Int64 = 0
        var receivedBytes = 0
        var sentBytes = 0
        var sentPackets = 0
        var firstSentAt = Int64.max
        var lastSentAt = Int64.min
        var lastSentBytes = 0
        var previous = entries[head].arrivedAt
        for index in head..<entries.count {
            let entry = entries[index]
            let gap = entry.arrivedAt &- previous
            previous = entry.arrivedAt
            if gap > largestGap {
                (largestGap, secondGap) = (gap, largestGap)
            } else if gap > secondGap {
                secondGap = gap
            }
            receivedBytes += entry.bytes
            guard entry.sentAt >= discardedSentAt else { continue }
            if entry.sentAt > lastSentAt { (lastSentAt, lastSentBytes) = (entry.sentAt, entry.bytes) }
            firstSentAt = min(firstSentAt, entry.sentAt)
            sentBytes += entry.bytes
            sentPackets += 1
        }
        // n packets span n - 1 gaps, and one delay spike is not counted.
        let span = previous &- entries[head].arrivedAt &- largestGap &+ secondGap
        let receiveRate = Self.rate(receivedBytes - entries[head].bytes, over: span)
        guard sentPackets >= Self.packetsRequired else { return receiveRate }
        return min(Self.rate(sentBytes - lastSentBytes, over: lastSentAt &- firstSentAt), receiveRate)
    }

    private static func rate(_ bytes: Int, over microseconds: Int64) -> Double {
        Double(bytes) * 8e6 / Double(max(microseconds, 1_000))
    }
}
