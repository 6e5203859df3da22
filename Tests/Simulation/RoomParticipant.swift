import Base
import ChannelTypes
import Client
import Forwarding
import MediaTypes
import Negotiation
import Room
import RoomTestSupport
import Wire

@testable import Admission

/// A participant of a room, with both ends of its session.
final class RoomParticipant {
    /// What it asks for, and how its client behaves.
    struct Settings {
        var channel: ChannelName
        var role: Role
        var following = Following.currentPublisher
        /// The node that it joins.
        var node = 0
        var media = MediaClient.Settings()
        /// Simulcast layers of its video, lowest first.
        var rids: [RID] = []
        /// Between the offer and the moment at which both sides use the answer.
        var setupDelay = Interval.zero

        init(_ channel: ChannelName, _ role: Role) {
            self.channel = channel
            self.role = role
        }
    }

    let id: ParticipantID
    let place: ParticipantLocation
    let settings: Settings
    let node: SimulatedNode
    let host: World.Host
    let arrivals = Arrivals()
    /// What it publishes, as the node received it.
    fileprivate(set) var publishes: [ReceiveTrackParameters] = []
    /// Both sides have started.
    fileprivate(set) var isActive = false
    /// `nil` while it is there.
    var endReason: EndReason?
    /// Only of one that follows everyone.
    fileprivate var descriptions: DescriptionExchange?
    private var isOfferScheduled = false
    private unowned let world: World

    var channel: ChannelName { settings.channel }
    var peer: PeerID { place.peer }
    /// Its loop's place in ``World/loops``.
    var loop: Int { node.index(of: place.location) }
    var client: MediaClient? { host.client }

    fileprivate init(
        _ id: ParticipantID,
        _ place: ParticipantLocation,
        _ settings: Settings,
        _ node: SimulatedNode,
        _ host: World.Host,
        in world: World
    ) {
        self.id = id
        self.place = place
        self.settings = settings
        self.node = node
        self.host = host
        self.world = world
    }

    /// Others came, went or changed: it is offered what it may see now.
    func streamsChanged() {
        guard descriptions != nil, !isOfferScheduled else { return }
        isOfferScheduled = true
        world.schedule(after: settings.setupDelay) { [self] in
            isOfferScheduled = false
            world.renegotiate(self)
        }
    }
}

extension World {
    /// What a negotiation came to, on both sides.
    private struct Negotiated {
        var remote: RemoteTransport
        var receive: [ReceiveTrackParameters] = []
        var slots: [SendTrackParameters] = []
        var assigned: [SlotAssignment] = []
        var answer: ClientAnswer
    }

    /// A client joins a room: the node's model admits it, both sides negotiate, and its peer is made.
    /// - Throws: `RoomError` when the model refuses it.
    @discardableResult
    func join(_ settings: RoomParticipant.Settings) throws -> RoomParticipant {
        let node = nodes[settings.node]
        let id = ParticipantID(using: &generator)
        let request = JoinRequest(
            channel: settings.channel,
            role: settings.role,
            following: settings.following,
            isSimulcast: settings.rids.count > 1
        )
        let place = try node.reserve(request, id: id, session: ChannelSessionID(using: &generator))
        let host = makeHost(ofNode: settings.node)
        let participant = RoomParticipant(id, place, settings, node, host, in: self)
        node.add(participant)
        homes[place.peer] = participant.loop
        let (ours, theirs) = (localTransport(loops[participant.loop]), localTransport(host))
        let negotiated = try negotiate(participant, node: ours, client: theirs)
        note(
            place.peer,
            published: negotiated.receive,
            slots: negotiated.slots,
            client: theirs.credentials,
            node: ours.credentials
        )
        schedule(after: settings.setupDelay) { [self] in
            let parameters = PeerParameters(
                id: place.peer,
                localCredentials: ours.credentials,
                remote: negotiated.remote,
                receive: negotiated.receive,
                send: negotiated.slots + negotiated.assigned.map(\.parameters),
                share: place.order
            )
            activate(participant, parameters, negotiated, theirs)
        }
        return participant
    }

    private func negotiate(
        _ participant: RoomParticipant,
        node: LocalTransport,
        client: LocalTransport
    ) throws -> Negotiated {
        let (settings, number) = (participant.settings, participant.place.peer.rawValue)
        switch settings.role {
        case .sendonly:
            let offer = ClientOffer.publish(
                transport: client,
                audio: [.standard(.opus)],
                video: [.standard(.vp8)],
                rids: settings.rids,
                using: &generator
            )
            let outcome = try PublishOffer(parsing: offer.text).answer(local: node, sessionID: number)
            participant.publishes = outcome.receive
            let answer = try offer.parse(answer: outcome.answer)
            return Negotiated(remote: outcome.remote, receive: outcome.receive, answer: answer)
        case .recvonly where settings.following != .everyone:
            let offer = ClientOffer.watch(
                transport: client,
                audio: [.standard(.opus)],
                video: [.standard(.vp8)],
                using: &generator
            )
            let outcome = try WatchOffer(parsing: offer.text).answer(
                local: node,
                streamID: "stream",
                sessionID: number,
                using: &generator
            )
            let answer = try offer.parse(answer: outcome.answer)
            return Negotiated(remote: outcome.remote, slots: outcome.send, answer: answer)
        case .recvonly, .sendrecv:
            var own = OfferedDescription.ClientMedia()
            if settings.role.publishes {
                own.audio = .standard(.opus)
                own.video = .standard(.vp8)
                own.layers = settings.rids.map { OfferedDescription.Layer(rid: $0) }
            }
            participant.descriptions = DescriptionExchange(node: node, client: client, sending: own, using: &generator)
            guard let (turn, outcome) = try exchange(participant) else { preconditionFailure("both ends are there") }
            participant.publishes = outcome.receive
            return Negotiated(
                remote: outcome.remote,
                receive: outcome.receive,
                assigned: assignments(outcome.added),
                answer: ClientAnswer(turn)
            )
        }
    }

