import Base
import Cluster
import MediaTypes
import TestSupport

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// One run of a node of a ``ClusterWorld``: its membership, what it knows of channels at other nodes, and the channels.
///
/// All decisions are the product's. What `ClusterMembership`, `ClusterNode`, `ClusterChannels` and `Channel` do around them
/// is done here without threads.
final class ClusterNodeModel {
    enum Answer {
        case enlistment(Result<NodeIncarnation, StoreError>)
        case beat(Result<HeartbeatAnswer, StoreError>)
        case attached(ChannelName, Result<RoomEntry, StoreError>)
    }

    let id: NodeID
    let startedAt: Instant
    var membership: Membership
    /// The incarnation in the locations and identifiers of its members; `nil` until the node knows enough to start.
    private(set) var media: NodeIncarnation?
    private(set) var replicas: ChannelReplicas
    private(set) var channels: [ChannelName: ChannelModel] = [:]
    private var admission = NodeModel(locations: [MediaLocation(loop: LoopIndex(rawValue: 0))])
    /// The rooms that the store has to know.
    var sessions: [ChannelName: RoomSession] = [:]
    /// What the store answered, and when that arrives.
    var answers: [(at: Instant, answer: Answer)] = []
    var ticks = 0
    /// The members of the node that are there, for as long as they stay.
    private(set) var members: [ParticipantID: ChannelName] = [:]
    private(set) var reports: [RoomReport] = []
    private var told: [ChannelName: [ParticipantID: MemberRecord]] = [:]
    private var toldSessions: [ChannelName: ChannelSessionID] = [:]

    init(_ id: NodeID, saved: SavedView?, seed: UInt64, at now: Instant) throws {
        self.id = id
        startedAt = now
        var record = NodeRecord(state: .ready)
        record.linkAddress = id.rawValue
        membership = try Membership(node: id, record: record, saved: saved, seed: seed, at: now)
        replicas = ChannelReplicas(own: id)
    }

    /// The node knows enough to start.
    func settle() {
        let media = membership.instance.incarnation
        self.media = media
        admission = NodeModel(node: media, locations: [MediaLocation(node: media, loop: LoopIndex(rawValue: 0))])
    }

    /// Changes what is known of other nodes.
    func change(_ body: (inout ChannelReplicas) -> [ChannelReplicas.Action]) -> [ChannelReplicas.Action] {
        body(&replicas)
    }

    /// The members of a channel, of this node and of others.
    func visible(in channel: ChannelName) -> Set<ParticipantID> {
        guard let model = channels[channel] else { return [] }
        return Set(model.ownMembers.map(\.id)).union(model.remoteMembers)
    }

    func ownMembers(of channel: ChannelName) -> Set<ParticipantID> {
        Set(channels[channel]?.ownMembers.map(\.id) ?? [])
    }

    // MARK: Members

    /// A client joins and connects.
    /// - Returns: the participant, and what other nodes have to be told.
    func join(
        _ channel: ChannelName,
        _ role: Role,
        using generator: inout SeededGenerator,
        at now: RoomTime
    ) throws -> (id: ParticipantID, actions: [ChannelReplicas.Action]) {
        let request = JoinRequest(channel: channel, role: role, following: .everyone)
        let id = ParticipantID(using: &generator)
        let session = ChannelSessionID(using: &generator)
        let isNew = channels[channel] == nil
        let model = channels[channel] ?? ChannelModel(name: channel)
        let place = try admission.admit(request, id: id, check: model.checkAdmission(of: request), at: now)
            .result.get()
        try apply(channel, at: now) { model in
            var effects = try model.joined(request, as: place, session: session)
            if isNew { model.joinCluster() }
            effects += try model.setupCompleted(id, publications: [], slots: [])
            return effects + model.received(.connected(over: .udp), from: place.peer)
        }
        members[id] = channel
        guard isNew, let own = channels[channel]?.session, let room = RoomSession(own) else {
            return (id, news(of: channel))
        }
        let actions = replicas.open(channel, room, at: now.instant)
        return (id, actions + news(of: channel))
    }

    /// A member leaves.
    func leave(_ id: ParticipantID, at now: RoomTime) throws -> [ChannelReplicas.Action] {
        guard let channel = members.removeValue(forKey: id) else { return [] }
        try apply(channel, at: now) { $0.left(id, reason: .left) }
        return news(of: channel) + closeUnused(at: now)
    }

