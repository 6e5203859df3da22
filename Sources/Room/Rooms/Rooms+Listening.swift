extension Rooms {
    /// Opens a view of a channel's membership, which keeps the channel alive, until ``stopListening(_:)``.
    ///
    /// The stream yields once at the start and after changes; several changes may be one element. It ends at
    /// ``shutdown()``.
    /// - Parameter network: where the listener comes from.
    public func listen(
        to channel: ChannelName,
        from network: ClientNetwork = .unknown
    ) throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>) {
        let id = ListenerID(rawValue: listenerNext)
        listenerNext += 1
        try model.listenerArrived(id, at: channel, from: network)
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        listeners[id] = (channel, continuation)
        listenersOf[channel, default: []].insert(id)
        continuation.yield()
        return (id, changes)
    }

    /// Ends a view. Nothing happens when it ended already.
    public func stopListening(_ id: ListenerID) {
        guard let (channel, changes) = listeners.removeValue(forKey: id) else { return }
        changes.finish()
        listenersOf[channel]?.remove(id)
        if listenersOf[channel]?.isEmpty == true { listenersOf[channel] = nil }
        model.listenerLeft(id, from: channel)
    }

    /// `nil` when the channel does not exist.
    public func snapshot(of channel: ChannelName) -> ChannelSnapshot? { model.snapshot(of: channel) }

    public var counts: RoomCounts { model.counts }
    /// Newcomers that got no place, or lost it before they connected.
    public var admissions: AdmissionCounts { model.admissions }
    public var isDraining: Bool { model.isDraining }
}
