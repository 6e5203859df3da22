package import ChannelTypes
import Room
import Synchronization
import Web

// What other nodes say.

extension AyameCalls {
    /// Takes a message of another node; those of one node in their order. It does not block.
    /// - Parameter refusal: why a user of another node is refused in a room of this one; called under a lock.
    /// - Returns: whether it was understood.
    package func received(
        _ bytes: [UInt8],
        from node: NodeID,
        refusal: @Sendable (_ user: String, ChannelName) -> RoomError?
    ) -> Bool {
        guard let message = AyameNodeMessage(bytes) else { return false }
        switch message {
        case .register(let guest): admit(guest, from: node, refusal)
        case .relay(let text, let id):
            guard let room = state.withLock({ $0.guests[Guest(node: node, connectionID: id)] }) else { break }
            _ = rooms.relay(text, in: room, from: id)
        case .leave(let id, let reason):
            guard let room = state.withLock({ $0.remove(Guest(node: node, connectionID: id)) }) else { break }
            rooms.leave(room, id, reason: reason)
        case .accepted(let id, let hasPartner, let media): accepted(id, hasPartner, media, by: node)
        case .refused(let id, let reason): refused(id, AyameRefusal(reason), by: node)
        case .text(let text, let id):
            state.withLock { state in
                guard let registration = state.registrations[id], registration.home == node else { return }
                registration.member.send(text)
            }
        case .closed(let id, let code, let reason, let message):
            closed(id, AyameClose(code: code, reason, message), by: node)
        }
        return true
    }

    /// The link to a node is lost: what was sent over it may not have arrived. Clients that were in rooms of the node, and those
    /// of the node that were in rooms of this one, are in no room any more.
    package func lost(_ node: NodeID) {
        let (answers, guests) = state.withLock { state in
            var answers: [CheckedContinuation<AyameRooms.Answer?, Never>] = []
            for (id, registration) in state.registrations where registration.home == node {
                _ = state.remove(id)
                cluster?.release(node)
                if let answer = registration.answer {
                    answers.append(answer)
                } else {
                    registration.member.leave(.nodeLost)
                }
            }
            let guests = state.guests.filter { $0.key.node == node }
            for guest in guests.keys { _ = state.remove(guest) }
            return (answers, guests)
        }
        for answer in answers { answer.resume(returning: nil) }
        for (guest, room) in guests {
            rooms.leave(room, guest.connectionID, reason: AyameClose.nodeLost.close.reason)
        }
    }

    // MARK: Guests

    private func admit(
        _ request: AyameGuest,
        from node: NodeID,
        _ refusal: @Sendable (_ user: String, ChannelName) -> RoomError?
    ) {
        let guest = Guest(node: node, connectionID: request.connectionID)
        let id = guest.connectionID
        // Before it joins, because the room may close it at once.
        guard state.withLock({ $0.add(guest, in: request.room) }) else {
            send(.refused(id, reason: AyameSession.internalError), to: node)
            return
        }
        let member = request.member(
            send: { [weak self] text in _ = self?.send(.text(text, to: id), to: node) },
            close: { [weak self] close in
                _ = self?.state.withLock { $0.remove(guest) }
                self?.send(
                    .closed(id, code: close.close.code, reason: close.close.reason, message: close.message),
                    to: node
                )
            }
        )
        let answer = rooms.join(
            request.room,
            member,
            media: request.media,
            isMediaRequired: request.isMediaRequired,
            refusal: { refusal(request.user, request.room) },
            accept: { hasPartner, media in send(.accepted(id, hasPartner: hasPartner, media: media), to: node) }
        )
        guard let refused = answer.refusal else { return }
        _ = state.withLock { $0.remove(guest) }
        send(.refused(id, reason: refused.reason), to: node)
    }

    // MARK: Registrations at other nodes

    private func accepted(_ id: String, _ hasPartner: Bool, _ media: CallMedia, by node: NodeID) {
        let answer = state.withLock { state -> CheckedContinuation<AyameRooms.Answer?, Never>? in
            guard let registration = state.registrations[id], registration.home == node,
                let answer = state.accept(id, media)
            else { return nil }
            registration.accept(hasPartner, media)
            return answer
        }
        answer?.resume(returning: .joined(media))
    }

    private func refused(_ id: String, _ refusal: AyameRefusal, by node: NodeID) {
        let answer = state.withLock { state -> CheckedContinuation<AyameRooms.Answer?, Never>? in
            guard let registration = state.registrations[id], registration.home == node, registration.answer != nil
            else { return nil }
            _ = state.remove(id)
            cluster?.release(node)
            return registration.answer
        }
        switch refusal {
        case .full: answer?.resume(returning: .full)
        case .otherMedia: answer?.resume(returning: .otherMedia)
        default: answer?.resume(returning: .rejected(refusal))
        }
    }

    private func closed(_ id: String, _ close: AyameClose, by node: NodeID) {
        let answer = state.withLock { state -> CheckedContinuation<AyameRooms.Answer?, Never>? in
            guard let registration = state.registrations[id], registration.home == node else { return nil }
            _ = state.remove(id)
            cluster?.release(node)
            if registration.answer == nil { registration.member.close(close) }
            return registration.answer
        }
        answer?.resume(returning: .unreachable)
    }
}
