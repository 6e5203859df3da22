import Admission
import Base
package import ChannelTypes
package import MediaTypes
import Speakers

// The other nodes of a cluster that have the channel. Each tells of its own members, which are participants here too: in all
// lists and counts, without media, signaling and deadlines of this node. Viewers of this node play their tracks like any
// other. What a node is told twice, or in another order than another node, leads to the same members.

extension ChannelModel {
    /// The most members of other nodes. What is told of more is ignored.
    static let remoteMembersMax = 10_000

    /// Notes which members change from now on, for ``takeChanges()``.
    package mutating func joinCluster() { participants.noteChanges() }

    /// What other nodes have to be told since the last call.
    package mutating func takeChanges() -> (changed: [MemberRecord], gone: [ParticipantID]) {
        var (changed, gone) = ([MemberRecord](), [ParticipantID]())
        for id in participants.takeChanges() {
            guard let participant = participants[id] else {
                gone.append(id)
                continue
            }
            if !participant.isRemote { changed.append(MemberRecord(participant)) }
        }
        return (changed, gone)
    }

    /// The members of this node, in the order of joining.
    package var ownMembers: [MemberRecord] {
        state.members.compactMap { participants[$0] }.filter { !$0.isRemote }.map(MemberRecord.init)
    }

    // MARK: Members

    /// A node told of a member of its own that is new or changed.
    ///
    /// - Parameter order: for a new one, see ``ParticipantLocation/order``.
    package mutating func remoteChanged(_ record: MemberRecord, order: () -> UInt64) -> [Effect] {
        // A node names its own peers only: those that other nodes are about to make may not be taken.
        guard state.session != nil, record.peer.node == record.node else { return [] }
        let owner = participantOfPeer[record.peer]
        guard owner == nil || owner == record.id else { return [] }
        var effects: [Effect] = []
        let wasConnected = participants[record.id]?.isConnected == true
        if let before = participants[record.id] {
            guard before.isRemote, before.location.node == record.node else { return [] }
            update(before, to: record, into: &effects)
        } else {
            guard state.remote.members.count < Self.remoteMembersMax else { return [] }
            add(Participant(record, order: order(), in: name, at: now), into: &effects)
            guard let added = participants[record.id] else { return [] }
            update(added, to: record, into: &effects)
        }
        return effects.ofOtherNodes + (wasConnected ? [] : replacedDuplicates(of: record))
    }

    /// Ends members of this node that a member of another node replaces. Where both joined before they knew of each other,
    /// the nodes choose the same one.
    private mutating func replacedDuplicates(of record: MemberRecord) -> [Effect] {
        guard let connectedAt = record.connectedAt,
            (record.duplicateUsers ?? limits.duplicateUsers) == .replace
        else { return [] }
        let duplicates = duplicates(
            user: record.user,
            role: record.negotiatedRole,
            bundleID: record.bundle.id,
            source: record.options?.source ?? .camera
        )
        return duplicates.flatMap { id -> [Effect] in
            guard let own = participants[id], !own.isRemote, let since = own.connectedAt?.unixNanoseconds,
                since < connectedAt || since == connectedAt && id.precedes(record.id)
            else { return [] }
            participants[id]?.resumption = nil
            return left(id, reason: .replaced)
        }
    }

    private mutating func add(_ participant: Participant, into effects: inout [Effect]) {
        state.add(participant)
        participantOfPeer[participant.peer] = participant.id
        participants[participant.id] = participant
        state.remote.add(participant)
        fixApp(participant.terms.app)
    }

    private mutating func update(_ before: Participant, to record: MemberRecord, into effects: inout [Effect]) {
        let id = record.id
        state.remote.remove(before)
        defer { if let after = participants[id] { state.remote.add(after) } }
        participants[id]?.update(record)
        if before.peer != record.peer {
            participantOfPeer[before.peer] = nil
            participantOfPeer[record.peer] = id
        }
        state.liveNumberMax = max(state.liveNumberMax, record.liveNumber)
        updateActivity(before, to: record, into: &effects)
        updateRole(to: record, into: &effects)
        updateConnection(before, to: record, into: &effects)
        guard let after = participants[id] else { return }
        if before.isAnnounced { announceTracks(of: id, changedFrom: before, into: &effects) }
        if after.isHandRaised != before.isHandRaised { announceHand(of: after, into: &effects) }
        if after.quality != before.quality { tellOthersOfQuality(of: after, into: &effects) }
        if after.isLive, after.isSource(otherThan: before) { updateSlots(thatPlay: after, into: &effects) }
        for mid in record.speaking.symmetricDifference(before.speaking) {
            speechChanged(of: id, in: mid, isSpeaking: record.speaking.contains(mid), into: &effects)
        }
        if after.isActive || before.isActive { changed(into: &effects) }
    }

    private mutating func updateActivity(
        _ before: Participant,
        to record: MemberRecord,
        into effects: inout [Effect]
    ) {
        guard before.isActive != record.isActive else { return }
        let id = record.id
        participants[id]?.isActive = record.isActive
        let change = record.isActive ? 1 : -1
        if before.role.watches { state.activeViewerCount += change }
        if let decoded = record.isActive ? record.decodedVideo : before.decodedVideo {
            state.decoders.add(change, decoded)
        }
        participants[id]?.decodedVideo = record.isActive ? record.decodedVideo : nil
        if record.isActive, let spotlight = record.spotlight, record.negotiatedRole.watches {
            state.session?.speakers.joined(with: spotlight)
        }
        if before.role.publishes, let followers = state.followers[id] { updateSlots(of: followers, into: &effects) }
    }

