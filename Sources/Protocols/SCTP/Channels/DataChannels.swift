public import Base

/// What happened to the data channels of a peer.
public enum DataChannelEvent: Hashable, Sendable {
    /// The association is there.
    case established
    /// The peer knows a channel that we opened.
    case opened(StreamID)
    /// The peer opened a channel.
    case incoming(StreamID, ChannelParameters)
    case message(StreamID, isText: Bool, [UInt8])
    /// Both directions of a channel are closed; its number may be used again.
    case closed(StreamID)
    /// The association is over, and all channels with it; nothing follows.
    case ended(AssociationEnd)
}

/// What ``DataChannels`` say of themselves; each part is the property of the same name.
public struct DataChannelsStatus: Hashable, Sendable {
    public fileprivate(set) var isEstablished = false
    public fileprivate(set) var hasEnded = false
    public fileprivate(set) var nextDeadline: Instant?
    public fileprivate(set) var bufferedBytes = 0
    public fileprivate(set) var heldBytes = 0
    public fileprivate(set) var outstandingBytes = 0
    /// ``bufferedBytes`` and ``outstandingBytes``.
    public var sendingBytes: Int { bufferedBytes + outstandingBytes }
    public fileprivate(set) var retransmissions: UInt64 = 0
    public fileprivate(set) var refusedChannels: UInt64 = 0

    /// Of channels of which nothing is known yet.
    public init() {}

    fileprivate init(
        isEstablished: Bool,
        hasEnded: Bool,
        nextDeadline: Instant?,
        bufferedBytes: Int,
        heldBytes: Int,
        outstandingBytes: Int,
        retransmissions: UInt64,
        refusedChannels: UInt64
    ) {
        self.isEstablished = isEstablished
        self.hasEnded = hasEnded
        self.nextDeadline = nextDeadline
        self.bufferedBytes = bufferedBytes
        self.heldBytes = heldBytes
        self.outstandingBytes = outstandingBytes
        self.retransmissions = retransmissions
        self.refusedChannels = refusedChannels
    }
}

/// The data channels of one peer (RFC 8831) on their association: opening (RFC 8832), messages, closing.
public struct DataChannels: ~Copyable, Sendable {
    private enum State: Hashable, Sendable {
        /// Our OPEN is on its way. Messages are ordered until it is answered (RFC 8832 §6).
        case opening
        case open
        /// Which direction is closed already.
        case closing(isOwnReset: Bool, isPeerReset: Bool)
    }

    /// What came too early, and is handled when its time comes.
    private enum Held: Sendable {
        case message(IncomingMessage)
        /// The peer closed a channel whose OPEN is held.
        case reset(StreamID)

        var stream: StreamID {
            switch self {
            case .message(let message): message.stream
            case .reset(let stream): stream
            }
        }
        /// With the overhead of holding it.
        var cost: Int {
            guard case .message(let message) = self else { return DataChannels.earlyOverhead }
            return message.bytes.count + DataChannels.earlyOverhead
        }
    }

    private struct Channel: Sendable {
        let id: StreamID
        let parameters: ChannelParameters
        var state: State
    }

    /// The most channels of a peer.
    public static let channelsMax = 128
    /// The longest label, and subprotocol, in bytes of UTF-8.
    public static let textBytesMax = 64
    /// The most bytes of messages that came before the OPEN of their channel.
    private static let earlyBytesMax = 16 << 10
    /// What holding an early message costs besides its bytes.
    private static let earlyOverhead = 64

    private var association: Association
    /// 0 for the DTLS client, which opens even numbers, 1 for the server (RFC 8832 §6).
    private let parity: UInt16
    /// Those that are not closed, in no order. There are few, and a search of them takes less time than hashing.
    private var channels: [Channel] = []
    private var early: [Held] = []
    private var earlyBytes = 0
    private var events = Queue<DataChannelEvent>()
    /// Messages that were dropped: of no channel, or of a kind that data channels do not have.
    public private(set) var droppedMessages: UInt64 = 0
    /// Channels of the peer that were refused.
    public private(set) var refusedChannels: UInt64 = 0

