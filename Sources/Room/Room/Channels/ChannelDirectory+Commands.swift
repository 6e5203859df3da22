package import ChannelTypes

extension ChannelDirectory {
    /// Performs a command on a channel: see ``ChannelCommand`` for what there is.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` accepts any.
    /// - Throws: ``RoomError/channelUnknown`` when the channel does not exist, ``RoomError/sessionUnknown``,
    ///   ``RoomError/forbidden`` for an initiator that may not ask for it, and what the command's own rules refuse. Nothing has
    ///   changed then.
    @discardableResult
    package func perform(
        _ command: ChannelCommand,
        in channel: ChannelName,
        by initiator: Initiator,
        session: ChannelSessionID? = nil
    ) async throws(RoomError) -> ChannelReply {
        guard let actor = node.actor(of: channel) else { throw .channelUnknown }
        return try await actor.perform(command, by: initiator, session: session)
    }

    /// Performs a command that a participant asks for, on its channel.
    ///
    /// - Throws: as ``perform(_:in:by:session:)`` does; ``RoomError/participantUnknown`` for an unknown participant.
    @discardableResult
    package func perform(_ command: ChannelCommand, by id: ParticipantID) async throws(RoomError) -> ChannelReply {
        guard let channel = node.actor(of: id) else { throw .participantUnknown }
        return try await channel.perform(command, by: .member(id))
    }
}
