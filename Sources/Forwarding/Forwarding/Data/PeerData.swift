import Base
import MediaTypes
import SCTP

/// The data channels of one peer: an SCTP association whose packets are records of the peer's DTLS connection.
///
/// Received messages are handed out as events while the peer's credit lasts; others stay in the receive window. Messages to
/// send wait in bounded queues, and a receiver that is slow delays neither their senders nor other receivers.
struct PeerData: ~Copyable {
    /// Bytes of one peer's messages that are on their way to their readers.
    static let creditBytesMax = 512 << 10
    /// When the credit of a peer is looked at again.
    private static let creditRetry = Interval.milliseconds(10)
    /// Packets with data that leave in one turn.
    private static let packetsPerTurnMax = 16
    /// Packets of control that leave in one turn besides.
    private static let controlPacketsPerTurnMax = 4
    /// What waits on a channel with limited reliability: so long at the rate of the path, and so many bytes in any case.
    private static let lossyQueueTime = Interval.milliseconds(100)
    private static let lossyQueueMin = 8 << 10
    /// What may wait on a reliable channel of one who sends more than others: half of its queue, so that others find room.
    private static let greedyQueueMax = 256 << 10
    /// What may wait on an urgent channel while the budget of all peers is exceeded.
    private static let urgentQueueMin = 64 << 10
    /// How long the closing of all channels may take.
    private static let closingTime = Interval.milliseconds(500)

    private struct Channel {
        let id: DataChannelID
        let stream: SCTP.StreamID
        let parameters: DataChannelParameters
        /// Whether the peer opened it.
        let isIncoming: Bool
        /// The peer knows it.
        var isOpen: Bool
        /// Who sent what was queued on it.
        var shares = SenderShares()

        var isUrgent: Bool { parameters.priority >= ChannelParameters.urgentPriority }
        /// Whether it closes rather than miss a message: one of signaling, whose ends would disagree. Channels of messages lose
        /// the newest, because otherwise the messages of one client would close the channels of others.
        var closesOnOverflow: Bool { parameters.reliability == .reliable && isUrgent && !isIncoming }
    }

    private var channels: DataChannels
    /// What ``channels`` says of itself, noted after each change.
    private var status = DataChannelsStatus()
    /// Those that are not closed, by rising identifier. A peer has a few; a search of them takes less time than hashing.
    private var known: [Channel] = []
    private var identifierNext: UInt64 = 1
    /// Events that do not come from the association.
    private var events: [DataEvent] = []
    private let budget: DataBudget
    private let credit: DataCredit
    /// The status that the budget and the counters have.
    private var counted = DataChannelsStatus()
    /// Limits data to what media leaves of the path.
    private var pacer = Pacer()
    /// Data waits for the pacer, or events for credit, until then.
    private var retryAt: Instant?
    /// The last turn had no packets left for what it sends.
    private var lacksTurn = false
    /// Whether it is among those that wait in the ``DataBudget``.
    private var isWaiting = false
    /// All channels are being closed until then.
    private(set) var closesAt: Instant?
    private var isStarted = false

    /// - Parameter isClient: whether the server is the DTLS client.
    init(
        _ parameters: DataTransportParameters,
        isClient: Bool,
        budget: DataBudget,
        using generator: inout some RandomNumberGenerator
    ) {
        var settings = AssociationSettings()
        settings.port = parameters.port
        settings.incomingMessageBytesMax = DataTransportParameters.messageBytesMax
        settings.outgoingMessageBytesMax = parameters.messageBytesMax
        channels = DataChannels(isClient: isClient, settings, using: &generator)
        self.budget = budget
        credit = DataCredit(bytesMax: Self.creditBytesMax, parent: budget.credit)
        budget.peerCount += 1
    }

    deinit {
        budget.peerCount -= 1
        budget.heldBytes -= counted.heldBytes
        budget.queuedBytes -= counted.sendingBytes
    }

    /// Whether messages arrive and leave.
    var isEstablished: Bool { status.isEstablished }
    /// Channels that are not closed.
    var channelCount: Int { known.count }

    /// When there is something to do by itself.
    // Inlined, like `isClosed`, because a call of a function that only reads copies the value.
    @inline(__always)
    var nextDeadline: Instant? {
        guard isStarted else { return nil }
        return earliest(
            earliest(status.nextDeadline, retryAt),
            events.isEmpty ? closesAt : Instant(nanoseconds: .min)
        )
    }

