// What happens by the passing of time alone.

extension RoomModel {
    /// A channel with more members than this tells the minutes of a member's life to nobody else.
    static let updatesSharedMembersMax = 100
    private static let updateSeconds: Int64 = 60

    /// Time went on; to be called about once a second.
    public mutating func tick(at now: RoomTime) -> [Decision] {
        self.now = now
        var decisions: [Decision] = []
        for id in lifetimes.due(through: now.second) {
            participants[id]?.endSecond = nil
            decisions += left(id, reason: .lifetimeExpired)
        }
        for id in setups.due(through: now.second) {
            participants[id]?.setupSecond = nil
            guard let participant = participants[id] else { continue }
            if participant.isActive {
                decisions.append(.examineTransport(id, participant.peer, home: participant.home))
            } else {
                decisions += left(id, reason: .unanswered)
            }
        }
        for id in updates.due(through: now.second) { update(id, into: &decisions) }
        return decisions
    }

    private mutating func update(_ id: ParticipantID, into decisions: inout [Decision]) {
        guard let participant = participants[id], let second = participant.updateSecond else { return }
        // After a gap in time once, not once for each minute of it.
        let next = (second + Self.updateSeconds > now.second ? second : now.second) + Self.updateSeconds
        participants[id]?.updateSecond = updates.enter(id, order: participant.order, at: next)
        let isPrivate = (channels[participant.channel]?.members.count ?? 0) > Self.updatesSharedMembersMax
        announceUpdated(participant, isPrivate: isPrivate, into: &decisions)
    }

    /// A participant's connected life begins.
    mutating func enterAgenda(_ participant: inout Participant) {
        let (id, order) = (participant.id, participant.order)
        participant.updateSecond = updates.enter(id, order: order, at: now.second + Self.updateSeconds)
        guard let seconds = participant.lifetimeSeconds else { return }
        let (end, isEndless) = now.second.addingReportingOverflow(seconds)
        if !isEndless { participant.endSecond = lifetimes.enter(id, order: order, at: end) }
    }

    /// The time for a participant's answer, or for its transport, begins.
    mutating func awaitSetup(_ participant: inout Participant) {
        endSetup(&participant)
        let seconds = max(limits.unansweredTimeout.components.seconds, 1)
        let (end, isEndless) = now.second.addingReportingOverflow(seconds)
        guard !isEndless else { return }
        participant.setupSecond = setups.enter(participant.id, order: participant.order, at: end)
    }

    /// It is not waited for any longer.
    mutating func endSetup(_ participant: inout Participant) {
        guard let second = participant.setupSecond else { return }
        setups.cancel(order: participant.order, at: second)
        participant.setupSecond = nil
    }

    mutating func leaveAgenda(_ participant: Participant) {
        if let second = participant.updateSecond { updates.cancel(order: participant.order, at: second) }
        if let second = participant.endSecond { lifetimes.cancel(order: participant.order, at: second) }
    }
}
