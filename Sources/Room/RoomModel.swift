public import Forwarding
import Wire

/// The membership of all channels as a state machine: events in, decisions out, with no I/O, clock or randomness.
///
/// A participant is *setting up* from its request until its media is known to the media plane, *active* until it ends.
/// An active publisher whose transport is up is *live*. Subscriptions follow from that: every slot of an active viewer
/// plays the track of the same kind and position of the participant that it follows, if there is one. Nobody follows
/// itself.
public struct RoomModel: Sendable {
    /// What the owner of the model has to do, in this order.
    public enum Decision: Hashable, Sendable {
        /// The slot lives on `home`, its source wherever it says.
        case connect(slot: TrackID, to: PlacedTrack?, home: Int)
        /// The peer is still up and has to be ended.
        case removePeer(PeerID, home: Int)
        /// The participant is gone; whatever is kept beside the model for it is to be freed.
        case ended(ParticipantID, EndReason)
        /// Listeners of the channel have something to read.
        case channelChanged(ChannelName)
    }

    struct Participant: Sendable {
        let id: ParticipantID
        let peer: PeerID
        let channel: ChannelName
        let home: Int
        let role: Role
        let following: Following
        let displayName: String?
        /// Grows with every participant, so that iteration has one order everywhere.
        let order: UInt64
        var isActive = false
        var isConnected = false
        var publications: [Publication] = []
        var slots: [Slot] = []

        var isLive: Bool { isActive && isConnected && role.publishes }
    }

    struct Channel: Sendable {
        /// How many participants live on each loop that has any.
        var homes: [Int: Int] = [:]
        var participantCount = 0
        var activeViewerCount = 0
        /// Those that publish, in the order of joining, and those of them that are live, the latest last.
        var publishers: [ParticipantID] = []
        var live: [ParticipantID] = []
        var followersOfCurrent: Set<ParticipantID> = []
        var followers: [ParticipantID: Set<ParticipantID>] = [:]
        var listeners: Set<ListenerID> = []
        var revision: UInt64 = 0

        var isUnused: Bool { participantCount == 0 && listeners.isEmpty }
    }

    public let limits: RoomLimits
    private(set) var channels: [ChannelName: Channel] = [:]
    private(set) var participants: [ParticipantID: Participant] = [:]
    private var participantOfPeer: [PeerID: ParticipantID] = [:]
    private var listenerCount = 0
    private var orderNext: UInt64 = 0
    private(set) var placement: Placement
    /// Whether newcomers are refused because the node closes.
    public private(set) var isDraining = false

    /// - Parameter homeCount: the number of media loops, at least 1.
    public init(limits: RoomLimits = RoomLimits(), homeCount: Int) {
        self.limits = limits
        placement = Placement(homeCount: homeCount)
    }

    /// Whether nothing is held: no channel, participant, listener or index entry.
    public var isEmpty: Bool {
        channels.isEmpty && participants.isEmpty && participantOfPeer.isEmpty && listenerCount == 0
            && placement.isEmpty
    }

    public var counts: RoomCounts {
        var counts = RoomCounts()
        counts.channels = channels.count
        counts.publishers = channels.values.reduce(0) { $0 + $1.publishers.count }
        counts.viewers = channels.values.reduce(0) { $0 + $1.activeViewerCount }
        counts.listeners = listenerCount
        return counts
    }

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
    public func slots(of id: ParticipantID) -> [Slot]? { participants[id]?.slots }
}

// MARK: - Participants

extension RoomModel {
    /// Takes a place for a newcomer. Until ``setupCompleted(_:publications:slots:)`` it subscribes to nothing and
    /// nobody sees it. Returns the home loop that its peer has to live on.
    public mutating func joinRequested(
        _ request: JoinRequest,
        id: ParticipantID,
        peer: PeerID
    ) throws(RoomError) -> Int {
        precondition(participants[id] == nil && participantOfPeer[peer] == nil, "identifiers are unique")
        try checkLimits(request)
        if case .participant(let target) = request.following, request.role.watches {
            guard let publisher = participants[target], publisher.channel == request.channel, publisher.role.publishes
            else { throw .participantUnknown }
        }
        var channel = channels.removeValue(forKey: request.channel) ?? Channel()
        let home = placement.join(near: channel.homes)
        channel.homes[home, default: 0] += 1
        channel.participantCount += 1
        if request.role.publishes { channel.publishers.append(id) }
        channels[request.channel] = channel
        participantOfPeer[peer] = id
        participants[id] = Participant(
            id: id,
            peer: peer,
            channel: request.channel,
            home: home,
            role: request.role,
            following: request.following,
            displayName: request.displayName,
            order: orderNext
        )
        orderNext += 1
        return home
    }

