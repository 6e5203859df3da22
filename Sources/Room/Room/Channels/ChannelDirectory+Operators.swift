// Kicks, bans and blocks.

import Admission
package import Base
package import ChannelTypes

extension ChannelDirectory {
    /// The limits in force.
    package var limits: RoomLimits { node.withModel { $0.limits } }

    /// Puts other limits in force. Limits on the members of a channel hold for channels that begin after it. Nobody is removed
    /// who is in already.
    package func setLimits(_ limits: RoomLimits) { node.withModel { $0.limits = limits } }

    /// Ends all participants of one user in a channel. The user may join again.
    /// - Returns: the participants that ended, with the registrations that observers ended.
    @discardableResult
    package func kick(_ clientID: String, from channel: ChannelName) async -> [ParticipantID] {
        let ended = await end(.user(clientID), in: channel, .kicked)
        return await report(.kicked(clientID, from: channel), after: ended)
    }

    /// Ends all participants of a channel. Its name can be used again.
    /// - Returns: the participants that ended, with the registrations that observers ended.
    @discardableResult
    package func terminate(_ channel: ChannelName) async -> [ParticipantID] {
        let ended = await end(.all, in: channel, .channelTerminated)
        return await report(.terminated(channel), after: ended)
    }

    /// Refuses a user or stream from now on, in place of an earlier block of the same subject, and ends the participants
    /// that it would refuse.
    ///
    /// - Returns: the participants that ended, with the registrations that observers ended.
    /// - Throws: ``RoomError/blocksFull``.
    @discardableResult
    package func block(_ block: Block) async throws(RoomError) -> [ParticipantID] {
        let now = environment.clock.now()
        // Reported under the lock, so that of two changes the later one is reported last.
        try node.withModel { node throws(RoomError) in
            try node.blocked(block, at: now)
            observers.block(block.subject, block)
        }
        return await report(.blocked(block), after: await endParticipants(refusedBy: block))
    }

    /// Takes a block that was set at any node of the cluster, or with `nil` lifted. Whom it refuses is refused here as well.
    /// - Returns: `false` when the table of blocks is full: the block ended participants, and does not refuse newcomers.
    package func take(_ block: Block?, of subject: Block.Subject) async -> Bool {
        let now = environment.clock.now()
        guard let block, !block.isOver(at: now.unixSeconds) else {
            _ = node.withModel { $0.blockLifted(of: subject, at: now) }
            return true
        }
        let (isKnown, isKept) = node.withModel { node in
            let isKnown = node.block(of: subject, at: now) == block
            return (isKnown, (try? node.blockedElsewhere(block, at: now)) != nil)
        }
        if !isKnown { _ = await report(.blocked(block), after: await endParticipants(refusedBy: block)) }
        return isKept
    }

    /// - Returns: the participants that ended, then what the observer ended.
    private func report(_ decision: OperatorDecision, after ended: [ParticipantID]) async -> [ParticipantID] {
        let known = Set(ended)
        return ended + (await observers.decision(decision)).filter { !known.contains($0) }
    }

    private func end(
        _ selection: ChannelCommand.Selection,
        in channel: ChannelName,
        _ cause: ChannelCommand.EndCause
    ) async -> [ParticipantID] {
        // Nobody is in a channel that does not exist.
        (try? await perform(.end(selection, cause), in: channel, by: .operator))?.participants ?? []
    }

    private func endParticipants(refusedBy block: Block) async -> [ParticipantID] {
        // A newcomer that was admitted before is a participant by the time its channel's actor is called.
        switch block.subject {
        case .user(let user):
            var ended: [ParticipantID] = []
            for channel in node.actors { ended += await end(.user(user), in: channel.name, .banned) }
            return ended
        case .member(let user, let channel):
            return await end(.user(user), in: channel, .banned)
        case .stream(let channel):
            var ended: [ParticipantID] = []
            for role in Role.allCases where role.publishes {
                ended += await end(.role(role), in: channel, .banned)
            }
            return ended
        }
    }

    /// Why a block refuses a user in a channel; `nil` when none does. For those who are in no channel's list: participants
    /// are refused by ``reserve(_:)``.
    ///
    /// - Parameters:
    ///   - clientID: `nil` for a client without a name.
    ///   - role: what it would do in the channel.
    package func blockRefusal(of clientID: String?, in channel: ChannelName, as role: Role) -> RoomError? {
        let request = JoinRequest(channel: channel, role: role, clientID: clientID)
        let now = environment.clock.now()
        return node.withModel { $0.blockRefusal(of: request, at: now) }
    }

    /// How long a permission lasts from now on by the rooms' clock; zero or less when it has expired.
    package func timeLeft(until expiry: AccessExpiry) -> Interval {
        Interval(nanoseconds: expiry.nanoseconds(from: environment.clock.unixNanoseconds))
    }

    /// Lifts a block.
    /// - Returns: whether there was one.
    @discardableResult
    package func liftBlock(of subject: Block.Subject) async -> Bool {
        let now = environment.clock.now()
        return node.withModel { node in
            let isLifted = node.blockLifted(of: subject, at: now)
            if isLifted { observers.block(subject, nil) }
            return isLifted
        }
    }

    /// The block of a subject; `nil` without one.
    package func block(of subject: Block.Subject) async -> Block? {
        let now = environment.clock.now()
        return node.withModel { $0.block(of: subject, at: now) }
    }

    /// All blocks, in no particular order.
    package var blocks: [Block] {
        get async {
            let now = environment.clock.now()
            return node.withModel { $0.allBlocks(at: now) }
        }
    }

    /// The number of nanoseconds since 1970 UTC by the rooms' clock.
    package var unixNanoseconds: Int64 { environment.clock.now().unixNanoseconds }
    /// The number of seconds since 1970 UTC by the rooms' clock.
    package var unixSeconds: Int64 { environment.clock.now().unixSeconds }
}
