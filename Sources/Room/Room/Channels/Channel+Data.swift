import Admission
import Base
import ChannelData
import ChannelTypes
import MediaTypes

extension Channel {
    /// Steps of work on events of data channels in one job, half a millisecond at most. The control loop runs jobs in their
    /// order, so that a channel with many messages gets its share of the loop and no more, and a join waits for one job of each
    /// such channel.
    static let dataWorkPerJob = 64

    /// The longest time until messages that wait are looked at again, because one that comes later may have room earlier.
    private static let dataWaitMax = Interval.milliseconds(20)

    /// Handles events of data channels: some now, the rest in a job behind those that wait on the control loop, or when there is
    /// room for them.
    func serveData() {
        guard dataJob == nil else { return }
        let now = context.environment.clock.now().instant
        var work = 0
        while work < Self.dataWorkPerJob, let step = data.next(at: now, part: { delivered($0, at: now) }) {
            act(on: step.effects)
            work += step.work
        }
        // Once for all: a client may open and close channels in each of them.
        tellLabels()
        if data.hasNext(at: now) {
            dataJob = Task { await self.continueData() }
        } else if dataTimer == nil, let next = data.nextDeadline {
            let wait = min(max(next - now, .milliseconds(1)), Self.dataWaitMax)
            dataTimer = Task { await self.continueData(after: wait) }
        }
    }

    /// Counts deliveries of the channel on the node.
    /// - Returns: what the channel may have a second, while the node has more than it may.
    func delivered(_ count: Int, at now: Instant) -> Int? {
        context.node.withModel { $0.delivered(count, by: number, at: now) }
    }

    private func continueData() async {
        dataJob = nil
        serveData()
        // The actor may retire now.
        publish()
    }

    private func continueData(after wait: Interval) async {
        try? await Task.sleep(for: .nanoseconds(wait.nanoseconds))
        dataTimer = nil
        serveData()
    }

    func perform(_ effects: [DataRouter.Effect]) {
        act(on: effects)
        tellLabels()
    }

    private func act(on effects: [DataRouter.Effect]) {
        guard !effects.isEmpty else { return }
        var slowConsumers: [ParticipantID] = []
        for effect in effects {
            switch effect {
            case .command(let command, let location): enqueue(.data(command), at: location)
            case .deliver(let message, let receivers, let location): deliver(message, to: receivers, at: location)
            case .post(let event, let id): post(.data(event), to: id, &slowConsumers)
            case .drop(let reason): context.node.withModel { $0.messageDropped(reason) }
            case .relay(let message, let nodes): context.cluster?.send(message, of: name, to: nodes)
            case .chatted(let user, let displayName, let text):
                let now = context.environment.clock.now().unixNanoseconds / 1_000_000_000
                beginChat()
                chat.append(ChatMessage(user: user, displayName: displayName, text: text, unixSeconds: now))
            case .chatOpened(let id): tellChat(to: id, &slowConsumers)
            }
        }
        for slowConsumer in slowConsumers { end(slowConsumer, reason: .tooSlow) }
    }

    /// What was written in an earlier session is not for this one.
    private func beginChat() {
        guard let session = model.session?.id, session != chatSession else { return }
        chatSession = session
        chat.removeAll()
    }

    private func tellChat(to id: ParticipantID, _ slowConsumers: inout [ParticipantID]) {
        beginChat()
        guard !chat.messages.isEmpty, model.readsChat(id) else { return }
        let content = Notification.Content.chatHistory(chat.messages)
        let notification = Notification(content, timestamp: model.now.unixNanoseconds)
        post(.notification(notification), to: id, &slowConsumers)
    }

    /// ``ChannelDirectory/send(_:on:to:)``
    func send(_ messages: [[UInt8]], on label: String, to id: ParticipantID) {
        for message in messages { perform(data.send(message, on: label, to: id)) }
    }
}