    private func checkLimits(_ request: JoinRequest) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard participants.count < limits.participantsMax else { throw .nodeFull }
        guard let channel = channels[request.channel] else {
            guard channels.count < limits.channelsMax else { throw .channelsFull }
            return
        }
        guard channel.participantCount < limits.participantsPerChannelMax else { throw .channelFull }
        guard !request.role.publishes || channel.publishers.count < limits.publishersPerChannelMax
        else { throw .publishersFull }
    }

    /// The media plane knows the newcomer's peer: it takes part from now on.
    ///
    /// Throws ``RoomError/endedDuringSetup`` when the participant is gone already; the peer is then the caller's to
    /// end.
    public mutating func setupCompleted(
        _ id: ParticipantID,
        publications: [Publication],
        slots: [Slot]
    ) throws(RoomError) -> [Decision] {
        guard let participant = participants[id] else { throw .endedDuringSetup }
        precondition(!participant.isActive, "setup completes once")
        participants[id]?.isActive = true
        participants[id]?.publications = participant.role.publishes ? publications : []
        participants[id]?.slots = participant.role.watches ? slots : []
        var decisions: [Decision] = []
        if participant.role.watches {
            channels[participant.channel]?.activeViewerCount += 1
            switch participant.following {
            case .currentPublisher: channels[participant.channel]?.followersOfCurrent.insert(id)
            case .participant(let target):
                // A target that left meanwhile gets no entry: nothing would ever take it away again.
                if participants[target] != nil {
                    channels[participant.channel]?.followers[target, default: []].insert(id)
                }
            }
            subscribe(id, into: &decisions)
        }
        if participant.role.publishes {
            subscribeAll(channels[participant.channel]?.followers[id] ?? [], into: &decisions)
            if participant.isConnected { wentLive(id, in: participant.channel, into: &decisions) }
        }
        changed(participant.channel, into: &decisions)
        return decisions
    }

    /// A participant's owner, an operator or the node ends it. Nothing happens when it is gone already.
    public mutating func left(_ id: ParticipantID, reason: EndReason) -> [Decision] {
        guard let participant = participants.removeValue(forKey: id) else { return [] }
        participantOfPeer[participant.peer] = nil
        placement.leave(participant.home)
        var decisions: [Decision] = []
        let name = participant.channel
        channels[name]?.participantCount -= 1
        if let others = channels[name]?.homes[participant.home].map({ $0 - 1 }) {
            channels[name]?.homes[participant.home] = others > 0 ? others : nil
        }
        if participant.role.watches { forgetViewer(participant) }
        if participant.role.publishes { forgetPublisher(participant, into: &decisions) }
        // While it is being set up, whoever does that finds it gone and ends the peer.
        if participant.isActive, !reason.isOfTransport {
            decisions.append(.removePeer(participant.peer, home: participant.home))
        }
        decisions.append(.ended(id, reason))
        if participant.isActive { changed(name, into: &decisions) }
        if channels[name]?.isUnused == true { channels[name] = nil }
        return decisions
    }

    private mutating func forgetViewer(_ participant: Participant) {
        if participant.isActive { channels[participant.channel]?.activeViewerCount -= 1 }
        switch participant.following {
        case .currentPublisher: channels[participant.channel]?.followersOfCurrent.remove(participant.id)
        case .participant(let target):
            channels[participant.channel]?.followers[target]?.remove(participant.id)
            if channels[participant.channel]?.followers[target]?.isEmpty == true {
                channels[participant.channel]?.followers[target] = nil
            }
        }
    }

    private mutating func forgetPublisher(_ participant: Participant, into decisions: inout [Decision]) {
        channels[participant.channel]?.publishers.removeAll { $0 == participant.id }
        let orphans = channels[participant.channel]?.followers.removeValue(forKey: participant.id) ?? []
        subscribeAll(orphans, into: &decisions)
        guard let channel = channels[participant.channel],
            let position = channel.live.firstIndex(of: participant.id)
        else { return }
        channels[participant.channel]?.live.remove(at: position)
        // The last one is what viewers see, the one before it what the last one sees if it watches too.
        if position >= channel.live.count - 2 { subscribeAll(channel.followersOfCurrent, into: &decisions) }
    }

    /// What the media plane reports of a peer. Events of peers that are gone are ignored.
    public mutating func received(_ event: PeerEvent, from peer: PeerID) -> [Decision] {
        guard let id = participantOfPeer[peer], let participant = participants[id] else { return [] }
        var decisions: [Decision] = []
        switch event {
        case .connected:
            guard !participant.isConnected else { return [] }
            participants[id]?.isConnected = true
            guard participant.isActive, participant.role.publishes else { return [] }
            wentLive(id, in: participant.channel, into: &decisions)
            changed(participant.channel, into: &decisions)
        case .closed(let reason):
            return left(id, reason: .transport(reason))
        case .trackStarted(let mid, let codec):
            updatePublication(of: id, mid: mid, codec: codec, isActive: true, into: &decisions)
        case .trackPaused(let mid):
            updatePublication(of: id, mid: mid, codec: nil, isActive: false, into: &decisions)
        case .formatUnsupported, .speech, .layerSwitched:
            break
        }
        return decisions
    }

    private mutating func updatePublication(
        of id: ParticipantID,
        mid: MID,
        codec: CodecName?,
        isActive: Bool,
        into decisions: inout [Decision]
    ) {
        guard let participant = participants[id],
            let index = participant.publications.firstIndex(where: { $0.mid == mid })
        else { return }
        var publication = participant.publications[index]
        publication.isActive = isActive
        publication.codec = codec ?? publication.codec
        guard publication != participant.publications[index] else { return }
        participants[id]?.publications[index] = publication
        changed(participant.channel, into: &decisions)
    }

    private mutating func wentLive(_ id: ParticipantID, in name: ChannelName, into decisions: inout [Decision]) {
        channels[name]?.live.append(id)
        subscribeAll(channels[name]?.followersOfCurrent ?? [], into: &decisions)
    }

    private mutating func changed(_ name: ChannelName, into decisions: inout [Decision]) {
        channels[name]?.revision += 1
        decisions.append(.channelChanged(name))
    }
}

