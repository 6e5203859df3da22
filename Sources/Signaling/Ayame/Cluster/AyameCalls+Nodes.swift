import Base
package import ChannelTypes
import MediaTypes
package import Room
import Web

// What other nodes say.

extension AyameCalls {
    /// Takes a message of another node on the thread of its link; those of one node in their order. It does not wait.
    ///
    /// A node of which as much waits as may is lost: what waits of it is dropped, and its link is to be closed.
    /// - Parameter refusal: why a user of another node is refused in a room of this one.
    package nonisolated func received(
        _ bytes: [UInt8],
        from node: NodeID,
        refusal: @escaping @Sendable (_ user: String, ChannelName) -> RoomError?
    ) -> CallMessageReception {
        guard let message = AyameNodeMessage(bytes) else { return .malformed }
        var isTaken = true
        post(from: node) { isTaken = $0.add(message, bytes: bytes.count, refusal: refusal) }
        return isTaken ? .taken : .overflow
    }

    /// The link to a node is lost: what was sent over it may not have arrived. Clients that were in rooms of the node, and those
    /// of the node that were in rooms of this one, are in no room any more.
    package nonisolated func lost(_ node: NodeID) { post(from: node) { $0.addLoss() } }

    private nonisolated func post(from node: NodeID, _ add: (inout AyameNodeInbox) -> Void) {
        if inbox.post({ add(&$0[node, default: AyameNodeInbox()]) }) { Task { await takeMessages() } }
    }

    /// Handles what waits of the other nodes.
    func takeMessages() {
        for (node, waiting) in inbox.take() {
            for event in waiting.events {
                switch event {
                case .message(let message, let refusal): handle(message, from: node, refusal)
                case .lost: handleLoss(of: node)
                }
            }
        }
    }

    private func handle(
        _ message: AyameNodeMessage,
        from node: NodeID,
        _ refusal: @escaping AyameNodeInbox.Refusal
    ) {
        switch message {
        case .register(let guest): admit(guest, from: node, refusal)
        case .relay(let text, let id):
            guard let room = state.guests[Guest(node: node, connectionID: id)],
                let partner = rooms.partner(of: id, in: room)
            else { return }
            tell(partner, .text(text))
        case .leave(let id, let reason):
            guard let room = state.remove(Guest(node: node, connectionID: id)) else { return }
            perform(rooms.leave(room, id, reason: reason))
        case .accepted(let id, let hasPartner, let media, let turn):
            guard let registration = self.registration(id, at: node), let answer = state.accept(id, media) else {
                return
            }
            tell(registration.member, .accepted(hasPartner: hasPartner, media: media, turn: turn))
            answer.resume(returning: .joined(media))
        case .refused(let id, let reason):
            guard let answer = registration(id, at: node)?.answer else { return }
            remove(id)
            switch AyameRefusal(reason) {
            case .full: answer.resume(returning: .full)
            case .otherMedia: answer.resume(returning: .otherMedia)
            case let refusal: answer.resume(returning: .rejected(refusal))
            }
        case .text(let text, let id):
            guard let registration = self.registration(id, at: node) else { return }
            tell(registration.member, .text(text))
        case .closed(let id, let code, let reason, let message):
            guard let registration = self.registration(id, at: node) else { return }
            remove(id)
            if let answer = registration.answer {
                answer.resume(returning: .unreachable)
            } else {
                tell(registration.member, .ended(AyameClose(code: code, reason, message)))
            }
        }
    }

    /// A client's registration in a room of a node.
    private func registration(_ id: String, at node: NodeID) -> Registration? {
        state.registrations[id].flatMap { $0.home == node ? $0 : nil }
    }

    private func handleLoss(of node: NodeID) {
        for (id, registration) in state.registrations where registration.home == node {
            remove(id)
            if let answer = registration.answer {
                answer.resume(returning: nil)
            } else {
                perform(registration.member.farewell(.nodeLost))
            }
        }
        // Before the others leave, because the node is told nothing of its own.
        let guests = state.guests.filter { $0.key.node == node }
        for guest in guests.keys { _ = state.remove(guest) }
        for (guest, room) in guests {
            perform(rooms.leave(room, guest.connectionID, reason: AyameClose.nodeLost.close.reason))
        }
    }

    private func admit(_ request: AyameGuest, from node: NodeID, _ refusal: @escaping AyameNodeInbox.Refusal) {
        let guest = Guest(node: node, connectionID: request.connectionID)
        // Before it joins, because it is told so as a guest.
        guard state.add(guest, in: request.room) else {
            send(.refused(request.connectionID, reason: AyameSession.internalError), to: node)
            return
        }
        guard needsRelay(request.member(at: node), in: request.room, media: request.media) else {
            return admit(request, guest, relay: nil, refusal)
        }
        Task {
            let relay = await openRelay(
                for: request.member(at: node),
                in: request.room,
                media: request.media,
                refusal: { refusal(request.user, request.room) }
            )
            admit(request, guest, relay: relay, refusal)
        }
    }

    private func admit(
        _ request: AyameGuest,
        _ guest: Guest,
        relay: CallTURN?,
        _ refusal: AyameNodeInbox.Refusal
    ) {
        // The guest may have left meanwhile, or its node may be lost.
        let hasLeft = state.guests[guest] != request.room
        let answer = joinHere(
            request.room,
            request.member(at: guest.node),
            media: request.media,
            isMediaRequired: request.isMediaRequired,
            relay: relay,
            refusal: { hasLeft ? .endedDuringSetup : refusal(request.user, request.room) }
        )
        guard let refused = answer.refusal, !hasLeft else { return }
        _ = state.remove(guest)
        send(.refused(request.connectionID, reason: refused.reason), to: guest.node)
    }
}
