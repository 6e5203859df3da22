import ChannelTypes
import MediaTypes

/// The members of a channel that are connected to other nodes, and what they add to the channel's counts.
struct RemoteMembers: Sendable, Codable {
    private(set) var members: Set<ParticipantID> = []
    private(set) var publishers = 0
    /// Active viewers.
    private(set) var viewers = 0
    private(set) var counts = ChannelCounts()

    mutating func add(_ participant: Participant) { count(1, participant) }
    mutating func remove(_ participant: Participant) { count(-1, participant) }

    private mutating func count(_ change: Int, _ participant: Participant) {
        if change > 0 { members.insert(participant.id) } else { members.remove(participant.id) }
        if participant.role.publishes { publishers += change }
        if participant.isActive, participant.role.watches { viewers += change }
        if participant.isConnected { counts.add(change, participant.role) }
    }
}