    /// - Parameter isClient: whether we are the DTLS client.
    public init(isClient: Bool, _ settings: AssociationSettings, using generator: inout some RandomNumberGenerator) {
        association = Association(settings, using: &generator)
        parity = isClient ? 0 : 1
    }

    // MARK: - The association

    public var isEstablished: Bool { association.isEstablished }
    public var hasEnded: Bool { association.hasEnded }
    public var nextDeadline: Instant? { association.nextDeadline }
    public var counters: AssociationCounters { association.counters }
    public var roundTripTime: Interval? { association.roundTripTime }
    public var congestionWindow: Int { association.congestionWindow }
    public var retransmissions: UInt64 { association.retransmissions }
    public var bufferedBytes: Int { association.bufferedBytes }
    /// Bytes of the peer's data that are held in the receive window.
    public var heldBytes: Int { association.heldBytes }
    /// See ``Association/outstandingBytes``.
    public var outstandingBytes: Int { association.outstandingBytes }
    /// See ``Association/workSteps``.
    public var workSteps: UInt64 { association.workSteps }
    public func bufferedBytes(on channel: StreamID) -> Int { association.bufferedBytes(on: channel) }

    /// All that the owner looks at after each change.
    ///
    /// It changes nothing. It is mutating because another module would copy all of a value that is only read.
    public mutating func status() -> DataChannelsStatus {
        DataChannelsStatus(
            isEstablished: association.isEstablished,
            hasEnded: association.hasEnded,
            nextDeadline: association.deadline,
            bufferedBytes: association.bufferedBytes,
            heldBytes: association.heldBytes,
            outstandingBytes: association.outstandingBytes,
            retransmissions: association.retransmissions,
            refusedChannels: refusedChannels
        )
    }

    /// Starts the handshake; called when DTLS is connected.
    public mutating func connect(at now: Instant) { association.connect(at: now) }

    /// Handles a packet: the application data of one DTLS record.
    public mutating func receive(_ packet: RawSpan, at now: Instant) throws(SCTPDropReason) {
        try association.receive(packet, at: now)
    }

    public mutating func handleTimeout(at now: Instant) {
        association.handleTimeout(at: now)
    }

    /// See ``Association/nextPacket(into:dataBudget:at:)``.
    public mutating func nextPacket(
        into buffer: inout MutableRawSpan,
        dataBudget: Int = .max,
        at now: Instant
    ) -> OutgoingPacket? {
        association.nextPacket(into: &buffer, dataBudget: dataBudget, at: now)
    }

    /// The path changed; ICE and DTLS stay.
    public mutating func pathChanged(at now: Instant) { association.pathChanged(at: now) }

    /// Ends all channels at once; the peer gets an ABORT.
    public mutating func abort() { association.abort() }

    /// The next event, oldest first. It may cause packets to be sent, so events are taken before packets; messages that are not
    /// taken stay in the receive window.
    public mutating func nextEvent(at now: Instant) -> DataChannelEvent? {
        while events.isEmpty, let event = association.nextEvent() { handle(event, at: now) }
        return events.removeFirst()
    }

    // MARK: - Channels

    /// The parameters of a channel that is not closed.
    public func parameters(of channel: StreamID) -> ChannelParameters? {
        index(of: channel).map { channels[$0].parameters }
    }
    public var channelCount: Int { channels.count }

    // These are inlined, because a call of a function that only reads copies the association.
    @inline(__always)
    private func index(of id: StreamID) -> Int? { channels.firstIndex { $0.id == id } }
    @inline(__always)
    private func state(of id: StreamID) -> State? { index(of: id).map { channels[$0].state } }
    private mutating func setState(of id: StreamID, to state: State) {
        if let index = index(of: id) { channels[index].state = state }
    }

