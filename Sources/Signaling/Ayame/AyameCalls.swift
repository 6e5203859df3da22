import Base
package import ChannelTypes
import MediaTypes
package import Room
import Web
package import Webhooks

/// The registrations of the relay's clients, in rooms of this node and of the other nodes of a cluster.
///
/// Each room is at one node, its home, whose ``AyameRooms`` alone decides who is in it and in which order messages pass. A client
/// that is connected to another node is a guest there: an ordinary member whose messages go over the link of the two nodes.
/// When that link is lost, the registration has ended at both nodes.
///
/// Clients are told what is decided in the step that decides it.
package actor AyameCalls {
    /// Where a client joins a room.
    enum Home: Hashable {
        case here
        case at(NodeID)
    }

    /// The rooms that are at this node.
    var rooms = AyameRooms()
    var state = State()
    /// What other nodes sent.
    nonisolated let inbox = Inbox<[NodeID: AyameNodeInbox]>(empty: [:])
    nonisolated let cluster: (any OtherNodes)?
    private let relays: (any CallTURNServers)?
    private let acceptTimeout: Duration
    private let clock: RoomClock
    private let onReport: @Sendable (CallReport) -> Void

    /// - Parameters:
    ///   - cluster: the other nodes; `nil` outside of a cluster.
    ///   - relays: of rooms of this node whose media goes from client to client; `nil` without a TURN server.
    ///   - acceptTimeout: how long a room's node has for the answer to a registration.
    ///   - onReport: called for each event of a room whose media goes from client to client, in order for each room.
    ///     It must not block.
    package init(
        cluster: (any OtherNodes)? = nil,
        relays: (any CallTURNServers)? = nil,
        acceptTimeout: Duration = .seconds(5),
        clock: RoomClock = .system,
        onReport: @escaping @Sendable (CallReport) -> Void = { _ in }
    ) {
        self.cluster = cluster
        self.relays = relays
        self.acceptTimeout = acceptTimeout
        self.clock = clock
        self.onReport = onReport
    }

    // MARK: Clients of this node

    /// Joins a room, wherever it is. When the task is cancelled, the client is not in the room, or ``Answer/joined(_:)`` is
    /// returned.
    ///
    /// - Parameters:
    ///   - isMediaRequired: whether the client may not join a room with another path.
    ///   - refusal: why the client is blocked.
    func join(
        _ room: ChannelName,
        _ member: AyameRooms.Member,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false,
        refusal: @Sendable () -> RoomError? = { nil }
    ) async -> AyameRooms.Answer {
        // Two nodes that dial each other at the same time give one link up, and with it what was sent over it.
        for _ in 0..<2 {
            guard let cluster, case .at(let node) = await home(of: room, cluster) else {
                let relay = await openRelay(for: member, in: room, media: media, refusal: refusal)
                // Another client may have found the room at another node meanwhile.
                if case .at = knownHome(of: room) {
                    if let relay { close(relay.id) }
                    continue
                }
                return joinHere(
                    room,
                    member,
                    media: media,
                    isMediaRequired: isMediaRequired,
                    relay: relay,
                    refusal: refusal
                )
            }
            if Task.isCancelled { return .refused(.endedDuringSetup) }
            let guest = AyameGuest(member, in: room, media: media, isMediaRequired: isMediaRequired)
            let registration = Registration(home: node, room: room, member: member)
            if let answer = await register(guest, registration, cluster, refusal) { return answer }
        }
        return .unreachable
    }

    /// Opens a relay for a client that begins a room of this node.
    /// - Returns: `nil` when there is none to be had or none is needed; without waiting in the latter case.
    func openRelay(
        for member: AyameRooms.Member,
        in room: ChannelName,
        media: CallMedia,
        refusal: () -> RoomError?
    ) async -> CallTURN? {
        guard let relays, needsRelay(member, in: room, media: media), refusal() == nil else { return nil }
        return await relays.open()
    }

    /// Whether a client begins a room of this node that is to have a relay.
    func needsRelay(_ member: AyameRooms.Member, in room: ChannelName, media: CallMedia) -> Bool {
        relays != nil && media == .direct && rooms.isNew(room, for: member)
    }

    private func close(_ id: CallTURNID, keepsAllocations: Bool = false) {
        guard let relays else { return }
        Task { await relays.close(id, keepsAllocations: keepsAllocations) }
    }

    /// Joins a room of this node.
    /// - Parameters:
    ///   - relay: for the room, if the client begins it. It is closed when the room does not take it.
    ///   - refusal: looked up in the same step as the member joins, so that no block is missed.
    func joinHere(
        _ room: ChannelName,
        _ member: AyameRooms.Member,
        media: CallMedia,
        isMediaRequired: Bool,
        relay: CallTURN?,
        refusal: () -> RoomError?
    ) -> AyameRooms.Answer {
        defer { if let relay, !rooms.has(relay, in: room) { close(relay.id) } }
        if let error = refusal() { return .refused(error) }
        let (answer, effects) = rooms.join(room, member, media: media, isMediaRequired: isMediaRequired, relay: relay)
        perform(effects)
        return answer
    }

    /// - Returns: `nil` when the link to the node was lost before it answered.
    private func register(
        _ guest: AyameGuest,
        _ registration: Registration,
        _ cluster: any OtherNodes,
        _ refusal: () -> RoomError?
    ) async -> AyameRooms.Answer? {
        let (id, home) = (guest.connectionID, registration.home)
        var timeout: Task<Void, Never>?
        defer { timeout?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // In the same step as decisions of operators see the registration, so that no block is missed.
                if let error = refusal() { return continuation.resume(returning: .refused(error)) }
                guard let message = AyameNodeMessage.register(guest).encoded else {
                    return continuation.resume(returning: .unreachable)
                }
                cluster.want(home)
                guard cluster.sendCallMessage(message, to: home) else {
                    cluster.release(home)
                    return continuation.resume(returning: nil)
                }
                var registration = registration
                registration.answer = continuation
                state.add(registration)
                timeout = Task {
                    try? await Task.sleep(for: acceptTimeout)
                    if !Task.isCancelled { abandon(id, .unreachable) }
                }
            }
        } onCancel: {
            Task { await abandon(id, .refused(.endedDuringSetup)) }
        }
    }

    /// Gives a registration up that its room's node has not answered.
    private func abandon(_ id: String, _ answer: AyameRooms.Answer) {
        guard state.registrations[id]?.answer != nil else { return }
        remove(id, telling: CallReport.leftByItself)?.answer?.resume(returning: answer)
    }

    /// Sends a text to the other member of the room, if there is one. A client's texts are sent one after the other.
    /// - Returns: Whether there was one, as far as this node knows.
    func relay(_ text: String, in room: ChannelName, from id: String) -> Bool {
        if let home = state.registrations[id]?.home { return send(.relay(text, from: id), to: home) }
        guard let partner = rooms.partner(of: id, in: room) else { return false }
        tell(partner, .text(text))
        return true
    }

    /// Ends the room of a member that left, as ``AyameRooms/leave(_:_:reason:)``.
    func leave(_ room: ChannelName, _ id: String, reason: String = CallReport.leftByItself) {
        guard let registration = remove(id, telling: reason) else {
            return perform(rooms.leave(room, id, reason: reason))
        }
        registration.answer?.resume(returning: .refused(.endedDuringSetup))
    }

    // MARK: Operators

    /// All rooms of this node, in no particular order.
    package var listings: [AyameRooms.Listing] { rooms.listings }

    /// The clients whose media does not pass a node: those in rooms of this node, and this node's in other rooms.
    package var directRegistrationCount: Int {
        rooms.directRegistrationCount + state.registrations.values.count { $0.media == .direct }
    }

    /// Ends all registrations as a shutdown does: in rooms of this node, and those of its clients.
    package func endAll() {
        perform(rooms.end { _ in AyameClose(.shutdown) }.effects)
        _ = endElsewhere { _ in AyameClose(.shutdown) }
    }

    /// Ends the registrations that an operator's decision is about. A kick and the end of a channel also end those that this node
    /// does not know, a little later.
    /// - Returns: The connection identifiers of those that have ended.
    package func end(by decision: OperatorDecision) -> [String] {
        let ended = endHere(by: decision)
        guard let cluster else { return ended }
        let elsewhere = endElsewhere(in: decision.callRoom) { decision.relayClose(of: $0.user) }
        // Who ends here ends the room, wherever that is.
        if ended.isEmpty, elsewhere.isEmpty, let question = AyameNodeQuestion(decision) {
            Task { await tellHome(question, cluster) }
        }
        return ended + elsewhere
    }

    /// Ends registrations in rooms of this node.
    func endHere(by decision: OperatorDecision) -> [String] {
        let (ended, effects) = rooms.end(by: decision)
        perform(effects)
        return ended
    }

    /// Ends this node's registrations in rooms of other nodes. Those nodes end the rooms.
    private func endElsewhere(
        in room: ChannelName? = nil,
        _ reason: (AyameRooms.Member) -> AyameClose?
    ) -> [String] {
        let known = room.map { state.elsewhere[$0] ?? [] } ?? Array(state.registrations.keys)
        return known.filter { id in
            guard let registration = state.registrations[id], let close = reason(registration.member) else {
                return false
            }
            remove(id, telling: close.close.reason)
            if let answer = registration.answer {
                answer.resume(returning: .rejected(AyameRefusal(close.close.reason)))
            } else {
                perform(registration.member.farewell(close))
            }
            return true
        }
    }

    // MARK: Effects

    func perform(_ effects: [AyameRooms.Effect]) {
        for effect in effects {
            switch effect {
            case .tell(let member, let notice): tell(member, notice)
            case .report(let event, let room, let session):
                let time = clock.unixNanoseconds
                onReport(CallReport(event: event, room: room, session: session, unixNanoseconds: time))
            case .closeRelay(let id, let keepsAllocations): close(id, keepsAllocations: keepsAllocations)
            }
        }
    }

    func tell(_ member: AyameRooms.Member, _ notice: AyameRooms.Notice) {
        switch member.origin {
        case .here(let tell): tell(notice)
        case .at(let node):
            let guest = Guest(node: node, connectionID: member.connectionID)
            // Its node has forgotten one that left or whose link was lost.
            guard state.guests[guest] != nil else { return }
            if case .ended = notice { _ = state.remove(guest) }
            send(AyameNodeMessage(notice, to: member.connectionID), to: node)
        }
    }

    /// Ends a registration elsewhere.
    /// - Parameter reason: told to its room's node; `nil` for what that node knows.
    /// - Returns: `nil` without one.
    @discardableResult
    func remove(_ id: String, telling reason: String? = nil) -> Registration? {
        guard let registration = state.remove(id) else { return nil }
        if let reason { send(.leave(id, reason: reason), to: registration.home) }
        cluster?.release(registration.home)
        return registration
    }

    @discardableResult
    func send(_ message: AyameNodeMessage, to node: NodeID) -> Bool {
        guard let cluster, let bytes = message.encoded else { return false }
        return cluster.sendCallMessage(bytes, to: node)
    }
}

extension AyameRooms.Answer {
    /// The room's node did not answer.
    static let unreachable = Self.rejected(AyameRefusal(AyameSession.internalError))
}
