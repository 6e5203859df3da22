package import ChannelTypes

/// Session identifiers that were given out before the channel had a session.
package struct PendingSessionIDs: Sendable {
    /// The most channels; beyond it the oldest entry is removed.
    package static let channelsMax = 4_096

    private var sessions: [ChannelName: (id: ChannelSessionID, turn: UInt64)] = [:]
    private var turnNext: UInt64 = 0

    package init() {}

    /// Returns the same identifier for a channel until ``forget(_:)``.
    /// - Parameter make: makes the identifier of a channel without one.
    package mutating func session(of channel: ChannelName, make: () -> ChannelSessionID) -> ChannelSessionID {
        if let known = sessions[channel] { return known.id }
        if sessions.count >= Self.channelsMax, let oldest = sessions.min(by: { $0.value.turn < $1.value.turn }) {
            sessions[oldest.key] = nil
        }
        let id = make()
        sessions[channel] = (id, turnNext)
        turnNext += 1
        return id
    }

    package mutating func forget(_ channel: ChannelName) { sessions[channel] = nil }
}
