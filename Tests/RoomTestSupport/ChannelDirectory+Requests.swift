package import ChannelTypes

@testable package import Room

extension ChannelDirectory {
    /// Ends a participant as its signaling does.
    /// - Returns: whether there was one.
    @discardableResult
    package func end(_ id: ParticipantID, reason: EndReason) async -> Bool {
        await node.actor(of: id)?.end(id, reason: reason) ?? false
    }

    /// Performs a command of an operator.
    @discardableResult
    package func perform(
        _ command: ChannelCommand,
        in channel: ChannelName,
        session: ChannelSessionID? = nil
    ) async throws(RoomError) -> ChannelReply {
        try await perform(command, in: channel, by: .operator, session: session)
    }
}