    /// An offer of what the participant may see now, and its answer.
    private func exchange(
        _ participant: RoomParticipant
    ) throws -> (ClientAnswerer.AppliedOffer, OfferedDescription.Outcome)? {
        let exchanged = try participant.descriptions?.offer(streams(for: participant), using: &generator)
        return exchanged.map { ($0.applied, $0.outcome) }
    }

    private func streams(for participant: RoomParticipant) -> [OfferedDescription.RemoteStream] {
        participant.node.rooms.visibleStreams(to: participant.id).map { stream in
            OfferedDescription.RemoteStream(
                id: stream.sender.value,
                tracks: stream.tracks.map {
                    OfferedDescription.RemoteTrack(kind: $0.kind, mid: $0.mid, formats: $0.formats)
                }
            )
        }
    }

    private func assignments(_ slots: [OfferedDescription.NegotiatedSlot]) -> [SlotAssignment] {
        slots.compactMap { slot in
            ParticipantID(slot.streamID).map {
                SlotAssignment(sender: $0, track: slot.track, parameters: slot.parameters)
            }
        }
    }

    private func activate(
        _ participant: RoomParticipant,
        _ parameters: PeerParameters,
        _ negotiated: Negotiated,
        _ transport: LocalTransport
    ) {
        let (node, home) = (participant.node, loops[participant.loop])
        // It ended while it was being set up.
        guard participant.endReason == nil else { return vanish(participant.host) }
        let video = negotiated.slots.filter { $0.kind == .video }
        do {
            try home.core.addPeer(parameters, at: now)
            participant.isActive = true
            try start(participant.host, parameters.id, transport, negotiated.answer, participant.settings.media)
            participant.arrivals.attach(to: participant.host, of: self)
            try node.change(participant.channel) { rooms throws(RoomError) in
                try rooms.setupCompleted(
                    participant.id,
                    publications: negotiated.receive.map {
                        Publication(mid: $0.mid, kind: $0.kind, rids: $0.rids, formats: $0.codecs)
                    },
                    slots: negotiated.slots.map { Slot(mid: $0.mid, kind: $0.kind) },
                    assigned: negotiated.assigned,
                    decodedVideo: video.isEmpty ? nil : Set(video.flatMap(\.codecs).map(\.name))
                )
            }
        } catch {
            preconditionFailure("seed \(seed): \(error)")
        }
        settle(home)
        participant.streamsChanged()
    }

    /// Offers a participant what it may see now, if that is not what it has.
    func renegotiate(_ participant: RoomParticipant) {
        let (node, name) = (participant.node, participant.channel)
        guard participant.isActive, participant.endReason == nil,
            participant.descriptions?.node.wouldChange(streams(for: participant)) == true
        else { return }
        do {
            guard let (turn, outcome) = try exchange(participant) else { return }
            try node.change(name) { rooms throws(RoomError) in
                try rooms.slotsChanged(of: participant.id, add: [], remove: outcome.removed)
            }
            for mid in outcome.removed {
                let slot = TrackID(peer: participant.peer, mid: mid)
                node.dropTarget(for: slot, of: name, at: participant.place.location)
            }
            let home = loops[participant.loop]
            // The transport may have ended without the model's knowledge so far.
            guard home.core.peer(participant.peer) != nil else { return }
            try home.core.changeSlots(
                of: participant.peer,
                add: outcome.added.map(\.parameters),
                remove: outcome.removed,
                at: now
            )
            if participant.host.core.peer(participant.peer) != nil {
                try participant.client?.change(add: turn.added.map(\.parameters), remove: turn.removed, at: now)
                participant.arrivals.attach(to: participant.host, of: self)
            }
            try node.change(name) { rooms throws(RoomError) in
                try rooms.slotsChanged(of: participant.id, add: assignments(outcome.added), remove: [])
            }
            settle(home)
            settle(participant.host)
        } catch {
            preconditionFailure("seed \(seed): \(error)")
        }
    }

    /// The participant's signaling ends it.
    func leave(_ participant: RoomParticipant) { participant.node.end(participant, reason: .left) }
}
