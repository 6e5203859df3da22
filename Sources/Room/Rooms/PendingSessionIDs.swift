/// Session identifiers that newcomers were told of before the channel had a session.
struct PendingSessionIDs: Sendable {
    /// Channels that are kept; beyond that the one asked for longest ago is forgotten.
    static let channelsMax = 4_096

    private var sessions: [ChannelName: (id: ChannelSessionID, turn: UInt64)] = [:]
    private var turnNext: UInt64 = 0

    /// The same for a channel until it is forgotten.
    /// - Parameter make: makes the identifier of a channel that has none.
    mutating func session(of channel: ChannelName, make: () -> ChannelSessionID) -> ChannelSessionID {
        if let known = sessions[channel] { return known.id }
        if sessions.count >= Self.channelsMax, let oldest = sessions.min(by: { $0.value.turn < $1.value.turn }) {
            sessions[oldest.key] = nil
        }
        let id = make()
        sessions[channel] = (id, turnNext)
        turnNext += 1
        return id
    }

    mutating func forget(_ channel: ChannelName) { sessions[channel] = nil }
}
