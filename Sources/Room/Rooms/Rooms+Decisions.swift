import MediaTypes

extension Rooms {
    /// Hands an event to the model and does what that decides.
    func apply<Refusal>(
        _ event: (inout RoomModel) throws(Refusal) -> [RoomModel.Decision]
    ) throws(Refusal) {
        model.now = clock.now()
        carryOut(try event(&model))
    }

    func carryOut(_ decisions: [RoomModel.Decision]) {
        var laggards: [ParticipantID] = []
        for decision in decisions { carryOut(decision, &laggards) }
        // Ended after the loop: their end is news to others, some of whom may not take it either.
        while let laggard = laggards.popLast() {
            for decision in model.left(laggard, reason: .tooSlow) { carryOut(decision, &laggards) }
        }
    }

    private func carryOut(_ decision: RoomModel.Decision, _ laggards: inout [ParticipantID]) {
        switch decision {
        case .connect(let slot, let source, let layer, let home):
            // Merged with one that waits: only the last wish matters.
            if work[home].wish(PlaneWork.Wish(source: source, layer: layer), for: slot) {
                enqueue(.connect(slot), at: home)
            }
        case .removePeer(let peer, let home):
            enqueue(.remove(peer), at: home)
        case .streamsChanged(let id):
            post(.subscriptionsChanged, to: id, &laggards)
        case .connected(let id):
            post(.connected, to: id, &laggards)
        case .notify(let content, let ids):
            let notification = Notification(content, timestamp: model.now.unixNanoseconds)
            for id in ids { post(.notification(notification), to: id, &laggards) }
        case .ended(let id, let reason):
            mailboxes.removeValue(forKey: id)?.close(reason)
            if let session = sessionOf.removeValue(forKey: id) { sessions[session] = nil }
            notice(.ended(id, reason))
        case .channelChanged(let name):
            for id in listenersOf[name] ?? [] { listeners[id]?.changes.yield() }
        case .report(let report):
            notice(.report(report))
        case .examineTransport(let id, let peer, let home):
            unexamined.append((id, peer, home))
            if examiner == nil { examiner = Task { await self.examineTransports() } }
        }
    }

    /// Ends those whose transport still has no path. One question at a time: they have waited for long already.
    private func examineTransports() async {
        while let next = unexamined.popLast() {
            let path = await planes[next.home].statistics(of: next.peer)?.path
            if path == nil, model.participants[next.id]?.isConnected == false { end(next.id, reason: .unreachable) }
        }
        examiner = nil
    }

    /// Whether it was there to take the event; it is a laggard when it has no room for it.
    @discardableResult
    func post(_ event: ParticipantEvent, to id: ParticipantID, _ laggards: inout [ParticipantID]) -> Bool {
        guard let mailbox = mailboxes[id] else { return false }
        if !mailbox.post(event) { laggards.append(id) }
        return true
    }
}

// MARK: - Media planes

extension Rooms {
    func enqueue(_ item: PlaneWork.Item, at home: Int) {
        work[home].add(item)
        if workers[home] == nil { workers[home] = Task { await self.drainWork(at: home) } }
    }

    /// One task a home, so that a media plane sees the decisions about each slot in their order.
    private func drainWork(at home: Int) async {
        var connections: [Connecting] = []
        while work[home].hasItems {
            for item in work[home].takeItems() {
                switch item {
                case .remove(let peer):
                    await connect(&connections, at: home)
                    await planes[home].removePeer(peer)
                case .connect(let slot):
                    // While a crossing is under way what the slot wants next waits for its end.
                    guard crossings[slot] == nil, let wish = work[home].takeWish(for: slot) else { continue }
                    if let source = wish.source, source.home != home {
                        crossings[slot] = Task { await self.cross(slot, wish, at: home) }
                    } else {
                        connections.append((slot, wish))
                        if connections.count == Self.connectingMax { await connect(&connections, at: home) }
                    }
                }
            }
            await connect(&connections, at: home)
        }
        workers[home] = nil
    }

    private typealias Connecting = (slot: TrackID, wish: PlaneWork.Wish)

    /// Connections that a media plane is asked for at once: as many as a loop takes jobs in one turn, so that a
    /// thousand viewers of a newcomer wait for a few turns of a busy loop instead of a thousand.
    private static let connectingMax = 256

    /// Makes connections within one home, each of another slot.
    private func connect(_ connections: inout [Connecting], at home: Int) async {
        let plane = planes[home]
        let batch = connections
        connections = []
        guard batch.count > 1 else {
            for (slot, wish) in batch { await connect(slot, wish, at: home) }
            return
        }
        await withTaskGroup(of: (slot: TrackID, error: String)?.self) { group in
            for (slot, wish) in batch {
                group.addTask {
                    do {
                        try await plane.connect(slot: slot, to: wish.source, layer: wish.layer)
                        return nil
                    } catch {
                        return (slot, "\(error)")
                    }
                }
            }
            for await refusal in group {
                if let refusal { notice(.subscriptionFailed(slot: refusal.slot, refusal.error)) }
            }
        }
    }

    private func cross(_ slot: TrackID, _ wish: PlaneWork.Wish, at home: Int) async {
        await connect(slot, wish, at: home)
        crossings[slot] = nil
        if work[home].hasWish(for: slot) { enqueue(.connect(slot), at: home) }
    }

    private func connect(_ slot: TrackID, _ wish: PlaneWork.Wish, at home: Int) async {
        do {
            try await planes[home].connect(slot: slot, to: wish.source, layer: wish.layer)
        } catch {
            notice(.subscriptionFailed(slot: slot, "\(error)"))
        }
    }
}