// MARK: - Load

extension RoomModel {
    /// What the loop `home` carries by its own measurement.
    public mutating func loadMeasured(_ load: LoopLoad, of home: Int) { placement.measured(load, of: home) }

    /// The loop `home` has not answered for a whole period what it carries.
    public mutating func loadUnanswered(by home: Int) { placement.unanswered(by: home) }
}

// MARK: - Subscriptions

extension RoomModel {
    private mutating func subscribeAll(_ ids: Set<ParticipantID>, into decisions: inout [Decision]) {
        let ordered = ids.compactMap { participants[$0] }.sorted { $0.order < $1.order }
        for viewer in ordered { subscribe(viewer.id, into: &decisions) }
    }

    /// Points a viewer's slots where they belong now, and decides a connection for each that changed.
    private mutating func subscribe(_ id: ParticipantID, into decisions: inout [Decision]) {
        guard let viewer = participants[id], viewer.isActive else { return }
        let source = source(of: viewer)
        var positions: [MediaKind: Int] = [:]
        for index in viewer.slots.indices {
            let slot = viewer.slots[index]
            let position = positions[slot.kind, default: 0]
            positions[slot.kind] = position + 1
            let tracks = source?.publications.filter { $0.kind == slot.kind } ?? []
            var track: TrackID?
            if let source, position < tracks.count { track = TrackID(peer: source.peer, mid: tracks[position].mid) }
            guard track != slot.source else { continue }
            participants[id]?.slots[index].source = track
            let placed = source.flatMap { source in track.map { PlacedTrack(track: $0, home: source.home) } }
            decisions.append(.connect(slot: TrackID(peer: viewer.peer, mid: slot.mid), to: placed, home: viewer.home))
        }
    }

    /// The participant whose tracks a viewer gets now.
    private func source(of viewer: Participant) -> Participant? {
        switch viewer.following {
        case .currentPublisher: channels[viewer.channel]?.live.last { $0 != viewer.id }.flatMap { participants[$0] }
        case .participant(let id): participants[id].flatMap { $0.isActive ? $0 : nil }
        }
    }
}

// MARK: - Listeners and the node's end

extension RoomModel {
    /// Somebody wants to follow a channel's membership. The channel exists as long as one does.
    public mutating func listenerArrived(_ id: ListenerID, at name: ChannelName) throws(RoomError) {
        guard !isDraining else { throw .draining }
        guard listenerCount < limits.listenersMax else { throw .listenersFull }
        if let channel = channels[name] {
            guard channel.listeners.count < limits.listenersPerChannelMax else { throw .listenersFull }
        } else {
            guard channels.count < limits.channelsMax else { throw .channelsFull }
        }
        guard channels[name, default: Channel()].listeners.insert(id).inserted else { return }
        listenerCount += 1
    }

    /// Nothing happens when the listener is gone already.
    public mutating func listenerLeft(_ id: ListenerID, from name: ChannelName) {
        guard channels[name]?.listeners.remove(id) != nil else { return }
        listenerCount -= 1
        if channels[name]?.isUnused == true { channels[name] = nil }
    }

    /// From now on newcomers are refused.
    public mutating func drainingStarted() { isDraining = true }

    /// Ends every participant, in the order of joining.
    public mutating func shutdownRequested() -> [Decision] {
        isDraining = true
        return participants.values.sorted { $0.order < $1.order }.flatMap { left($0.id, reason: .shutdown) }
    }
}

extension EndReason {
    /// Whether the media plane ended the peer itself.
    var isOfTransport: Bool {
        if case .transport = self { true } else { false }
    }
}
