import Deflate
package import MediaTypes
package import Wire

/// Who gets the messages of whom: the data channels of one channel's participants.
///
/// Messages of labels with `#` go to all other participants with the label that receive. Messages of other labels go to the
/// participant's signaling. Participants of one bundle do not get each other's messages. A participant without a plan, over
/// WHIP or WHEP, opens channels itself.
package struct DataRouter: Sendable {
    package enum Effect: Sendable {
        case command(DataCommand, location: MediaLocation)
        case post(ParticipantDataEvent, to: ParticipantID)
        case drop(MessageDropReason)
        /// Participants of other nodes may receive the message.
        case relay(RelayedMessage, to: Set<NodeIncarnation>)
    }

    /// The sender of a message as its receivers are told of it.
    private struct Sender {
        let id: ParticipantID
        let bundle: Bundle
        /// ``DataChannelPlan/Header/user`` of its messages.
        let userHeader: [UInt8]

        init(_ participant: Participant) {
            id = participant.id
            bundle = participant.bundle
            let user = participant.channelUser
            let fields = [user.id, user.displayName ?? ""].map { $0.utf8.prefix(Int(UInt16.max)) }
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
        var allowance: MessageAllowance
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
    /// The members with an open channel of a label that receive, in the order of opening.
    private var receivers: [String: [ParticipantID]] = [:]
    /// The labels that participants of other nodes receive, by node.
    private var labelsOfNodes: [NodeIncarnation: Set<String>] = [:]
    /// Whether ``labels`` may have changed.
    package var labelsChanged = false

    package init(limits: RoomLimits = RoomLimits()) { self.limits = limits }

    package var isEmpty: Bool { members.isEmpty && participants.isEmpty && receivers.isEmpty }

    /// The labels that participants of this node receive.
    package var labels: Set<String> { Set(receivers.keys) }

    /// The labels that participants of another node receive.
    package mutating func labelsFound(_ labels: Set<String>, of node: NodeIncarnation) {
        labelsOfNodes[node] = labels.isEmpty ? nil : labels
    }

    // MARK: - Members

    /// A participant with data channels is active. The channels of its plan are opened.
    mutating func joined(_ participant: Participant, plan: DataPlan?, at now: Instant) -> [Effect] {
        var member = Member(
            id: participant.id,
            peer: participant.peer,
            location: participant.location,
            sender: Sender(participant),
            farewell: plan?.farewell,
            allowance: MessageAllowance(
                messagesPerSecond: limits.dataMessagesPerSecond,
                bytesPerSecond: limits.dataBytesPerSecond,
                at: now
            )
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
    func endsPeer(_ peer: PeerID) -> Bool {
        participants[peer].flatMap { members[$0] }?.hasPlan == true
    }

    /// A participant's connection ended. Channels of a plan are closed before the peer, after the last message.
    mutating func left(_ id: ParticipantID, reason: EndReason) -> [Effect] {
        guard let member = members[id] else { return [] }
        var effects: [Effect] = []
        if let (label, bytes) = member.farewell?(reason) { effects = send(bytes, on: label, to: id) }
        members[id] = nil
        participants[member.peer] = nil
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

    package mutating func received(_ event: DataEvent, from peer: PeerID, at now: Instant) -> [Effect] {
        guard let id = participants[peer], members[id] != nil else { return [] }
        switch event {
        case .opened(let channel, let parameters, let isIncoming, _):
            return opened(channel, parameters, isIncoming: isIncoming, of: id)
        case .message(let channel, let message):
            guard let label = members[id]?.labels[channel] else { return [] }
            return received(message, label, from: id, at: now)
        case .closed(let channel, let label, _): return closed(channel, label, of: id)
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

    private mutating func received(
        _ message: DataMessage,
        _ label: String,
        from id: ParticipantID,
        at now: Instant
    ) -> [Effect] {
        guard let plan = members[id]?.plan[label] else { return [] }
        switch plan.use {
        case .signaling:
            guard let content = content(of: message, plan) else { return [.post(.damaged(label: label), to: id)] }
            return [.post(.message(label: label, content, lease: message.lease), to: id)]
        case .messages(sends: false, _): return [.drop(.notPermitted)]
        case .messages(sends: true, _):
            guard members[id]?.allowance.take(message.bytes.count, at: now) == true else { return [.drop(.rate)] }
            guard let content = content(of: message, plan) else { return [.drop(.malformed)] }
            guard let sender = members[id]?.sender else { return [] }
            let compressed = plan.isCompressed ? message.bytes : nil
            let isText = message.isText && !plan.isCompressed
            let nodes = labelsOfNodes.filter { $0.value.contains(label) }.keys
            let relayed = RelayedMessage(sender: id, label: label, isText: isText, bytes: content)
            return distribute(relayed, compressed: compressed, message.lease, from: sender)
                + (nodes.isEmpty ? [] : [.relay(relayed, to: Set(nodes))])
        }
    }

    /// A message of a participant of another node, which has checked that it may be sent.
    mutating func received(_ message: RelayedMessage, from participant: Participant) -> [Effect] {
        guard DataChannelPlan.isOfMessages(message.label),
            message.bytes.count <= DataTransportParameters.messageBytesMax
        else { return [.drop(.malformed)] }
        return distribute(message, compressed: nil, nil, from: Sender(participant))
    }

    /// Decompresses a message, if its channel is compressed.
    private func content(of message: DataMessage, _ plan: DataChannelPlan) -> [UInt8]? {
        guard plan.isCompressed else { return message.bytes }
        return try? Zlib.decompress(message.bytes, bytesMax: DataTransportParameters.messageBytesMax)
    }

    /// - Parameter compressed: the content as the sender compressed it.
    private func distribute(
        _ message: RelayedMessage,
        compressed: [UInt8]?,
        _ lease: DataLease?,
        from sender: Sender
    ) -> [Effect] {
        let label = message.label
        var addresses: [Form: [MediaLocation: [DataAddress]]] = [:]
        for receiver in receivers[label] ?? [] where receiver != sender.id {
            guard let member = members[receiver], member.sender.bundle != sender.bundle,
                let channel = member.channels[label],
                let form = member.plan[label].map({ Form(isCompressed: $0.isCompressed, header: $0.header) })
            else { continue }
            addresses[form, default: [:]][member.location, default: []]
                .append(DataAddress(peer: member.peer, channel: channel))
        }
        var effects: [Effect] = []
        for (form, places) in addresses {
            var bytes = form.header == .none ? message.bytes : sender.header(form.header) + message.bytes
            if form.isCompressed {
                // A stream of the sender serves receivers as it is.
                bytes = (form.header == .none ? compressed : nil) ?? Zlib.compress(bytes)
            }
            let isText = message.isText && form == Form(isCompressed: false, header: .none)
            let sent = DataMessage(bytes, isText: isText, lease: lease)
            for (location, receivers) in places {
                effects.append(.command(.send(sent, to: receivers), location: location))
            }
        }
        return effects
    }
}

/// A message between participants of different nodes, without compression.
public struct RelayedMessage: Hashable, Sendable {
    public let sender: ParticipantID
    public let label: String
    public let isText: Bool
    public let bytes: [UInt8]

    public init(sender: ParticipantID, label: String, isText: Bool, bytes: [UInt8]) {
        self.sender = sender
        self.label = label
        self.isText = isText
        self.bytes = bytes
    }
}
