import Base

/// The sending half of an association: what waits, what is in flight, and how fast it may go.
struct Sender: Sendable {
    /// The most packets with data in one burst, and the pause after one. Deviation: RFC 9260 §6.1 D has four for each SACK; a receiver
    /// that reads many packets in one turn answers them with one SACK, and four would then limit the rate.
    private static let burst = 16
    private static let burstPause = Interval.milliseconds(1)
    /// A FORWARD-TSN is repeated after this or a round trip, whichever is shorter (RFC 3758 §3.5 F1).
    private static let forwardIntervalMax = Interval.milliseconds(200)

    var streams = OutgoingStreams()
    private(set) var chunks: OutstandingChunks
    /// The most bytes of chunks that are outstanding.
    private let outstandingBytesMax: Int
    /// Whether chunks are outstanding and the peer acknowledges none.
    private(set) var progress = ProgressTimer()
    private(set) var window: CongestionWindow
    private(set) var roundTrip = RoundTripTime()
    /// T3, the retransmission timer.
    private(set) var retransmissionDeadline: Instant?
    /// The probe for a lost tail.
    private var probeDeadline: Instant?
    private var peerWindow: Int
    private var burstLeft = Self.burst
    /// The end of the pause after a burst.
    private var burstDeadline: Instant?
    /// The first retransmission after a loss does not ask the congestion window (RFC 9260 §7.2.4).
    private var ignoresWindow = false
    private var lastDataAt: Instant?
    private var forwardDueAt: Instant?
    /// The last number that a reset of streams names; nothing above is skipped before the reset is answered.
    var forwardLimit: Int64?
    /// What was sent again, in chunks.
    private(set) var retransmissions: UInt64 = 0

    init(firstTSN: UInt32, peerWindow: UInt32, outstandingBytesMax: Int) {
        self.outstandingBytesMax = outstandingBytesMax
        chunks = OutstandingChunks(firstTSN: firstTSN)
        self.peerWindow = Int(peerWindow)
        window = CongestionWindow(threshold: Int(peerWindow))
    }

    /// What the peer's INIT or cookie says, before anything was acknowledged.
    mutating func negotiated(peerWindow: UInt32, isInterleaved: Bool) {
        self.peerWindow = Int(peerWindow)
        window = CongestionWindow(threshold: Int(peerWindow))
        streams.isInterleaved = isInterleaved
        chunks.isInterleaved = isInterleaved
    }

    @inline(__always)
    var nextDeadline: Instant? {
        earliest(
            earliest(earliest(retransmissionDeadline, burstDeadline), earliest(probeDeadline, forwardDueAt)),
            progress.deadline
        )
    }
    var hasSent: Bool { !chunks.isEmpty }
    /// Whether data may go with the next packet, if the windows allow.
    var hasSomethingToSend: Bool { burstLeft > 0 && (chunks.lostCount > 0 || !streams.isEmpty) }
    /// Whether everything was sent and acknowledged.
    var isDrained: Bool { streams.isEmpty && chunks.isEmpty }

    // MARK: - Events

    /// A message was queued.
    mutating func queued(at now: Instant) {
        armTimers(at: now)
    }

    /// The peer may acknowledge from now on.
    mutating func established(at now: Instant) {
        retransmissionDeadline = nil
        armTimers(at: now)
    }

    /// The timers that run are those of the old path: one that was backed off would keep lost data from a path that works.
    mutating func pathChanged(at now: Instant) {
        window.pathChanged()
        roundTrip = RoundTripTime()
        if let deadline = retransmissionDeadline { retransmissionDeadline = min(deadline, now + roundTrip.timeout) }
    }

