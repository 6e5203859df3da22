public import Base

/// One end of an SCTP association over DTLS (RFC 9260, RFC 8261), with what data channels need: partial reliability (RFC 3758),
/// resetting streams (RFC 6525), interleaving (RFC 8260) and packets without checksum (RFC 9653).
///
/// It has no clock and no transport. The owner hands packets and instants in, and after that takes the events
/// (``nextEvent()``) and the packets (``nextPacket(into:dataBudget:at:)``) until there are none. One packet is one DTLS record.
/// Nothing that a peer sends traps, or takes more memory than the settings allow.
public struct Association: ~Copyable, Sendable {
    enum Phase: Hashable, Sendable {
        /// Nothing was sent; an INIT of the peer is answered.
        case closed
        case cookieWait
        case cookieEchoed
        case established
        /// No message is taken any more; what waits is sent first.
        case shutdownPending
        case shutdownSent
        case shutdownReceived
        case shutdownAckSent
        case ended

        /// Whether the peer's tag and numbers are known and its data is accepted.
        var receivesData: Bool {
            switch self {
            case .established, .shutdownPending, .shutdownSent: true
            default: false
            }
        }
        /// Whether data is sent. With a COOKIE ECHO it is, too.
        var sendsData: Bool {
            switch self {
            case .established, .shutdownPending, .shutdownReceived: true
            default: false
            }
        }
        var isShuttingDown: Bool {
            switch self {
            case .shutdownPending, .shutdownSent, .shutdownReceived, .shutdownAckSent: true
            default: false
            }
        }
    }

    /// A chunk with a packet of its own: it has another tag, or may not share.
    struct LoneChunk: Sendable {
        let tag: UInt32
        let bytes: [UInt8]
    }

    /// Steps of T1 and T2, and how often a chunk is sent (RFC 9260 §16 has 8).
    static let handshakeTriesMax = 10
    private static let handshakeFirst = Interval.seconds(1)
    private static let handshakeMax = Interval.seconds(3)

    public let settings: AssociationSettings
    var phase = Phase.closed
    /// What our INIT says, or the INIT ACK of it.
    let local: Initiation
    /// What the peer's says; `nil` before it is known.
    var peer: Initiation?
    /// The extensions of both.
    var agreed: Capabilities = []
    var generator: SplitMix64
    let cookieKey: [UInt8]
    /// The peer's cookie, until it is acknowledged.
    var cookie: [UInt8] = []
    /// Whether the chunk of the handshake, or of the shutdown, is to be sent (again).
    var isStepDue = false
    var stepTries = 0
    var stepDeadline: Instant?
    /// Chunks of control for the next packet, and those that need their own.
    var control: [UInt8] = []
    var lone: [LoneChunk] = []
    var sender: Sender
    var receiver: Receiver
    var resets: StreamResets
    /// Of the packet that is being read.
    var packetContents = PacketContents()
    var controlBucket = TokenBucket(100, burst: 200)
    var work = WorkMeter()
    var glitchBucket = TokenBucket(10, burst: 100)
    public internal(set) var counters = AssociationCounters()

    /// - Parameter generator: gives tags, the first number and the key of the cookies, so it must not be predictable in use.
    public init(_ settings: AssociationSettings, using generator: inout some RandomNumberGenerator) {
        self.settings = settings
        self.generator = SplitMix64(seed: generator.next())
        var key: [UInt8] = []
        for _ in 0..<4 { key.append(bigEndian: generator.next()) }
        cookieKey = key
        var capabilities: Capabilities = [.partialReliability, .reconfiguration]
        if settings.offersInterleaving { capabilities.insert(.interleaving) }
        if settings.offersZeroChecksum { capabilities.insert(.zeroChecksum) }
        local = Initiation(
            tag: self.generator.tag(),
            window: UInt32(clamping: max(settings.windowBytes, Int(Initiation.windowMin))),
            outgoingStreams: .max,
            incomingStreams: .max,
            firstTSN: UInt32(truncatingIfNeeded: self.generator.next()),
            capabilities: capabilities
        )
        sender = Sender(
            firstTSN: local.firstTSN,
            peerWindow: Initiation.windowMin,
            outstandingBytesMax: settings.outstandingBytesMax
        )
        receiver = Receiver(
            firstTSN: 0,
            windowBytes: settings.windowBytes,
            messageBytesMax: settings.incomingMessageBytesMax,
            isInterleaved: false
        )
        resets = StreamResets(firstTSN: local.firstTSN, peerFirstTSN: 0)
    }

    // MARK: - State

