import MediaTypes

extension ChannelActor {
    /// Hands an event to the model and performs its effects.
    func apply<Refusal>(
        _ event: (inout ChannelModel) throws(Refusal) -> [ChannelModel.Effect]
    ) throws(Refusal) {
        model.now = context.environment.clock.now()
        perform(try event(&model))
    }

    /// ``apply(_:)`` for callers from outside.
    func change<Refusal>(
        _ event: @Sendable (inout ChannelModel) throws(Refusal) -> [ChannelModel.Effect]
    ) throws(Refusal) {
        try apply(event)
    }

    func perform(_ effects: [ChannelModel.Effect]) {
        var slowConsumers: [ParticipantID] = []
        for effect in effects { perform(effect, &slowConsumers) }
        // Ended after the loop: their end is a notification to others, some of which may be slow consumers too.
        while let slowConsumer = slowConsumers.popLast() {
            for effect in model.left(slowConsumer, reason: .tooSlow) { perform(effect, &slowConsumers) }
        }
        publish()
    }

    private func perform(_ effect: ChannelModel.Effect, _ slowConsumers: inout [ParticipantID]) {
        switch effect {
        case .connect(let slot, let source, let layer, let location):
            // Replaces a target that waits: only the last one matters.
            let target = MediaCommandQueue.Target(source: source, layer: layer)
            if commands[location, default: MediaCommandQueue()].setTarget(target, for: slot) {
                enqueue(.connect(slot), at: location)
            }
        case .removePeer(let peer, let location):
            enqueue(.remove(peer), at: location)
        case .streamsChanged(let id):
            post(.subscriptionsChanged, to: id, &slowConsumers)
        case .connected(let id):
            context.node.withModel { $0.connected(id) }
            post(.connected, to: id, &slowConsumers)
        case .notify(let content, let ids):
            let notification = Notification(content, timestamp: model.now.unixNanoseconds)
            for id in ids { post(.notification(notification), to: id, &slowConsumers) }
        case .ended(let id, let reason):
            ended(id, reason)
        case .channelChanged:
            for changes in listeners.values { changes.yield() }
        case .report(let report):
            context.notice(.report(report))
        case .examineTransport(let id, let peer, let location):
            unexamined.append((id, peer, location))
            if examiner == nil { examiner = Task { await self.examineTransports() } }
        }
    }

    private func ended(_ id: ParticipantID, _ reason: EndReason) {
        mailboxes.removeValue(forKey: id)?.close(reason)
        let session = sessionOf.removeValue(forKey: id)
        if let session { sessions[session] = nil }
        context.node.withModel { node in
            node.left(id, reason: reason)
            if let session { node.sessionEnded(session) }
        }
        context.notice(.ended(id, reason))
    }

    /// Ends participants whose transport still has no path. One question at a time: they have waited for long already.
    private func examineTransports() async {
        while let next = unexamined.popLast() {
            let path = await context.plane(at: next.location).statistics(of: next.peer)?.path
            if path == nil, model.participants[next.id]?.isConnected == false { end(next.id, reason: .unreachable) }
        }
        examiner = nil
        publish()
    }

    /// Returns whether the participant's signaling takes events. A slow consumer has no room for this one.
    @discardableResult
    func post(_ event: ParticipantEvent, to id: ParticipantID, _ slowConsumers: inout [ParticipantID]) -> Bool {
        guard let mailbox = mailboxes[id] else { return false }
        if !mailbox.post(event) { slowConsumers.append(id) }
        return true
    }
}

// MARK: - Commands of media planes

extension ChannelActor {
    func enqueue(_ command: MediaCommandQueue.Command, at location: MediaLocation) {
        commands[location, default: MediaCommandQueue()].add(command)
        if workers[location] == nil { workers[location] = Task { await self.sendCommands(to: location) } }
    }

    /// One task a media plane, so that the plane gets the commands about each slot in their order.
    private func sendCommands(to location: MediaLocation) async {
        var connections: [PendingConnection] = []
        while let waiting = commands[location]?.takeCommands(), !waiting.isEmpty {
            for command in waiting {
                switch command {
                case .remove(let peer):
                    await connect(&connections, at: location)
                    await context.plane(at: location).removePeer(peer)
                case .connect(let slot):
                    // While a connection to another loop is under way the slot's next target waits for its end.
                    guard crossLoopConnects[slot] == nil, let target = commands[location]?.takeTarget(for: slot)
                    else { continue }
                    if let source = target.source, source.location != location {
                        crossLoopConnects[slot] = Task { await self.connectAcrossLoops(slot, target, at: location) }
                    } else {
                        connections.append((slot, target))
                        if connections.count == Self.connectionsMax { await connect(&connections, at: location) }
                    }
                }
            }
            await connect(&connections, at: location)
        }
        workers[location] = nil
        if commands[location]?.isEmpty == true { commands[location] = nil }
        publish()
    }

    private typealias PendingConnection = (slot: TrackID, target: MediaCommandQueue.Target)

    /// Connections that a media plane is asked for at once: as many as a loop takes jobs in one turn, so that a
    /// thousand viewers of a newcomer wait for a few turns of a busy loop instead of a thousand.
    private static let connectionsMax = 256

    /// Makes connections within one loop, each of another slot.
    private func connect(_ connections: inout [PendingConnection], at location: MediaLocation) async {
        let plane = context.plane(at: location)
        let batch = connections
        connections = []
        guard batch.count > 1 else {
            for (slot, target) in batch { await connect(slot, target, at: location) }
            return
        }
        await withTaskGroup(of: (slot: TrackID, error: String)?.self) { group in
            for (slot, target) in batch {
                group.addTask {
                    do {
                        try await plane.connect(slot: slot, to: target.source, layer: target.layer)
                        return nil
                    } catch {
                        return (slot, "\(error)")
                    }
                }
            }
            for await refusal in group {
                if let refusal { context.notice(.subscriptionFailed(slot: refusal.slot, refusal.error)) }
            }
        }
    }

    private func connectAcrossLoops(_ slot: TrackID, _ target: MediaCommandQueue.Target, at location: MediaLocation)
        async
    {
        await connect(slot, target, at: location)
        crossLoopConnects[slot] = nil
        if commands[location]?.hasTarget(for: slot) == true { enqueue(.connect(slot), at: location) }
        publish()
    }

    private func connect(_ slot: TrackID, _ target: MediaCommandQueue.Target, at location: MediaLocation) async {
        do {
            try await context.plane(at: location).connect(slot: slot, to: target.source, layer: target.layer)
        } catch {
            context.notice(.subscriptionFailed(slot: slot, "\(error)"))
        }
    }
}
