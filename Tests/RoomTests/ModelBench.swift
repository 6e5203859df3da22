import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

extension [ChannelModel.Effect] {
    /// The effects except notifications to members and reports to webhooks.
    var withoutNotifications: Self {
        filter { effect in
            switch effect {
            case .notify, .report, .connected: false
            default: true
            }
        }
    }
}

/// A model with short names for frequent test steps.
struct ModelBench {
    var model: SynchronousNode
    var generator = SeededGenerator(seed: 1)
    var peers: [ParticipantID: PeerID] = [:]
    /// The loop that each peer was given.
    var locations: [PeerID: MediaLocation] = [:]
    static let channel = ChannelName("lobby")!
    static let audio = MID("0")!
    static let video = MID("1")!

    init(limits: RoomLimits = RoomLimits(), loopCount: Int = 2) {
        model = SynchronousNode(limits: limits, loopCount: loopCount)
    }

    mutating func reserve(
        _ role: Role,
        following: Following = .currentPublisher,
        in channel: ChannelName = Self.channel
    ) throws -> ParticipantID {
        try reserve(JoinRequest(channel: channel, role: role, following: following))
    }

    mutating func reserve(_ request: JoinRequest) throws -> ParticipantID {
        let id = ParticipantID(using: &generator)
        let session = ChannelSessionID(using: &generator)
        let place = try model.joinRequested(request, id: id, session: session)
        locations[place.peer] = place.location
        // One whose place the request takes, or a new one.
        peers[place.participant] = place.peer
        return place.participant
    }

    mutating func activate(_ id: ParticipantID, kinds: [MediaKind] = [.audio, .video]) throws -> [ChannelModel.Effect] {
        let mids = kinds.map { $0 == .audio ? Self.audio : Self.video }
        return try model.setupCompleted(
            id,
            publications: zip(mids, kinds).map { Publication(mid: $0, kind: $1) },
            slots: zip(mids, kinds).map { Slot(mid: $0, kind: $1) }
        ).withoutNotifications
    }

    mutating func publisher(in channel: ChannelName = Self.channel) throws -> ParticipantID {
        let id = try reserve(.sendonly, in: channel)
        _ = try activate(id)
        return id
    }

    mutating func livePublisher(in channel: ChannelName = Self.channel) throws -> ParticipantID {
        let id = try publisher(in: channel)
        _ = receive(.connected(over: .udp), from: id)
        return id
    }

    mutating func viewer(
        _ following: Following = .currentPublisher,
        in channel: ChannelName = Self.channel
    ) throws -> ParticipantID {
        let id = try reserve(.recvonly, following: following, in: channel)
        _ = try activate(id)
        return id
    }

    mutating func receive(_ event: PeerEvent, from id: ParticipantID) -> [ChannelModel.Effect] {
        model.received(event, from: peers[id]!).withoutNotifications
    }

    /// The participants that a viewer's slots play, in the slots' order.
    func sources(of id: ParticipantID) -> [ParticipantID?] {
        (model.slots(of: id) ?? []).map { slot in peers.first { $0.value == slot.source?.peer }?.key }
    }

    func track(_ id: ParticipantID, _ mid: MID) -> TrackID { TrackID(peer: peers[id]!, mid: mid) }
    func placed(_ id: ParticipantID, _ mid: MID) -> PlacedTrack {
        PlacedTrack(track: track(id, mid), location: locations[peers[id]!]!)
    }
    func location(_ id: ParticipantID) -> MediaLocation { locations[peers[id]!]! }
}

// MARK: - Members that follow everyone

extension ModelBench {
    static let layers = ["r0", "r1", "r2"].map { RID($0)! }

    /// Everything that the model decides at the joining of a member that follows everyone, until it is connected.
    mutating func join(
        _ role: Role,
        in channel: ChannelName = Self.channel,
        isSimulcast: Bool = true,
        rids: [RID] = Self.layers,
        _ configure: (inout JoinRequest) -> Void = { _ in }
    ) throws -> (id: ParticipantID, effects: [ChannelModel.Effect]) {
        var request = JoinRequest(channel: channel, role: role, following: .everyone)
        configure(&request)
        let id = try reserve(request)
        let publications = [
            Publication(mid: Self.audio, kind: .audio),
            Publication(mid: Self.video, kind: .video, rids: isSimulcast ? rids : []),
        ]
        var effects = try model.setupCompleted(id, publications: publications, slots: [])
        effects += model.received(.connected(over: .udp), from: peers[id]!)
        return (id, effects)
    }

    mutating func member(
        _ role: Role,
        in channel: ChannelName = Self.channel,
        isSimulcast: Bool = true,
        rids: [RID] = Self.layers,
        _ configure: (inout JoinRequest) -> Void = { _ in }
    ) throws -> ParticipantID {
        try join(role, in: channel, isSimulcast: isSimulcast, rids: rids, configure).id
    }

    /// Gives a viewer slots for both tracks of a sender, and returns their names.
    mutating func see(
        _ sender: ParticipantID,
        by viewer: ParticipantID
    ) throws -> (audio: TrackID, video: TrackID, effects: [ChannelModel.Effect]) {
        let slots = slots(for: sender)
        let effects = try model.slotsChanged(of: viewer, add: slots, remove: [])
        return (track(viewer, slots[0].parameters.mid), track(viewer, slots[1].parameters.mid), effects)
    }

    func slots(for sender: ParticipantID) -> [SlotAssignment] {
        let number = peers[sender]!.rawValue
        return [(MID("a\(number)")!, Self.audio, .audio), (MID("v\(number)")!, Self.video, .video)]
            .map { (mid: MID, track: MID, kind: MediaKind) in
                let ssrc = SSRC(rawValue: UInt32(number))
                let parameters = SendTrackParameters(mid: mid, kind: kind, codecs: [], ssrc: ssrc, cname: "c")
                return SlotAssignment(sender: sender, track: track, parameters: parameters)
            }
    }

    /// What a slot plays.
    func slot(_ id: TrackID) -> Slot? {
        let viewer = peers.first { $0.value == id.peer }?.key
        return viewer.flatMap { model.slots(of: $0) }?.first { $0.mid == id.mid }
    }
}

extension [ChannelModel.Effect] {
    var notifications: [(content: Notification.Content, to: [ParticipantID])] {
        compactMap { effect in
            if case .notify(let content, let ids) = effect { (content, ids) } else { nil }
        }
    }
    var reports: [RoomReport] {
        compactMap { effect in
            if case .report(let report) = effect { report } else { nil }
        }
    }
    var connects: [ChannelModel.Effect] {
        filter { effect in
            if case .connect = effect { true } else { false }
        }
    }
    var streamsChanged: [ParticipantID] {
        compactMap { effect in
            if case .streamsChanged(let id) = effect { id } else { nil }
        }
    }
}
