package import MediaTypes
package import Wire

/// A change of a running channel that a client, an operator, a webhook's answer or another node asks for.
///
/// The parser of each protocol makes one, nodes send it to each other as it is, and ``ChannelModel/perform(_:by:)`` performs it.
/// Only joining, media negotiation and leaving are no commands: they belong to one connection and its signaling.
package enum ChannelCommand: Hashable, Sendable, Codable {
    /// The participants that a command ends or reaches.
    package enum Selection: Hashable, Sendable, Codable {
        case all
        case role(Role)
        /// Those with this client identifier.
        case user(String)
        case participants([ParticipantID])
    }

    /// The participants that a command changes.
    package enum Subject: Hashable, Sendable, Codable {
        case participant(ParticipantID)
        /// All connections of the user with this client identifier. A role or mute also holds for those that it makes later.
        case user(String)
    }

    /// Why participants are ended.
    package enum EndCause: String, Hashable, Sendable, Codable, CaseIterable {
        case disconnectedByOperator, kicked, banned, channelTerminated, sessionTerminated, madeAudience, replaced
    }

    /// Ends participants.
    case end(Selection, EndCause)
    /// Makes participants of an interactive channel host or audience. An operator's audience stays so until an operator makes it
    /// host; its connections that only send, such as a shared screen, end.
    case setRole(ChannelRole, of: Subject)
    /// Mutes kinds of participants' media, or unmutes them. An operator's mute also stops the forwarding, and the participant
    /// cannot undo it. A participant's own mute is only announced; beyond its budget (``RoomLimits/changesPerSecond``) others
    /// are told later, of the latest one.
    case setMuted(Bool, kinds: Set<MediaKind>, of: Subject)
    /// Mutes kinds of participants' media until they unmute themselves, and stops the forwarding until then. Of a moderator's `all`,
    /// the moderator's own user is left out.
    case mute(Selection, kinds: Set<MediaKind>)
    /// Raises a participant's hand, or lowers it. A change of its role lowers it, too.
    case raiseHand(Bool, of: ParticipantID)
    /// Subscribes receivers to tracks of others, or unsubscribes them. The last command that matches a track decides.
    case subscribe(Bool, to: SubscriptionSelection, receiver: Subject)
    /// Requests a layer of video for a receiver; of one live sender, or with `nil` of all without a request of their own.
    case requestLayer(LayerChoice, receiver: ParticipantID, sender: ParticipantID?)
    /// Requests video of a height in pixels, one of ``JoinRequest/videoHeights``; `nil` for as high as there is, or of one sender
    /// as of all.
    case requestHeight(Int?, receiver: ParticipantID, sender: ParticipantID?)
    /// Requests layers of senders in focus and of the others; `nil` for the layers that the receiver joined with.
    case requestSpotlightLayers(SpotlightLayers?, receiver: ParticipantID, sender: ParticipantID?)
    /// Limits the rate at which a receiver is sent media, in bit/s; `nil` for the limit of its grant.
    case limitSending(to: ParticipantID, bitsPerSecond: Int?)
    /// Requests key frames of all video of a participant.
    case requestKeyFrames(of: ParticipantID)
    /// Replaces what later notifications say of a participant (``Member/metadataJSON``).
    ///
    /// `push` is a text for all connected participants, which takes one of the participant's changes; without it nobody is told of
    /// the change.
    case setMetadata(json: String, of: ParticipantID, push: String?)
    /// Extends a participant's permission in place; `nil` for one without an end. It is warned again before the new end.
    case extendAccess(of: ParticipantID, until: AccessExpiry?)
    /// Sends a JSON text to connected participants whose signaling carries messages.
    case push(json: String, to: Selection)
    /// Puts a live sender into focus, in place of the one that has been silent longest. A fixed one stays while others speak.
    case focus(ParticipantID, isFixed: Bool)
    /// Takes a live sender out of focus until it starts to speak.
    case unfocus(ParticipantID)
    /// Changes how many senders are in focus, one of ``Spotlight/numbers``.
    case setSpotlightNumber(Int)
    case createFilter(ForwardingFilter, scope: FilterScope)
    /// Replaces the filter of the same name. `expected` is the version that it has to have; `nil` accepts any.
    case updateFilter(ForwardingFilter, scope: FilterScope, expected: String?)
    case deleteFilter(name: String, scope: FilterScope, expected: String?)
}

