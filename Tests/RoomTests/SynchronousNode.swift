import Foundation
import MediaTypes
import RoomTestSupport
import Wire

@testable import Room

/// A node without actors: the ``NodeModel`` and the ``ChannelModel``s of its channels, with the effects of channels on
/// the node.
struct SynchronousNode {
    typealias Effect = ChannelModel.Effect

    var node: NodeModel
    var channels: [ChannelName: ChannelModel] = [:]
    var now = RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)
    /// Whether each channel is encoded, decoded and continued with after every event.
    var codesChannels = false
    /// The effects of all events so far.
    private(set) var trace: [[Effect]] = []
    /// The effects of the newcomers that took places of others, of the last newcomer.
    private(set) var evictions: [Effect] = []
    /// The work of channels that are gone.
    private var retiredWork = 0
    private static let nowhere = ChannelName("nowhere")!

    init(limits: RoomLimits = RoomLimits(), loopCount: Int) {
        node = NodeModel(limits: limits, locations: .loops(loopCount))
    }

    /// Hands an event to a channel, and the effects that concern the node to the node.
    mutating func change<Refusal>(
        _ name: ChannelName,
        _ event: (inout ChannelModel) throws(Refusal) -> [Effect]
    ) throws(Refusal) -> [Effect] {
        var channel = channels.removeValue(forKey: name) ?? ChannelModel(name: name, limits: node.limits)
        channel.now = now
        defer {
            node.summaryChanged(of: name, to: channel.summary)
            if channel.isUnused {
                precondition(channel.isEmpty, "an unused channel holds nothing")
                retiredWork += channel.workDone
            } else {
                channels[name] = codesChannels ? Self.coded(channel) : channel
            }
        }
        let effects = try event(&channel)
        trace.append(effects)
        for effect in effects {
            switch effect {
            case .connected(let id): node.connected(id)
            case .ended(let id, let reason): node.left(id, reason: reason)
            default: break
            }
        }
        return effects
    }

    /// ``change(_:_:)`` for the channel of a participant; of one that is gone an empty channel.
    private mutating func change<Refusal>(
        of id: ParticipantID,
        _ event: (inout ChannelModel) throws(Refusal) -> [Effect]
    ) throws(Refusal) -> [Effect] {
        try change(node.channel(of: id) ?? Self.nowhere, event)
    }

    static func coded(_ channel: ChannelModel) -> ChannelModel {
        do {
            return try JSONDecoder().decode(ChannelModel.self, from: JSONEncoder().encode(channel))
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

// MARK: - Events

extension SynchronousNode {
    mutating func joinRequested(
        _ request: JoinRequest,
        id: ParticipantID,
        session: ChannelSessionID
    ) throws(RoomError) -> ParticipantPlace {
        let name = request.channel
        let check = (channels[name] ?? ChannelModel(name: name, limits: node.limits)).checkAdmission(of: request)
        let outcome = node.admit(request, id: id, check: check, at: now)
        evictions = []
        for name in Set(outcome.evicted.map(\.channel)) {
            let ids = outcome.evicted.filter { $0.channel == name }.map(\.participant)
            evictions += change(name) { $0.leftTogether(ids, reason: .crowdedOut) }
        }
        let place = try outcome.result.get()
        do throws(RoomError) {
            _ = try change(name) { model throws(RoomError) in
                try model.joined(request, as: place, session: session)
                return []
            }
        } catch {
            node.left(id, reason: .setupFailed)
            throw error
        }
        return place
    }

    mutating func setupCompleted(
        _ id: ParticipantID,
        publications: [Publication],
        slots: [Slot],
        assigned: [SlotAssignment] = [],
        decodedVideo: Set<CodecName>? = nil,
        hasEventReader: Bool = true
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in
            try model.setupCompleted(
                id,
                publications: publications,
                slots: slots,
                assigned: assigned,
                decodedVideo: decodedVideo,
                hasEventReader: hasEventReader
            )
        }
    }

    mutating func left(_ id: ParticipantID, reason: EndReason) -> [Effect] {
        change(of: id) { $0.left(id, reason: reason) }
    }

    mutating func received(_ event: PeerEvent, from peer: PeerID) -> [Effect] {
        guard let name = node.channel(of: peer) else { return [] }
        return change(name) { $0.received(event, from: peer) }
    }

    /// Lets time pass for the channels that have a deadline, as a node does.
    mutating func tick(at now: RoomTime) -> [Effect] {
        self.now = now
        var effects: [Effect] = []
        for name in node.channelsDue(at: now.second).sorted(by: { $0.value < $1.value }) {
            effects += change(name) { $0.tick(at: now) }
        }
        return effects
    }

    mutating func slotsChanged(
        of id: ParticipantID,
        add: [SlotAssignment],
        remove: [MID]
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.slotsChanged(of: id, add: add, remove: remove) }
    }

    mutating func end(
        in name: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) -> (ended: [ParticipantID], effects: [Effect]) {
        var ended: [ParticipantID] = []
        let effects = change(name) { model in
            let result = model.end(role: role, clientID: clientID, reason: reason)
            ended = result.ended
            return result.effects
        }
        return (ended, effects)
    }

    mutating func shutdownRequested() -> [Effect] {
        node.drainingStarted()
        return channels.keys.sorted { $0.value < $1.value }.flatMap { end(in: $0, reason: .shutdown).effects }
    }

    mutating func layerRequested(
        _ layer: LayerChoice,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.layerRequested(layer, by: id, of: sender) }
    }

    mutating func spotlightLayersRequested(
        _ layers: (focus: LayerChoice, unfocus: LayerChoice)?,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in
            try model.spotlightLayersRequested(layers, by: id, of: sender)
        }
    }

    mutating func spotlightNumberChanged(
        of name: ChannelName,
        session: ChannelSessionID? = nil,
        to number: Int
    ) throws(RoomError) -> [Effect] {
        try change(name) { model throws(RoomError) in try model.spotlightNumberChanged(session: session, to: number) }
    }

    mutating func focusRequested(
        _ id: ParticipantID,
        in name: ChannelName,
        isFixed: Bool
    ) throws(RoomError) -> [Effect] {
        try change(name) { model throws(RoomError) in try model.focusRequested(id, isFixed: isFixed) }
    }

    mutating func unfocusRequested(_ id: ParticipantID, in name: ChannelName) throws(RoomError) -> [Effect] {
        try change(name) { model throws(RoomError) in try model.unfocusRequested(id) }
    }

    mutating func codecsRefused(
        by id: ParticipantID,
        _ refused: [(sender: ParticipantID, codec: CodecName)]
    ) -> [Effect] {
        change(of: id) { model in
            model.codecsRefused(by: id, refused.map { Viewer.RefusedCodec(sender: $0.sender, codec: $0.codec) })
        }
    }

    mutating func filterCreated(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        session: ChannelSessionID? = nil
    ) throws(RoomError) -> [Effect] {
        try change(scope.channel) { model throws(RoomError) in
            try model.filterCreated(filter, in: scope, session: session)
        }
    }

    mutating func filterUpdated(
        _ filter: ForwardingFilter,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Effect] {
        try change(scope.channel) { model throws(RoomError) in
            try model.filterUpdated(filter, in: scope, expected: expected)
        }
    }

    mutating func filterDeleted(
        _ name: String,
        in scope: FilterScope,
        expected: String?
    ) throws(RoomError) -> [Effect] {
        try change(scope.channel) { model throws(RoomError) in
            try model.filterDeleted(name, in: scope, expected: expected)
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

    mutating func drainingStarted() { node.drainingStarted() }
}

// MARK: - Queries

extension SynchronousNode {
    var mode: NodeMode {
        get { node.mode }
        set { node.mode = newValue }
    }
    var admissions: AdmissionCounts { node.admissions }
    var placement: Placement { node.placement }
    var networks: NetworkShares { node.networks }
    var counts: RoomCounts { node.counts }
    var isEmpty: Bool { node.isEmpty && channels.isEmpty }
    var workDone: Int { channels.values.reduce(retiredWork) { $0 + $1.workDone } }
    var participants: [ParticipantID: Participant] { merged(\.participants) }
    var viewers: [ParticipantID: Viewer] { merged(\.viewers) }

    private func merged<Value>(_ path: KeyPath<ChannelModel, [ParticipantID: Value]>) -> [ParticipantID: Value] {
        channels.values.reduce(into: [:]) { $0.merge($1[keyPath: path]) { one, _ in one } }
    }
    private func channel(of id: ParticipantID) -> ChannelModel? { node.channel(of: id).flatMap { channels[$0] } }

    func snapshot(of name: ChannelName) -> ChannelSnapshot? { channels[name]?.snapshot }
    func session(of name: ChannelName) -> ChannelSession? { channels[name]?.session }
    func counts(of name: ChannelName) -> ChannelCounts { channels[name]?.counts ?? ChannelCounts() }
    func memberCount(of name: ChannelName) -> Int { channels[name]?.memberCount ?? 0 }
    func decoders(in name: ChannelName) -> VideoDecoders { channels[name]?.decoders ?? VideoDecoders() }
    func slots(of id: ParticipantID) -> [Slot]? { channel(of: id)?.slots(of: id) }
    func visibleStreams(to id: ParticipantID) -> [VisibleStream] { channel(of: id)?.visibleStreams(to: id) ?? [] }
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
        try (channels[scope.channel] ?? ChannelModel(name: scope.channel)).filters(of: scope)
    }
}
