import Admission
import ChannelData
import ChannelTypes
import MediaTypes

// The channel at the other nodes of a cluster.

extension Channel {
    /// Learns from the cluster whether other nodes have the channel, once. From then on nodes tell each other of it.
    func open() async {
        guard !isRetired, let cluster = context.cluster else { return }
        if !isOpen {
            isOpen = true
            model.joinCluster()
            let created = context.environment.clock.now().unixNanoseconds
            let session = ChannelSession(id: nextSession, channel: name, createdAt: created)
            opening = Task { opened(await cluster.open(name, session)) }
        }
        await opening?.value
    }

    /// Learns of the channel from other nodes, for a call that is about them; ``endLookUp()`` follows.
    /// - Returns: `false` when the actor is retired.
    func beginLookUp() async -> Bool {
        guard !isRetired else { return false }
        beginCall()
        await open()
        return true
    }

    func endLookUp() { endCall() }

    /// The members by their nodes.
    var memberCounts: [NodeIncarnation: Int] { model.memberCounts }

    private func opened(_ session: ChannelSession?) {
        opening = nil
        // It may have ended while the cluster was asked.
        guard let session, session.id != model.endedSession?.id else { return }
        apply { $0.sessionFound(session) }
    }

    /// The channel ends on this node.
    func closeInCluster() {
        guard isOpen else { return }
        isOpen = false
        for id in model.remoteMembers { context.node.withModel { $0.remoteLeft(id) } }
        context.cluster?.close(name, ended: model.endedSession)
    }

    // MARK: To other nodes

    /// Tells other nodes what has changed since the last call.
    func publishChanges() {
        defer { departures = [:] }
        guard isOpen, let cluster = context.cluster else { return }
        let (records, gone) = model.takeChanges()
        let left = gone.filter { told.removeValue(forKey: $0) != nil }
        if !left.isEmpty {
            let time = model.departedAt
            let departed = left.map { ChannelUpdate.Departed(id: $0, departure: departures[$0] ?? .ended, time: time) }
            cluster.send(.left(departed), of: name, to: nil)
        }
        let changed = records.filter { told[$0.id] != $0 }
        for record in changed { told[record.id] = record }
        let isRegisterChanged = toldRegister != model.registerVersion
        if isRegisterChanged {
            toldRegister = model.registerVersion
            model.signRegister(as: context.incarnation)
        }
        // A node that knows the channel without members of this node may not know its session.
        let session = model.ownSession
        if session?.id != toldSession {
            toldSession = session?.id
            if let session {
                for news in allNews(of: session) { cluster.send(news, of: name, to: nil) }
                return
            }
        }
        for part in changed.messageParts { cluster.send(.changed(part), of: name, to: nil) }
        if isRegisterChanged { cluster.send(.register(model.register), of: name, to: nil) }
    }

    /// Tells other nodes which messages members of this one receive, if that has changed.
    func tellLabels() {
        guard data.labelsChanged else { return }
        data.labelsChanged = false
        if isOpen { context.cluster?.send(.labels(data.labels), of: name, to: nil) }
    }

    /// ``ChannelDirectory/tell(_:of:)``
    func tell(_ node: NodeIncarnation) -> Bool {
        guard isOpen, !isRetired else { return false }
        for news in allNews(of: model.ownSession) { context.cluster?.send(news, of: name, to: node) }
        return true
    }

    private func allNews(of session: ChannelSession?) -> [ChannelUpdate] {
        ChannelUpdate.all(session, members: model.ownMembers, model.register, labels: data.labels)
    }

    // MARK: From other nodes

    /// ``ChannelDirectory/received(_:of:from:)-(ChannelUpdate,_,_)``
    func received(_ news: ChannelUpdate, from node: NodeIncarnation) {
        guard isOpen, !isRetired, node != context.incarnation else { return }
        switch news {
        case .all(let session, let records, let register, let labels, let others):
            if let session { apply { $0.sessionFound(session) } }
            let present = Set(records.map(\.id)).union(others ?? [])
            for id in model.members(of: node) where !present.contains(id) { left(id, .ended) }
            changed(records, of: node)
            found(register)
            data.labelsFound(labels, of: node)
        case .changed(let records): changed(records, of: node)
        case .left(let departed):
            for member in departed where model.participants[member.id]?.location.node == node {
                left(member.id, member.departure, at: member.time)
            }
        case .register(let register): found(register)
        case .labels(let labels): data.labelsFound(labels, of: node)
        }
    }

    /// ``ChannelDirectory/received(_:of:from:)-(RemoteMessage,_,_)``
    func received(_ message: RemoteMessage, from node: NodeIncarnation) {
        guard let sender = model.participants[message.sender], sender.isRemote, sender.location.node == node else {
            return
        }
        let now = context.environment.clock.now().instant
        perform(data.received(message, from: sender.forData, at: now, part: { delivered($0, at: now) }).effects)
    }

    private func changed(_ records: [MemberRecord], of node: NodeIncarnation) {
        for record in records where record.node == node {
            apply { model in
                model.remoteChanged(record) { context.node.withModel { $0.nextOrder() } }
            }
            guard model.participants[record.id]?.isRemote == true else { continue }
            context.node.withModel { $0.remoteJoined(record.id, name) }
        }
    }

    private func left(_ id: ParticipantID, _ departure: Departure, at time: Int64? = nil) {
        apply { $0.remoteLeft(id, departure, at: time) }
        context.node.withModel { $0.remoteLeft(id) }
    }

    private func found(_ register: ChannelRegister) {
        apply { $0.registerFound(register) }
        toldRegister = model.registerVersion
    }

    /// ``ChannelDirectory/lost(_:of:)``
    func lost(_ node: NodeIncarnation) {
        for id in model.members(of: node) { left(id, .timedOut) }
        data.labelsFound([], of: node)
    }
}
