import Access
import JSON
import MediaTypes
import Negotiation
import Room
import Wire

/// One client's signaling as a state machine: texts, answers of others and instants in, actions out. It does no I/O and
/// reads no clock.
///
/// It waits for `connect`, lets it be authorised, takes a place, offers, and goes on to offer as senders come and go: one
/// offer at a time, the next with everything that happened meanwhile.
struct SoraSession {
    /// The place that the rooms gave.
    struct Place: Sendable {
        let participant: ParticipantID
        let session: ChannelSessionID
        let local: LocalTransport
    }

    /// What whoever drives the session does, in this order.
    enum Action {
        case send(String)
        /// Ends the WebSocket. Nothing is sent afterwards.
        case close(SoraClose)
        /// Answered by ``admitted(_:id:at:)``.
        case authorize(SoraConnect)
        /// Answered by ``reserved(_:streams:at:)`` or ``refused(_:at:)``.
        case reserve(JoinRequest)
        /// Answered by ``activated(at:)`` or ``refused(_:at:)``.
        case activate(OfferedSession.Outcome)
        /// Answered by ``slotsChanged(at:)`` or ``refused(_:at:)``.
        case changeSlots(added: [SlotAssignment], removed: [MID])
        /// Tells the client, and the operator, what it cannot play.
        case reportUnsupported([UnsupportedTrack])
        /// Answered by ``found(_:at:)``.
        case findStreams
        /// What the client reports of itself.
        case record(JSONValue)
        /// Gives up the place, if there is one.
        case leave(EndReason)
    }

    private enum Phase {
        /// Until then a `connect` has to come.
        case waiting(until: Instant)
        /// Until then there has to be an offer.
        case authorizing(SoraConnect, until: Instant)
        case reserving(SoraSettings, until: Instant)
        case running(Running)
        case ended
    }

    /// A session that has a place.
    fileprivate struct Running {
        enum Step {
            /// Until then an answer has to come.
            case offered(until: Instant)
            /// What was answered is being carried out.
            case applying
            case idle
        }
        let settings: SoraSettings
        let place: Place
        var description: OfferedSession
        var step: Step
        /// Whether the client was asked for its statistics, which did not come yet.
        var awaitsReports = false
        /// Set once the first answer was carried out.
        var isActive = false
        /// Until then the transport has to be up; `nil` while it is not waited for.
        var connectedUntil: Instant?
        var isConnected = false
        /// Until then no further offer is made, so that one carries all who come or go at about the same time.
        var quietUntil: Instant
        /// Whether it is being looked at who can be received.
        var isFinding = false
        /// What is sent behind the offer that may come of it.
        var held: [String] = []
        var nextPing: Instant?
        var pingCount = 0
    }

    /// How long it may take from `connect` to the offer: longer than any webhook is waited for.
    private static let admissionTimeout = Interval.seconds(75)

    /// How long the next offer waits for each stream of the last: the work of a description grows with them, and in a
    /// crowd that joins at once there would be one for each newcomer and member.
    private static let quietPerStream = Interval.milliseconds(10)
    private static let quietMax = Interval.seconds(1)

    /// The longest `connect`, in bytes: with the longest metadata it has about half of it.
    private static let connectBytesMax = 128 * 1024

    /// Of `ping`s, one in this many asks for statistics.
    private static let statisticsPeriod = 6

    private let configuration: SoraConfiguration
    private var phase: Phase
    /// Whether senders came or went since they were last looked at.
    private var isStale = false
    private var lastHeard: Instant
    private var budget: MessageBudget
    private var generator = SystemRandomNumberGenerator()

    init(configuration: SoraConfiguration, at now: Instant) {
        self.configuration = configuration
        phase = .waiting(until: now + Interval(configuration.connectTimeout))
        lastHeard = now
        budget = MessageBudget(at: now)
    }

    /// What the client calls itself; empty before its `connect`.
    private(set) var client = ""
    private(set) var channel: ChannelName?

    var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// Whether nobody has let the client in yet: its messages then count for its network too.
    var isStranger: Bool {
        switch phase {
        case .waiting, .authorizing, .reserving: true
        case .running, .ended: false
        }
    }

    private var limits: JSONLimits { isStranger ? .unauthenticated : .standard }
}

// MARK: - What the client says

extension SoraSession {
    /// - Parameter isRead: whether more is taken from the message than that the client is there. All messages count for the
    ///   client's budget.
    mutating func received(_ text: String, isRead: Bool = true, at now: Instant) -> [Action] {
        guard !hasEnded else { return [] }
        lastHeard = now
        do throws(SoraClose) {
            if case .waiting = phase, text.utf8.count > Self.connectBytesMax {
                throw SoraClose(.invalidMessage, "The first message may have at most \(Self.connectBytesMax) bytes.")
            }
            guard budget.take(MessageBudget.cost(of: text), at: now) else {
                throw SoraClose(.invalidMessage, "The client sends messages faster than any SDK does.")
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
                throw SoraClose(.invalidMessage, "An answer came that no offer waits for.")
            }
            let actions = try apply(sdp, to: &running, at: now)
            phase = .running(running)
            return actions + (running.step.isIdle ? advance(at: now) : [])
        case (.answer, _): throw SoraClose(.invalidMessage, "An answer came before the offer.")
        case (.pong(let reports?), .running(var running)) where running.awaitsReports:
            running.awaitsReports = false
            phase = .running(running)
            return [.record(reports)]
        case (.candidate, _), (.pong, _), (.ignored, _): return []
        }
    }