    private mutating func updateRole(to record: MemberRecord, into effects: inout [Effect]) {
        guard let participant = participants[record.id], participant.role != record.member.role else { return }
        if record.member.role.publishes {
            becameHost(participant, into: &effects)
        } else {
            becameAudience(participant, into: &effects)
        }
    }

    private mutating func updateConnection(
        _ before: Participant,
        to record: MemberRecord,
        into effects: inout [Effect]
    ) {
        let id = record.id
        if !before.isConnected, let connectedAt = record.connectedAt, var participant = participants[id] {
            participant.connectedAt = now.earlier(unixNanoseconds: connectedAt)
            participants[id] = participant
            // Its node has reported the session.
            state.session?.isAnnounced = true
            state.connected.insert(id, order: participant.order)
            state.counts.add(1, participant.role)
            if participant.role.publishes { wentLive(participant, into: &effects) }
            announce(participant, into: &effects)
            updateFocus(afterComing: id, into: &effects)
        }
        let isLost = isInterrupted(id) != record.isInterrupted
        if isLost { participants[id]?.resumption = record.isInterrupted ? .elsewhere : nil }
        guard let participant = participants[id] else { return }
        if participant.isInterrupted != before.isInterrupted {
            announceInterruption(of: participant, into: &effects)
        }
        // Players of one that is only silent wait for it, as at its own node.
        if isLost, participant.isLive { updateSlots(thatPlay: participant, into: &effects) }
    }

    /// A member of another node left.
    ///
    /// - Parameter time: see ``ChannelUpdate/Departed/time``; `nil` when its node did not tell of it.
    package mutating func remoteLeft(_ id: ParticipantID, _ departure: Departure, at time: Int64? = nil) -> [Effect] {
        guard let participant = participants[id], participant.isRemote else { return [] }
        if let time { departureFound(at: time, from: participant.location.node) }
        _ = participants.removeValue(forKey: id)
        participantOfPeer[participant.peer] = nil
        let bundleMembers = state.bundles[participant.terms.bundle] ?? []
        state.remove(participant)
        state.remote.remove(participant)
        var effects: [Effect] = []
        if participant.terms.negotiatedRole.publishes { removePublisher(participant, bundleMembers, into: &effects) }
        if participant.isConnected { announceGone(participant, bundleMembers, departure, into: &effects) }
        lowerHand(ofDeparted: participant, into: &effects)
        if participant.isActive { changed(into: &effects) }
        return effects.ofOtherNodes + othersLeft()
    }

    /// The members by their nodes.
    package var memberCounts: [NodeIncarnation: Int] {
        state.members.reduce(into: [:]) { counts, id in
            if let participant = participants[id] { counts[participant.location.node, default: 0] += 1 }
        }
    }

    /// The members of other nodes.
    package var remoteMembers: Set<ParticipantID> { state.remote.members }

    /// The members that a node told of.
    package func members(of node: NodeIncarnation) -> [ParticipantID] {
        state.remote.members.filter { participants[$0]?.location.node == node }.sorted { $0.precedes($1) }
    }

    /// Asks the node of a member to end it, instead of ending it here.
    func requestInstead(_ id: ParticipantID, reason: EndReason) -> [Effect]? {
        guard let participant = participants[id], participant.isRemote else { return nil }
        // What ends the members of one node only, such as its shutdown, is nothing to the members of others.
        guard let cause = ChannelCommand.EndCause(reason) else { return [] }
        return [.request(.end(.participants([id]), cause), of: participant.location.node)]
    }

    /// Asks the node of a receiver, instead of changing its slots here.
    ///
    /// - Parameter sender: of the video that the request is about; `nil` for all.
    /// - Returns: `nil` for a receiver of this node.
    /// - Throws: ``RoomError/participantUnknown`` when the receiver does not watch, or `sender` is not live.
    func requestInstead(
        _ command: ChannelCommand,
        ofReceiver id: ParticipantID,
        _ sender: ParticipantID? = nil
    ) throws(RoomError) -> [Effect]? {
        guard let participant = participants[id], participant.isRemote else { return nil }
        guard participant.isActive, participant.role.watches,
            sender.map({ participants[$0]?.isLive == true }) ?? true
        else { throw .participantUnknown }
        return [.request(command, of: participant.location.node)]
    }

    /// Asks all other nodes with members.
    func requestsToOthers(_ command: ChannelCommand) -> [Effect] {
        Set(state.remote.members.compactMap { participants[$0]?.location.node }).sorted { $0.rawValue < $1.rawValue }
            .map { .request(command, of: $0) }
    }

    /// Puts a publisher among those that are live, in an order that all nodes have.
    mutating func insertLive(_ participant: Participant) {
        var number = participant.liveNumber
        if number == 0 {
            number = state.liveNumberMax &+ 1
            participants[participant.id]?.liveNumber = number
        }
        state.liveNumberMax = max(state.liveNumberMax, number)
        let position = state.live.lastIndex { id in
            let other = participants[id]?.liveNumber ?? 0
            return other < number || other == number && id.precedes(participant.id)
        }
        state.live.insert(participant.id, at: position.map { $0 + 1 } ?? 0)
    }
}

extension [ChannelModel.Effect] {
    /// What has to be done here about members of other nodes: their own nodes do the rest.
    var ofOtherNodes: Self {
        filter { effect in
            switch effect {
            case .connect, .streamsChanged, .notify, .channelChanged: true
            case .limitSending, .removePeer, .unusedLayersChanged, .connected, .ended, .interrupted, .report,
                .checkTransport, .request, .push, .requestKeyFrames:
                false
            }
        }
    }
}