    public var isEstablished: Bool { phase == .established }
    public var hasEnded: Bool { phase == .ended }
    /// Whether the peer can be told to skip messages, so that ``SendPolicy/Limit`` has an effect.
    public var supportsPartialReliability: Bool { agreed.contains(.partialReliability) }
    public var isInterleaved: Bool { agreed.contains(.interleaving) }
    /// Payload bytes that were handed in and not yet sent for the first time, on all streams.
    public var bufferedBytes: Int { sender.streams.bufferedBytes }
    /// The same for one stream.
    public func bufferedBytes(on stream: StreamID) -> Int { sender.streams[stream]?.bufferedBytes ?? 0 }
    /// Whether the stream was opened and not reset since.
    public func isSending(on stream: StreamID) -> Bool { sender.streams[stream] != nil }
    /// The smoothed round-trip time; `nil` before the first measurement.
    public var roundTripTime: Interval? { sender.roundTrip.smoothed }
    /// The congestion window in bytes.
    public var congestionWindow: Int { sender.window.bytes }
    /// Chunks of data that were sent again.
    public var retransmissions: UInt64 { sender.retransmissions }
    /// Bytes of the peer's data that are held: parts of messages, messages that wait for their order or for the owner.
    public var heldBytes: Int { receiver.chargedBytes }
    /// Bytes that were sent and are not yet acknowledged up to their number, with the memory of each chunk's entry.
    public var outstandingBytes: Int { sender.chunks.heldBytes }
    /// Steps of work that the peer has caused: chunks that were read, and entries that were looked at or moved because of them. A peer
    /// may cause 4,000,000 a second, and 300,000 at once.
    public var workSteps: UInt64 { work.steps }

    /// When to call ``handleTimeout(at:)`` next.
    public var nextDeadline: Instant? { deadline }

    // Inlined, because a call of a function that only reads copies the association.
    @inline(__always)
    var deadline: Instant? {
        switch phase {
        case .ended, .closed: nil
        case .cookieWait, .cookieEchoed, .shutdownAckSent: stepDeadline
        default:
            earliest(
                earliest(stepDeadline, sender.nextDeadline),
                earliest(earliest(receiver.numbers.deadline, receiver.progress.deadline), resets.deadline)
            )
        }
    }

    /// The next event, oldest first. A message that is not taken stays in the receive window.
    public mutating func nextEvent() -> AssociationEvent? {
        receiver.outstandingBytes = sender.chunks.heldBytes
        let event = receiver.next()
        switch event {
        case .message: counters.messagesReceived &+= 1
        case .incomingReset: if phase.receivesData { performDeferredReset() }
        default: break
        }
        return event
    }

    // MARK: - Requests

    /// Starts the handshake. Both ends may.
    public mutating func connect(at now: Instant) {
        guard phase == .closed else { return }
        phase = .cookieWait
        beginStep(at: now)
    }

    /// Queues a message. It may be called before the association is established.
    /// - Parameters:
    ///   - payload: never copied, so that one message to many receivers is in memory once.
    ///   - isUrgent: whether it may take ``AssociationSettings/urgentBytesMax``.
    ///   - isCounted: whether it counts in ``bufferedBytes``; messages of control do not.
    public mutating func send(
        _ payload: [UInt8],
        as payloadProtocol: PayloadProtocol,
        on stream: StreamID,
        policy: SendPolicy = SendPolicy(),
        isUrgent: Bool = false,
        isCounted: Bool = true,
        at now: Instant
    ) throws(SendError) {
        guard phase != .ended, !phase.isShuttingDown else { throw .ended }
        guard !payload.isEmpty else { throw .empty }
        guard payload.count <= settings.outgoingMessageBytesMax else { throw .tooLong }
        try openStream(stream)
        guard let place = sender.streams.index(of: stream), sender.streams.streams[place].state == .open else {
            throw .closing
        }
        // Messages of control are few and small, and always fit.
        if isCounted {
            let cost = payload.count + OutgoingStreams.messageOverhead
            let queuedBytesMax = settings.queuedBytesMax + (isUrgent ? settings.urgentBytesMax : 0)
            guard sender.streams.queuedBytes + cost <= queuedBytesMax,
                sender.streams.streams[place].queuedBytes + payload.count <= settings.queuedBytesPerStreamMax
            else { throw .full }
        }
        var retransmissionsMax: Int?
        var expiresAt: Instant?
        switch policy.limit {
        case .reliable: break
        case .retransmissions(let count): retransmissionsMax = count
        case .lifetime(let interval): expiresAt = now + interval
        }
        let isLimited = supportsPartialReliability || peer == nil
        sender.streams.append(
            OutgoingMessage(
                payload: payload,
                payloadProtocol: payloadProtocol,
                isOrdered: policy.isOrdered,
                retransmissionsMax: isLimited ? retransmissionsMax : nil,
                expiresAt: isLimited ? expiresAt : nil,
                isCounted: isCounted
            ),
            to: stream
        )
        if phase.sendsData { sender.queued(at: now) }
    }

