public import MediaTypes
import Wire

/// One channel as a state machine: events in, effects out, with no I/O, clock or randomness.
///
/// A participant is *setting up* from its admission until its media is known to the media plane, *active* until it ends,
/// and *connected* when its transport is up too: others are notified of it then. A connected publisher is *live*.
///
/// Subscriptions follow from that. A slot of an active viewer plays the track of the same kind and position of the one
/// participant that the viewer follows, or the track that it was made for when the viewer follows everyone; nothing
/// while a filter or the spotlight blocks it. Members of one bundle, the participant itself included, do not receive
/// each other.
///
/// The model is a value that can be encoded, decoded and continued with. Limits of the node and identifiers come from
/// ``NodeModel``.
public struct ChannelModel: Sendable, Codable {
    /// What the owner of the model has to do, in this order.
    public enum Effect: Hashable, Sendable {
        /// The slot lives at `location`, its source wherever it says.
        case connect(slot: TrackID, to: PlacedTrack?, layer: LayerChoice = .richest, location: MediaLocation)
        /// The peer is still up and has to be ended.
        case removePeer(PeerID, location: MediaLocation)
        /// ``ChannelModel/visibleStreams(to:)`` has changed.
        case streamsChanged(ParticipantID)
        /// The participant takes part and its transport is up.
        case connected(ParticipantID)
        case notify(Notification.Content, to: [ParticipantID])
        /// The participant is gone; whatever is kept beside the model for it is to be freed.
        case ended(ParticipantID, EndReason)
        /// Listeners of the channel have something to read.
        case channelChanged(ChannelName)
        case report(RoomReport)
        /// The time that a transport has for finding a path is over: unless it has one, the participant is to be ended.
        case examineTransport(ParticipantID, PeerID, location: MediaLocation)
    }

    public let name: ChannelName
    public let limits: RoomLimits
    /// The moment of the next event; the owner of the model sets it.
    public var now = RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)

    var state = ChannelState()
    var participants: [ParticipantID: Participant] = [:]
    var viewers: [ParticipantID: Viewer] = [:]
    var participantOfPeer: [PeerID: ParticipantID] = [:]
    var updates = DeadlineWheel()
    var lifetimes = DeadlineWheel()
    /// When newcomers that did not connect are looked at.
    var setups = DeadlineWheel()
    /// Members, slots and filter rules visited so far: the unit in which tests measure the model's work.
    var workDone = 0

    public init(name: ChannelName, limits: RoomLimits = RoomLimits()) {
        self.name = name
        self.limits = limits
    }

    /// Whether nobody is in the channel and nobody listens to it.
    public var isUnused: Bool { state.isUnused }

    /// Whether nothing is held: no participant, listener, deadline or index entry.
    public var isEmpty: Bool {
        isUnused && participants.isEmpty && viewers.isEmpty && participantOfPeer.isEmpty && updates.isEmpty
            && lifetimes.isEmpty && setups.isEmpty
    }

    /// The figures that the node needs.
    public var summary: ChannelSummary {
        ChannelSummary(
            session: state.session?.description,
            publishers: state.publishers.count,
            viewers: state.activeViewerCount,
            connections: state.counts,
            nextDeadlineSecond: [updates.earliest, lifetimes.earliest, setups.earliest].lazy.compactMap { $0 }.min()
        )
    }
}

// MARK: - Queries

extension ChannelModel {
    /// `nil` when the channel is unused.
    public var snapshot: ChannelSnapshot? {
        guard !isUnused else { return nil }
        let publishing = state.publishers.compactMap { participants[$0] }.filter(\.isActive)
        return ChannelSnapshot(
            channel: name,
            revision: state.revision,
            participants: publishing.map { participant in
                ChannelSnapshot.Participant(
                    id: participant.id,
                    displayName: participant.displayName,
                    isLive: participant.isLive,
                    publications: participant.publications
                )
            },
            current: state.live.last,
            viewerCount: state.activeViewerCount
        )
    }

    /// The slots of a participant with what they play; `nil` when there is no such participant.
    public func slots(of id: ParticipantID) -> [Slot]? {
        participants[id] == nil ? nil : viewers[id]?.allSlots ?? []
    }

    /// The streams that a participant that follows everyone may receive now, in the order of going live; none for any
    /// other participant.
    public func visibleStreams(to id: ParticipantID) -> [VisibleStream] {
        guard let viewer = participants[id], viewer.role.watches, viewer.following == .everyone else { return [] }
        let companions = state.bundles[viewer.bundle] ?? []
        return state.live.compactMap { sender in
            guard !companions.contains(sender), let tracks = participants[sender]?.publications else { return nil }
            return VisibleStream(sender: sender, tracks: tracks)
        }
    }

    func hasPeer(_ peer: PeerID) -> Bool { participantOfPeer[peer] != nil }

    /// The channel's session; `nil` when nobody is in it.
    public var session: ChannelSession? { state.session?.description }

    /// The participants, whether or not they have connected.
    public var memberCount: Int { state.members.count }

    /// The video codecs that the viewers can decode.
    public var decoders: VideoDecoders { state.decoders }

    /// The connected members by role.
    public var counts: ChannelCounts { state.counts }

    /// The active participants in the order of joining.
    public var connections: [Connection] {
        state.members.compactMap { participants[$0] }.filter(\.isActive).compactMap(connection)
    }

    /// `nil` when there is no such participant, or it is still being set up.
    public func connection(of id: ParticipantID) -> Connection? {
        participants[id].flatMap { $0.isActive ? connection($0) : nil }
    }

    func connection(_ participant: Participant) -> Connection? {
        state.session.map { participant.connection(in: $0.description.id) }
    }

    /// The participants that fit, in the order of joining.
    public func members(role: Role? = nil, clientID: String? = nil) -> [ParticipantID] {
        state.members.filter { id in
            guard role != nil || clientID != nil, let member = participants[id]?.member else { return true }
            return (role ?? member.role) == member.role && (clientID ?? member.clientID) == member.clientID
        }
    }
}
