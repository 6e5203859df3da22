import Base

/// The fragments between the peer's cumulative number and the last one sent: what is in flight, lost, acknowledged by gap blocks
/// or given up (RFC 9260 §6 and §7, RFC 3758 §3.5).
struct OutstandingChunks: Sendable {
    /// The most fragments, so that tiny messages cannot grow the table without limit.
    static let countMax = 8_192

    private var chunks = Queue<SentChunk>()
    /// The number of the first chunk: the peer's cumulative number + 1.
    private(set) var firstTSN: Int64
    private(set) var flightBytes = 0
    private(set) var lostCount = 0
    /// Payloads and entries of all that is outstanding, acknowledged by gap blocks or not.
    private(set) var heldBytes = 0
    /// What a chunk costs besides its payload.
    static let chunkOverhead = MemoryLayout<SentChunk>.stride

    // Each finding is made once and not by a walk of all chunks: what a SACK costs follows what it is the first to say.
    /// Lost chunks in the order of their first transmission; some are not lost any more.
    private var lost = Queue<Int64>()
    /// The same for chunks whose retransmission was lost. They are older, and go first.
    private var lostAgain = Queue<Int64>()
    /// Retransmissions by the time they were sent; some are not in flight any more.
    private var retransmitted = Queue<(tsn: Int64, transmissions: Int)>()
    /// Numbers that gap blocks covered. Placeholders may exceed the most fragments.
    private var reported = NumberSet(window: 2 * countMax)
    /// The highest number that a gap block covered; chunks above it are in flight.
    private var highestAcked: Int64
    /// The three highest numbers that SACKs were the first to acknowledge, highest first. What was sent once, and is below the third,
    /// was reported missing three times (RFC 9260 §7.2.4).
    private var highestNews: (Int64, Int64, Int64)
    /// Whether a chunk that was sent once is lost was found for all before it.
    private var judgedTo: Int64
    /// Chunks up to this one, without it, are given up from the first on.
    private var forwardEnd: Int64
    /// What a FORWARD-TSN up to there skips, with the last number of each.
    private var skipped: [SkippedStream: (messageNumber: UInt32, tsn: Int64)] = [:]
    /// The newest transmission that was acknowledged.
    private var newestAckedSentAt: Instant?
    private var leastRoundTrip = Interval.zero
    /// While recovering: the last number that was sent when the loss was seen.
    private(set) var recoveryEnd: Int64?
    /// The chunk whose round trip is being measured.
    private var measured: (tsn: Int64, sentAt: Instant)?
    /// The numbers of the fragments that were sent of each message that may be given up, until the last one is acknowledged.
    private var limitedFragments: [UInt64: [Int64]] = [:]
    /// Messages with a fragment that was given up and fragments that were never sent, for the owner to drop.
    private(set) var givenUp: [(message: UInt64, stream: StreamID)] = []
    var isInterleaved = false

    private struct SkippedStream: Hashable {
        let stream: StreamID
        let isUnordered: Bool
    }

    init(firstTSN: UInt32) {
        let first = SerialNumber.start(firstTSN)
        self.firstTSN = first
        highestAcked = first - 1
        highestNews = (first - 1, first - 1, first - 1)
        judgedTo = first
        forwardEnd = first
    }

    /// Frees everything.
    mutating func removeAll() {
        firstTSN = nextTSN
        chunks.removeAll()
        forgetFindings()
        flightBytes = 0
        heldBytes = 0
        skipped = [:]
        limitedFragments = [:]
        givenUp = []
    }

    private mutating func forgetFindings() {
        lost.removeAll()
        lostAgain.removeAll()
        retransmitted.removeAll()
        lostCount = 0
    }

    var isEmpty: Bool { chunks.isEmpty }
    var isFull: Bool { chunks.count >= Self.countMax }
    var nextTSN: Int64 { firstTSN + Int64(chunks.count) }
    var hasFlight: Bool { flightBytes > 0 }

    // MARK: - Sending

    /// - Returns: the number of the chunk, which was sent now.
    mutating func append(_ chunk: SentChunk) -> Int64 {
        let tsn = nextTSN
        chunks.append(chunk)
        heldBytes += Self.cost(of: chunk)
        if chunk.isLimitedFragment { limitedFragments[chunk.message, default: []].append(tsn) }
        if chunk.state == .inFlight {
            flightBytes += chunk.byteCount(isInterleaved: isInterleaved)
            if measured == nil { measured = (tsn, chunk.sentAt) }
        }
        return tsn
    }

    private static func cost(of chunk: SentChunk) -> Int { chunk.range.count + chunkOverhead }