    mutating func acknowledged(
        _ sack: Acknowledgement,
        at now: Instant,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) {
        let flightBefore = chunks.flightBytes
        guard let result = try chunks.acknowledge(sack, leastRoundTrip: roundTrip.least, at: now, &work) else {
            return
        }
        peerWindow = Int(sack.window)
        if let sample = result.roundTrip { roundTrip.measured(sample) }
        if result.hasNewLoss {
            window.lost(hasQueue: roundTrip.hasQueue)
            ignoresWindow = true
        } else if result.hasAdvanced, chunks.recoveryEnd == nil {
            let wasFull = flightBefore + CongestionWindow.unit >= window.bytes
            window.acknowledged(result.bytes, wasFull: wasFull, isAllAcked: !chunks.hasFlight)
        }
        if result.hasAdvanced {
            roundTrip.progressed()
            retransmissionDeadline = nil
        }
        if result.bytes > 0 {
            probeDeadline = nil
            hasProbed = false
        }
        dropGivenUp(at: now)
        scheduleForward(at: now, &work)
        progress.update(isHolding: !chunks.isEmpty, hasProgressed: result.hasAdvanced, at: now)
        armTimers(at: now)
    }

    /// A SHUTDOWN acknowledges by its cumulative number only.
    mutating func acknowledged(
        upTo number: UInt32,
        at now: Instant,
        _ work: inout WorkMeter
    ) throws(ProtocolViolation) {
        try acknowledged(Acknowledgement(cumulative: number, window: UInt32(clamping: peerWindow)), at: now, &work)
    }

    /// Frees what waits and what is outstanding.
    mutating func end() {
        streams = OutgoingStreams()
        chunks.removeAll()
        progress = ProgressTimer()
    }

    mutating func handleTimeout(at now: Instant, _ work: inout WorkMeter) {
        refillBurst(at: now)
        if let deadline = probeDeadline, deadline <= now {
            probeDeadline = nil
            hasProbed = true
            if chunks.probe(at: now, &work) { ignoresWindow = true }
        }
        if let deadline = forwardDueAt, deadline <= now {
            forwardDueAt = nil
            isForwardDue = true
        }
        guard let deadline = retransmissionDeadline, deadline <= now else { return }
        retransmissionDeadline = nil
        probeDeadline = nil
        let wasProbe = peerWindow == 0
        mayProbeWindow = true
        if chunks.hasFlight || chunks.lostCount > 0 || isWindowClosed {
            // A probe of a closed window says nothing about the path.
            if !wasProbe { window.timedOut() }
            roundTrip.backOff()
        }
        chunks.loseAll(at: now, &work)
        dropGivenUp(at: now)
        if chunks.forwardableTSN(to: forwardLimit, &work) != nil { isForwardDue = true }
        armTimers(at: now)
    }

    /// A new COOKIE ECHO leaves: data that went with the one before is sent with it again.
    mutating func repeatAll(at now: Instant, _ work: inout WorkMeter) { chunks.loseAll(at: now, &work) }

    private mutating func dropGivenUp(at now: Instant) {
        for (message, stream) in chunks.takeGivenUp() where streams.discardRest(of: message, on: stream) {
            chunks.appendPlaceholder(for: message, at: now)
        }
    }

    // MARK: - Timers

    /// Called when data may be in flight: starts what is not running.
    mutating func armTimers(at now: Instant) {
        guard !chunks.isEmpty || isWindowClosed else {
            retransmissionDeadline = nil
            probeDeadline = nil
            return
        }
        if retransmissionDeadline == nil { retransmissionDeadline = now + roundTrip.timeout }
        if probeDeadline == nil, !hasProbed, chunks.hasFlight, let smoothed = roundTrip.smoothed {
            probeDeadline = now + smoothed * 2 + Self.probeMargin
        }
    }

    /// Whether data waits for the peer's window, without a chunk in flight whose SACK could open it.
    private var isWindowClosed: Bool { !streams.isEmpty && peerWindow < CongestionWindow.unit }
    /// One chunk may be sent although the peer's window is closed (RFC 9260 §6.1 A).
    private var mayProbeWindow = false
    /// Two round trips and the peer's delay of a SACK (RFC 8985 §7.2).
    private static let probeMargin = Interval.milliseconds(52)
    /// Whether the tail was probed since the last progress.
    private var hasProbed = false

