import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import Room
import Web
import Wire

/// The signaling of one Sora client as a state machine: messages, results and instants in, actions out. It does no I/O and
/// reads no clock.
///
/// It waits for `connect`, requests authorization and a reservation, sends an offer, and sends re-offers as remote streams
/// change: one offer at a time, each with all changes since the last.
struct SoraStateMachine {
    /// The participant that the rooms reserved.
    struct Reservation: Sendable {
        let participant: ParticipantID
        let session: ChannelSessionID
        let local: LocalTransport
        /// The client identifier of the member whose place it takes; `nil` for a newcomer.
        var resumedClientID: String?
        /// `nil` unless ``JoinRequest/usesTURN`` was set.
        var turn: TURNAccess?
    }

    /// An action of the owner. The owner performs actions in order.
    enum Action {
        case send(String)
        /// Sends a message on an open data channel.
        case sendData(String, on: SoraDataChannels.Label)
        /// Closes the WebSocket; nothing is sent afterwards.
        case close(SoraClose)
        /// Completed by ``admitted(_:id:decoders:at:)``.
        case authorize(SoraConnect)
        /// Completed by ``reserved(_:streams:at:)`` or ``refused(_:at:)``.
        case reserve(JoinRequest)
        /// Completed by ``activated(at:)`` or ``refused(_:at:)``.
        case activate(OfferedDescription.Outcome)
        /// Completed by ``slotsChanged(at:)`` or ``refused(_:at:)``.
        case changeSlots(added: [SlotAssignment], removed: [MID])
        /// Reports the tracks that the client cannot play.
        case reportUnsupported([UnsupportedTrack])
        /// Completed by ``found(_:at:)``.
        case findStreams
        /// Completed by ``requested(_:)``. One request at a time, in the order of the client's.
        case request(ChannelRequest.Method)
        /// Stores the client's statistics.
        case record(JSONValue)
        /// Removes the participant, if there is one.
        case leave(EndReason)
    }

    private enum Phase {
        /// Waits for `connect` until the deadline.
        case waiting(until: Instant)
        /// Waits for the admission; the deadline is that of the first offer.
        case authorizing(SoraConnect, until: Instant)
        /// - Parameter isStale: whether remote streams changed meanwhile.
        case reserving(SoraSettings, until: Instant, isStale: Bool)
        case running(SoraSession)
        /// The client closed its DTLS association, and keeps its place unless its `disconnect` follows until the deadline.
        case parting(until: Instant)
        case ended
    }

    /// How much later than the end of DTLS a client's `disconnect` may come. They take different ways, and both are sent at once.
    private static let partingTimeout = Interval.seconds(1)

    /// The time limit from `connect` to the offer: longer than any webhook timeout.
    private static let admissionTimeout = Interval.seconds(75)

    /// The maximum length of `connect`, in bytes: about twice that of the longest metadata.
    private static let connectBytesMax = 128 * 1024

    private let configuration: SoraConfiguration
    private var phase: Phase
    private var lastMessage: Instant
    private var budget = MessageBudget()

    init(configuration: SoraConfiguration, at now: Instant) {
        self.configuration = configuration
        phase = .waiting(until: now + Interval(configuration.connectTimeout))
        lastMessage = now
    }

    /// The client's name of itself (`sora_client`); empty before `connect`.
    private(set) var client = ""
    private(set) var channel: ChannelName?
    /// Whether another node sent the client here.
    private(set) var isRedirected = false

    var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// Whether the client is not admitted yet. Its messages then also count against its network's limit.
    var isUnadmitted: Bool {
        switch phase {
        case .waiting, .authorizing, .reserving: true
        case .running, .parting, .ended: false
        }
    }

    private var limits: JSONLimits { isUnadmitted ? .unauthenticated : .standard }
}

// MARK: - Messages of the client

extension SoraStateMachine {
    /// - Parameter isRead: Whether to parse the message. An unparsed message still counts as a sign of life, and against the
    ///   client's budget.
    mutating func received(_ text: String, isRead: Bool = true, at now: Instant) -> [Action] {
        guard !hasEnded else { return [] }
        lastMessage = now
        do throws(SoraClose) {
            if case .waiting = phase, text.utf8.count > Self.connectBytesMax {
                throw SoraClose(.invalidMessage, "The first message may have at most \(Self.connectBytesMax) bytes.")
            }
            guard budget.take(MessageBudget.cost(of: text), at: now) else { return end(.messageRate) }
            guard isRead else { return [] }
            return try handle(try SoraClientMessage(decoding: text, limits: limits), at: now)
        } catch {
            return end(error)
        }
    }