    /// Opens a channel. Messages may be sent at once.
    public mutating func open(_ parameters: ChannelParameters, at now: Instant) throws(SendError) -> StreamID {
        guard parameters.label.utf8.count <= Self.textBytesMax, parameters.subprotocol.utf8.count <= Self.textBytesMax
        else { throw .tooLong }
        guard channels.count < Self.channelsMax else { throw .stream }
        let free = stride(from: parity, to: UInt16.max, by: 2).lazy.map(StreamID.init).first { id in
            index(of: id) == nil && !association.isSending(on: id)
        }
        guard let id = free else { throw .stream }
        try association.setWeight(Int(parameters.priority), of: id)
        try sendControl(.open(parameters), on: id, at: now)
        channels.append(Channel(id: id, parameters: parameters, state: .opening))
        return id
    }

    /// Sends a message on a channel.
    /// - Parameter bytes: never copied; may be empty.
    public mutating func send(_ bytes: [UInt8], isText: Bool, on id: StreamID, at now: Instant) throws(SendError) {
        guard let index = index(of: id) else { throw .stream }
        var policy = channels[index].parameters.policy
        switch channels[index].state {
        case .opening: policy.isOrdered = true
        case .open: break
        case .closing: throw .closing
        }
        let kind: PayloadProtocol
        switch (bytes.isEmpty, isText) {
        case (false, true): kind = .string
        case (false, false): kind = .binary
        case (true, true): kind = .emptyString
        case (true, false): kind = .emptyBinary
        }
        try association.send(
            bytes.isEmpty ? [0] : bytes,
            as: kind,
            on: id,
            policy: policy,
            isUrgent: channels[index].parameters.priority >= ChannelParameters.urgentPriority,
            at: now
        )
    }

    /// Drops the oldest unsent messages of a channel until `bytes` wait at most.
    /// - Returns: how many were dropped.
    public mutating func discardUnsent(on channel: StreamID, downTo bytes: Int) -> Int {
        association.discardUnsent(on: channel, downTo: bytes)
    }

    /// Closes a channel after its queued messages. ``DataChannelEvent/closed(_:)`` follows when the peer has closed it too.
    public mutating func close(_ id: StreamID, at now: Instant) {
        guard let index = index(of: id) else { return }
        if case .closing = channels[index].state { return }
        channels[index].state = .closing(isOwnReset: false, isPeerReset: false)
        association.reset(id, at: now)
    }

    private mutating func sendControl(
        _ message: EstablishmentMessage,
        on id: StreamID,
        at now: Instant
    ) throws(SendError) {
        try association.send(message.encoded(), as: .control, on: id, isCounted: false, at: now)
    }

    // MARK: - Events of the association

    private mutating func handle(_ event: AssociationEvent, at now: Instant) {
        switch event {
        case .established: events.append(.established)
        case .message(let message): receive(message, at: now)
        case .incomingReset(let streams): peerReset(streams ?? channels.map(\.id).sorted(), at: now)
        case .outgoingReset(let streams): for id in streams { ownReset(id, isRefused: false, at: now) }
        case .outgoingResetRefused(let streams): for id in streams { ownReset(id, isRefused: true, at: now) }
        case .ended(let reason):
            channels = []
            early = []
            earlyBytes = 0
            events.append(.ended(reason))
        }
    }

    private mutating func receive(_ message: IncomingMessage, at now: Instant) {
        let id = message.stream
        // The peer closed the channel and opens the next one of this number, before we know that our direction is closed.
        if case .closing(_, isPeerReset: true) = state(of: id) { return keepEarly(.message(message)) }
        switch message.payloadProtocol {
        case .control: receiveControl(message, at: now)
        case .string, .binary, .emptyString, .emptyBinary:
            guard index(of: id) != nil else { return keepEarly(.message(message)) }
            deliver(message)
        default: droppedMessages &+= 1
        }
    }

