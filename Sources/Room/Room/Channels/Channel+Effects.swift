import Admission
import Base
import ChannelData
import ChannelTypes
import MediaTypes

extension Channel {
    /// Hands an event to the model and performs its effects.
    func apply<Refusal>(
        _ event: (inout ChannelModel) throws(Refusal) -> [ChannelModel.Effect]
    ) throws(Refusal) {
        model.now = context.environment.clock.now()
        // Those of refused events, too.
        defer { countLimitedChanges() }
        perform(try event(&model))
    }

    private func countLimitedChanges() {
        let counts = model.takeLimitedChanges()
        if !counts.isEmpty { context.node.withModel { $0.changesLimited(counts) } }
    }

    func perform(_ effects: [ChannelModel.Effect]) {
        var slowConsumers: [ParticipantID] = []
        for effect in effects { perform(effect, &slowConsumers) }
        // Ended after the loop: their end notifies others, which may be slow consumers too.
        while let slowConsumer = slowConsumers.popLast() {
            for effect in model.left(slowConsumer, reason: .tooSlow) { perform(effect, &slowConsumers) }
        }
        publishChanges()
        publish()
    }

    private func perform(_ effect: ChannelModel.Effect, _ slowConsumers: inout [ParticipantID]) {
        switch effect {
        case .connect(let slot, let source, let preference, let location):
            // Replaces a queued target of the slot.
            let target = MediaCommandQueue.Target(source: source, preference: preference)
            if commands[location, default: MediaCommandQueue()].setTarget(target, for: slot) {
                enqueue(.connect(slot), at: location)
            }
        case .limitSending(let peer, let bitsPerSecond, let location):
            enqueue(.limitSending(peer, bitsPerSecond: bitsPerSecond), at: location)
        case .removePeer(let peer, let location):
            // Otherwise the peer ends with its data channels, when its connection is lost.
            if !data.endsPeer(peer) { enqueue(.remove(peer), at: location) }
        case .streamsChanged(let id):
            post(.subscriptionsChanged, to: id, &slowConsumers)
        case .unusedLayersChanged(let id, let mid, let rids):
            post(.unusedLayers(mid: mid, rids: rids), to: id, &slowConsumers)
        case .connected(let id):
            context.node.withModel { $0.connected(id) }
            post(.connected, to: id, &slowConsumers)
        case .notify(let content, let ids):
            let notification = Notification(content, timestamp: model.now.unixNanoseconds)
            for id in ids { post(.notification(notification), to: id, &slowConsumers) }
        case .ended(let id, let reason):
            ended(id, reason)
        case .interrupted(let id, let reason):
            connectionLost(id, reason)
        case .channelChanged:
            for changes in listeners.values { changes.yield() }
        case .report(let report):
            context.onEvent(.report(report))
        case .push(let json, let ids):
            for id in ids { post(.push(json), to: id, &slowConsumers) }
        case .requestKeyFrames(let peer, let location):
            enqueue(.requestKeyFrames(peer), at: location)
        case .request(let command, let node):
            context.cluster?.send(command, of: name, to: node)
        case .checkTransport(let id, let peer, let location):
            uncheckedTransports.append((id, peer, location))
            if transportChecker == nil { transportChecker = Task { await self.checkTransports() } }
        }
    }

    private func ended(_ id: ParticipantID, _ reason: EndReason) {
        connectionLost(id, reason)
        departures[id] = Departure(reason)
        let now = context.environment.clock.now()
        context.node.withModel { $0.left(id, reason: reason, at: now) }
        let attendance = attendance(of: id)
        attendances[id] = nil
        context.onEvent(.ended(id, reason, attendance: attendance))
    }

    /// What the log has of a participant at present.
    func attendance(of id: ParticipantID) -> ChannelDirectory.ParticipantInfo? {
        guard var attendance = attendances[id] else { return nil }
        attendance.duration = context.environment.clock.now().instant - attendance.start
        return attendance
    }

    /// Frees what the participant's connection has: its data channels, its mailbox and its resource.
    private func connectionLost(_ id: ParticipantID, _ reason: EndReason) {
        for case .command(let command, let location) in data.left(id, reason: reason) {
            enqueue(.data(command), at: location)
        }
        mailboxes.removeValue(forKey: id)?.close(reason)
        closeTURN(of: id)
        guard let resource = resourceOf.removeValue(forKey: id) else { return }
        resources[resource] = nil
        context.node.withModel { $0.resourceDeleted(resource) }
    }

