import MediaTypes

/// Shares the turns of a loop among the callers that send messages of data channels.
///
/// A turn queues so many messages for single receivers. Calls beyond that wait, and go on in their order in the turns that
/// follow, so that media is received and sent between them, and a caller with many messages gets no more than its share.
struct DeliveryTurns<Caller> {
    /// Deliveries of one turn, unless a single call has more. A turn with all of them takes 1 to 2 ms with what it sends.
    static var deliveriesPerTurnMax: Int { 512 }

    private struct Waiting {
        let caller: Caller
        let deliveries: Int
    }

    private var left = Self.deliveriesPerTurnMax
    private var waiting = Queue<Waiting>()
    /// Callers that have been told to go on and have not done so yet.
    private var released = 0

    /// Whether a call need not wait. Every call that does not is followed by ``performed(_:hasWaited:)``.
    func isFree(for deliveries: Int) -> Bool {
        released == 0 && waiting.isEmpty && fits(deliveries)
    }

    private func fits(_ deliveries: Int) -> Bool {
        left == Self.deliveriesPerTurnMax || deliveries <= left
    }

    mutating func wait(_ caller: Caller, deliveries: Int) {
        waiting.append(Waiting(caller: caller, deliveries: deliveries))
    }

    /// A call has queued its messages.
    /// - Returns: who goes on in this turn.
    mutating func performed(_ deliveries: Int, hasWaited: Bool) -> Caller? {
        if hasWaited { released -= 1 }
        left -= deliveries
        return release()
    }

    /// A turn is over.
    /// - Returns: who goes on in the next one.
    mutating func turnEnded() -> Caller? {
        left = Self.deliveriesPerTurnMax
        return release()
    }

    /// One at a time, so that what is left of the turn is known.
    private mutating func release() -> Caller? {
        guard released == 0, let first = waiting.first, fits(first.deliveries) else { return nil }
        waiting.removeFirst()
        released += 1
        return first.caller
    }

    /// The loop ends: nobody waits any more.
    mutating func releaseAll() -> [Caller] {
        var callers: [Caller] = []
        while let next = waiting.removeFirst() { callers.append(next.caller) }
        released += callers.count
        return callers
    }
}