    private mutating func deliver(_ message: IncomingMessage) {
        let isText = message.payloadProtocol == .string || message.payloadProtocol == .emptyString
        let isEmpty = message.payloadProtocol == .emptyString || message.payloadProtocol == .emptyBinary
        events.append(.message(message.stream, isText: isText, isEmpty ? [] : message.bytes))
    }

    /// Unordered messages may overtake the OPEN of their channel.
    private mutating func keepEarly(_ held: Held) {
        guard earlyBytes + held.cost <= Self.earlyBytesMax else {
            droppedMessages &+= 1
            return
        }
        earlyBytes += held.cost
        early.append(held)
    }

    private mutating func receiveControl(_ message: IncomingMessage, at now: Instant) {
        let id = message.stream
        let parsed = EstablishmentMessage.parse(unsafe message.bytes.span.bytes, textBytesMax: Self.textBytesMax)
        switch parsed {
        case .ack:
            guard state(of: id) == .opening else { return }
            setState(of: id, to: .open)
            events.append(.opened(id))
        case .open(let parameters):
            // A second OPEN on a stream is an error of the peer (RFC 8832 §6).
            guard index(of: id) == nil, channels.count < Self.channelsMax else { return refuse(id, at: now) }
            do {
                try association.setWeight(Int(parameters.priority), of: id)
                try sendControl(.ack, on: id, at: now)
            } catch { return refuse(id, at: now) }
            channels.append(Channel(id: id, parameters: parameters, state: .open))
            events.append(.incoming(id, parameters))
            releaseEarly(of: id, at: now)
        case nil: refuse(id, at: now)
        }
    }

    private mutating func takeEarly(of id: StreamID) -> [Held] {
        let held = early.filter { $0.stream == id }
        guard !held.isEmpty else { return [] }
        early.removeAll { $0.stream == id }
        for item in held { earlyBytes -= item.cost }
        return held
    }

    private mutating func releaseEarly(of id: StreamID, at now: Instant) {
        for item in takeEarly(of: id) {
            switch item {
            case .message(let message): receive(message, at: now)
            case .reset(let stream): peerReset([stream], at: now)
            }
        }
    }

    private mutating func refuse(_ id: StreamID, at now: Instant) {
        refusedChannels &+= 1
        if index(of: id) == nil { association.reset(id, at: now) } else { close(id, at: now) }
    }

    /// The peer closed its direction: ours follows (RFC 8831 §6.7).
    private mutating func peerReset(_ streams: [StreamID], at now: Instant) {
        // Most of a long list are no channels.
        let known = Set(channels.map(\.id)).union(early.map(\.stream))
        for id in streams where known.contains(id) {
            if case .closing(isOwnReset: false, isPeerReset: true) = state(of: id) {
                keepEarly(.reset(id))
                continue
            }
            droppedMessages &+= UInt64(takeEarly(of: id).count)
            switch state(of: id) {
            case nil: break
            case .opening, .open:
                setState(of: id, to: .closing(isOwnReset: false, isPeerReset: true))
                association.reset(id, at: now)
            case .closing(let isOwnReset, _):
                setState(of: id, to: .closing(isOwnReset: isOwnReset, isPeerReset: true))
                if isOwnReset { remove(id, at: now) }
            }
        }
    }

    /// Our direction is closed, or stays unusable.
    private mutating func ownReset(_ id: StreamID, isRefused: Bool, at now: Instant) {
        guard case .closing(_, let isPeerReset) = state(of: id) else { return }
        setState(of: id, to: .closing(isOwnReset: true, isPeerReset: isPeerReset))
        if isPeerReset || isRefused { remove(id, at: now) }
    }

    private mutating func remove(_ id: StreamID, at now: Instant) {
        if let index = index(of: id) { channels.remove(at: index) }
        events.append(.closed(id))
        releaseEarly(of: id, at: now)
    }
}