    private func apply(_ sdp: String, to running: inout Running, at now: Instant) throws(SoraClose) -> [Action] {
        let outcome: OfferedSession.Outcome
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

    /// The slots as the rooms know them.
    static func assignments(_ slots: [OfferedSession.NegotiatedSlot]) -> [SlotAssignment] {
        slots.compactMap { slot in
            ParticipantID(slot.streamID).map {
                SlotAssignment(sender: $0, track: slot.track, parameters: slot.parameters)
            }
        }
    }

    /// The WebSocket is gone, with or without a goodbye on its own level.
    mutating func socketClosed() -> [Action] {
        guard !hasEnded else { return [] }
        phase = .ended
        return [.leave(.signalingLost)]
    }

    /// The client broke the WebSocket's protocol, which ends it.
    mutating func socketRefused(_ close: WebSocketClose) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(close, "The client broke the WebSocket protocol: \(close.reason)."))
    }

    /// More came from the client's network than its limit permits, before anybody let the client in.
    mutating func refusedAsTooMany() -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(.invalidMessage, "Too many messages came from this address; connect again later."))
    }

    /// The node stops taking part in anything.
    mutating func stopping() -> [Action] {
        guard !hasEnded else { return [] }
        return end(.stopping, leaving: .shutdown)
    }
}

// MARK: - What others answer

extension SoraSession {
    /// - Parameters:
    ///   - id: who the client will be.
    ///   - decoders: what the channel's viewers can play.
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
                    "Nobody could decide about the connection; is the authentication webhook up, and does it answer "
                        + "200 with JSON?"
                )
            )
        }
    }

    /// The client has a place: it gets its offer.
    mutating func reserved(_ place: Place, streams: [VisibleStream], at now: Instant) -> [Action] {
        guard case .reserving(let settings, _) = phase else { return [.leave(.signalingLost)] }
        var description = OfferedSession(
            local: place.local,
            own: settings.own,
            receivesMedia: settings.role.watches,
            kinds: settings.kinds,
            using: &generator
        )
        let sdp = description.makeOffer(Self.remoteStreams(streams), using: &generator)
        let offer = SoraServerMessage.offer(
            settings,
            place: place,
            sdp: sdp,
            mids: description.ownMIDs,
            configuration: configuration
        )
        phase = .running(
            Running(
                settings: settings,
                place: place,
                description: description,
                step: .offered(until: now + Interval(configuration.answerTimeout)),
                quietUntil: now + Self.quiet(after: streams)
            )
        )
        return [.send(offer)]
    }

    /// The media of the first answer is known to the media plane.
    mutating func activated(at now: Instant) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        running.isActive = true
        running.step = .idle
        running.nextPing = now + Interval(configuration.pingInterval)
        phase = .running(running)
        return advance(at: now)
    }

    /// What a later answer changed is known to the media plane.
    mutating func slotsChanged(at now: Instant) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        running.step = .idle
        phase = .running(running)
        return advance(at: now)
    }

    /// The rooms refused what was last asked of them.
    mutating func refused(_ error: RoomError, at now: Instant) -> [Action] {
        guard !hasEnded else { return [] }
        return end(SoraClose(error))
    }

    /// Whom the client may receive now.
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

    private static func remoteStreams(_ streams: [VisibleStream]) -> [OfferedSession.RemoteStream] {
        streams.map { stream in
            OfferedSession.RemoteStream(
                id: stream.sender.value,
                tracks: stream.tracks.map {
                    OfferedSession.RemoteTrack(kind: $0.kind, mid: $0.mid, formats: $0.formats)
                }
            )
        }
    }

    private static func quiet(after streams: [VisibleStream]) -> Interval {
        min(quietMax, quietPerStream * streams.count)
    }

    /// When a further offer may be made; `nil` while there is nothing to offer, or an offer is under way.
    private var nextOffer: Instant? {
        guard case .running(let running) = phase, case .idle = running.step, isStale, !running.isFinding,
            running.settings.role.watches
        else { return nil }
        return running.quietUntil
    }

    /// Looks whether there is something to offer, if it is time.
    private mutating func advance(at now: Instant) -> [Action] {
        guard let nextOffer, now >= nextOffer, case .running(var running) = phase else { return [] }
        isStale = false
        running.isFinding = true
        phase = .running(running)
        return [.findStreams]
    }
}

// MARK: - What the rooms report

extension SoraSession {
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
            lastHeard = now
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

// MARK: - Time

extension SoraSession {
    /// When to call ``handleTimeout(at:)`` next; `nil` once it has ended.
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
            // Some clients answer no ping before their transport is up.
            if running.isConnected, now - lastHeard >= Interval(configuration.pongTimeout) { return end(.pongTimeout) }
            running.nextPing = now + Interval(configuration.pingInterval)
            running.pingCount &+= 1
            let isAsked = running.settings.grants.userAgentStatistics ?? true
            let wantsStatistics = isAsked && running.pingCount % Self.statisticsPeriod == 0
            if wantsStatistics { running.awaitsReports = true }
            phase = .running(running)
            return [.send(SoraServerMessage.ping(wantsStatistics: wantsStatistics))] + advance(at: now)
        }
    }

    /// - Parameter reason: what the rooms are told; by default that the client was rejected.
    private mutating func end(_ close: SoraClose, leaving reason: EndReason? = nil) -> [Action] {
        phase = .ended
        return [.close(close), .leave(reason ?? .rejected(close.close.reason))]
    }
}

extension SoraSession.Running.Step {
    fileprivate var isIdle: Bool {
        if case .idle = self { true } else { false }
    }
}
