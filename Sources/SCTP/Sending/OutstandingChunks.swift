internal import Wire

/// The fragments between the peer's cumulative number and the last one sent: what is in flight, lost, acknowledged by gap blocks
/// or given up (RFC 9260 §6 and §7, RFC 3758 §3.5).
struct OutstandingChunks: Sendable {
    /// The most fragments, so that tiny messages cannot grow the table without limit.
    static let countMax = 8_192
    /// RFC 9260 §7.2.4.
    private static let missesMax = 3

    private var chunks = Queue<SentChunk>()
    /// The number of the first chunk: the peer's cumulative number + 1.
    private(set) var firstTSN: Int64
    private(set) var flightBytes = 0
    private(set) var lostCount = 0
    private var ackedCount = 0
    /// Everything before it is not lost.
    private var lostFrom: Int64
    /// The highest number that a gap block covers; chunks above it are in flight.
    private var highestAcked: Int64
    /// The newest transmission that was acknowledged.
    private var newestAckedSentAt: Instant?
    private var leastRoundTrip = Interval.zero
    /// While recovering: the last number that was sent when the loss was seen.
    private(set) var recoveryEnd: Int64?
    /// The chunk whose round trip is being measured.
    private var measured: (tsn: Int64, sentAt: Instant)?
    /// Messages with a fragment that was given up and fragments that were never sent, for the owner to drop.
    private(set) var givenUp: [(message: UInt64, stream: StreamID)] = []
    var isInterleaved = false

    init(firstTSN: UInt32) {
        self.firstTSN = SerialNumber.start(firstTSN)
        lostFrom = self.firstTSN
        highestAcked = self.firstTSN - 1
    }

    var isEmpty: Bool { chunks.isEmpty }
    var isFull: Bool { chunks.count >= Self.countMax }
    var nextTSN: Int64 { firstTSN + Int64(chunks.count) }
    var hasFlight: Bool { flightBytes > 0 }
    /// When the oldest chunk in flight was sent last.
    var oldestSentAt: Instant? { chunks.first?.sentAt }

    // MARK: - Sending

    /// - Returns: the number of the chunk, which was sent now.
    mutating func append(_ chunk: SentChunk) -> Int64 {
        let tsn = nextTSN
        chunks.append(chunk)
        if chunk.state == .inFlight {
            flightBytes += chunk.byteCount(isInterleaved: isInterleaved)
            if measured == nil { measured = (tsn, chunk.sentAt) }
        }
        return tsn
    }

    /// The lowest lost chunk, if it fits. It is in flight again.
    mutating func retransmit(room: Int, at now: Instant) -> (tsn: Int64, chunk: SentChunk)? {
        guard let index = lowestLost() else { return nil }
        let size = chunks[index].byteCount(isInterleaved: isInterleaved)
        guard size <= room else { return nil }
        let tsn = firstTSN + Int64(index)
        chunks[index].state = .inFlight
        chunks[index].sentAt = now
        chunks[index].transmissions += 1
        chunks[index].misses = 0
        lostCount -= 1
        lostFrom = tsn + 1
        flightBytes += size
        if measured?.tsn == tsn { measured = nil }
        return (tsn, chunks[index])
    }

    /// The size of the lowest lost chunk.
    mutating func lostByteCount() -> Int? {
        lowestLost().map { chunks[$0].byteCount(isInterleaved: isInterleaved) }
    }

    private mutating func lowestLost() -> Int? {
        guard lostCount > 0 else { return nil }
        var index = Int(max(lostFrom - firstTSN, 0))
        while index < chunks.count {
            if chunks[index].state == .lost {
                lostFrom = firstTSN + Int64(index)
                return index
            }
            index += 1
        }
        return nil
    }

    // MARK: - Acknowledgements

    struct Acknowledged {
        var bytes = 0
        var hasAdvanced = false
        var roundTrip: Interval?
        /// Whether a loss was seen that begins a recovery.
        var hasNewLoss = false
        /// Whether chunks are to be sent again that were not before.
        var hasLost = false
    }

    /// - Returns: `nil` for an old SACK.
    /// - Throws: when it acknowledges what was never sent.
    mutating func acknowledge(
        _ sack: Acknowledgement,
        leastRoundTrip: Interval?,
        at now: Instant
    ) throws(ProtocolViolation) -> Acknowledged? {
        let cumulative = SerialNumber.extend(sack.cumulative, near: firstTSN - 1)
        guard cumulative < nextTSN else { throw .acknowledgedUnsent }
        guard cumulative >= firstTSN - 1 else { return nil }
        self.leastRoundTrip = leastRoundTrip ?? .milliseconds(100)
        var result = Acknowledged()
        while firstTSN <= cumulative, let chunk = chunks.removeFirst() {
            remove(chunk, firstTSN, at: now, into: &result)
            firstTSN += 1
            result.hasAdvanced = true
        }
        if let end = recoveryEnd, firstTSN > end { recoveryEnd = nil }
        let highestNew = acknowledgeGaps(sack.gaps, cumulative, at: now, into: &result)
        findLosses(below: highestNew, hasAdvanced: result.hasAdvanced, at: now, into: &result)
        return result
    }

