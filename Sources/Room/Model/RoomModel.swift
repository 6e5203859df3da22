public import MediaTypes
import Wire

/// The membership of all channels as a state machine: events in, decisions out, with no I/O, clock or randomness.
///
/// A participant is *setting up* from its request until its media is known to the media plane, *active* until it ends,
/// and *connected* when its transport is up too: others are told of it then. A connected publisher is *live*.
///
/// Subscriptions follow from that. A slot of an active viewer plays the track of the same kind and position of the one
/// participant that the viewer follows, or the track that it was made for when the viewer follows everyone; nothing
/// while a filter or the spotlight keeps that from it. Nobody gets what members of its own bundle send, itself
/// included.
public struct RoomModel: Sendable {
    /// What the owner of the model has to do, in this order.
    public enum Decision: Hashable, Sendable {
        /// The slot lives on `home`, its source wherever it says.
        case connect(slot: TrackID, to: PlacedTrack?, layer: LayerChoice = .richest, home: Int)
        /// The peer is still up and has to be ended.
        case removePeer(PeerID, home: Int)
        /// ``RoomModel/visibleStreams(to:)`` answers otherwise than before.
        case streamsChanged(ParticipantID)
        /// The participant takes part and its transport is up.
        case connected(ParticipantID)
        case notify(Notification.Content, to: [ParticipantID])
        /// The participant is gone; whatever is kept beside the model for it is to be freed.
        case ended(ParticipantID, EndReason)
        /// Listeners of the channel have something to read.
        case channelChanged(ChannelName)
        case report(RoomReport)
        /// Its media is known for as long as it may be without a path: unless its transport has one, it is to be ended.
        case examineTransport(ParticipantID, PeerID, home: Int)
    }

    public let limits: RoomLimits
    /// The moment of the events that come next; the owner of the model sets it.
    public var now = RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)
    /// Whom the node takes in.
    public var mode = NodeMode.normal
    /// Whether newcomers are refused because the node closes.
    public internal(set) var isDraining = false

    var channels: [ChannelName: Channel] = [:]
    var participants: [ParticipantID: Participant] = [:]
    var viewers: [ParticipantID: Viewer] = [:]
    var participantOfPeer: [PeerID: ParticipantID] = [:]
    var listenerCount = 0
    /// Listeners by where they come from.
    var listenerCounts: [ClientNetwork: Int] = [:]
    var listenerNetworks: [ListenerID: ClientNetwork] = [:]
    var orderNext: UInt64 = 0
    var placement: Placement
    var updates = Agenda()
    var lifetimes = Agenda()
    /// When newcomers that did not connect are looked at.
    var setups = Agenda()
    var networks = NetworkShares()
    /// Channels that have a session.
    var sessionCount = 0
    public internal(set) var admissions = AdmissionCounts()
    /// Members and slots looked at so far: what the model's work is measured in.
    var workDone = 0

    /// - Parameter homeCount: the number of media loops, at least 1.
    public init(limits: RoomLimits = RoomLimits(), homeCount: Int) {
        self.limits = limits
        placement = Placement(homeCount: homeCount)
    }

    /// Whether nothing is held: no channel, participant, listener or index entry.
    public var isEmpty: Bool {
        channels.isEmpty && participants.isEmpty && viewers.isEmpty && participantOfPeer.isEmpty && listenerCount == 0
            && placement.isEmpty && updates.isEmpty && lifetimes.isEmpty && setups.isEmpty && networks.isEmpty
            && sessionCount == 0
    }

    public var counts: RoomCounts {
        var counts = RoomCounts()
        counts.channels = channels.count
        counts.listeners = listenerCount
        for channel in channels.values {
            counts.publishers += channel.publishers.count
            counts.viewers += channel.activeViewerCount
            counts.sessions += channel.session == nil ? 0 : 1
            counts.connections.sendrecv += channel.counts.sendrecv
            counts.connections.sendonly += channel.counts.sendonly
            counts.connections.recvonly += channel.counts.recvonly
        }
        return counts
    }
}

// MARK: - Questions

extension RoomModel {
    /// `nil` when the channel does not exist.
    public func snapshot(of name: ChannelName) -> ChannelSnapshot? {
        guard let channel = channels[name] else { return nil }
        let publishing = channel.publishers.compactMap { participants[$0] }.filter(\.isActive)
        return ChannelSnapshot(
            channel: name,
            revision: channel.revision,
            participants: publishing.map { participant in
                ChannelSnapshot.Participant(
                    id: participant.id,
                    displayName: participant.displayName,
                    isLive: participant.isLive,
                    publications: participant.publications
                )
            },
            current: channel.live.last,
            viewerCount: channel.activeViewerCount
        )
    }

    /// The slots of a participant with what they play; `nil` when there is no such participant.
    public func slots(of id: ParticipantID) -> [Slot]? {
        participants[id] == nil ? nil : viewers[id]?.allSlots ?? []
    }

    /// What a participant that follows everyone may see now, in the order of becoming live; nothing for any other.
    public func visibleStreams(to id: ParticipantID) -> [VisibleStream] {
        guard let viewer = participants[id], viewer.role.watches, viewer.following == .everyone,
            let channel = channels[viewer.channel]
        else { return [] }
        let companions = channel.bundles[viewer.bundle] ?? []
        return channel.live.compactMap { sender in
            guard !companions.contains(sender), let tracks = participants[sender]?.publications else { return nil }
            return VisibleStream(sender: sender, tracks: tracks)
        }
    }

    /// The session of a channel; `nil` when nobody is in it.
    public func session(of name: ChannelName) -> ChannelSession? { channels[name]?.session?.description }

    /// All sessions, the oldest first.
    public var sessions: [ChannelSession] {
        channels.values.compactMap { $0.session?.description }
            .sorted { ($0.createdAt, $0.id.value) < ($1.createdAt, $1.id.value) }
    }

    /// The participants of a channel, whether or not they have connected.
    public func memberCount(of name: ChannelName) -> Int { channels[name]?.members.count ?? 0 }

    /// What the viewers of a channel can play.
    public func decoders(in name: ChannelName) -> VideoDecoders { channels[name]?.decoders ?? VideoDecoders() }

    /// The connected members of a channel by role.
    public func counts(of name: ChannelName) -> ChannelCounts { channels[name]?.counts ?? ChannelCounts() }

    /// The active participants of a channel in the order of joining, or with `nil` of all channels.
    public func connections(in name: ChannelName?) -> [Connection] {
        let candidates =
            name.map { channels[$0]?.members.compactMap { participants[$0] } ?? [] }
            ?? participants.values.sorted { $0.order < $1.order }
        return candidates.filter(\.isActive).compactMap(connection)
    }

    /// `nil` when there is no such participant, or it is still being set up.
    public func connection(of id: ParticipantID) -> Connection? {
        participants[id].flatMap { $0.isActive ? connection($0) : nil }
    }

    func connection(_ participant: Participant) -> Connection? {
        channels[participant.channel]?.session.map { participant.connection(in: $0.description.id) }
    }
}

// MARK: - Load

extension RoomModel {
    /// What the loop `home` carries by its own measurement.
    public mutating func loadMeasured(_ load: LoopLoad, of home: Int) { placement.measured(load, of: home) }

    /// The loop `home` has not answered for a whole period what it carries.
    public mutating func loadUnanswered(by home: Int) { placement.unanswered(by: home) }
}