    // MARK: - FORWARD-TSN

    private var isForwardDue = false
    private var forwarded: Int64?

    private mutating func scheduleForward(at now: Instant, _ work: inout WorkMeter) {
        guard let tsn = chunks.forwardableTSN(to: forwardLimit, &work) else {
            forwardDueAt = nil
            isForwardDue = false
            forwarded = nil
            return
        }
        if forwarded == nil || tsn > forwarded ?? tsn {
            isForwardDue = true
        } else if forwardDueAt == nil, !isForwardDue {
            forwardDueAt = now + min(Self.forwardIntervalMax, roundTrip.smoothed ?? Self.forwardIntervalMax)
        }
    }

    /// The FORWARD-TSN to send now.
    mutating func takeForward(_ work: inout WorkMeter) -> ForwardedNumbers? {
        guard isForwardDue else { return nil }
        isForwardDue = false
        guard let (tsn, numbers) = chunks.forward(to: forwardLimit, &work) else { return nil }
        forwarded = tsn
        return numbers
    }

    // MARK: - Data

    /// Called at the start of a packet.
    mutating func beginPacket(at now: Instant) {
        refillBurst(at: now)
        guard let lastDataAt, !chunks.hasFlight else { return }
        var idle = now - lastDataAt
        guard idle >= roundTrip.timeout else { return }
        self.lastDataAt = now
        while idle >= roundTrip.timeout, window.bytes > CongestionWindow.bytesMin {
            window.idled()
            idle = idle - roundTrip.timeout
        }
    }

    /// The next chunk that the windows allow and that fits.
    mutating func nextChunk(room: Int, at now: Instant) -> (tsn: Int64, chunk: SentChunk)? {
        guard burstLeft > 0 else { return nil }
        if let size = chunks.lostByteCount() {
            guard size <= room, ignoresWindow || isAllowed(size) else { return nil }
            retransmissions &+= 1
            return sent(chunks.retransmit(room: room, at: now), at: now)
        }
        guard let size = streams.nextByteCount(at: now), size <= room, isAllowed(size),
            chunks.hasRoom(for: size, bytesMax: outstandingBytesMax)
        else { return nil }
        guard let chunk = streams.next(room: room, at: now) else { return nil }
        return sent((chunks.append(chunk), chunk), at: now)
    }

    private func isAllowed(_ size: Int) -> Bool {
        guard chunks.hasFlight else { return size <= peerWindow || mayProbeWindow }
        return chunks.flightBytes < window.bytes && chunks.flightBytes + size <= peerWindow
    }

    private mutating func sent(
        _ sent: (tsn: Int64, chunk: SentChunk)?,
        at now: Instant
    ) -> (tsn: Int64, chunk: SentChunk)? {
        guard let sent else { return nil }
        lastDataAt = now
        mayProbeWindow = false
        progress.update(isHolding: true, hasProgressed: false, at: now)
        if sent.tsn == chunks.firstTSN { retransmissionDeadline = nil }
        armTimers(at: now)
        return sent
    }

    /// Called when a packet with data is complete.
    mutating func endPacket(at now: Instant) {
        burstLeft -= 1
        ignoresWindow = false
        if burstLeft == 0 { burstDeadline = now + Self.burstPause }
    }

    private mutating func refillBurst(at now: Instant) {
        if let burstDeadline {
            guard burstDeadline <= now else { return }
        } else if let lastDataAt, now - lastDataAt < Self.burstPause {
            return
        }
        burstDeadline = nil
        burstLeft = Self.burst
    }

    /// Whether a SACK should come at once: while the window is small its delay costs throughput (RFC 7053).
    var wantsImmediateAck: Bool { window.bytes < CongestionWindow.initialBytes || peerWindow == 0 }
}