    private mutating func remove(_ chunk: SentChunk, _ tsn: Int64, at now: Instant, into result: inout Acknowledged) {
        switch chunk.state {
        case .inFlight:
            let size = chunk.byteCount(isInterleaved: isInterleaved)
            flightBytes -= size
            result.bytes += size
            delivered(chunk, tsn, at: now, into: &result)
        case .lost:
            lostCount -= 1
            result.bytes += chunk.byteCount(isInterleaved: isInterleaved)
        case .acked: ackedCount -= 1
        case .abandoned: break
        }
        if measured?.tsn == tsn { measured = nil }
    }

    private mutating func delivered(
        _ chunk: SentChunk,
        _ tsn: Int64,
        at now: Instant,
        into result: inout Acknowledged
    ) {
        // An answer sooner than any round trip is to an earlier transmission (RFC 8985 §6.2).
        if chunk.transmissions == 1 || now - chunk.sentAt >= leastRoundTrip {
            newestAckedSentAt = max(newestAckedSentAt ?? chunk.sentAt, chunk.sentAt)
        }
        guard let probe = measured, probe.tsn == tsn else { return }
        result.roundTrip = now - probe.sentAt
        measured = nil
    }

    /// - Returns: the highest number that this SACK was the first to acknowledge.
    private mutating func acknowledgeGaps(
        _ gaps: [Acknowledgement.Gap],
        _ cumulative: Int64,
        at now: Instant,
        into result: inout Acknowledged
    ) -> Int64 {
        guard !gaps.isEmpty || ackedCount > 0 else { return cumulative }
        var highestNew = cumulative
        let lastCovered = min(gaps.last.map { cumulative + Int64($0.end) } ?? cumulative, nextTSN - 1)
        let end = max(lastCovered, min(highestAcked, nextTSN - 1))
        highestAcked = lastCovered
        var tsn = firstTSN
        var gap = gaps.startIndex
        while tsn <= end {
            while gap < gaps.endIndex, cumulative + Int64(gaps[gap].end) < tsn { gap += 1 }
            let isCovered = gap < gaps.endIndex && cumulative + Int64(gaps[gap].start) <= tsn
            let index = Int(tsn - firstTSN)
            switch (chunks[index].state, isCovered) {
            case (.inFlight, true), (.lost, true):
                let size = chunks[index].byteCount(isInterleaved: isInterleaved)
                if chunks[index].state == .lost { lostCount -= 1 } else { flightBytes -= size }
                result.bytes += size
                delivered(chunks[index], tsn, at: now, into: &result)
                chunks[index].state = .acked
                ackedCount += 1
                highestNew = tsn
            case (.acked, false):
                // The peer dropped what it had acknowledged (RFC 9260 §6.2.1).
                chunks[index].state = .inFlight
                ackedCount -= 1
                flightBytes += chunks[index].byteCount(isInterleaved: isInterleaved)
            default: break
            }
            tsn += 1
        }
        return highestNew
    }

    /// Marks chunks as lost: at their third miss (RFC 9260 §7.2.4), and when one that was sent later by more than the reorder
    /// window has arrived, which finds lost retransmissions too (as RFC 8985 §6.2 does for TCP).
    private mutating func findLosses(
        below highestNew: Int64,
        hasAdvanced: Bool,
        at now: Instant,
        into result: inout Acknowledged
    ) {
        guard ackedCount > 0 else { return }
        let reorderWindow = Interval(nanoseconds: leastRoundTrip.nanoseconds / 4)
        let limit = recoveryEnd != nil && hasAdvanced ? highestAcked : highestNew
        var tsn = firstTSN
        while tsn < highestAcked {
            let index = Int(tsn - firstTSN)
            if chunks[index].state == .inFlight {
                if tsn < limit, chunks[index].transmissions == 1 { chunks[index].misses += 1 }
                let isOvertaken = newestAckedSentAt.map { chunks[index].sentAt + reorderWindow < $0 } ?? false
                if chunks[index].misses >= Self.missesMax || isOvertaken {
                    lose(index, at: now)
                    result.hasLost = true
                    if recoveryEnd == nil {
                        recoveryEnd = nextTSN - 1
                        result.hasNewLoss = true
                    }
                }
            }
            tsn += 1
        }
    }

