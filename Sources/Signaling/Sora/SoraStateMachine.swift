import Access
import JSON
import MediaTypes
import Negotiation
import Room
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
    }

    /// An action of the owner. The owner performs actions in order.
    enum Action {
        case send(String)
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
        case reserving(SoraSettings, until: Instant)
        case running(Running)
        case ended
    }

    /// The state of a connection with a reservation.
    fileprivate struct Running {
        enum Step {
            /// Waits for an answer until the deadline.
            case offered(until: Instant)
            /// The owner applies an answer.
            case applying
            case idle
        }
        let settings: SoraSettings
        let reservation: Reservation
        var description: OfferedDescription
        var step: Step
        /// Whether requested statistics of the client are outstanding.
        var awaitsReports = false
        /// Whether the first answer was applied.
        var isActive = false
        /// The deadline for the transport to connect; `nil` when there is none.
        var connectedUntil: Instant?
        var isConnected = false
        /// The earliest time of the next offer, so that one offer has all changes of a short period.
        var quietUntil: Instant
        /// Whether `findStreams` is outstanding.
        var isFinding = false
        /// Messages to send after the offer that `findStreams` may lead to.
        var held: [String] = []
        var nextPing: Instant?
        var pingCount = 0
    }

    /// The time limit from `connect` to the offer: longer than any webhook timeout.
    private static let admissionTimeout = Interval.seconds(75)

    /// The delay of the next offer for each stream of the last one. The cost of an offer grows with its streams, and when
    /// many clients join at once, each join would otherwise cause an offer to each member.
    private static let quietPerStream = Interval.milliseconds(10)
    private static let quietMax = Interval.seconds(1)

    /// The maximum length of `connect`, in bytes: about twice that of the longest metadata.
    private static let connectBytesMax = 128 * 1024

    /// Every so many pings, a `ping` asks for statistics.
    private static let statisticsPeriod = 6

    private let configuration: SoraConfiguration
    private var phase: Phase
    /// Whether remote streams changed since the last `findStreams`.
    private var isStale = false
    private var lastMessage: Instant
    private var budget: MessageBudget
    private var generator = SystemRandomNumberGenerator()

    init(configuration: SoraConfiguration, at now: Instant) {
        self.configuration = configuration
        phase = .waiting(until: now + Interval(configuration.connectTimeout))
        lastMessage = now
        budget = MessageBudget(at: now)
    }

    /// The client's name of itself (`sora_client`); empty before `connect`.
    private(set) var client = ""
    private(set) var channel: ChannelName?

    var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// Whether the client is not admitted yet. Its messages then also count against its network's limit.
    var isUnadmitted: Bool {
        switch phase {
        case .waiting, .authorizing, .reserving: true
        case .running, .ended: false
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
            guard budget.take(MessageBudget.cost(of: text), at: now) else {
                throw SoraClose(.invalidMessage, "The client exceeded the rate limit of messages.")
            }
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
            phase = .authorizing(connect, until: now + Self.admissionTimeout)
            return [.authorize(connect)]
        case (.connect, _): throw SoraClose(.invalidMessage, "The client sent a second \"connect\".")
        case (.disconnect, _): return end(.disconnected, leaving: .left)
        case (_, .waiting): throw SoraClose(.invalidMessage, "The first message of the client is not \"connect\".")
        case (.answer(let sdp), .running(var running)):
            guard case .offered = running.step else {
                throw SoraClose(.invalidMessage, "The client sent an answer without an outstanding offer.")
            }
            let actions = try apply(sdp, to: &running, at: now)
            phase = .running(running)
            return actions + (running.step.isIdle ? advance(at: now) : [])
        case (.answer, _): throw SoraClose(.invalidMessage, "The client sent an answer before the offer.")
        case (.pong(let reports?), .running(var running)) where running.awaitsReports:
            running.awaitsReports = false
            phase = .running(running)
            return [.record(reports)]
        case (.candidate, _), (.pong, _), (.ignored, _): return []
        }
    }

    private func apply(_ sdp: String, to running: inout Running, at now: Instant) throws(SoraClose) -> [Action] {
        let outcome: OfferedDescription.Outcome
        do {
            outcome = try running.description.apply(answer: sdp)
        } catch {
            throw SoraClose(.invalidMessage, "The client's answer is refused: \(error.sentence)")
        }
        let reports = outcome.unsupported.isEmpty ? [] : [Action.reportUnsupported(outcome.unsupported)]
        guard running.isActive else {
            running.step = .applying
            running.connectedUntil = now + Interval(configuration.connectionCreatedTimeout)
            return reports + [.activate(outcome)]
        }
        guard !outcome.added.isEmpty || !outcome.removed.isEmpty else {
            running.step = .idle
            return reports
        }
        running.step = .applying
        return reports + [.changeSlots(added: Self.assignments(outcome.added), removed: outcome.removed)]
    }

    /// The slots in the form of the rooms.
    static func assignments(_ slots: [OfferedDescription.NegotiatedSlot]) -> [SlotAssignment] {
        slots.compactMap { slot in
            ParticipantID(slot.streamID).map {
                SlotAssignment(sender: $0, track: slot.track, parameters: slot.parameters)
            }
        }
    }

    /// The WebSocket closed, with or without a closing handshake.
    mutating func socketClosed() -> [Action] {
        guard !hasEnded else { return [] }
        phase = .ended
        return [.leave(.signalingLost)]
    }

    /// The client violated the WebSocket protocol, which closes the WebSocket.
    mutating func socketRefused(_ close: WebSocketClose) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(close, "The client violated the WebSocket protocol: \(close.reason)."))
    }

    /// The client's network exceeded its limit of messages before admission.
    mutating func refusedAsTooMany() -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(.invalidMessage, "Too many messages from this address; connect again later."))
    }

    /// The node is shutting down.
    mutating func stopping() -> [Action] {
        guard !hasEnded else { return [] }
        return end(.stopping, leaving: .shutdown)
    }
}

