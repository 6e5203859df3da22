/// The connected members that receive an operator's message.
public enum Audience: Hashable, Sendable {
    /// All members of the channel, or those with the role.
    case channel(ChannelName, Role?)
    /// The members with this client identifier.
    case client(ChannelName, String)
    case connection(ChannelName, ParticipantID)

    var channel: ChannelName {
        switch self {
        case .channel(let name, _), .client(let name, _), .connection(let name, _): name
        }
    }
}