    private mutating func lose(_ index: Int, at now: Instant) {
        flightBytes -= chunks[index].byteCount(isInterleaved: isInterleaved)
        let tsn = firstTSN + Int64(index)
        if measured?.tsn == tsn { measured = nil }
        if chunks[index].isGivenUp(at: now) {
            chunks[index].state = .abandoned
            abandonMessage(of: index)
        } else {
            chunks[index].state = .lost
            lostCount += 1
            lostFrom = min(lostFrom, tsn)
        }
    }

    /// Has the highest chunk in flight sent again, so that its SACK shows what else is lost (RFC 8985 §7.3).
    /// - Returns: `false` when there is none that may be sent again.
    mutating func probe(at now: Instant) -> Bool {
        var index = chunks.count - 1
        while index >= 0, chunks[index].state != .inFlight { index -= 1 }
        guard lostCount == 0, index >= 0, !chunks[index].isGivenUp(at: now) else { return false }
        lose(index, at: now)
        return true
    }

    /// The retransmission timer expired: everything in flight is lost.
    mutating func loseAll(at now: Instant) {
        for index in chunks.indices where chunks[index].state == .inFlight { lose(index, at: now) }
        recoveryEnd = nil
        measured = nil
    }

    // MARK: - Giving up

    /// Gives up the other fragments of a message. One that the peer has acknowledged by a gap block is left to it.
    private mutating func abandonMessage(of index: Int) {
        let chunk = chunks[index]
        guard !chunk.flags.isSuperset(of: [.beginning, .end]) else { return }
        var hasEnd = false
        for other in chunks.indices where chunks[other].message == chunk.message {
            if chunks[other].flags.contains(.end) { hasEnd = true }
            switch chunks[other].state {
            case .inFlight: flightBytes -= chunks[other].byteCount(isInterleaved: isInterleaved)
            case .lost: lostCount -= 1
            case .acked: ackedCount -= 1
            case .abandoned: break
            }
            chunks[other].state = .abandoned
        }
        if !hasEnd { givenUp.append((chunk.message, chunk.stream)) }
    }

    /// Takes the messages of which fragments were never sent. For each the owner drops the rest and calls
    /// ``appendPlaceholder(for:on:at:)``.
    mutating func takeGivenUp() -> [(message: UInt64, stream: StreamID)] {
        defer { givenUp = [] }
        return givenUp
    }

    /// Takes a number for the end of a message that was given up before it was sent, so that a FORWARD-TSN skips the message even
    /// if all fragments sent have arrived.
    mutating func appendPlaceholder(for message: UInt64, at now: Instant) {
        var index = chunks.count - 1
        while index >= 0, chunks[index].message != message { index -= 1 }
        guard index >= 0 else { return }
        let last = chunks[index]
        let end = SentChunk(
            payload: [],
            range: 0..<0,
            stream: last.stream,
            flags: last.flags.subtracting(.beginning).union(.end),
            payloadProtocol: last.payloadProtocol,
            messageNumber: last.messageNumber,
            fragment: last.fragment &+ 1,
            message: message,
            retransmissionsMax: nil,
            expiresAt: nil,
            sentAt: now,
            state: .abandoned
        )
        _ = append(end)
    }

    /// Where the peer may move its cumulative number because all before was given up, and what it skips by that; `nil` when that
    /// is where it is.
    /// - Parameter limit: the last number that may be skipped.
    func forward(to limit: Int64?) -> (tsn: Int64, ForwardedNumbers)? {
        var skipped: [ForwardedNumbers.Skipped] = []
        var count = 0
        while count < chunks.count, chunks[count].state == .abandoned {
            let tsn = firstTSN + Int64(count)
            if let limit, tsn > limit { break }
            let chunk = chunks[count]
            let isUnordered = chunk.flags.contains(.unordered)
            if !isUnordered || isInterleaved {
                if let place = skipped.firstIndex(where: { $0.stream == chunk.stream && $0.isUnordered == isUnordered })
                {
                    skipped[place].messageNumber = chunk.messageNumber
                } else {
                    guard skipped.count < ForwardedNumbers.skippedMax else { break }
                    skipped.append(
                        .init(stream: chunk.stream, isUnordered: isUnordered, messageNumber: chunk.messageNumber)
                    )
                }
            }
            count += 1
        }
        guard count > 0 else { return nil }
        let tsn = firstTSN + Int64(count) - 1
        return (tsn, ForwardedNumbers(tsn: SerialNumber.raw(tsn), skipped: skipped))
    }
}
