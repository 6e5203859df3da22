import MediaTypes
import SCTP
import Wire

/// The data channels of one peer: an SCTP association whose packets are records of the peer's DTLS connection.
///
/// Received messages are handed out as events while the peer's credit lasts; others stay in the receive window. Messages to
/// send wait in bounded queues, and a receiver that is slow delays neither their senders nor other receivers.
final class PeerData {
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
    /// What may wait on an urgent channel while the budget of all peers is exceeded.
    private static let urgentQueueMin = 64 << 10
    /// How long the closing of all channels may take.
    private static let closingTime = Interval.milliseconds(500)

    private struct Channel {
        let stream: SCTP.StreamID
        let parameters: DataChannelParameters
        /// Whether the peer opened it.
        let isIncoming: Bool
        /// The peer knows it.
        var isOpen: Bool

        var isUrgent: Bool { parameters.priority >= ChannelParameters.urgentPriority }
        /// Whether it closes rather than miss a message: one of signaling, whose ends would disagree, and one of an
        /// application, which opens it again. Clients of Sora end with any channel that was opened to them, so those of
        /// messages lose the newest.
        var closesOnOverflow: Bool { parameters.reliability == .reliable && (isIncoming || isUrgent) }
    }

    private var channels: DataChannels
    private var known: [DataChannelID: Channel] = [:]
    private var identifiers: [SCTP.StreamID: DataChannelID] = [:]
    private var identifierNext: UInt64 = 1
    /// Events that do not come from the association.
    private var events: [DataEvent] = []
    private let budget: DataBudget
    private let credit: DataCredit
    private var counted = (held: 0, queued: 0, retransmissions: UInt64(0), refused: UInt64(0))
    /// Limits data to what media leaves of the path.
    private var pacer = Pacer()
    /// Data waits for the pacer, or events for credit, until then.
    private var retryAt: Instant?
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
        budget.heldBytes -= counted.held
        budget.queuedBytes -= counted.queued
    }

    /// Whether messages arrive and leave.
    var isEstablished: Bool { channels.isEstablished }
    /// Channels that are not closed.
    var channelCount: Int { known.count }

    /// When there is something to do by itself.
    var nextDeadline: Instant? {
        guard isStarted else { return nil }
        return earliest(
            earliest(channels.nextDeadline, retryAt),
            events.isEmpty ? closesAt : Instant(nanoseconds: .min)
        )
    }

    // MARK: - The association

    /// The DTLS connection is established.
    func start(at now: Instant) {
        guard !isStarted else { return }
        isStarted = true
        channels.connect(at: now)
    }

    /// Takes the application data of one record.
    func receive(_ packet: RawSpan, _ counters: inout ForwarderCounters, at now: Instant) {
        do {
            try channels.receive(packet, at: now)
            counters.data.packetsReceived &+= 1
        } catch {
            counters.drop(.malformedSCTP)
        }
        noteHeld(&counters)
    }

    func handleTimeout(at now: Instant) {
        if let retryAt, retryAt <= now { self.retryAt = nil }
        if let deadline = channels.nextDeadline, deadline <= now { channels.handleTimeout(at: now) }
    }

    func pathChanged() { channels.pathChanged() }

    private func noteHeld(_ counters: inout ForwarderCounters) {
        let held = channels.heldBytes
        budget.heldBytes += held - counted.held
        counted.held = held
        guard budget.exceedsHeld(held), !channels.hasEnded else { return }
        counters.data.associationsAborted &+= 1
        channels.abort()
    }

    private func noteQueued(_ counters: inout ForwarderCounters) {
        let queued = channels.bufferedBytes
        budget.queuedBytes += queued - counted.queued
        counted.queued = queued
        counters.data.retransmissions &+= channels.retransmissions &- counted.retransmissions
        counted.retransmissions = channels.retransmissions
        counters.data.channelsRefused &+= channels.refusedChannels &- counted.refused
        counted.refused = channels.refusedChannels
    }

    // MARK: - Events

    /// Hands out what happened, as far as there is credit.
    func takeEvents(_ counters: inout ForwarderCounters, at now: Instant, _ body: (DataEvent) -> Void) {
        for event in events { body(event) }
        events.removeAll()
        while credit.hasRoom {
            guard let event = channels.nextEvent(at: now) else {
                noteHeld(&counters)
                return
            }
            if let event = translate(event, &counters) { body(event) }
        }
        noteHeld(&counters)
        retryAt = earliest(retryAt, now + Self.creditRetry)
    }

    private func translate(_ event: DataChannelEvent, _ counters: inout ForwarderCounters) -> DataEvent? {
        switch event {
        case .established:
            counters.data.associations &+= 1
            return nil
        case .opened(let stream):
            guard let id = identifiers[stream], let channel = known[id], !channel.isOpen else { return nil }
            known[id]?.isOpen = true
            return .opened(id, channel.parameters, isIncoming: false, lease: credit.lease(bytes: 0))
        case .incoming(let stream, let parameters):
            let channel = Channel(
                stream: stream,
                parameters: DataChannelParameters(parameters),
                isIncoming: true,
                isOpen: true
            )
            let id = add(channel)
            return .opened(id, channel.parameters, isIncoming: true, lease: credit.lease(bytes: 0))
        case .message(let stream, let isText, let bytes):
            guard let id = identifiers[stream] else { return nil }
            counters.data.messagesReceived &+= 1
            counters.data.bytesReceived &+= UInt64(bytes.count)
            return .message(id, DataMessage(bytes, isText: isText, lease: credit.lease(bytes: bytes.count)))
        case .closed(let stream):
            guard let id = identifiers[stream] else { return nil }
            return remove(id).map { .closed(id, label: $0.parameters.label, .closed) }
        case .ended:
            let ended = known.sorted { $0.key.rawValue < $1.key.rawValue }
            (known, identifiers) = ([:], [:])
            events += ended.map { .closed($0.key, label: $0.value.parameters.label, .associationEnded) }
            return nil
        }
    }

    private func add(_ channel: Channel) -> DataChannelID {
        let id = DataChannelID(rawValue: identifierNext)
        identifierNext += 1
        known[id] = channel
        identifiers[channel.stream] = id
        return id
    }

    private func remove(_ id: DataChannelID) -> Channel? {
        guard let channel = known.removeValue(forKey: id) else { return nil }
        if identifiers[channel.stream] == id { identifiers[channel.stream] = nil }
        return channel
    }

    // MARK: - Commands

    /// Opens a channel. When that is not possible, it counts as closed.
    func open(_ parameters: DataChannelParameters, at now: Instant) {
        guard closesAt == nil, let stream = try? channels.open(ChannelParameters(parameters), at: now) else {
            let id = DataChannelID(rawValue: identifierNext)
            identifierNext += 1
            events.append(.closed(id, label: parameters.label, .refused))
            return
        }
        _ = add(Channel(stream: stream, parameters: parameters, isIncoming: false, isOpen: false))
    }

    /// Queues a message. When there is no room for it, a channel with limited reliability drops its oldest messages, and a
    /// reliable one closes or drops this message.
    func send(_ message: DataMessage, on id: DataChannelID, _ counters: inout ForwarderCounters, at now: Instant) {
        guard let channel = known[id], closesAt == nil else { return }
        defer { noteQueued(&counters) }
        if channel.parameters.reliability != .reliable {
            makeRoom(for: message.bytes.count, on: channel.stream, &counters)
        }
        do throws(SendError) {
            if budget.exceedsQueued(counted.queued), !isNeeded(channel) { throw .full }
            try channels.send(message.bytes, isText: message.isText, on: channel.stream, at: now)
            counters.data.messagesSent &+= 1
            counters.data.bytesSent &+= UInt64(message.bytes.count)
        } catch {
            guard error == .full, channel.closesOnOverflow else {
                counters.data.messagesDropped &+= 1
                return
            }
            counters.data.channelsOverflowed &+= 1
            _ = channels.discardUnsent(on: channel.stream, downTo: 0)
            channels.close(channel.stream, at: now)
            if remove(id) != nil { events.append(.closed(id, label: channel.parameters.label, .overflow)) }
        }
    }

    /// Whether a channel may queue more although all peers together have queued too much: one that is urgent and short.
    private func isNeeded(_ channel: Channel) -> Bool {
        channel.isUrgent && channels.bufferedBytes(on: channel.stream) < Self.urgentQueueMin
    }

    private func makeRoom(for bytes: Int, on stream: SCTP.StreamID, _ counters: inout ForwarderCounters) {
        var limit = Self.lossyQueueMin
        if let roundTrip = channels.roundTripTime, roundTrip > .zero {
            let rounds = Self.lossyQueueTime.seconds / roundTrip.seconds
            limit = max(limit, Int(clamping: Double(channels.congestionWindow) * rounds))
        }
        guard channels.bufferedBytes(on: stream) + bytes > limit else { return }
        let dropped = channels.discardUnsent(on: stream, downTo: max(limit - bytes, 0))
        counters.data.messagesDropped &+= UInt64(dropped)
    }

    func close(_ id: DataChannelID, at now: Instant) {
        guard let channel = known[id] else { return }
        channels.close(channel.stream, at: now)
    }

    /// Closes all channels, and lets the connection end when they are closed, or half a second later.
    func closeAll(at now: Instant) {
        guard closesAt == nil else { return }
        for channel in known.values { channels.close(channel.stream, at: now) }
        closesAt = known.isEmpty || !channels.isEstablished ? now : now + Self.closingTime
    }

    /// Whether the closing of all channels is over.
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
    func flush(
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
            let mayLeave = packets < Self.packetsPerTurnMax && pacer.mayLeave(at: now)
            guard control < Self.controlPacketsPerTurnMax, let packet = nextPacket(mayLeave: mayLeave, at: now) else {
                let isLimited = !mayLeave || control == Self.controlPacketsPerTurnMax
                if isLimited { retryAt = earliest(retryAt, now + max(pacer.wait, .milliseconds(1))) }
                break
            }
            if packet.dataBytes > 0 {
                packets += 1
                pacer.take(packet.byteCount)
            } else {
                control += 1
            }
            counters.data.packetsSent &+= 1
            unsafe budget.packet.withUnsafeBytes { bytes in
                send(unsafe UnsafeRawBufferPointer(rebasing: bytes[..<packet.byteCount]).bytes)
            }
        }
        noteQueued(&counters)
    }

    private func nextPacket(mayLeave: Bool, at now: Instant) -> OutgoingPacket? {
        unsafe budget.packet.withUnsafeMutableBytes { bytes in
            var span = unsafe bytes.mutableBytes
            return channels.nextPacket(into: &span, dataBudget: mayLeave ? .max : 0, at: now)
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