// MARK: - Results of actions

extension SoraStateMachine {
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
                phase = .reserving(settings, until: until)
                return [.reserve(settings.joinRequest(id: id))]
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
        guard case .reserving(let settings, _) = phase else { return [.leave(.signalingLost)] }
        var description = OfferedDescription(
            local: reservation.local,
            clientMedia: settings.clientMedia,
            receivesMedia: settings.role.watches,
            kinds: settings.kinds,
            using: &generator
        )
        let sdp = description.makeOffer(Self.remoteStreams(streams), using: &generator)
        let offer = SoraServerMessage.offer(
            settings,
            reservation: reservation,
            sdp: sdp,
            mids: description.clientMIDs,
            configuration: configuration
        )
        phase = .running(
            Running(
                settings: settings,
                reservation: reservation,
                description: description,
                step: .offered(until: now + Interval(configuration.answerTimeout)),
                quietUntil: now + Self.quiet(after: streams)
            )
        )
        return [.send(offer)]
    }

    /// The media of the first answer is active.
    mutating func activated(at now: Instant) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        running.isActive = true
        running.step = .idle
        running.nextPing = now + Interval(configuration.pingInterval)
        phase = .running(running)
        return advance(at: now)
    }

    /// The slots of a later answer are active.
    mutating func slotsChanged(at now: Instant) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        running.step = .idle
        phase = .running(running)
        return advance(at: now)
    }

    /// The rooms refused the last action.
    mutating func refused(_ error: RoomError, at now: Instant) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(error))
    }

    /// The streams that the client can receive now.
    mutating func found(_ streams: [VisibleStream], at now: Instant) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        running.isFinding = false
        let held = running.held.map { Action.send($0) }
        running.held = []
        let remote = Self.remoteStreams(streams)
        guard case .idle = running.step, running.description.wouldChange(remote) else {
            phase = .running(running)
            return held + advance(at: now)
        }
        let sdp = running.description.makeOffer(remote, using: &generator)
        running.step = .offered(until: now + Interval(configuration.answerTimeout))
        running.quietUntil = now + Self.quiet(after: streams)
        phase = .running(running)
        return [.send(SoraServerMessage.reoffer(sdp: sdp))] + held
    }

    private static func remoteStreams(_ streams: [VisibleStream]) -> [OfferedDescription.RemoteStream] {
        streams.map { stream in
            OfferedDescription.RemoteStream(
                id: stream.sender.value,
                tracks: stream.tracks.map {
                    OfferedDescription.RemoteTrack(kind: $0.kind, mid: $0.mid, formats: $0.formats)
                }
            )
        }
    }

    private static func quiet(after streams: [VisibleStream]) -> Interval {
        min(quietMax, quietPerStream * streams.count)
    }

    /// The earliest time of the next offer; `nil` when nothing changed, or an offer is outstanding.
    private var nextOffer: Instant? {
        guard case .running(let running) = phase, case .idle = running.step, isStale, !running.isFinding,
            running.settings.role.watches
        else { return nil }
        return running.quietUntil
    }

    /// Asks for the current streams when the next offer is due.
    private mutating func advance(at now: Instant) -> [Action] {
        guard let nextOffer, now >= nextOffer, case .running(var running) = phase else { return [] }
        isStale = false
        running.isFinding = true
        phase = .running(running)
        return [.findStreams]
    }
}