    private mutating func handle(_ message: SoraClientMessage, at now: Instant) throws(SoraClose) -> [Action] {
        switch (message, phase) {
        case (.connect(let connect), .waiting):
            client = connect.client
            channel = connect.channel
            isRedirected = connect.isRedirected
            phase = .authorizing(connect, until: now + Self.admissionTimeout)
            return [.authorize(connect)]
        case (.connect, _): throw SoraClose(.invalidMessage, "The client sent a second \"connect\".")
        case (.disconnect, _): return end(.disconnected, leaving: .left)
        case (_, .parting): return []
        case (_, .waiting): throw SoraClose(.invalidMessage, "The first message of the client is not \"connect\".")
        case (_, .running):
            return inSession { session throws(SoraEnd) in try session.received(message, at: now) }
        case (.answer, _): throw SoraClose(.invalidMessage, "The client sent an answer before the offer.")
        case (.request(let members, _), .authorizing(let connect, _)) where connect.options != nil:
            return refuse(JSONFields(members))
        case (.request(let members, _), .reserving(let settings, _, _)) where settings.options != nil:
            return refuse(JSONFields(members))
        case (.request, _), (.candidate, _), (.pong, _), (.statistics, _), (.ignored, _): return []
        }
    }

    /// A request of a client that has not joined.
    private func refuse(_ fields: JSONFields) -> [Action] {
        guard case .response(let id) = ChannelRequest.reply(to: fields) else { return [] }
        return [.send(SoraServerMessage.response(to: id, .failure(.notJoined)))]
    }

    /// The WebSocket closed, with or without a closing handshake.
    mutating func socketClosed() -> [Action] {
        guard !hasEnded else { return [] }
        guard case .running(var session) = phase, session.survivesSocketLoss() else {
            phase = .ended
            return [.leave(.signalingLost)]
        }
        phase = .running(session)
        return []
    }

    /// The client violated the WebSocket protocol, which closes the WebSocket.
    mutating func socketRefused(_ close: WebSocketClose) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(close, "The client violated the WebSocket protocol: \(close.reason)."))
    }

    /// The client's network exceeded its limit of messages before admission.
    mutating func refusedAsTooMany() -> [Action] {
        guard !hasEnded else { return [] }
        return end(.tooManyFromNetwork)
    }

    /// The node is shutting down.
    mutating func stopping() -> [Action] {
        guard !hasEnded else { return [] }
        return end(.stopping, leaving: .shutdown)
    }
}

// MARK: - Results of actions

extension SoraStateMachine {
    /// Another node serves the client. It connects there with its first message and `redirect`.
    mutating func redirected(to address: NodeAddress) -> [Action] {
        guard isJoining else { return [] }
        phase = .ended
        return [.send(SoraServerMessage.redirect(to: address)), .close(.redirected), .leave(.left)]
    }

    /// Too many clients join at once.
    mutating func overloaded() -> [Action] { isJoining ? end(.overloaded) : [] }

    private var isJoining: Bool {
        switch phase {
        case .authorizing, .reserving: true
        case .waiting, .running, .parting, .ended: false
        }
    }

    /// - Parameters:
    ///   - id: The client's participant identifier.
    ///   - decoders: The codecs that the channel's viewers can play.
    mutating func admitted(
        _ decision: AccessDecision,
        id: ParticipantID,
        decoders: VideoDecoders = VideoDecoders(),
        at now: Instant
    ) -> [Action] {
        guard case .authorizing(let connect, let until) = phase else { return [] }
        switch decision {
        case .allowed(let grants):
            do {
                let settings = try SoraSettings(
                    connect,
                    id: id,
                    grants: grants,
                    decoders: decoders,
                    configuration: configuration
                )
                phase = .reserving(settings, until: until, isStale: false)
                var request = settings.joinRequest(id: id)
                request.usesTURN = configuration.announcesEmbeddedTURN(to: settings)
                return [.reserve(request)]
            } catch {
                return end(error)
            }
        case .denied(let reason?):
            return end(
                SoraClose(
                    WebSocketClose(SoraClose.refusalCode, reason),
                    "Authentication denied the connection: \(reason)"
                )
            )
        case .denied(nil):
            return end(
                SoraClose(
                    .authenticationFailure,
                    "Authentication denied the connection; check the token in the client's metadata."
                )
            )
        case .failed:
            return end(
                SoraClose(
                    .authenticationInternalError,
                    "Authentication failed to decide on the connection; is the authentication webhook up, and does "
                        + "it answer 200 with JSON?"
                )
            )
        }
    }

