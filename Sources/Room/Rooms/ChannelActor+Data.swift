import MediaTypes

extension ChannelActor {
    func perform(_ effects: [DataRouter.Effect]) {
        defer { tellLabels() }
        guard !effects.isEmpty else { return }
        var slowConsumers: [ParticipantID] = []
        for effect in effects {
            switch effect {
            case .command(let command, let location): enqueue(.data(command), at: location)
            case .post(let event, let id): post(.data(event), to: id, &slowConsumers)
            case .drop(let reason): context.node.withModel { $0.messageDropped(reason) }
            case .relay(let message, let nodes): context.cluster?.send(message, of: name, to: nodes)
            }
        }
        for slowConsumer in slowConsumers { end(slowConsumer, reason: .tooSlow) }
    }

    /// ``Rooms/send(_:on:to:)``
    func send(_ messages: [[UInt8]], on label: String, to id: ParticipantID) {
        for message in messages { perform(data.send(message, on: label, to: id)) }
    }
}