/// Who asks for a command.
package enum Initiator: Hashable, Sendable {
    /// A participant, over its signaling: for itself, or as a moderator for others.
    case member(ParticipantID)
    /// The application's server: its operators and what its webhooks answer.
    case `operator`
    /// Another node, which performed a command of an operator and leaves the part of this node's participants to it.
    case node

    /// Who changed something, for participants and reports.
    package enum Kind: String, Hashable, Sendable, Codable {
        /// The participant itself.
        case member = "self"
        /// Another participant, which moderates the channel.
        case moderator
        case `operator`
    }

    package func kind(for command: ChannelCommand) -> Kind {
        switch self {
        case .member(let id): command.participant == id ? .member : .moderator
        case .operator, .node: .operator
        }
    }
}

/// The answer to a command.
package struct ChannelReply: Hashable, Sendable {
    /// The participants that the command ended, reached or is about, in the order of joining; of a user those that changed. None
    /// for a command about a whole channel.
    package var participants: [ParticipantID] = []

    package init(participants: [ParticipantID] = []) { self.participants = participants }
}

extension ChannelCommand {
    /// The name of the command in logs.
    package var name: String { Mirror(reflecting: self).children.first?.label ?? "\(self)" }

    /// Who may ask for it besides operators.
    package struct Permission: OptionSet {
        package let rawValue: UInt8
        /// The participant that it is about.
        package static let member = Self(rawValue: 1)
        /// Other nodes.
        package static let nodes = Self(rawValue: 2)
        /// Participants that moderate the channel.
        package static let moderators = Self(rawValue: 4)

        package init(rawValue: UInt8) { self.rawValue = rawValue }
    }

    /// What operators alone may ask for is about a whole channel or all connections of a user: it changes the register, which nodes
    /// share.
    package var permission: Permission {
        switch self {
        case .setRole(_, of: .participant), .setMuted(_, kinds: _, of: .participant),
            .subscribe(_, to: _, receiver: .participant), .requestLayer, .requestHeight, .requestSpotlightLayers,
            .extendAccess:
            [.member, .nodes]
        case .setMetadata, .raiseHand: .member
        case .end(.user, .kicked), .setRole(_, of: .user), .mute(.all, _), .mute(.user, _): .moderators
        case .end(.participants, _), .mute(.participants, _), .push(json: _, to: .participants), .limitSending,
            .requestKeyFrames, .focus, .unfocus:
            .nodes
        case .end, .setMuted, .mute, .subscribe, .push, .setSpotlightNumber, .createFilter, .updateFilter,
            .deleteFilter:
            []
        }
    }

    /// The participant that it is about; `nil` for a channel, a user or several participants.
    package var participant: ParticipantID? {
        switch self {
        case .setRole(_, of: .participant(let id)), .setMuted(_, kinds: _, of: .participant(let id)),
            .subscribe(_, to: _, receiver: .participant(let id)), .requestLayer(_, receiver: let id, sender: _),
            .requestHeight(_, receiver: let id, sender: _), .requestSpotlightLayers(_, receiver: let id, sender: _),
            .limitSending(to: let id, bitsPerSecond: _), .requestKeyFrames(of: let id),
            .setMetadata(json: _, of: let id, push: _), .extendAccess(of: let id, until: _), .raiseHand(_, of: let id):
            id
        case .end, .setRole, .setMuted, .mute, .subscribe, .push, .focus, .unfocus, .setSpotlightNumber, .createFilter,
            .updateFilter, .deleteFilter:
            nil
        }
    }
}

extension ChannelCommand.EndCause {
    package var reason: EndReason {
        switch self {
        case .disconnectedByOperator: .disconnectedByOperator
        case .kicked: .kicked
        case .banned: .banned
        case .channelTerminated: .channelTerminated
        case .sessionTerminated: .sessionTerminated
        case .madeAudience: .madeAudience
        case .replaced: .replaced
        }
    }

    /// `nil` for a reason that one node does not ask another one for.
    package init?(_ reason: EndReason) {
        guard let cause = Self.allCases.first(where: { $0.reason == reason }) else { return nil }
        self = cause
    }
}