    /// The channels without members of this node end here.
    func closeUnused(at now: RoomTime) -> [ChannelReplicas.Action] {
        let unused = channels.filter(\.value.isUnused).sorted { $0.key.value < $1.key.value }
        return unused.flatMap { channel, model in
            channels[channel] = nil
            told[channel] = nil
            toldSessions[channel] = nil
            return replicas.close(channel, ended: model.endedSession, at: now.instant)
        }
    }

    func endDepartureWaits(at now: RoomTime) throws {
        for (channel, model) in channels.sorted(by: { $0.key.value < $1.key.value }) {
            guard let end = model.departureWaitEnd, end <= now.second else { continue }
            try apply(channel, at: now) { $0.tick(at: now) }
        }
    }

    private func apply(
        _ channel: ChannelName,
        at now: RoomTime,
        _ event: (inout ChannelModel) throws -> [ChannelModel.Effect]
    ) throws {
        var model = channels[channel] ?? ChannelModel(name: channel)
        model.now = now
        let effects = try event(&model)
        channels[channel] = model
        admission.summaryChanged(of: channel, to: model.summary)
        for effect in effects {
            switch effect {
            case .connected(let id): admission.connected(id)
            case .ended(let id, let reason): admission.left(id, reason: reason, at: now)
            case .report(let report): reports.append(report)
            default: break
            }
        }
    }

    // MARK: To other nodes

    /// What the other nodes of a channel have to be told since the last call.
    private func news(of channel: ChannelName) -> [ChannelReplicas.Action] {
        guard var model = channels[channel] else { return [] }
        let (records, gone) = model.takeChanges()
        channels[channel] = model
        var news: [ChannelUpdate] = []
        let left = gone.filter { told[channel]?.removeValue(forKey: $0) != nil }
        if !left.isEmpty {
            let time = model.departedAt
            news.append(.left(left.map { ChannelUpdate.Departed(id: $0, departure: .ended, time: time) }))
        }
        let changed = records.filter { told[channel]?[$0.id] != $0 }
        for record in changed { told[channel, default: [:]][record.id] = record }
        let session = model.ownSession
        let isSessionNew = session?.id != toldSessions[channel]
        toldSessions[channel] = session?.id
        if session != nil, isSessionNew {
            news.append(all(of: model))
        } else if !changed.isEmpty {
            news.append(.changed(changed))
        }
        let receivers = replicas.receivers(of: channel)
        return news.flatMap { item in receivers.map { .send(.news(channel, item), $0) } }
    }

    private func all(of model: ChannelModel) -> ChannelUpdate {
        .all(model.ownSession, model.ownMembers, model.register, labels: [])
    }

    /// All that another node has to know of a channel.
    func all(of channel: ChannelName) -> ChannelUpdate? { channels[channel].map(all) }

    // MARK: From other nodes

    func received(_ news: ChannelUpdate, of channel: ChannelName, from node: NodeIncarnation, at now: RoomTime) throws {
        guard channels[channel] != nil, node != media else { return }
        try apply(channel, at: now) { model in
            var effects: [ChannelModel.Effect] = []
            switch news {
            case .all(let session, let records, let register, _, _):
                if let session { effects += model.sessionFound(session) }
                let present = Set(records.map(\.id))
                for id in model.members(of: node) where !present.contains(id) {
                    effects += model.remoteLeft(id, .ended)
                }
                for record in records where record.node == node { effects += changed(record, &model) }
                effects += model.registerFound(register)
            case .changed(let records):
                for record in records where record.node == node { effects += changed(record, &model) }
            case .left(let departed):
                for member in departed where model.participants[member.id]?.location.node == node {
                    effects += model.remoteLeft(member.id, member.departure, at: member.time)
                }
            case .register(let register): effects += model.registerFound(register)
            case .labels: break
            }
            return effects
        }
    }

    private func changed(_ record: MemberRecord, _ model: inout ChannelModel) -> [ChannelModel.Effect] {
        model.remoteChanged(record) { admission.nextOrder() }
    }

    /// The members of another node leave.
    func lost(_ node: NodeIncarnation, of channel: ChannelName, at now: RoomTime) throws {
        guard channels[channel] != nil else { return }
        try apply(channel, at: now) { model in
            model.members(of: node).flatMap { model.remoteLeft($0, .timedOut) }
        }
    }
}