// MARK: - Events of the rooms

extension SoraStateMachine {
    mutating func received(_ event: ParticipantEvent, at now: Instant) -> [Action] {
        if case .subscriptionsChanged = event {
            isStale = true
            return advance(at: now)
        }
        if case .ended(let reason) = event {
            return hasEnded ? [] : end(SoraClose(reason) ?? .disconnected, leaving: reason)
        }
        guard case .running(var running) = phase else { return [] }
        switch event {
        case .connected:
            running.isConnected = true
            running.connectedUntil = nil
            lastMessage = now
            phase = .running(running)
            return []
        case .notification(let notification):
            let text = notification.encoded(SoraServerMessage.notify)
            guard running.isFinding else { return [.send(text)] }
            running.held.append(text)
            phase = .running(running)
            return []
        case .push(let json): return [.send(SoraServerMessage.push(json))]
        case .subscriptionsChanged, .ended: return []
        }
    }
}

// MARK: - Timeouts

extension SoraStateMachine {
    /// The time of the next ``handleTimeout(at:)``; `nil` after the end.
    var nextDeadline: Instant? {
        switch phase {
        case .waiting(let until), .authorizing(_, let until), .reserving(_, let until): return until
        case .ended: return nil
        case .running(let running):
            var deadline = earliest(earliest(running.connectedUntil, running.nextPing), nextOffer)
            if case .offered(let until) = running.step { deadline = earliest(deadline, until) }
            return deadline
        }
    }

    mutating func handleTimeout(at now: Instant) -> [Action] {
        switch phase {
        case .waiting(let until): return now >= until ? end(.connectWaitTimeout) : []
        case .authorizing(_, let until), .reserving(_, let until):
            return now >= until ? end(.admissionTimeout) : []
        case .ended: return []
        case .running(var running):
            if case .offered(let until) = running.step, now >= until { return end(.answerTimeout) }
            if let until = running.connectedUntil, now >= until { return end(.connectionCreatedWaitTimeout) }
            guard let ping = running.nextPing, now >= ping else { return advance(at: now) }
            // Some clients answer no ping before their transport is connected.
            if running.isConnected, now - lastMessage >= Interval(configuration.pongTimeout) {
                return end(.pongTimeout)
            }
            running.nextPing = now + Interval(configuration.pingInterval)
            running.pingCount &+= 1
            let isAsked = running.settings.grants.userAgentStatistics ?? true
            let wantsStatistics = isAsked && running.pingCount % Self.statisticsPeriod == 0
            if wantsStatistics { running.awaitsReports = true }
            phase = .running(running)
            return [.send(SoraServerMessage.ping(wantsStatistics: wantsStatistics))] + advance(at: now)
        }
    }

    /// - Parameter reason: The reason for the rooms; by default the rejection of the client.
    private mutating func end(_ close: SoraClose, leaving reason: EndReason? = nil) -> [Action] {
        phase = .ended
        return [.close(close), .leave(reason ?? .rejected(close.close.reason))]
    }
}

extension SoraStateMachine.Running.Step {
    fileprivate var isIdle: Bool {
        if case .idle = self { true } else { false }
    }
}
