import Access
import Base
import ChannelTypes
import MediaTypes
import Negotiation
import Room
import Sora
import Web
import Wire

/// Why the relay refuses a client, for its `reject` message.
struct AyameRefusal: Error, Hashable, Sendable {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    static let full = Self("full")
    /// An operator requires another path of the media than the room has.
    static let otherMedia = Self("OTHER-MEDIA")

    /// The refusal by the rooms: the close reason of Sora clients, where they have one of their own.
    init(_ error: RoomError) {
        let reason = SoraClose(error).close.reason
        switch error {
        case .channelFull: self = .full
        default: self.init(reason == SoraClose.Reason.internalError.rawValue ? AyameSession.internalError : reason)
        }
    }
}

/// A client of the relay as a participant of the channel that has its room's name. The node answers the client's offer, and
/// the client gets what the newest other publisher of the channel sends: the other member.
struct AyameMedia: Sendable {
    /// A client's media on the node.
    struct Opened: Sendable {
        let resource: ResourceID
        /// Of its participant, until the participant ends.
        let events: ParticipantEvents
        /// The latest SDP answer.
        var answer: String
        /// When the permission ended that it was opened with.
        let expiry: AccessExpiry?
        /// For further offers.
        var call: AnsweredCall
        /// What the client sends and receives at present.
        var sentKinds: Set<MediaKind>
        var receivedKinds: Set<MediaKind>
    }

    let directory: ChannelDirectory
    let registration: AyameRegistration
    let permission: AyamePermission

    func open(_ sdp: String, from network: ClientNetwork) async -> Result<Opened, AyameRefusal> {
        do throws(AyameRefusal) {
            let offer: CallOffer
            do { offer = try CallOffer(parsing: sdp) } catch { throw AyameRefusal(error.message) }
            try check(offer)
            let reservation: ChannelDirectory.Reservation
            do {
                reservation = try await directory.reserve(request(for: offer, network))
            } catch {
                throw AyameRefusal(error)
            }
            return .success(try await activate(offer, reservation))
        } catch {
            return .failure(error)
        }
    }

    private func check(_ offer: CallOffer) throws(AyameRefusal) {
        let permissions = permission.grants.permissions
        guard let kind = offer.kinds.first(where: { !permissions.permits($0) }) else { return }
        throw AyameRefusal("The key does not permit \(kind.rawValue); leave it out of the offer.")
    }

    private func request(for offer: CallOffer, _ network: ClientNetwork) -> JoinRequest {
        let role: Role =
            switch (offer.sentKinds.isEmpty, offer.receivedKinds.isEmpty) {
            case (true, _): .recvonly
            case (false, true): .sendonly
            case (false, false): .sendrecv
            }
        var request = JoinRequest(
            channel: registration.room,
            role: role,
            id: ParticipantID(permission.connectionID),
            clientID: registration.clientID,
            agent: registration.agent,
            network: network
        )
        permission.grants.apply(to: &request)
        // The protocol has no notifications.
        request.receivesNotifications = false
        return request
    }

    private func activate(
        _ offer: CallOffer,
        _ reservation: ChannelDirectory.Reservation
    ) async throws(AyameRefusal) -> Opened {
        var generator = SystemRandomNumberGenerator()
        let (answered, call) = offer.answer(
            local: reservation.local,
            streamID: reservation.participant.value,
            // 62 bits are usable with every SDP parser (RFC 9429 §5.2.1).
            sessionID: UInt64.random(in: 1..<(1 << 62)),
            videoBitsPerSecondMax: permission.grants.announcedVideoBitsPerSecond,
            using: &generator
        )
        do throws(RoomError) {
            _ = try await directory.activate(
                reservation,
                remote: answered.remote,
                receive: answered.receive,
                send: answered.send,
                firstMediaKind: offer.kinds.first ?? .audio,
                mids: offer.mids
            )
            guard let events = await directory.events(of: reservation.resource) else { throw .endedDuringSetup }
            return Opened(
                resource: reservation.resource,
                events: events,
                answer: answered.answer,
                expiry: permission.grants.permissions.expiry,
                call: call,
                sentKinds: Set(offer.sentKinds),
                receivedKinds: Set(offer.receivedKinds)
            )
        } catch {
            await directory.cancel(reservation)
            throw AyameRefusal(error)
        }
    }

    // MARK: Further offers

    /// Answers a further offer in place: it restarts ICE, or changes the directions of the media. The media of the other
    /// member goes on.
    func renegotiate(_ sdp: String, _ opened: Opened) async -> Result<Opened, AyameRefusal> {
        let offer: AnsweredCall.Offer
        do { offer = try opened.call.offer(parsing: sdp) } catch { return .failure(AyameRefusal(error.message)) }
        guard let resource = await directory.resource(opened.resource) else {
            return .failure(AyameRefusal(.resourceUnknown))
        }
        var local = resource.local
        if offer.credentials != resource.remoteCredentials {
            do {
                local = try await directory.restartICE(opened.resource, expected: nil, remote: offer.credentials).local
            } catch {
                return .failure(AyameRefusal(error))
            }
        }
        await changeDirections(from: opened, to: offer, of: resource.participant)
        var changed = opened
        changed.answer = changed.call.answer(offer, local: local)
        changed.sentKinds = offer.sentKinds
        changed.receivedKinds = offer.receivedKinds
        return .success(changed)
    }

    /// A kind that the client no longer receives is not forwarded to it, and others see a kind that it no longer sends as
    /// muted.
    private func changeDirections(from opened: Opened, to offer: AnsweredCall.Offer, of id: ParticipantID) async {
        for kind in MediaKind.allCases {
            let (receives, sends) = (offer.receivedKinds.contains(kind), offer.sentKinds.contains(kind))
            // These fail for a participant that has ended, and for one that an operator muted. Neither concerns the answer.
            if receives != opened.receivedKinds.contains(kind) {
                let selection = SubscriptionSelection(kind: kind)
                _ = try? await directory.perform(
                    .subscribe(receives, to: selection, receiver: .participant(id)),
                    by: id
                )
            }
            if sends != opened.sentKinds.contains(kind) {
                _ = try? await directory.perform(.setMuted(!sends, kinds: [kind], of: .participant(id)), by: id)
            }
        }
    }
}
