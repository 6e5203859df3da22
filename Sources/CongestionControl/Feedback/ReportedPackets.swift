/// Remembers which of the last packets were reported, so that a report that repeats or contradicts an earlier one gives nothing
/// twice.
struct ReportedPackets: Sendable {
    /// What a status says that earlier ones did not.
    enum News: Equatable {
        case lost, received
        /// An earlier report named the packet as lost.
        case receivedAfterLoss
    }

    /// How many of the last numbers are known; a power of two.
    let capacity: Int
    /// One bit for each number modulo `capacity`. The memory is allocated with the first report.
    private var received: ContiguousArray<UInt64> = []
    private var lost: ContiguousArray<UInt64> = []
    private var marked: ContiguousArray<UInt64> = []
    /// The newest number that was sent, without wraps.
    private(set) var newest: Int64 = -1
    /// Numbers below are those of an earlier path.
    private var oldest: Int64 = .min

    init(capacity: Int) {
        precondition(capacity >= 64 && capacity & (capacity - 1) == 0, "a power of two")
        self.capacity = capacity
    }

    /// Makes room for numbers that were sent since the report before.
    mutating func advance(to newest: Int64) {
        if received.isEmpty {
            received = ContiguousArray(repeating: 0, count: capacity / 64)
            lost = received
            marked = received
            self.newest = newest
            return
        }
        var number = max(self.newest, newest &- Int64(capacity))
        while number < newest {
            number += 1
            let (word, bit) = place(number)
            received[word] &= ~bit
            lost[word] &= ~bit
            marked[word] &= ~bit
        }
        self.newest = max(self.newest, newest)
    }

    /// Takes no more reports about packets sent so far.
    mutating func forget(through number: Int64) { oldest = number &+ 1 }

    /// Whether a number is one of the last `capacity` ones that were sent on this path.
    func contains(_ number: Int64) -> Bool {
        number <= newest && newest &- number < Int64(capacity) && number >= oldest
    }

    /// - Precondition: `contains(number)`.
    /// - Returns: what is new; `nil` when nothing is.
    mutating func update(_ number: Int64, isReceived: Bool) -> News? {
        let (word, bit) = place(number)
        guard received[word] & bit == 0 else { return nil }
        let wasLost = lost[word] & bit != 0
        if isReceived {
            received[word] |= bit
            return wasLost ? .receivedAfterLoss : .received
        }
        lost[word] |= bit
        return wasLost ? nil : .lost
    }

    /// Notes that a packet has the CE mark.
    /// - Precondition: `contains(number)`.
    /// - Returns: whether no report before said so.
    mutating func mark(_ number: Int64) -> Bool {
        let (word, bit) = place(number)
        guard marked[word] & bit == 0 else { return false }
        marked[word] |= bit
        return true
    }

    private func place(_ number: Int64) -> (word: Int, bit: UInt64) {
        let slot = Int(truncatingIfNeeded: number) & (capacity - 1)
        return (slot >> 6, 1 << UInt64(slot & 63))
    }
}
