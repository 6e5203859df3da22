package import Base
package import ChannelTypes
import Deflate
package import MediaTypes

/// What a router knows of a participant, of this node or another one.
package struct DataParticipant: Sendable {
    package let id: ParticipantID
    package let peer: PeerID
    package let location: MediaLocation
    package let bundle: Bundle
    /// Whom its messages are from, as receivers are told.
    package let clientID: String
    package let displayName: String?

    package init(
        id: ParticipantID,
        peer: PeerID,
        location: MediaLocation,
        bundle: Bundle,
        clientID: String,
        displayName: String?
    ) {
        self.id = id
        self.peer = peer
        self.location = location
        self.bundle = bundle
        self.clientID = clientID
        self.displayName = displayName
    }
}

/// Who gets the messages of whom: the data channels of one channel's participants.
///
/// Messages of labels with `#` go to all other participants with the label that receive. Messages of other labels go to the
/// participant's signaling. Participants of one bundle do not get each other's messages. A participant without a plan, over
/// WHIP or WHEP, opens channels itself.
///
/// Events wait in a queue, ``enqueue(_:from:at:)``, and are handled one at a time, ``next(at:part:)``, so that the owner can do
/// other work between them. What a message takes is metered before it is decompressed, and while it is. A message to others that
/// has no room waits, and with it the credit of its sender, which is slowed down that way.
package struct DataRouter: Sendable {
    package enum Effect: Sendable {
        case command(DataCommand, location: MediaLocation)
        /// A message of a participant to others. It may be sent after commands that follow it.
        case deliver(DataMessage, to: [DataAddress], location: MediaLocation)
        case post(ParticipantDataEvent, to: ParticipantID)
        case drop(MessageDropReason)
        /// Participants of other nodes may receive the message.
        case relay(RemoteMessage, to: Set<NodeIncarnation>)
        /// A user wrote a text to the channel's chat.
        case chatted(user: String, displayName: String?, text: String)
        /// A participant reads the chat from now on.
        case chatOpened(ParticipantID)
    }

    /// What one event led to.
    package struct Step: Sendable {
        package var effects: [Effect] = []
        /// Steps of work: one, and one for each 4 KiB of content that was made, each 512 bytes that were compressed and each 64
        /// receivers that were looked at. A step takes 2 to 10 µs.
        package var work = 1
    }

    /// The most messages a second of one participant to its signaling, and at once: as many as its budget on the WebSocket has.
    private static let signalingMessagesPerSecond = 100
    private static let signalingMessagesBurst = 1_000
    /// The same of bytes of their content. The longest description is 256 KiB and is sent once a second at most; statistics come
    /// twice a minute.
    private static let signalingBytesPerSecond = 1 << 20
    private static let signalingBytesBurst = 4 << 20
    /// The most bytes of content to others at once. With the longest message behind them they fit into the queue of a receiver,
    /// who therefore loses nothing of a burst.
    static let bytesBurst = 192 << 10
    /// How long a message to others may wait for room in the meters of its sender. What would wait longer is dropped, so that a
    /// sender's own signaling does not wait behind it for minutes.
    static let patience = Interval.seconds(2)
    /// The same where messages may be lost: as long as they wait at a receiver.
    static let lossyPatience = Interval.milliseconds(100)
    /// Bytes of a message that are one delivery to one receiver: what a packet has room for.
    private static let bytesPerDelivery = 1_160
    /// A message may take so many seconds of its sender's deliveries: 256 KiB to 880 receivers, by default.
    private static let messageSecondsMax = 10
    /// Participants of other nodes whose deliveries are counted by themselves.
    static let remoteSendersMax = 1_024
    /// Bytes of content, bytes that are compressed, and receivers, that are a step of work.
    private static let bytesPerStep = 4_096
    private static let compressedBytesPerStep = 512
    private static let receiversPerStep = 64
    /// Receivers that are looked at in vain for the cost of one delivery.
    private static let lookedAtPerDelivery = 16

    /// The sender of a message as its receivers are told of it.
    private struct Sender {
        let id: ParticipantID
        /// ``DataMessage/source`` of its messages.
        let number: UInt64
        let bundle: Bundle
        let user: String
        let displayName: String?
        /// ``DataChannelPlan/Header/user`` of its messages.
        let userHeader: [UInt8]

        init(_ participant: DataParticipant) {
            id = participant.id
            number = participant.peer.rawValue
            bundle = participant.bundle
            user = participant.clientID
            displayName = participant.displayName
            let fields = [participant.clientID, participant.displayName ?? ""].map { $0.utf8.prefix(Int(UInt16.max)) }
            userHeader = fields.reduce(into: Array(participant.id.value.utf8)) { header, field in
                header += [UInt8(field.count >> 8), UInt8(field.count & 0xFF)] + field
            }
        }

        /// What its messages begin with where a receiver's channel has the header.
        func header(_ header: DataChannelPlan.Header) -> [UInt8] {
            switch header {
            case .none: []
            case .connection: Array(id.value.utf8)
            case .user: userHeader
            }
        }
    }

    private struct Member {
        let id: ParticipantID
        let peer: PeerID
        let location: MediaLocation
        let sender: Sender
        let farewell: (@Sendable (EndReason) -> (label: String, bytes: [UInt8])?)?
        /// What each label is for. With a plan all labels are known from the beginning.
        var plan: [String: DataChannelPlan] = [:]
        var channels: [String: DataChannelID] = [:]
        var labels: [DataChannelID: String] = [:]
        /// Those for signaling, from the arrival of the event that opens them on.
        var signalingChannels: Set<DataChannelID> = []
        /// What it sends to others.
        var messages: TokenBucket
        var bytes: TokenBucket
        var deliveries: TokenBucket
        /// What it sends to its signaling.
        var signalingMessages = TokenBucket(
            DataRouter.signalingMessagesPerSecond,
            burst: DataRouter.signalingMessagesBurst
        )
        var signalingBytes = TokenBucket(
            DataRouter.signalingBytesPerSecond,
            burst: DataRouter.signalingBytesBurst
        )
        /// Whether it is to be ended for a message to its signaling.
        var isRefused = false
        var isComplete = false

        var hasPlan: Bool { farewell != nil }
    }

    /// The form in which a receiver gets a message.
    private struct Form: Hashable {
        let isCompressed: Bool
        let header: DataChannelPlan.Header
    }

    private let limits: RoomLimits
    private var members: [ParticipantID: Member] = [:]
    private var participants: [PeerID: ParticipantID] = [:]
    private var waiting = DataQueue()
    /// Of the whole channel.
    private var deliveries: TokenBucket
    /// Of participants of other nodes, while they are not paid for.
    private var remoteDeliveries: [ParticipantID: TokenBucket] = [:]
    /// The members with an open channel of a label that receive, in the order of opening.
    private var receivers: [String: [ParticipantID]] = [:]
    /// The labels that participants of other nodes receive, by node.
    private var labelsOfNodes: [NodeIncarnation: Set<String>] = [:]
    /// Whether ``labels`` may have changed.
    package var labelsChanged = false

    package init(limits: RoomLimits = RoomLimits()) {
        self.limits = limits
        deliveries = TokenBucket(limits.channelDeliveriesPerSecond)
    }

    package var isEmpty: Bool { members.isEmpty && participants.isEmpty && receivers.isEmpty && waiting.isEmpty }

    /// The labels that participants of this node receive.
    package var labels: Set<String> { Set(receivers.keys) }

    /// The labels that participants of another node receive.
    package mutating func labelsFound(_ labels: Set<String>, of node: NodeIncarnation) {
        labelsOfNodes[node] = labels.isEmpty ? nil : labels
    }

    // MARK: - Members

    /// A participant with data channels is active. The channels of its plan are opened.
    package mutating func joined(_ participant: DataParticipant, plan: DataPlan?, at now: Instant) -> [Effect] {
        var member = Member(
            id: participant.id,
            peer: participant.peer,
            location: participant.location,
            sender: Sender(participant),
            farewell: plan?.farewell,
            messages: TokenBucket(limits.dataMessagesPerSecond),
            bytes: TokenBucket(
                limits.dataBytesPerSecond,
                burst: min(limits.dataBytesPerSecond, Self.bytesBurst)
            ),
            deliveries: TokenBucket(limits.dataDeliveriesPerSecond)
        )
        var effects: [Effect] = []
        for channel in plan?.channels ?? [] where member.plan[channel.parameters.label] == nil {
            member.plan[channel.parameters.label] = channel
            effects.append(.command(.open(member.peer, channel.parameters), location: member.location))
        }
        members[member.id] = member
        participants[member.peer] = member.id
        return effects
    }

    /// Whether ``left(_:reason:)`` ends the peer.
    package func endsPeer(_ peer: PeerID) -> Bool {
        participants[peer].flatMap { members[$0] }?.hasPlan == true
    }

    /// A participant's connection ended. Channels of a plan are closed before the peer, after the last message.
    package mutating func left(_ id: ParticipantID, reason: EndReason) -> [Effect] {
        guard let member = members[id] else { return [] }
        var effects: [Effect] = []
        if let (label, bytes) = member.farewell?(reason) { effects = send(bytes, on: label, to: id) }
        members[id] = nil
        participants[member.peer] = nil
        waiting.remove(member.peer)
        for label in member.channels.keys { removeReceiver(id, of: label) }
        guard member.hasPlan, !reason.isOfTransport else { return [] }
        effects.append(.command(.closeAll(member.peer), location: member.location))
        return effects
    }

    private mutating func removeReceiver(_ id: ParticipantID, of label: String) {
        receivers[label]?.removeAll { $0 == id }
        guard receivers[label]?.isEmpty == true else { return }
        receivers[label] = nil
        labelsChanged = true
    }

    // MARK: - Events of peers

    /// Queues an event. ``next(at:part:)`` handles it in its turn.
    package mutating func enqueue(_ event: DataEvent, from peer: PeerID, at now: Instant) {
        guard let id = participants[peer], members[id]?.isRefused == false else { return }
        // All events of a channel are in one flow, because those that open and close it may wait, too.
        let isSignaling: Bool
        switch event {
        case .opened(let channel, let parameters, let isIncoming, _):
            isSignaling = !isIncoming && !DataChannelPlan.isOfMessages(parameters.label)
            if isSignaling { members[id]?.signalingChannels.insert(channel) }
        case .message(let channel, _):
            isSignaling = members[id]?.signalingChannels.contains(channel) == true
        case .closed(let channel, _, _):
            isSignaling = members[id]?.signalingChannels.remove(channel) != nil
        }
        waiting.append(event, of: DataQueue.Flow(peer: peer, isSignaling: isSignaling), at: now)
    }

    /// Whether ``next(at:part:)`` has something to do.
    package func hasNext(at now: Instant) -> Bool { waiting.hasTurn(at: now) }

    /// When messages that have no room may have some; `nil` while none waits for that.
    package var nextDeadline: Instant? { waiting.nextResume }

    /// Handles one event that waits, of the participant whose turn it is.
    ///
    /// - Parameter part: counts deliveries on the node, and gives what this channel may have of them a second: see
    ///   ``NodeModel/delivered(_:by:at:)``.
    /// - Returns: `nil` when none waits that can be handled now.
    package mutating func next(at now: Instant, part: (Int) -> Int?) -> Step? {
        guard let (flow, entry) = waiting.takeTurn(at: now) else { return nil }
        switch handle(entry, of: flow.peer, at: now, part) {
        case .done(let step):
            waiting.removeFirst(of: flow)
            return step
        case .waits(let until):
            waiting.pause(flow, until: until)
            return Step()
        }
    }

    private enum Outcome {
        case done(Step)
        case waits(until: Instant)
    }

    private mutating func handle(
        _ entry: DataQueue.Entry,
        of peer: PeerID,
        at now: Instant,
        _ part: (Int) -> Int?
    ) -> Outcome {
        guard let id = participants[peer] else { return .done(Step()) }
        switch entry.event {
        case .opened(let channel, let parameters, let isIncoming, _):
            // Other nodes may have to be told of the label of one that the peer opens, so it takes a token as a message does. It is
            // never left out: the peer takes the channel for open.
            if isIncoming, let next = members[id]?.messages.nextRoom(at: now) {
                guard next <= now else { return .waits(until: next) }
                members[id]?.messages.charge(at: now)
            }
            return .done(Step(effects: opened(channel, parameters, isIncoming: isIncoming, of: id)))
        case .message(let channel, let message):
            guard let label = members[id]?.labels[channel], let plan = members[id]?.plan[label] else {
                return ignored(from: id, since: entry.since, at: now)
            }
            switch plan.use {
            case .signaling(sends: false): return .done(refuse(id, label, .notPermitted))
            case .signaling(sends: true): return .done(signaled(message, label, plan, from: id, at: now))
            case .messages: return sent(message, label, plan, from: id, since: entry.since, at: now, part)
            }
        case .closed(let channel, let label, _): return .done(Step(effects: closed(channel, label, of: id)))
        }
    }

    private mutating func opened(
        _ channel: DataChannelID,
        _ parameters: DataChannelParameters,
        isIncoming: Bool,
        of id: ParticipantID
    ) -> [Effect] {
        guard var member = members[id] else { return [] }
        let label = parameters.label
        if isIncoming {
            // Applications of SDKs may open channels of their own, which are for nobody. A second one of a label is, too.
            guard !member.hasPlan, DataChannelPlan.isOfMessages(label), member.channels[label] == nil else { return [] }
            member.plan[label] = DataChannelPlan(parameters, use: .messages(sends: true, receives: true))
        }
        guard let plan = member.plan[label] else { return [] }
        member.channels[label] = channel
        member.labels[channel] = label
        var effects: [Effect] = []
        if member.hasPlan, !member.isComplete, member.channels.count == member.plan.count {
            member.isComplete = true
            effects.append(.post(.opened, to: id))
        }
        members[id] = member
        if case .messages(_, receives: true) = plan.use {
            if receivers[label] == nil { labelsChanged = true }
            receivers[label, default: []].append(id)
            if label == DataChannelPlan.chatLabel { effects.append(.chatOpened(id)) }
        }
        return effects
    }

    private mutating func closed(_ channel: DataChannelID, _ label: String, of id: ParticipantID) -> [Effect] {
        guard var member = members[id] else { return [] }
        if let open = member.labels.removeValue(forKey: channel) {
            member.channels[open] = nil
            if !member.hasPlan { member.plan[open] = nil }
            members[id] = member
            removeReceiver(id, of: open)
        } else if member.channels[label] != nil || member.plan[label] == nil {
            return []
        }
        return member.hasPlan ? [.post(.closed(label: label), to: id)] : []
    }

    // MARK: - Messages

    /// The message of a participant's signaling on one of its channels.
    package func send(_ bytes: [UInt8], on label: String, to id: ParticipantID) -> [Effect] {
        guard let member = members[id], let plan = member.plan[label], let channel = member.channels[label] else {
            return []
        }
        let message = DataMessage(plan.isCompressed ? Zlib.compress(bytes) : bytes, isText: !plan.isCompressed)
        let address = DataAddress(peer: member.peer, channel: channel)
        return [.command(.send(message, to: [address]), location: member.location)]
    }

    private enum Pace {
        case now, never
        case later(Instant)
    }

    /// When there is room in two buckets, for a message that is worth it until `limit`.
    private static func pace(
        _ first: TokenBucket,
        _ second: TokenBucket,
        until limit: Instant,
        at now: Instant
    ) -> Pace {
        guard let one = first.nextRoom(at: now), let other = second.nextRoom(at: now) else { return .never }
        let next = max(one, other)
        if next <= now { return .now }
        return next > limit ? .never : .later(next)
    }

    /// A message of a participant on a channel that is for nobody. It takes a token all the same, so that many of them slow their
    /// sender down.
    private mutating func ignored(from id: ParticipantID, since: Instant, at now: Instant) -> Outcome {
        guard let member = members[id] else { return .done(Step()) }
        switch Self.pace(member.messages, member.bytes, until: since + Self.patience, at: now) {
        case .now:
            members[id]?.messages.charge(at: now)
            return .done(Step())
        case .later(let next): return .waits(until: next)
        case .never: return .done(Step(effects: [.drop(.rate)]))
        }
    }

    /// A message of a participant to others. It takes a token before it is decompressed, and its content takes bytes while it is.
    /// What is made for its receivers takes bytes, too, and each of them takes deliveries.
    private mutating func sent(
        _ message: DataMessage,
        _ label: String,
        _ plan: DataChannelPlan,
        from id: ParticipantID,
        since: Instant,
        at now: Instant,
        _ part: (Int) -> Int?
    ) -> Outcome {
        guard let member = members[id] else { return .done(Step()) }
        let limit = since + (plan.parameters.reliability == .reliable ? Self.patience : Self.lossyPatience)
        switch Self.pace(member.messages, member.bytes, until: limit, at: now) {
        case .now: break
        case .later(let next): return .waits(until: next)
        case .never: return .done(Step(effects: [.drop(.rate)]))
        }
        let maySend = if case .messages(sends: true, _) = plan.use { true } else { false }
        let pace = maySend ? Self.pace(member.deliveries, deliveries, until: limit, at: now) : .now
        if case .later(let next) = pace { return .waits(until: next) }
        members[id]?.messages.charge(at: now)
        guard maySend else { return .done(Step(effects: [.drop(.notPermitted)])) }
        if case .never = pace { return .done(Step(effects: [.drop(.deliveries)])) }

        let receivers = findReceivers(of: label, from: member.sender)
        let nodes = labelsOfNodes.filter { $0.value.contains(label) }.keys
        let isKept = label == DataChannelPlan.chatLabel && limits.chatHistoryMax > 0
        guard receivers.count + nodes.count > 0 || isKept else {
            members[id]?.bytes.charge(message.bytes.count, at: now)
            members[id]?.deliveries.charge(receivers.lookedAt / Self.lookedAtPerDelivery, at: now)
            return .done(Step(work: 1 + receivers.work))
        }
        var made = 0
        let content: [UInt8]
        do throws(ZlibError) {
            content = try Self.content(of: message, plan) { count in
                made += count
                members[id]?.bytes.charge(count, at: now)
            }
        } catch {
            // Its receivers were looked for, as for one that is sent.
            members[id]?.bytes.charge(message.bytes.count - made, at: now)
            members[id]?.deliveries.charge(receivers.count + nodes.count, at: now)
            let work = 1 + receivers.work + made / Self.bytesPerStep
            return .done(Step(effects: [.drop(.malformed)], work: work))
        }
        // A message that is not compressed, or longer than its content.
        members[id]?.bytes.charge(message.bytes.count - made, at: now)
        let count = Self.deliveries(of: content.count, to: receivers.count + nodes.count)
        guard count <= Self.messageSecondsMax * limits.dataDeliveriesPerSecond else {
            let work = 1 + receivers.work + made / Self.bytesPerStep
            return .done(Step(effects: [.drop(.deliveries)], work: work))
        }
        members[id]?.deliveries.charge(count, at: now)
        deliveries.charge(count, at: now, atMost: part(count).map { TokenRate($0) })

        let compressed = plan.isCompressed ? message.bytes : nil
        let isText = message.isText && !plan.isCompressed
        let relayed = RemoteMessage(sender: id, label: label, isText: isText, bytes: content)
        let lease = made > 0 ? message.lease?.extended(by: made) : message.lease
        let distribution = distribute(relayed, compressed: compressed, lease, from: member.sender, to: receivers)
        members[id]?.bytes.charge(distribution.compressedBytes, at: now)
        var step = distribution.step
        if !nodes.isEmpty { step.effects.append(.relay(relayed, to: Set(nodes))) }
        if isKept, let chatted = Self.chatted(content, by: member.sender) { step.effects.append(chatted) }
        step.work += made / Self.bytesPerStep
        return .done(step)
    }

    private static func deliveries(of bytes: Int, to receivers: Int) -> Int {
        receivers * max((bytes + bytesPerDelivery - 1) / bytesPerDelivery, 1)
    }

    /// A message of a participant to its signaling. It takes a token before it is decompressed, and its content takes bytes while
    /// it is.
    private mutating func signaled(
        _ message: DataMessage,
        _ label: String,
        _ plan: DataChannelPlan,
        from id: ParticipantID,
        at now: Instant
    ) -> Step {
        guard let member = members[id], member.signalingMessages.hasRoom(at: now),
            member.signalingBytes.hasRoom(at: now)
        else { return refuse(id, label, .rate) }
        members[id]?.signalingMessages.charge(at: now)
        if !plan.isCompressed { members[id]?.signalingBytes.charge(message.bytes.count, at: now) }
        var inflated = 0
        do throws(ZlibError) {
            let content = try Self.content(of: message, plan) { count in
                inflated += count
                members[id]?.signalingBytes.charge(count, at: now)
            }
            let lease = inflated > 0 ? message.lease?.extended(by: inflated) : message.lease
            return Step(
                effects: [.post(.message(label: label, content, lease: lease), to: id)],
                work: 1 + inflated / Self.bytesPerStep
            )
        } catch {
            var step = refuse(id, label, error == .tooLong ? .tooLong : .malformed)
            step.work += inflated / Self.bytesPerStep
            return step
        }
    }

    /// The participant is to be ended. Nothing that it still sends costs anything.
    private mutating func refuse(_ id: ParticipantID, _ label: String, _ violation: DataViolation) -> Step {
        guard let member = members[id], !member.isRefused else { return Step() }
        members[id]?.isRefused = true
        waiting.remove(member.peer)
        return Step(effects: [.post(.refused(label: label, violation), to: id)])
    }

    /// A message of a participant of another node, which has checked that it may be sent. It does not wait: one that has no room
    /// is dropped.
    package mutating func received(
        _ message: RemoteMessage,
        from participant: DataParticipant,
        at now: Instant,
        part: (Int) -> Int?
    ) -> Step {
        guard DataChannelPlan.isOfMessages(message.label),
            message.bytes.count <= DataTransportParameters.messageBytesMax
        else { return Step(effects: [.drop(.malformed)]) }
        var own = remoteDeliveries[participant.id] ?? TokenBucket(limits.dataDeliveriesPerSecond)
        guard own.hasRoom(at: now), deliveries.hasRoom(at: now) else { return Step(effects: [.drop(.deliveries)]) }
        let sender = Sender(participant)
        let receivers = findReceivers(of: message.label, from: sender)
        guard receivers.count > 0 else { return Step() }
        let count = Self.deliveries(of: message.bytes.count, to: receivers.count)
        guard count <= Self.messageSecondsMax * limits.dataDeliveriesPerSecond else {
            return Step(effects: [.drop(.deliveries)])
        }
        own.charge(count, at: now)
        deliveries.charge(count, at: now, atMost: part(count).map { TokenRate($0) })
        if remoteDeliveries[participant.id] == nil, remoteDeliveries.count >= Self.remoteSendersMax {
            remoteDeliveries = remoteDeliveries.filter { !$0.value.isFull(at: now) }
        }
        if remoteDeliveries[participant.id] != nil || remoteDeliveries.count < Self.remoteSendersMax {
            remoteDeliveries[participant.id] = own
        }
        var step = distribute(message, compressed: nil, nil, from: sender, to: receivers).step
        if message.label == DataChannelPlan.chatLabel, let chatted = Self.chatted(message.bytes, by: sender) {
            step.effects.append(chatted)
        }
        return step
    }

    /// - Returns: `nil` for what is no text, and for one that is too long to be kept.
    private static func chatted(_ content: [UInt8], by sender: Sender) -> Effect? {
        guard (1...ChatHistory.messageBytesMax).contains(content.count),
            let text = String(validating: content, as: UTF8.self)
        else { return nil }
        return .chatted(user: sender.user, displayName: sender.displayName, text: text)
    }

    /// Decompresses a message, if its channel is compressed. What expands more than messages do is refused: see
    /// ``Zlib/contentMax(of:)``.
    private static func content(
        of message: DataMessage,
        _ plan: DataChannelPlan,
        inflated: (Int) -> Void
    ) throws(ZlibError) -> [UInt8] {
        guard plan.isCompressed else { return message.bytes }
        let bytesMax = min(DataTransportParameters.messageBytesMax, Zlib.contentMax(of: message.bytes.count))
        return try Zlib.decompress(message.bytes, bytesMax: bytesMax, inflated: inflated)
    }

    /// The receivers of a message.
    private struct Receivers {
        var addresses: [Form: [MediaLocation: [DataAddress]]] = [:]
        var count = 0
        /// How many there were to choose from.
        var lookedAt = 0
        /// Steps of work for finding them.
        var work: Int { lookedAt / DataRouter.receiversPerStep }
    }

    private func findReceivers(of label: String, from sender: Sender) -> Receivers {
        var found = Receivers()
        let all = receivers[label] ?? []
        for receiver in all where receiver != sender.id {
            guard let member = members[receiver], member.sender.bundle != sender.bundle,
                let channel = member.channels[label],
                let form = member.plan[label].map({ Form(isCompressed: $0.isCompressed, header: $0.header) })
            else { continue }
            found.addresses[form, default: [:]][member.location, default: []]
                .append(DataAddress(peer: member.peer, channel: channel))
            found.count += 1
        }
        found.lookedAt = all.count
        return found
    }

    /// - Parameter compressed: the content as the sender compressed it.
    /// - Returns: what is to be done, and how many bytes were compressed for it.
    private func distribute(
        _ message: RemoteMessage,
        compressed: [UInt8]?,
        _ lease: DataLease?,
        from sender: Sender,
        to receivers: Receivers
    ) -> (step: Step, compressedBytes: Int) {
        var step = Step(work: 1 + receivers.work)
        var compressedBytes = 0
        for (form, places) in receivers.addresses {
            var bytes = form.header == .none ? message.bytes : sender.header(form.header) + message.bytes
            var isMade = form.header != .none
            if form.isCompressed {
                // A stream of the sender serves receivers as it is.
                if form.header == .none, let compressed {
                    bytes = compressed
                } else {
                    compressedBytes += bytes.count
                    step.work += 1 + bytes.count / Self.compressedBytesPerStep
                    bytes = Zlib.compress(bytes)
                    isMade = true
                }
            }
            let isText = message.isText && form == Form(isCompressed: false, header: .none)
            let sent = DataMessage(
                bytes,
                isText: isText,
                lease: isMade ? lease?.extended(by: bytes.count) : lease,
                source: sender.number
            )
            for (location, addresses) in places {
                step.effects.append(.deliver(sent, to: addresses, location: location))
            }
        }
        return (step, compressedBytes)
    }
}

/// A message between participants of different nodes, without compression.
package struct RemoteMessage: Hashable, Sendable {
    package let sender: ParticipantID
    package let label: String
    package let isText: Bool
    package let bytes: [UInt8]

    package init(sender: ParticipantID, label: String, isText: Bool, bytes: [UInt8]) {
        self.sender = sender
        self.label = label
        self.isText = isText
        self.bytes = bytes
    }
}