    /// Sets how much of the rate a stream gets when several have messages: in proportion to their weights. The default is 256.
    public mutating func setWeight(_ weight: Int, of stream: StreamID) throws(SendError) {
        try openStream(stream, weight: weight)
    }

    private mutating func openStream(_ stream: StreamID, weight: Int? = nil) throws(SendError) {
        guard stream.rawValue < min(local.outgoingStreams, peer?.incomingStreams ?? .max) else { throw .stream }
        guard sender.streams.open(stream, weight: weight, max: settings.streamsMax) else { throw .stream }
    }

    /// Drops the oldest messages of a stream that were not begun, until `bytes` wait at most.
    /// - Returns: how many were dropped.
    public mutating func discardUnsent(on stream: StreamID, downTo bytes: Int) -> Int {
        sender.streams.discardUnsent(on: stream, downTo: bytes)
    }

    /// Resets an outgoing stream, which is how a data channel closes (RFC 8831 §6.7): its queued messages are sent, then its numbers
    /// start again. ``AssociationEvent/outgoingReset(_:)`` follows.
    public mutating func reset(_ stream: StreamID, at now: Instant) {
        guard phase == .established || phase == .cookieWait || phase == .cookieEchoed || phase == .closed else {
            return
        }
        guard sender.streams.open(stream, max: settings.streamsMax) else { return }
        guard sender.streams[stream]?.state == .open else { return }
        sender.streams.setState(.closing, of: stream)
        resets.want(stream)
        if phase == .established { beginResets(at: now) }
    }

    /// The path changed; ICE and DTLS stay.
    public mutating func pathChanged(at now: Instant) { sender.pathChanged(at: now) }

    /// Ends after all queued messages are delivered (RFC 9260 §9.2).
    public mutating func shutDown(at now: Instant) {
        switch phase {
        case .established:
            phase = .shutdownPending
            continueShutdown(at: now)
        case .closed, .cookieWait, .cookieEchoed: abort()
        default: break
        }
    }

    /// Ends at once; the peer gets an ABORT.
    public mutating func abort() {
        guard phase != .ended else { return }
        sendAbort(.userInitiated)
        end(.aborted)
    }

    // MARK: - Steps of handshake and shutdown

    /// Sends the chunk of the phase, with T1 or T2.
    mutating func beginStep(at now: Instant) {
        isStepDue = true
        stepTries = 1
        stepDeadline = now + Self.handshakeFirst
    }

    mutating func endStep() {
        isStepDue = false
        stepDeadline = nil
    }

    /// Sends what is due.
    public mutating func handleTimeout(at now: Instant) {
        if let deadline = stepDeadline, deadline <= now {
            guard stepTries < Self.handshakeTriesMax else {
                sendAbort(.userInitiated)
                return end(.timedOut)
            }
            let wait = min(Self.handshakeFirst * (1 << min(stepTries, 4)), Self.handshakeMax)
            stepTries += 1
            stepDeadline = now + wait
            isStepDue = true
            if phase == .cookieEchoed { sender.repeatAll(at: now, &work) }
        }
        guard phase.sendsData || phase.receivesData else { return }
        sender.handleTimeout(at: now, &work)
        let hasReceiverProgressed = receiver.handleTimeout(at: now)
        guard !sender.progress.hasExpired(at: now), hasReceiverProgressed else { return fail(.noProgress) }
        chargeWork(at: now)
    }

    /// Ends the association of a peer that causes too much work.
    mutating func chargeWork(at now: Instant) {
        if !work.charge(at: now), phase != .ended { fail(.excessiveWork) }
    }

    /// Ends the association and frees its memory; a later event tells. Messages that arrived before the peer ended it, in either way,
    /// are still delivered.
    mutating func end(_ reason: AssociationEnd) {
        guard phase != .ended else { return }
        phase = .ended
        endStep()
        control = []
        cookie = []
        sender.end()
        switch reason {
        case .shutDown, .abortedByPeer, .restartedByPeer, .timedOut: receiver.end(keepsMessages: true)
        case .aborted, .violation: receiver.end(keepsMessages: false)
        }
        receiver.append(.ended(reason))
    }

    mutating func fail(_ violation: ProtocolViolation) {
        sendAbort(.protocolViolation)
        end(.violation(violation))
    }

    private mutating func sendAbort(_ cause: ErrorCause) {
        guard let peer else { return }
        lone = [LoneChunk(tag: peer.tag, bytes: .errorChunk(.abort, cause))]
    }
}
