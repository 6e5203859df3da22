import MediaTypes
import RoomTestSupport
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

extension SynchronousNode {
    init(limits: RoomLimits = RoomLimits(), loopCount: Int) {
        self.init(limits: limits, locations: .loops(loopCount))
    }
}

// MARK: - Events

extension SynchronousNode {
    mutating func perform(
        _ command: ChannelCommand,
        in name: ChannelName = ModelBench.channel,
        by initiator: Initiator = .operator,
        session: ChannelSessionID? = nil
    ) throws(RoomError) -> [Effect] {
        try change(name) { model throws(RoomError) in
            if let session { try model.checkSession(session) }
            return try model.perform(command, by: initiator).effects
        }
    }

    mutating func spotlightLayersRequested(
        _ layers: (focus: LayerChoice, unfocus: LayerChoice)?,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in
            let layers = layers.map { SpotlightLayers(focus: $0.focus, unfocus: $0.unfocus) }
            return try model.spotlightLayersRequested(layers, by: id, of: sender)
        }
    }

    mutating func codecsRefused(
        by id: ParticipantID,
        _ refused: [(sender: ParticipantID, codec: CodecName)]
    ) -> [Effect] {
        change(of: id) { model in
            model.codecsRefused(by: id, refused.map { Viewer.RefusedCodec(sender: $0.sender, codec: $0.codec) })
        }
    }

    mutating func listenerArrived(
        _ id: ListenerID,
        at name: ChannelName,
        from network: ClientNetwork = .unknown
    ) throws(RoomError) {
        let isFull = channels[name]?.isFullOfListeners ?? (node.limits.listenersPerChannelMax == 0)
        try node.listenerArrived(id, at: name, from: network, isChannelFull: isFull)
        _ = change(name) { model in
            model.listenerArrived(id)
            return []
        }
    }

    mutating func listenerLeft(_ id: ListenerID, from name: ChannelName) {
        node.listenerLeft(id)
        _ = change(name) { model in
            model.listenerLeft(id)
            return []
        }
    }
}

// MARK: - Queries

extension SynchronousNode {
    var mode: NodeMode {
        get { node.joinPolicy.mode }
        set { node.joinPolicy.mode = newValue }
    }
    var admissions: AdmissionCounts { node.admissions }
    var placement: Placement { node.placement }
    var networks: NetworkShares { node.networks }
    var counts: RoomCounts { node.counts }
    var workDone: Int { (retired + channels.values).reduce(0) { $0 + $1.workDone } }
    var participants: [ParticipantID: Participant] { merged(\.participants.byID) }
    var viewers: [ParticipantID: Viewer] { merged(\.viewers) }

    private func merged<Value>(_ path: KeyPath<ChannelModel, [ParticipantID: Value]>) -> [ParticipantID: Value] {
        channels.values.reduce(into: [:]) { $0.merge($1[keyPath: path]) { one, _ in one } }
    }

    func snapshot(of name: ChannelName) -> ChannelSnapshot? { channels[name]?.snapshot }
    func session(of name: ChannelName) -> ChannelSession? { channels[name]?.session }
    func counts(of name: ChannelName) -> ChannelCounts { channels[name]?.counts ?? ChannelCounts() }
    func memberCount(of name: ChannelName) -> Int { channels[name]?.memberCount ?? 0 }
    func decoders(in name: ChannelName) -> VideoDecoders { channels[name]?.decoders ?? VideoDecoders() }
    func connection(of id: ParticipantID) -> Connection? { channel(of: id)?.connection(of: id) }

    func connections(in name: ChannelName?) -> [Connection] {
        if let name { return channels[name]?.connections ?? [] }
        let participants = participants
        return channels.values.flatMap(\.connections).sorted {
            (participants[$0.member.id]?.order ?? 0) < (participants[$1.member.id]?.order ?? 0)
        }
    }

    func members(of name: ChannelName, role: Role? = nil, clientID: String? = nil) -> [ParticipantID] {
        channels[name]?.members(role: role, clientID: clientID) ?? []
    }

    func filters(of scope: FilterScope) throws(RoomError) -> [ForwardingFilter] {
        try (channels[ModelBench.channel] ?? ChannelModel(name: ModelBench.channel)).filters(of: scope)
    }
}