    // MARK: - The association

    /// The DTLS connection is established.
    mutating func start(at now: Instant) {
        guard !isStarted else { return }
        isStarted = true
        channels.connect(at: now)
        status = channels.status()
    }

    /// Takes the application data of one record.
    mutating func receive(_ packet: RawSpan, _ counters: inout ForwarderCounters, at now: Instant) {
        do {
            try channels.receive(packet, at: now)
            counters.data.packetsReceived &+= 1
        } catch {
            counters.drop(.malformedSCTP)
        }
        noteStatus(&counters)
    }

    mutating func handleTimeout(at now: Instant) {
        if let retryAt, retryAt <= now { self.retryAt = nil }
        guard let deadline = status.nextDeadline, deadline <= now else { return }
        channels.handleTimeout(at: now)
        status = channels.status()
    }

    mutating func pathChanged(at now: Instant) {
        channels.pathChanged(at: now)
        status = channels.status()
    }

    /// Counts what the association holds now, and ends it when all together hold too much.
    private mutating func noteStatus(_ counters: inout ForwarderCounters) {
        status = channels.status()
        budget.heldBytes += status.heldBytes - counted.heldBytes
        budget.queuedBytes += status.sendingBytes - counted.sendingBytes
        counters.data.retransmissions &+= status.retransmissions &- counted.retransmissions
        counters.data.channelsRefused &+= status.refusedChannels &- counted.refusedChannels
        counted = status
        guard budget.exceedsHeld(status.heldBytes), !status.hasEnded else { return }
        channels.abort()
        status = channels.status()
    }

    // MARK: - Events

    /// Hands out what happened, as far as there is credit.
    /// - Returns: why the node ended the association, if that is among it.
    mutating func takeEvents(
        _ counters: inout ForwarderCounters,
        at now: Instant,
        _ body: (DataEvent) -> Void
    ) -> DataAssociationEnd? {
        if !events.isEmpty {
            for event in events { body(event) }
            events.removeAll()
        }
        var hasTaken = false
        defer { if hasTaken { noteStatus(&counters) } }
        var end: DataAssociationEnd?
        while credit.hasRoom {
            guard let event = channels.nextEvent(at: now) else { return end }
            hasTaken = true
            if case .ended(let reason) = event { end = DataAssociationEnd(reason) }
            if let event = translate(event, &counters) { body(event) }
        }
        retryAt = earliest(retryAt, now + Self.creditRetry)
        return end
    }

    private mutating func translate(_ event: DataChannelEvent, _ counters: inout ForwarderCounters) -> DataEvent? {
        switch event {
        case .established:
            counters.data.associations &+= 1
            return nil
        case .opened(let stream):
            guard let index = index(of: stream), !known[index].isOpen else { return nil }
            known[index].isOpen = true
            let lease = credit.lease(bytes: 0)
            return .opened(known[index].id, known[index].parameters, isIncoming: false, lease: lease)
        case .incoming(let stream, let parameters):
            let parameters = DataChannelParameters(parameters)
            let id = add(stream, parameters, isIncoming: true)
            return .opened(id, parameters, isIncoming: true, lease: credit.lease(bytes: 0))
        case .message(let stream, let isText, let bytes):
            guard let index = index(of: stream) else { return nil }
            counters.data.messagesReceived &+= 1
            counters.data.bytesReceived &+= UInt64(bytes.count)
            let lease = credit.lease(bytes: bytes.count)
            return .message(known[index].id, DataMessage(bytes, isText: isText, lease: lease))
        case .closed(let stream):
            guard let index = index(of: stream) else { return nil }
            let channel = known.remove(at: index)
            return .closed(channel.id, label: channel.parameters.label, .closed)
        case .ended:
            events += known.map { .closed($0.id, label: $0.parameters.label, .associationEnded) }
            known = []
            return nil
        }
    }

    private mutating func add(
        _ stream: SCTP.StreamID,
        _ parameters: DataChannelParameters,
        isIncoming: Bool
    ) -> DataChannelID {
        let id = DataChannelID(rawValue: identifierNext)
        identifierNext += 1
        known.append(
            Channel(id: id, stream: stream, parameters: parameters, isIncoming: isIncoming, isOpen: isIncoming)
        )
        return id
    }

