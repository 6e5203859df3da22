import Admission
import ChannelTypes
import MediaTypes

extension Channel {
    /// Performs a command on the model, and what follows from it.
    ///
    /// - Parameter session: refuse unless this is the channel's session; `nil` accepts any.
    /// - Throws: as ``ChannelModel/perform(_:by:)`` does, ``RoomError/sessionUnknown``, and for a role
    ///   ``RoomError/nodePublishersFull`` and ``RoomError/appPublishersFull``.
    func perform(
        _ command: ChannelCommand,
        by initiator: Initiator,
        session: ChannelSessionID? = nil
    ) throws(RoomError) -> ChannelReply {
        defer { releasePublishers(command) }
        var reply = ChannelReply()
        try apply { model throws(RoomError) in
            if let session { try model.checkSession(session) }
            if case .setRole(.host, let subject) = command { try reservePublishers(model.possibleHosts(subject)) }
            let (performed, effects) = try model.perform(command, by: initiator)
            reply = performed
            return effects
        }
        return reply
    }

    /// Another node asks for its part of an operator's command. It is told when that is refused.
    func perform(_ command: ChannelCommand, for node: NodeIncarnation) {
        do throws(RoomError) {
            _ = try perform(command, by: .node)
        } catch {
            context.cluster?.refuse(command, of: name, to: node, because: error)
        }
    }

    // MARK: The node's publishers

    /// Future hosts take their places among the node's publishers before they publish.
    private func reservePublishers(_ ids: [ParticipantID]) throws(RoomError) {
        try context.node.withModel { node throws(RoomError) in
            for id in ids { _ = try node.publishingBegan(of: id) }
        }
    }

    /// Who does not publish after a command gives its place back.
    private func releasePublishers(_ command: ChannelCommand) {
        guard case .setRole(_, let subject) = command else { return }
        let ids = model.possibleHosts(subject)
        if !ids.isEmpty { context.node.withModel { node in for id in ids { node.publishingEnded(of: id) } } }
    }
}
