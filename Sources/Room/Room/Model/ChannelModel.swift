package import Admission
import Base
package import ChannelTypes
package import MediaTypes
import Speakers
package import Wire

/// One channel as a state machine: events in, effects out, with no I/O, clock or randomness.
///
/// A participant is *setting up* from its admission until its media is known to the media plane, *active* until it
/// ends, and *connected* when its transport is up too: others are notified of it then. A connected publisher is *live*.
///
/// Subscriptions follow from that. A slot of an active viewer plays the track of the same kind and position of the one
/// participant that the viewer follows, or the track that it was made for when the viewer follows everyone; nothing
/// while a filter or the spotlight blocks it. Members of one bundle, the participant itself included, do not receive
/// each other.
///
/// The model is a value that can be encoded, decoded and continued with. Limits of the node and identifiers come from
/// ``NodeModel``.
package struct ChannelModel: Sendable, Codable {
    /// What the owner of the model has to do, in the order of the list.
    package enum Effect: Hashable, Sendable {
        /// `location` is the slot's; the source has its own.
        case connect(
            slot: TrackID,
            to: PlacedTrack?,
            preference: LayerPreference = LayerPreference(),
            location: MediaLocation
        )
        /// The rate at which the peer may be sent media has changed.
        case limitSending(PeerID, bitsPerSecond: Int?, location: MediaLocation)
        /// The peer is still up and has to be ended.
        case removePeer(PeerID, location: MediaLocation)
        /// ``ChannelModel/visibleStreams(to:)`` has changed.
        case streamsChanged(ParticipantID)
        /// Which simulcast layers of a track of the participant nobody wants has changed.
        case unusedLayersChanged(ParticipantID, mid: MID, rids: [RID])
        /// The participant is connected.
        case connected(ParticipantID)
        case notify(Notification.Content, to: [ParticipantID])
        /// The participant has left; the owner frees what it keeps for it.
        case ended(ParticipantID, EndReason)
        /// The participant's connection is lost, and its place is kept; the owner frees what it keeps for the connection.
        case interrupted(ParticipantID, EndReason)
        /// The ``ChannelModel/snapshot`` has changed: listeners are notified.
        case channelChanged(ChannelName)
        case report(RoomReport)
        /// Send a JSON text to members of this node.
        case push(String, to: [ParticipantID])
        /// Request key frames of all video of a peer.
        case requestKeyFrames(PeerID, location: MediaLocation)
        /// The node of a member, which is another one, has to perform a command.
        case request(ChannelCommand, of: NodeIncarnation)
        /// The setup timeout of a transport is over: ask whether it has an ICE path, and answer with
        /// ``ChannelModel/transportChecked(_:hasPath:)``.
        case checkTransport(ParticipantID, PeerID, location: MediaLocation)
    }

    package let name: ChannelName
    package let limits: RoomLimits
    /// The time of the next event. The owner of the model sets it.
    package var now = RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)

    var state = ChannelState()
    var participants = ParticipantTable()
    var viewers: [ParticipantID: Viewer] = [:]
    var participantOfPeer: [PeerID: ParticipantID] = [:]
    /// The updates of every minute.
    var updateDeadlines = DeadlineWheel()
    /// The ends of `connection_lifetime`.
    var lifetimeDeadlines = DeadlineWheel()
    /// The expiries of tokens and URLs, and the warnings before them.
    var expiryDeadlines = DeadlineWheel()
    /// Setup timeouts of participants that have not connected.
    var setupDeadlines = DeadlineWheel()
    /// The ends of the grace times of interrupted participants.
    var graceDeadlines = DeadlineWheel()
    /// When others are told of changes that wait for their members' budgets.
    var changeDeadlines = DeadlineWheel()
    /// Changes beyond the budgets of their members, since ``takeLimitedChanges()``.
    var limitedChanges: [ChangeLimit: UInt64] = [:]
    /// Members, slots and filter rules visited so far. Tests measure the model's work in it.
    var workDone = 0

    package init(name: ChannelName, limits: RoomLimits = RoomLimits()) {
        self.name = name
        self.limits = limits
    }

    /// Whether the channel has neither participants nor listeners, and does not wait for other nodes' departures.
    package var isUnused: Bool { state.isUnused }

    /// Whether nothing is held: no participant, listener, deadline or index entry.
    package var isEmpty: Bool {
        isUnused && participants.isEmpty && viewers.isEmpty && participantOfPeer.isEmpty && updateDeadlines.isEmpty
            && state.extended.isEmpty && state.users.isEmpty && lifetimeDeadlines.isEmpty && expiryDeadlines.isEmpty
            && setupDeadlines.isEmpty && graceDeadlines.isEmpty && changeDeadlines.isEmpty
    }

    /// What the node knows of the channel.
    package var summary: ChannelSummary {
        ChannelSummary(
            session: state.session?.description,
            publishers: state.publishers.count - state.remote.publishers,
            viewers: state.activeViewerCount - state.remote.viewers,
            connections: state.counts.subtracting(state.remote.counts),
            nextDeadlineSecond: [
                updateDeadlines.earliest, lifetimeDeadlines.earliest, expiryDeadlines.earliest,
                setupDeadlines.earliest, graceDeadlines.earliest, changeDeadlines.earliest,
                state.session?.recentSpeakers.deadlineSecond, state.session?.endSecond,
            ].compactMap(\.self).min()
        )
    }
}