    /// Whether another fragment of `payloadBytes` stays within `bytesMax`. One alone always does.
    func hasRoom(for payloadBytes: Int, bytesMax: Int) -> Bool {
        isEmpty || !isFull && heldBytes + payloadBytes + Self.chunkOverhead <= bytesMax
    }

    /// The next lost chunk, if it fits. It is in flight again.
    mutating func retransmit(room: Int, at now: Instant) -> (tsn: Int64, chunk: SentChunk)? {
        guard let index = nextLost() else { return nil }
        let size = chunks[index].byteCount(isInterleaved: isInterleaved)
        guard size <= room else { return nil }
        let tsn = firstTSN + Int64(index)
        chunks[index].state = .inFlight
        chunks[index].sentAt = now
        chunks[index].transmissions += 1
        lostCount -= 1
        flightBytes += size
        retransmitted.append((tsn, chunks[index].transmissions))
        if measured?.tsn == tsn { measured = nil }
        return (tsn, chunks[index])
    }

    /// The size of the next lost chunk.
    mutating func lostByteCount() -> Int? {
        nextLost().map { chunks[$0].byteCount(isInterleaved: isInterleaved) }
    }

    private mutating func nextLost() -> Int? {
        guard lostCount > 0 else {
            if !lost.isEmpty { lost.removeAll() }
            if !lostAgain.isEmpty { lostAgain.removeAll() }
            return nil
        }
        while let tsn = lostAgain.first {
            if isLost(tsn) { return Int(tsn - firstTSN) }
            _ = lostAgain.removeFirst()
        }
        while let tsn = lost.first {
            if isLost(tsn) { return Int(tsn - firstTSN) }
            _ = lost.removeFirst()
        }
        return nil
    }

    private func isLost(_ tsn: Int64) -> Bool {
        tsn >= firstTSN && chunks[Int(tsn - firstTSN)].state == .lost
    }

    // MARK: - Acknowledgements

    struct Acknowledged {
        var bytes = 0
        var hasAdvanced = false
        var roundTrip: Interval?
        /// Whether a loss was seen that begins a recovery.
        var hasNewLoss = false
    }

    /// - Returns: `nil` for an old SACK.
    /// - Throws: when it acknowledges what was never sent.
    mutating func acknowledge(
        _ sack: Acknowledgement,
        leastRoundTrip: Interval?,
        at now: Instant,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) -> Acknowledged? {
        let cumulative = SerialNumber.extend(sack.cumulative, near: firstTSN - 1)
        guard cumulative < nextTSN else { throw .acknowledgedUnsent }
        guard cumulative >= firstTSN - 1 else { return nil }
        self.leastRoundTrip = leastRoundTrip ?? .milliseconds(100)
        var result = Acknowledged()
        while firstTSN <= cumulative, let chunk = chunks.removeFirst() {
            work.add()
            remove(chunk, firstTSN, at: now, into: &result)
            firstTSN += 1
            result.hasAdvanced = true
        }
        if let end = recoveryEnd, firstTSN > end { recoveryEnd = nil }
        let highestNew = acknowledgeGaps(sack.gaps, cumulative, at: now, into: &result, &work)
        noteNews(recoveryEnd != nil && result.hasAdvanced ? highestAcked : highestNew)
        findLosses(at: now, into: &result, &work)
        return result
    }