    private func index(of id: DataChannelID) -> Int? { known.firstIndex { $0.id == id } }
    private func index(of stream: SCTP.StreamID) -> Int? { known.firstIndex { $0.stream == stream } }

    // MARK: - Commands

    /// Opens a channel. When that is not possible, it counts as closed.
    mutating func open(_ parameters: DataChannelParameters, at now: Instant) {
        guard closesAt == nil, let stream = try? channels.open(ChannelParameters(parameters), at: now) else {
            let id = DataChannelID(rawValue: identifierNext)
            identifierNext += 1
            events.append(.closed(id, label: parameters.label, .refused))
            return
        }
        status = channels.status()
        _ = add(stream, parameters, isIncoming: false)
    }

    /// Queues a message. When there is no room for it, a channel with limited reliability drops its oldest messages, or this one
    /// when its sender sent more than others. A reliable channel drops this one, or closes when it is of signaling.
    mutating func send(
        _ message: DataMessage,
        on id: DataChannelID,
        _ counters: inout ForwarderCounters,
        at now: Instant
    ) {
        guard closesAt == nil, let index = index(of: id) else { return }
        defer { noteStatus(&counters) }
        let stream = known[index].stream
        if counted.bufferedBytes == 0 { known[index].shares.removeAll() }
        known[index].shares.add(message.bytes.count, of: message.source)
        let isGreedy = known[index].shares.exceedsPart(message.source)
        do throws(SendError) {
            if known[index].parameters.reliability == .reliable {
                if isGreedy, channels.bufferedBytes(on: stream) > Self.greedyQueueMax { throw .full }
            } else {
                try makeRoom(for: message.bytes.count, isGreedy: isGreedy, on: stream, &counters)
            }
            if budget.exceedsQueued(counted.sendingBytes), !isNeeded(known[index]) { throw .full }
            try channels.send(message.bytes, isText: message.isText, on: stream, at: now)
            counters.data.messagesSent &+= 1
            counters.data.bytesSent &+= UInt64(message.bytes.count)
        } catch {
            guard error == .full, known[index].closesOnOverflow else {
                counters.data.messagesDropped &+= 1
                return
            }
            counters.data.channelsOverflowed &+= 1
            _ = channels.discardUnsent(on: stream, downTo: 0)
            channels.close(stream, at: now)
            let channel = known.remove(at: index)
            events.append(.closed(id, label: channel.parameters.label, .overflow))
        }
    }

    /// Whether a channel may queue more although all peers together have queued too much: one that is urgent and short.
    private func isNeeded(_ channel: Channel) -> Bool {
        channel.isUrgent && channels.bufferedBytes(on: channel.stream) < Self.urgentQueueMin
    }

    private mutating func makeRoom(
        for bytes: Int,
        isGreedy: Bool,
        on stream: SCTP.StreamID,
        _ counters: inout ForwarderCounters
    ) throws(SendError) {
        var limit = Self.lossyQueueMin
        if let roundTrip = channels.roundTripTime, roundTrip > .zero {
            let rounds = Self.lossyQueueTime.seconds / roundTrip.seconds
            limit = max(limit, Int(clamping: Double(channels.congestionWindow) * rounds))
        }
        let buffered = channels.bufferedBytes(on: stream)
        guard buffered + bytes > limit else { return }
        if isGreedy {
            // A long message takes the room that others leave.
            guard buffered <= limit / 2 else { throw .full }
            return
        }
        let dropped = channels.discardUnsent(on: stream, downTo: max(limit - bytes, 0))
        counters.data.messagesDropped &+= UInt64(dropped)
    }

    mutating func close(_ id: DataChannelID, at now: Instant) {
        guard let index = index(of: id) else { return }
        channels.close(known[index].stream, at: now)
        status = channels.status()
    }

    /// Closes all channels, and lets the connection end when they are closed, or half a second later.
    mutating func closeAll(at now: Instant) {
        guard closesAt == nil else { return }
        for channel in known { channels.close(channel.stream, at: now) }
        status = channels.status()
        closesAt = known.isEmpty || !status.isEstablished ? now : now + Self.closingTime
    }

    /// Whether the closing of all channels is over.
    @inline(__always)
    func isClosed(at now: Instant) -> Bool {
        guard let closesAt else { return false }
        return known.isEmpty || closesAt <= now
    }

    // MARK: - Packets

