package import ChannelTypes
package import Room
import Synchronization
import Web
import Webhooks

/// The registrations of the relay's clients, in rooms of this node and of the other nodes of a cluster.
///
/// Each room is at one node, its home, whose ``AyameRooms`` alone decides who is in it and in which order messages pass. A client
/// that is connected to another node is a guest there: an ordinary member whose messages go over the link of the two nodes.
/// When that link is lost, the registration has ended at both nodes.
///
/// It may be called on any thread. The closures of members are called under a lock.
package final class AyameCalls: Sendable {
    /// Where a client joins a room.
    enum Home: Hashable {
        case here
        case at(NodeID)
    }

    /// The rooms that are at this node.
    package let rooms: AyameRooms
    let cluster: (any OtherNodes)?
    private let acceptTimeout: Duration
    let state = Mutex(State())

    /// - Parameters:
    ///   - cluster: the other nodes; `nil` outside of a cluster.
    ///   - acceptTimeout: how long a room's node has for the answer to a registration.
    package init(
        _ rooms: AyameRooms = AyameRooms(),
        cluster: (any OtherNodes)? = nil,
        acceptTimeout: Duration = .seconds(5)
    ) {
        self.rooms = rooms
        self.cluster = cluster
        self.acceptTimeout = acceptTimeout
    }

    // MARK: Clients of this node

    /// Joins a room, wherever it is. When the task is cancelled, the client is not in the room, or ``Answer/joined(_:)`` is
    /// returned.
    ///
    /// The parameters are those of ``AyameRooms/join(_:_:media:isMediaRequired:refusal:accept:)``.
    func join(
        _ room: ChannelName,
        _ member: AyameRooms.Member,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false,
        refusal: @escaping @Sendable () -> RoomError? = { nil },
        accept: @escaping @Sendable (_ hasPartner: Bool, _ media: CallMedia) -> Void
    ) async -> AyameRooms.Answer {
        // Two nodes that dial each other at the same time give one link up, and with it what was sent over it.
        for _ in 0..<2 {
            guard let cluster, case .at(let node) = await home(of: room, cluster) else {
                return rooms.join(
                    room,
                    member,
                    media: media,
                    isMediaRequired: isMediaRequired,
                    refusal: refusal,
                    accept: accept
                )
            }
            if Task.isCancelled { return .refused(.endedDuringSetup) }
            let guest = AyameGuest(member, in: room, media: media, isMediaRequired: isMediaRequired)
            let registration = Registration(home: node, room: room, member: member, accept: accept)
            if let answer = await register(guest, registration, cluster, refusal) { return answer }
        }
        return .unreachable
    }

    /// - Returns: `nil` when the link to the node was lost before it answered.
    private func register(
        _ guest: AyameGuest,
        _ registration: Registration,
        _ cluster: any OtherNodes,
        _ refusal: @Sendable () -> RoomError?
    ) async -> AyameRooms.Answer? {
        let id = guest.connectionID
        var timeout: Task<Void, Never>?
        defer { timeout?.cancel() }
        cluster.want(registration.home)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> AyameRooms.Answer?? in
                    // In the same step as decisions of operators see the registration, so that no block is missed.
                    if let error = refusal() { return .some(.refused(error)) }
                    if Task.isCancelled { return .some(.refused(.endedDuringSetup)) }
                    guard let message = AyameNodeMessage.register(guest).encoded else { return .some(.unreachable) }
                    guard cluster.sendCallMessage(message, to: registration.home) else { return .some(nil) }
                    var registration = registration
                    registration.answer = continuation
                    state.add(registration)
                    return nil
                }
                if let answer {
                    cluster.release(registration.home)
                    continuation.resume(returning: answer)
                } else {
                    timeout = Task { [weak self, acceptTimeout] in
                        guard (try? await Task.sleep(for: acceptTimeout)) != nil else { return }
                        self?.abandon(id, .unreachable)
                    }
                }
            }
        } onCancel: {
            abandon(id, .refused(.endedDuringSetup))
        }
    }

    /// Gives a registration up that its room's node has not answered.
    private func abandon(_ id: String, _ answer: AyameRooms.Answer) {
        let continuation = state.withLock { state -> CheckedContinuation<AyameRooms.Answer?, Never>? in
            guard state.registrations[id]?.answer != nil else { return nil }
            return remove(id, telling: CallReport.leftByItself, &state)?.answer
        }
        continuation?.resume(returning: answer)
    }

    /// Sends a text to the other member of the room, if there is one. A client's texts are sent one after the other.
    /// - Returns: Whether there was one, as far as this node knows.
    func relay(_ text: String, in room: ChannelName, from id: String) -> Bool {
        guard let home = state.withLock({ $0.registrations[id]?.home }) else {
            return rooms.relay(text, in: room, from: id)
        }
        return send(.relay(text, from: id), to: home)
    }

    /// Ends the room of a member that left, as ``AyameRooms/leave(_:_:reason:)``.
    func leave(_ room: ChannelName, _ id: String, reason: String = CallReport.leftByItself) {
        guard let registration = state.withLock({ remove(id, telling: reason, &$0) }) else {
            return rooms.leave(room, id, reason: reason)
        }
        registration.answer?.resume(returning: .refused(.endedDuringSetup))
    }

    // MARK: Operators

    /// The clients whose media does not pass a node: those in rooms of this node, and this node's in other rooms.
    package var directRegistrationCount: Int {
        rooms.directRegistrationCount + state.withLock { $0.registrations.values.count { $0.media == .direct } }
    }

    /// Ends all registrations as a shutdown does: in rooms of this node, and those of its clients.
    package func endAll() {
        rooms.endAll()
        _ = endElsewhere { _ in AyameClose(.shutdown) }
    }

    /// Ends the registrations that an operator's decision is about. A kick and the end of a channel also end those that this node
    /// does not know, a little later.
    /// - Returns: The connection identifiers of those that have ended.
    package func end(by decision: OperatorDecision) -> [String] {
        let ended = rooms.end(by: decision)
        guard let cluster else { return ended }
        let elsewhere = endElsewhere(in: decision.callRoom) { decision.relayClose(of: $0.user) }
        // Who ends here ends the room, wherever that is.
        if ended.isEmpty, elsewhere.isEmpty, let question = AyameNodeQuestion(decision) {
            Task { await tellHome(question, cluster) }
        }
        return ended + elsewhere
    }

    /// Ends this node's registrations in rooms of other nodes. Those nodes end the rooms.
    private func endElsewhere(
        in room: ChannelName? = nil,
        _ reason: (AyameRooms.Member) -> AyameClose?
    ) -> [String] {
        var answers: [(CheckedContinuation<AyameRooms.Answer?, Never>, AyameClose)] = []
        let ended = state.withLock { state in
            let known = room.map { state.elsewhere[$0] ?? [] } ?? Array(state.registrations.keys)
            return known.filter { id in
                guard let registration = state.registrations[id], let close = reason(registration.member) else {
                    return false
                }
                remove(id, telling: close.close.reason, &state)
                if let answer = registration.answer {
                    answers.append((answer, close))
                } else {
                    registration.member.leave(close)
                }
                return true
            }
        }
        for (answer, close) in answers { answer.resume(returning: .rejected(AyameRefusal(close.close.reason))) }
        return ended
    }

    // MARK: State

    /// Ends a registration elsewhere. Its room's node is told.
    /// - Returns: `nil` without one.
    @discardableResult
    private func remove(_ id: String, telling reason: String, _ state: inout State) -> Registration? {
        guard let registration = state.remove(id) else { return nil }
        send(.leave(id, reason: reason), to: registration.home)
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
