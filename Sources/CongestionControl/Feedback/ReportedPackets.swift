import CPrefetch

/// Remembers which of the last packets were reported, so that a report that repeats or contradicts an earlier one gives nothing
/// twice.
@safe
struct ReportedPackets: ~Copyable, @unchecked Sendable {
    /// What a status says that earlier ones did not.
    enum News: Equatable {
        case lost, received
        /// An earlier report named the packet as lost.
        case receivedAfterLoss
    }

    /// What is known of 64 numbers in a row, a bit for each.
    private struct Word: BitwiseCopyable {
        var received: UInt64 = 0
        var lost: UInt64 = 0
        var marked: UInt64 = 0
    }

    /// How many of the last numbers are known; a power of two.
    let capacity: Int
    /// By number modulo `capacity`. The memory is allocated with the first report.
    private var words: UnsafeMutablePointer<Word>?
    /// The newest number that was sent, without wraps.
    private(set) var newest: Int64 = -1
    /// Numbers below are those of an earlier path.
    private var oldest: Int64 = .min

    init(capacity: Int) {
        precondition(capacity >= 64 && capacity & (capacity - 1) == 0, "a power of two")
        self.capacity = capacity
    }

    deinit { unsafe words?.deallocate() }

    /// Makes room for numbers that were sent since the report before.
    mutating func advance(to newest: Int64) {
        guard let words = unsafe words else {
            let memory = UnsafeMutablePointer<Word>.allocate(capacity: capacity / 64)
            unsafe memory.initialize(repeating: Word(), count: capacity / 64)
            unsafe words = memory
            self.newest = newest
            return
        }
        var number = max(self.newest, newest &- Int64(capacity)) &+ 1
        while number <= newest {
            // The numbers of one word at a time: from this one on, up to the newest.
            let (word, bit) = place(number)
            let count = min(64 - (number & 63), newest &- number &+ 1)
            let bits = count == 64 ? UInt64.max : ((1 << UInt64(count)) &- 1) &* bit
            let kept = unsafe words[word]
            unsafe words[word] = Word(
                received: kept.received & ~bits,
                lost: kept.lost & ~bits,
                marked: kept.marked & ~bits
            )
            number &+= count
        }
        self.newest = max(self.newest, newest)
    }

    func prefetch() {
        if let words = unsafe words { unsafe nagare_prefetch(words + place(newest).word, 1) }
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
        let (index, bit) = place(number)
        guard let word = unsafe words.map({ unsafe $0 + index }), unsafe word.pointee.received & bit == 0
        else { return nil }
        let wasLost = unsafe word.pointee.lost & bit != 0
        if isReceived {
            unsafe word.pointee.received |= bit
            return wasLost ? .receivedAfterLoss : .received
        }
        unsafe word.pointee.lost |= bit
        return wasLost ? nil : .lost
    }

    /// Notes that a packet has the CE mark.
    /// - Precondition: `contains(number)`.
    /// - Returns: whether no report before said so.
    mutating func mark(_ number: Int64) -> Bool {
        let (index, bit) = place(number)
        guard let word = unsafe words.map({ unsafe $0 + index }), unsafe word.pointee.marked & bit == 0
        else { return false }
        unsafe word.pointee.marked |= bit
        return true
    }

    private func place(_ number: Int64) -> (word: Int, bit: UInt64) {
        let slot = Int(truncatingIfNeeded: number) & (capacity - 1)
        return (slot >> 6, 1 << UInt64(slot & 63))
    }
}