    /// Asks for the ICE paths of transports, one after the other.
    private func checkTransports() async {
        while let next = uncheckedTransports.popLast() {
            let path = await context.plane(at: next.location).statistics(of: next.peer)?.path
            apply { $0.transportChecked(next.id, hasPath: path != nil) }
        }
        transportChecker = nil
        publish()
    }

    /// Does nothing for a participant whose signaling reads no events. A slow consumer's mailbox is full.
    func post(_ event: ParticipantEvent, to id: ParticipantID, _ slowConsumers: inout [ParticipantID]) {
        if let mailbox = mailboxes[id], !mailbox.post(event) { slowConsumers.append(id) }
    }
}

// MARK: - Commands of media planes

extension Channel {
    func enqueue(_ command: MediaCommandQueue.Command, at location: MediaLocation) {
        commands[location, default: MediaCommandQueue()].add(command)
        startWorker(for: location)
    }

    /// Queues a message of a participant to others.
    func deliver(_ message: DataMessage, to receivers: [DataAddress], at location: MediaLocation) {
        guard commands[location, default: MediaCommandQueue()].add(message, to: receivers) else {
            context.node.withModel { $0.messageDropped(.deliveries) }
            return
        }
        startWorker(for: location)
    }

    private func startWorker(for location: MediaLocation) {
        if workers[location] == nil { workers[location] = Task { await self.sendCommands(to: location) } }
    }

    /// Runs in one task for each media plane, so that the commands for a slot stay in order.
    private func sendCommands(to location: MediaLocation) async {
        var connections: [PendingConnection] = []
        var dataCommands: [DataCommand] = []
        while commands[location]?.hasWork == true {
            for command in commands[location]?.takeCommands() ?? [] {
                switch command {
                case .remove(let peer):
                    await connect(&connections, at: location)
                    await perform(&dataCommands, at: location)
                    await context.plane(at: location).removePeer(peer)
                case .data(let command):
                    dataCommands.append(command)
                    if dataCommands.count == Self.dataCommandsMax { await perform(&dataCommands, at: location) }
                case .requestKeyFrames(let peer):
                    await context.plane(at: location).requestKeyFrame(of: peer)
                case .limitSending(let peer, let bitsPerSecond):
                    await context.plane(at: location).limitSending(to: peer, bitsPerSecond: bitsPerSecond)
                case .connect(let slot):
                    // The next target of a slot waits until its connection to another loop is done.
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
            await perform(&dataCommands, at: location)
            // Commands that came meanwhile go before the next messages.
            let deliveries = commands[location]?.takeDeliveries(Self.deliveriesMax) ?? []
            if !deliveries.isEmpty { await context.plane(at: location).perform(deliveries) }
        }
        workers[location] = nil
        if commands[location]?.isEmpty == true { commands[location] = nil }
        publish()
    }

    /// Commands about data channels that one call of a loop performs.
    private static let dataCommandsMax = 256
    /// Deliveries of one call: what a turn of a loop takes. Channels take turns on a loop call by call, and messages to one
    /// receiver that come in one call share packets.
    private static let deliveriesMax = 512

    private func perform(_ commands: inout [DataCommand], at location: MediaLocation) async {
        guard !commands.isEmpty else { return }
        let batch = commands
        commands = []
        await context.plane(at: location).perform(batch)
    }

    private typealias PendingConnection = (slot: TrackID, target: MediaCommandQueue.Target)

    /// Concurrent connections on one media plane: as many as a loop runs jobs in one turn. A thousand viewers of a
    /// newcomer then wait for a few turns of a busy loop instead of a thousand.
    private static let connectionsMax = 256

    /// Connects slots to sources on the same loop. The slots are distinct.
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
                        try await plane.connect(slot: slot, to: target.source, preference: target.preference)
                        return nil
                    } catch {
                        return (slot, "\(error)")
                    }
                }
            }
            for await refusal in group {
                if let refusal { connectFailed(refusal.slot, refusal.error) }
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
            try await context.plane(at: location).connect(slot: slot, to: target.source, preference: target.preference)
        } catch {
            connectFailed(slot, "\(error)")
        }
    }

    private func connectFailed(_ slot: TrackID, _ error: String) {
        context.onEvent(.subscriptionFailed(slot: slot, error))
        slotLacksSource(slot)
    }

    /// The slot plays nothing, although the model has a source for it.
    func slotLacksSource(_ slot: TrackID) {
        if !model.connections(of: [slot]).isEmpty { slotsToReconnect.insert(slot) }
    }
}