    /// Sends what is due, a few packets in one turn.
    ///
    /// - Parameters:
    ///   - rate: bit/s of data; `nil` for no limit but the association's own.
    ///   - send: sends one packet. What it cannot send counts as lost.
    mutating func flush(
        rate: Int?,
        _ counters: inout ForwarderCounters,
        at now: Instant,
        _ send: (RawSpan) -> Void
    ) {
        guard isStarted else { return }
        pacer.set(rate, burst: .milliseconds(20), at: now)
        var packets = 0
        var control = 0
        while true {
            let mayLeave = packets < Self.packetsPerTurnMax && budget.hasTurn && pacer.mayLeave(at: now)
            guard control < Self.controlPacketsPerTurnMax, let packet = nextPacket(mayLeave: mayLeave, at: now) else {
                lacksTurn = !budget.hasTurn
                let isLimited = !mayLeave && !lacksTurn || control == Self.controlPacketsPerTurnMax
                if isLimited { retryAt = earliest(retryAt, now + max(pacer.wait, .milliseconds(1))) }
                break
            }
            if packet.dataBytes > 0 {
                packets += 1
                budget.takePacket()
                pacer.take(packet.byteCount)
            } else {
                control += 1
            }
            counters.data.packetsSent &+= 1
            unsafe budget.packet.withUnsafeBytes { bytes in
                send(unsafe UnsafeRawBufferPointer(rebasing: bytes[..<packet.byteCount]).bytes)
            }
        }
        noteStatus(&counters)
    }

    /// Whether the peer is to wait in the ``DataBudget``. True once for each wait.
    mutating func mustWaitForTurn() -> Bool {
        guard lacksTurn, !isWaiting else { return false }
        isWaiting = true
        return true
    }

    /// It is its turn, and it does not wait in the ``DataBudget`` any more.
    ///
    /// A peer without a path sends nothing in its turn, and would wait for the next one until it has a path.
    mutating func turnCame() {
        isWaiting = false
        lacksTurn = false
    }

    private mutating func nextPacket(mayLeave: Bool, at now: Instant) -> OutgoingPacket? {
        unsafe budget.packet.withUnsafeMutableBytes { bytes in
            var span = unsafe bytes.mutableBytes
            return channels.nextPacket(into: &span, dataBudget: mayLeave ? .max : 0, at: now)
        }
    }
}

/// The data channels of a peer in memory of their own, so that a peer without any does not have room for them.
final class PeerDataBox {
    var value: PeerData {
        _read { yield unsafe storage }
        _modify { yield unsafe &storage }
    }
    /// Every record goes through it, in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var storage: PeerData

    init(_ value: consuming PeerData) { unsafe storage = value }
}

extension DataAssociationEnd {
    /// `nil` unless the node ended the association for what the peer did.
    init?(_ end: AssociationEnd) {
        switch end {
        case .shutDown, .abortedByPeer, .restartedByPeer, .timedOut: return nil
        // ``PeerData`` aborts for no other reason.
        case .aborted: self = .memory
        case .violation(.excessiveWork): self = .work
        case .violation(.flood): self = .flood
        case .violation(.noProgress), .violation(.windowStuck): self = .stalled
        case .violation: self = .violation
        }
    }
}

extension DataChannelParameters {
    init(_ parameters: ChannelParameters) {
        let reliability: Reliability =
            switch parameters.policy.limit {
            case .reliable: .reliable
            case .retransmissions(let count): .retransmissions(count)
            case .lifetime(let interval): .lifetime(milliseconds: Int(interval.milliseconds))
            }
        self.init(
            label: parameters.label,
            subprotocol: parameters.subprotocol,
            isOrdered: parameters.policy.isOrdered,
            reliability: reliability,
            priority: parameters.priority
        )
    }
}

extension ChannelParameters {
    init(_ parameters: DataChannelParameters) {
        let limit: SCTP.SendPolicy.Limit =
            switch parameters.reliability {
            case .reliable: .reliable
            case .retransmissions(let count): .retransmissions(count)
            case .lifetime(let milliseconds): .lifetime(.milliseconds(milliseconds))
            }
        self.init(
            label: parameters.label,
            subprotocol: parameters.subprotocol,
            policy: SCTP.SendPolicy(isOrdered: parameters.isOrdered, limit: limit),
            priority: parameters.priority
        )
    }
}