// MARK: - Queries

extension ChannelModel {
    /// `nil` when the channel is unused.
    package var snapshot: ChannelSnapshot? {
        guard !isUnused else { return nil }
        let publishing = state.publishers.compactMap { participants[$0] }.filter(\.isActive)
        return ChannelSnapshot(
            channel: name,
            revision: state.revision,
            participants: publishing.map { participant in
                ChannelSnapshot.Participant(
                    id: participant.id,
                    displayName: participant.terms.displayName,
                    isLive: participant.isLive,
                    publications: participant.publications,
                    muted: participant.muted
                )
            },
            current: state.live.last,
            viewerCount: state.activeViewerCount
        )
    }

    /// The slots of a participant with what they play; `nil` when there is no such participant.
    package func slots(of id: ParticipantID) -> [Slot]? {
        participants[id] == nil ? nil : viewers[id]?.allSlots ?? []
    }

    /// The streams that a participant that follows everyone may receive now, in the order of going live; none for any
    /// other participant.
    package func visibleStreams(to id: ParticipantID) -> [VisibleStream] {
        guard let viewer = participants[id], viewer.role.watches, viewer.terms.following == .everyone else { return [] }
        let bundleMembers = state.bundles[viewer.terms.bundle] ?? []
        return state.live.compactMap { sender in
            guard !bundleMembers.contains(sender), let tracks = participants[sender]?.publications else { return nil }
            return VisibleStream(sender: sender, tracks: tracks)
        }
    }

    package func hasPeer(_ peer: PeerID) -> Bool { participantOfPeer[peer] != nil }

    /// The channel's session; `nil` without participants.
    package var session: ChannelSession? { state.session?.description }

    /// The session that this node tells others of; `nil` without members of its own: the nodes with members tell of it.
    package var ownSession: ChannelSession? { state.hasOwnMembers ? session : nil }

    /// The number of participants, connected or not.
    package var memberCount: Int { state.members.count }

    /// The video codecs that the viewers can decode.
    package var decoders: VideoDecoders { state.decoders }

    /// The connected members by role.
    package var counts: ChannelCounts { state.counts }

    /// The active participants in the order of joining.
    package var connections: [Connection] {
        state.members.compactMap { participants[$0] }.filter(\.isActive).compactMap(connection)
    }

    /// `nil` when there is no such participant, or it is still being set up.
    package func connection(of id: ParticipantID) -> Connection? {
        participants[id].flatMap { $0.isActive ? connection($0) : nil }
    }

    /// The active participants, and those whose connection is lost and whose place is kept, in the order of joining.
    package var places: [Connection] {
        state.members.compactMap { participants[$0] }
            .filter { $0.isActive || $0.resumption?.interruption != nil }
            .compactMap(connection)
    }

    func connection(_ participant: Participant) -> Connection? {
        guard let session = state.session else { return nil }
        var connection = participant.connection(in: session.description.id)
        connection.placeEndsAt = participant.resumption?.interruption.map(unixEnd)
        return connection
    }

    /// The end of a grace time in seconds since 1970 UTC.
    private func unixEnd(of interruption: Resumption.Interruption) -> Int64 {
        let (left, underflows) = interruption.endSecond.subtractingReportingOverflow(now.second)
        let (end, overflows) = now.unixSeconds.addingReportingOverflow(left)
        return underflows || overflows ? .max : max(end, 0)
    }

    /// The participants with this role and client, in the order of joining; `nil` matches any.
    package func members(role: Role? = nil, clientID: String? = nil) -> [ParticipantID] {
        state.members.filter { id in
            guard role != nil || clientID != nil, let member = participants[id]?.member else { return true }
            return (role ?? member.role) == member.role && (clientID ?? member.clientID) == member.clientID
        }
    }
}