    private mutating func remove(_ chunk: SentChunk, _ tsn: Int64, at now: Instant, into result: inout Acknowledged) {
        heldBytes -= Self.cost(of: chunk)
        reported.remove(tsn)
        if !limitedFragments.isEmpty, chunk.flags.contains(.end) { limitedFragments[chunk.message] = nil }
        switch chunk.state {
        case .inFlight:
            let size = chunk.byteCount(isInterleaved: isInterleaved)
            flightBytes -= size
            result.bytes += size
            delivered(chunk, tsn, at: now, into: &result)
        case .lost:
            lostCount -= 1
            result.bytes += chunk.byteCount(isInterleaved: isInterleaved)
        case .acked, .abandoned: break
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

    /// What a gap block covered stays acknowledged, although the peer may drop it (RFC 9260 §6.2.1): that is found when it is the
    /// first chunk and the retransmission timer expires.
    /// - Returns: the highest number that this SACK was the first to acknowledge.
    private mutating func acknowledgeGaps(
        _ gaps: [Acknowledgement.Gap],
        _ cumulative: Int64,
        at now: Instant,
        into result: inout Acknowledged,
        _ work: inout WorkMeter
    ) -> Int64 {
        var highestNew = cumulative
        for gap in gaps {
            work.add()
            var next = cumulative + Int64(gap.start)
            let end = min(cumulative + Int64(gap.end), nextTSN - 1)
            guard next <= end else { break }
            highestAcked = max(highestAcked, end)
            while next <= end, let tsn = reported.first(in: next...end, isMissing: true, &work) {
                next = tsn + 1
                reported.insert(tsn)
                let index = Int(tsn - firstTSN)
                let size = chunks[index].byteCount(isInterleaved: isInterleaved)
                switch chunks[index].state {
                case .inFlight: flightBytes -= size
                case .lost: lostCount -= 1
                case .acked, .abandoned: continue
                }
                result.bytes += size
                delivered(chunks[index], tsn, at: now, into: &result)
                chunks[index].state = .acked
                highestNew = tsn
            }
        }
        return highestNew
    }

    private mutating func noteNews(_ tsn: Int64) {
        if tsn > highestNews.0 {
            highestNews = (tsn, highestNews.0, highestNews.1)
        } else if tsn > highestNews.1 {
            highestNews = (highestNews.0, tsn, highestNews.1)
        } else if tsn > highestNews.2 {
            highestNews.2 = tsn
        }
    }

    /// Marks chunks as lost: at their third miss (RFC 9260 §7.2.4), and when one that was sent later by more than the reorder
    /// window has arrived, which finds lost retransmissions too (as RFC 8985 §6.2 does for TCP).
    private mutating func findLosses(at now: Instant, into result: inout Acknowledged, _ work: inout WorkMeter) {
        // Chunks that were sent once were sent in the order of their numbers: the first that is not lost ends the search.
        judgedTo = max(judgedTo, firstTSN)
        while judgedTo < highestAcked {
            let index = Int(judgedTo - firstTSN)
            if chunks[index].state == .inFlight, chunks[index].transmissions == 1 {
                guard judgedTo < highestNews.2 || isOvertaken(index) else { break }
                lose(index, at: now, &work)
                noteLoss(into: &result)
            }
            work.add()
            judgedTo += 1
        }
        while let (tsn, transmissions) = retransmitted.first {
            if tsn >= firstTSN {
                let index = Int(tsn - firstTSN)
                let isInFlight = chunks[index].state == .inFlight && chunks[index].transmissions == transmissions
                if isInFlight {
                    guard isOvertaken(index) else { break }
                    lose(index, at: now, &work)
                    noteLoss(into: &result)
                }
            }
            work.add()
            _ = retransmitted.removeFirst()
        }
    }

    private func isOvertaken(_ index: Int) -> Bool {
        guard let newestAckedSentAt else { return false }
        return chunks[index].sentAt + Interval(nanoseconds: leastRoundTrip.nanoseconds / 4) < newestAckedSentAt
    }

    private mutating func noteLoss(into result: inout Acknowledged) {
        guard recoveryEnd == nil else { return }
        recoveryEnd = nextTSN - 1
        result.hasNewLoss = true
    }

    private mutating func lose(_ index: Int, at now: Instant, _ work: inout WorkMeter) {
        flightBytes -= chunks[index].byteCount(isInterleaved: isInterleaved)
        let tsn = firstTSN + Int64(index)
        if measured?.tsn == tsn { measured = nil }
        if chunks[index].isGivenUp(at: now) {
            chunks[index].state = .abandoned
            abandonMessage(of: index, &work)
        } else {
            chunks[index].state = .lost
            lostCount += 1
            if chunks[index].transmissions > 1 { lostAgain.append(tsn) } else { lost.append(tsn) }
        }
    }

    /// Has the highest chunk in flight sent again, so that its SACK shows what else is lost (RFC 8985 §7.3).
    /// - Returns: `false` when there is none that may be sent again.
    mutating func probe(at now: Instant, _ work: inout WorkMeter) -> Bool {
        var index = chunks.count - 1
        while index >= 0, chunks[index].state != .inFlight {
            work.add()
            index -= 1
        }
        guard lostCount == 0, index >= 0, !chunks[index].isGivenUp(at: now) else { return false }
        lose(index, at: now, &work)
        return true
    }

    /// The retransmission timer expired: everything in flight is lost.
    mutating func loseAll(at now: Instant, _ work: inout WorkMeter) {
        work.add(chunks.count)
        if chunks.first?.state == .acked { takeBackAcks() }
        for index in chunks.indices where chunks[index].state == .inFlight { lose(index, at: now, &work) }
        // From the lowest on.
        forgetFindings()
        for index in chunks.indices where chunks[index].state == .lost {
            lostCount += 1
            lost.append(firstTSN + Int64(index))
        }
        judgedTo = nextTSN
        recoveryEnd = nil
        measured = nil
    }

    /// The first chunk was acknowledged by a gap block and not by the cumulative number: the peer dropped it, and perhaps others.
    private mutating func takeBackAcks() {
        for index in chunks.indices where chunks[index].state == .acked {
            chunks[index].state = .inFlight
            flightBytes += chunks[index].byteCount(isInterleaved: isInterleaved)
        }
        reported.removeAll()
        highestAcked = firstTSN - 1
    }

    // MARK: - Giving up

    /// Gives up the other fragments of a message. One that the peer has acknowledged by a gap block is left to it.
    private mutating func abandonMessage(of index: Int, _ work: inout WorkMeter) {
        let chunk = chunks[index]
        guard !chunk.flags.isSuperset(of: [.beginning, .end]) else { return }
        var hasEnd = false
        for tsn in limitedFragments[chunk.message] ?? [] where tsn >= firstTSN {
            work.add()
            let other = Int(tsn - firstTSN)
            if chunks[other].flags.contains(.end) { hasEnd = true }
            abandon(other)
        }
        if !hasEnd { givenUp.append((chunk.message, chunk.stream)) }
    }

    private mutating func abandon(_ index: Int) {
        switch chunks[index].state {
        case .inFlight: flightBytes -= chunks[index].byteCount(isInterleaved: isInterleaved)
        case .lost: lostCount -= 1
        case .acked, .abandoned: break
        }
        chunks[index].state = .abandoned
    }

    /// Takes the messages of which fragments were never sent. For each the owner drops the rest and calls
    /// ``appendPlaceholder(for:at:)``.
    mutating func takeGivenUp() -> [(message: UInt64, stream: StreamID)] {
        defer { givenUp = [] }
        return givenUp
    }

    /// Takes a number for the end of a message that was given up before it was sent, so that a FORWARD-TSN skips the message even
    /// if all fragments sent have arrived.
    mutating func appendPlaceholder(for message: UInt64, at now: Instant) {
        guard let tsn = limitedFragments[message]?.last, tsn >= firstTSN else { return }
        let last = chunks[Int(tsn - firstTSN)]
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

    /// The number up to which the peer may move its cumulative number because all before was given up; `nil` when that is where it is.
    /// - Parameter limit: the last number that may be skipped.
    mutating func forwardableTSN(to limit: Int64?, _ work: inout WorkMeter) -> Int64? {
        if forwardEnd <= firstTSN {
            forwardEnd = firstTSN
            if !skipped.isEmpty { skipped = [:] }
        }
        while forwardEnd < nextTSN, chunks[Int(forwardEnd - firstTSN)].state == .abandoned {
            if let limit, forwardEnd > limit { break }
            guard skip(forwardEnd) else { break }
            work.add()
            forwardEnd += 1
        }
        return forwardEnd > firstTSN ? forwardEnd - 1 : nil
    }

    /// - Returns: `false` when one FORWARD-TSN has no room for the stream of the chunk.
    private mutating func skip(_ tsn: Int64) -> Bool {
        let chunk = chunks[Int(tsn - firstTSN)]
        let isUnordered = chunk.flags.contains(.unordered)
        guard !isUnordered || isInterleaved else { return true }
        let stream = SkippedStream(stream: chunk.stream, isUnordered: isUnordered)
        if skipped.count >= ForwardedNumbers.skippedMax, skipped[stream] == nil {
            let first = firstTSN
            skipped = skipped.filter { $0.value.tsn >= first }
            guard skipped.count < ForwardedNumbers.skippedMax else { return false }
        }
        skipped[stream] = (chunk.messageNumber, tsn)
        return true
    }

    /// The FORWARD-TSN up to ``forwardableTSN(to:_:)``.
    mutating func forward(to limit: Int64?, _ work: inout WorkMeter) -> (tsn: Int64, ForwardedNumbers)? {
        guard let tsn = forwardableTSN(to: limit, &work) else { return nil }
        work.add(skipped.count)
        let entries = skipped.filter { $0.value.tsn >= firstTSN }.sorted { $0.value.tsn < $1.value.tsn }
        let numbers = ForwardedNumbers(
            tsn: SerialNumber.raw(tsn),
            skipped: entries.map { entry in
                .init(
                    stream: entry.key.stream,
                    isUnordered: entry.key.isUnordered,
                    messageNumber: entry.value.messageNumber
                )
            }
        )
        return (tsn, numbers)
    }
}