    /// The rooms reserved the participant: sends the first offer.
    mutating func reserved(_ reservation: Reservation, streams: [VisibleStream], at now: Instant) -> [Action] {
        guard case .reserving(let settings, _, let isStale) = phase else { return [.leave(.signalingLost)] }
        let (session, offer) = SoraSession.begin(
            settings,
            reservation,
            streams: streams,
            isStale: isStale,
            configuration: configuration,
            at: now
        )
        phase = .running(session)
        return [.send(offer)]
    }

    /// The media of the first answer is active.
    mutating func activated(at now: Instant) -> [Action] { inSession { $0.activated(at: now) } }

    /// The slots of a later answer are active.
    mutating func slotsChanged(at now: Instant) -> [Action] { inSession { $0.slotsChanged(at: now) } }

    /// The streams that the client can receive now.
    mutating func found(_ streams: [VisibleStream], at now: Instant) -> [Action] {
        inSession { $0.found(streams, at: now) }
    }

    /// The owner performed a request, with a JSON object as text for the result.
    mutating func requested(_ result: Result<String, RequestFailure>) -> [Action] { inSession { $0.requested(result) } }

    /// The rooms refused the last action.
    mutating func refused(_ error: RoomError, at now: Instant) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(error))
    }

    /// Hands an event to the session, if there is one.
    private mutating func inSession(_ event: (inout SoraSession) throws(SoraEnd) -> [Action]) -> [Action] {
        guard case .running(var session) = phase else { return [] }
        // A second copy would have the event copy what it changes, such as the description.
        phase = .ended
        do throws(SoraEnd) {
            let actions = try event(&session)
            phase = .running(session)
            return actions
        } catch {
            return end(error.close, leaving: error.reason)
        }
    }
}

// MARK: - Events of the rooms

extension SoraStateMachine {
    mutating func received(_ event: ParticipantEvent, at now: Instant) -> [Action] {
        switch (event, phase) {
        case (_, .ended), (_, .parting): return []
        case (.ended(.transport(.closedByPeer)), .running(let session)) where session.keepsPlace:
            phase = .parting(until: now + Self.partingTimeout)
            return []
        case (.ended(let reason), _): return end(SoraClose(reason) ?? .disconnected, leaving: reason)
        case (.subscriptionsChanged, .reserving(let settings, let until, _)):
            phase = .reserving(settings, until: until, isStale: true)
            return []
        case (.connected, .running): lastMessage = now
        case (.data(.message(let label, let bytes, _)), .running(let session)) where session.takesMessages:
            return received(bytes, on: label, at: now)
        default: break
        }
        return inSession { session throws(SoraEnd) in try session.received(event, at: now) }
    }

    /// A message of a data channel. It counts against the client's budget as every other message.
    private mutating func received(_ bytes: [UInt8], on label: String, at now: Instant) -> [Action] {
        switch SoraDataChannels.Label(rawValue: label) {
        case .rpc:
            lastMessage = now
            guard budget.take(MessageBudget.cost(of: bytes), at: now) else { return end(.messageRate) }
            return inSession { $0.called(bytes) }
        case .signaling, .stats:
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return end(SoraClose(.invalidJSON, "A message of the data channel \(label) is not UTF-8."))
            }
            return received(text, at: now)
        // The others have messages to the client only.
        default: return []
        }
    }
}

// MARK: - Timeouts

extension SoraStateMachine {
    /// The time of the next ``handleTimeout(at:)``; `nil` after the end.
    var nextDeadline: Instant? {
        switch phase {
        case .waiting(let until), .authorizing(_, let until), .reserving(_, let until, _), .parting(let until): until
        case .running(let session): session.nextDeadline
        case .ended: nil
        }
    }

    mutating func handleTimeout(at now: Instant) -> [Action] {
        switch phase {
        case .waiting(let until): return now >= until ? end(.connectWaitTimeout) : []
        case .authorizing(_, let until), .reserving(_, let until, _):
            return now >= until ? end(.admissionTimeout) : []
        case .parting(let until):
            return now >= until ? end(.disconnected, leaving: .transport(.closedByPeer)) : []
        case .running:
            let lastMessage = lastMessage
            return inSession { session throws(SoraEnd) in try session.handleTimeout(lastMessage: lastMessage, at: now) }
        case .ended: return []
        }
    }

    /// - Parameter reason: The reason for the rooms; by default the rejection of the client.
    private mutating func end(_ close: SoraClose, leaving reason: EndReason? = nil) -> [Action] {
        phase = .ended
        return [.close(close), .leave(reason ?? .rejected(close.word))]
    }
}
