// Updates of each minute, ends of lifetimes, and timeouts of setups.

extension ChannelModel {
    /// A channel with more members than this tells the minutes of a member's life to nobody else.
    static let updatesSharedMembersMax = 100
    private static let updateSeconds: Int64 = 60

    /// Time went on; to be called about once a second.
    public mutating func tick(at now: RoomTime) -> [Effect] {
        self.now = now
        var effects: [Effect] = []
        for id in lifetimes.due(through: now.second) {
            participants[id]?.endSecond = nil
            effects += left(id, reason: .lifetimeExpired)
        }
        for id in setups.due(through: now.second) {
            participants[id]?.setupSecond = nil
            guard let participant = participants[id] else { continue }
            if participant.isActive {
                effects.append(.examineTransport(id, participant.peer, location: participant.location))
            } else {
                effects += left(id, reason: .unanswered)
            }
        }
        for id in updates.due(through: now.second) { update(id, into: &effects) }
        return effects
    }

    private mutating func update(_ id: ParticipantID, into effects: inout [Effect]) {
        guard let participant = participants[id], let second = participant.updateSecond else { return }
        // After a gap in time once, not once for each minute of it.
        let next = (second + Self.updateSeconds > now.second ? second : now.second) + Self.updateSeconds
        participants[id]?.updateSecond = updates.insert(id, order: participant.order, at: next)
        let isPrivate = state.members.count > Self.updatesSharedMembersMax
        announceUpdated(participant, isPrivate: isPrivate, into: &effects)
    }

    /// Schedules the updates and the end of a participant that connected.
    mutating func scheduleDeadlines(_ participant: inout Participant) {
        let (id, order) = (participant.id, participant.order)
        participant.updateSecond = updates.insert(id, order: order, at: now.second + Self.updateSeconds)
        guard let seconds = participant.lifetimeSeconds else { return }
        let (end, isEndless) = now.second.addingReportingOverflow(seconds)
        if !isEndless { participant.endSecond = lifetimes.insert(id, order: order, at: end) }
    }

    /// Starts the timeout of a participant's answer, or of its transport.
    mutating func scheduleSetupTimeout(_ participant: inout Participant) {
        cancelSetupTimeout(&participant)
        let seconds = max(limits.unansweredTimeout.components.seconds, 1)
        let (end, isEndless) = now.second.addingReportingOverflow(seconds)
        guard !isEndless else { return }
        participant.setupSecond = setups.insert(participant.id, order: participant.order, at: end)
    }

    /// Cancels the timeout of ``scheduleSetupTimeout(_:)``.
    mutating func cancelSetupTimeout(_ participant: inout Participant) {
        guard let second = participant.setupSecond else { return }
        setups.cancel(order: participant.order, at: second)
        participant.setupSecond = nil
    }

    mutating func cancelDeadlines(_ participant: Participant) {
        if let second = participant.updateSecond { updates.cancel(order: participant.order, at: second) }
        if let second = participant.endSecond { lifetimes.cancel(order: participant.order, at: second) }
    }
}
