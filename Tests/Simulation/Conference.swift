import Base
import Client
import Forwarding
import MediaTypes
import Negotiation
import Wire

/// A call of which the node describes every member's session: each who comes or goes is told to the others in SDP, which
/// is written, read, answered and read again as between machines.
final class Conference {
    /// One client with both ends of its session.
    final class Member {
        let name: String
        let host: World.Host
        let id: PeerID
        /// In its stamps.
        let source: UInt32
        let isSending: Bool
        fileprivate var descriptions: DescriptionExchange
        /// What it publishes, as the node received it.
        fileprivate(set) var publishes: [ReceiveTrackParameters] = []
        /// Of each line that arrives: whose it is.
        fileprivate(set) var arrives: [MID: String] = [:]
        fileprivate(set) var offers: [SessionDescription] = []

        fileprivate init(
            _ name: String,
            _ host: World.Host,
            _ id: PeerID,
            source: UInt32,
            isSending: Bool,
            _ descriptions: DescriptionExchange
        ) {
            self.name = name
            self.host = host
            self.id = id
            self.source = source
            self.isSending = isSending
            self.descriptions = descriptions
        }

        /// What arrives now, by whose it is and the kind.
        var listeners: [(from: String, MediaClient.Receiver)] {
            (host.client?.receivers ?? []).compactMap { listener in
                guard !listener.hasEnded, let name = arrives[listener.mid] else { return nil }
                return (name, listener)
            }
        }
    }

    let world: World
    private(set) var members: [Member] = []
    private var nextSource: UInt32 = 1

    /// - Parameters:
    ///   - estimates: the node estimates what the network to each member carries.
    ///   - sendRate: the settings of that.
    init(seed: UInt64, estimates: Bool = false, sendRate: SendRateSettings = SendRateSettings()) throws {
        world = try World(seed: seed, estimates: estimates, sendRate: sendRate)
    }

    /// A member joins; the others are told at once.
    /// - Parameters:
    ///   - layers: simulcast layers of its video, lowest first.
    ///   - settings: of its client.
    ///   - link: of its network.
    @discardableResult
    func join(
        _ name: String,
        sends: Bool = true,
        video: CodecName = .vp8,
        layers: [String] = [],
        settings: MediaClient.Settings = MediaClient.Settings(),
        link: LinkConditions? = nil
    ) throws -> Member {
        let (host, id) = try world.makeHost()
        world.network.conditions[host.address] = link
        world.homes[id] = 0
        let (client, node) = (world.localTransport(host), world.localTransport(world.node))
        var own = OfferedDescription.ClientMedia()
        if sends {
            own.audio = .offered(.opus)
            own.video = .offered(video)
            own.layers = layers.compactMap { RID($0) }.map { OfferedDescription.Layer(rid: $0) }
        }
        let member = Member(
            name,
            host,
            id,
            source: nextSource,
            isSending: sends,
            DescriptionExchange(node: node, client: client, sending: own, using: &world.generator)
        )
        nextSource += 1
        let (turn, outcome) = try exchange(member)
        member.publishes = outcome.receive
        try world.node.core.addPeer(
            PeerParameters(
                id: id,
                localCredentials: node.credentials,
                remote: outcome.remote,
                receive: outcome.receive,
                send: outcome.added.map(\.parameters)
            ),
            at: world.now
        )
        var settings = settings
        settings.sourceNumber = member.source
        try world.start(host, id, client, ClientAnswer(turn), settings)
        members.append(member)
        try connect(outcome.added, of: member)
        try tellOthers(than: member)
        return member
    }

    /// A member leaves; the others are told at once.
    func leave(_ member: Member) throws {
        members.removeAll { $0 === member }
        world.remove(member.host)
        try tellOthers(than: member)
    }

    private func tellOthers(than newcomer: Member) throws {
        for member in members where member !== newcomer && member.descriptions.node.wouldChange(streams(for: member)) {
            let (turn, outcome) = try exchange(member)
            try world.node.core.changeSlots(
                of: member.id,
                add: outcome.added.map(\.parameters),
                remove: outcome.removed,
                at: world.now
            )
            try member.host.client?.change(add: turn.added.map(\.parameters), remove: turn.removed, at: world.now)
            try connect(outcome.added, of: member)
            world.settle(world.node)
            world.settle(member.host)
        }
    }

    /// What the others send.
    private func streams(for member: Member) -> [OfferedDescription.RemoteStream] {
        members.filter { $0 !== member && !$0.publishes.isEmpty }.map { other in
            OfferedDescription.RemoteStream(
                id: other.name,
                tracks: other.publishes.map {
                    OfferedDescription.RemoteTrack(kind: $0.kind, mid: $0.mid, formats: $0.codecs)
                }
            )
        }
    }

    /// An offer and its answer.
    private func exchange(_ member: Member) throws -> (ClientAnswerer.AppliedOffer, OfferedDescription.Outcome) {
        let (offer, turn, outcome) = try member.descriptions.offer(streams(for: member), using: &world.generator)
        member.offers.append(try SessionDescription(parsing: offer))
        for mid in turn.removed { member.arrives[mid] = nil }
        for track in turn.added { member.arrives[track.parameters.mid] = track.streamID }
        return (turn, outcome)
    }

    private func connect(_ slots: [OfferedDescription.NegotiatedSlot], of member: Member) throws {
        for slot in slots {
            guard let sender = members.first(where: { $0.name == slot.streamID }) else { continue }
            try world.node.core.connect(
                slot: TrackID(peer: member.id, mid: slot.parameters.mid),
                to: TrackID(peer: sender.id, mid: slot.track),
                at: world.now
            )
        }
        world.settle(world.node)
    }
}
