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
        /// The client's layers that nobody wants.
        var unusedLayers: Set<RID> = []
        /// When these are to be offered, if they differ from those of the last offer: layers that somebody wants again at once.
        var layersDueAt: Instant?
        /// Whether `findStreams` is outstanding.
        var isFinding = false
        /// Messages to send after the offer that `findStreams` may lead to.
        var held: [String] = []
        /// Requests of the client without a response, the first of them under way.
        var requests: [ChannelRequest] = []
        var nextPing: Instant?
        var pingCount = 0
        /// The quality of the client's network, and when it is sent next; `nil` before it is known.
        var quality: QualityMessage?
        /// Whether the signaling moved to data channels.
        var isSwitched = false
        /// Whether the WebSocket is closed, and the connection goes on without.
        var isSocketLost = false

        /// Sends a message on a data channel, or on the WebSocket before the signaling moved.
        func deliver(_ text: String, on label: SoraDataChannels.Label) -> Action {
            isSwitched ? .sendData(text, on: label) : .send(text)
        }
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
    private var budget = MessageBudget()
    private var generator = SystemRandomNumberGenerator()

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
        case (.statistics(let reports?), .running(var running)) where running.awaitsReports:
            running.awaitsReports = false
            phase = .running(running)
            return [.record(reports)]
        case (.request(let members, let byteCount), _):
            return handle(JSONFields(members), byteCount: byteCount)
        case (.candidate, _), (.pong, _), (.statistics, _), (.ignored, _): return []
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
        if case .running(var running) = phase, running.isSwitched, running.settings.data?.ignoresSocketLoss == true {
            running.isSocketLost = true
            phase = .running(running)
            return []
        }
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
        case .waiting, .running, .ended: false
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
                phase = .reserving(settings, until: until)
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
        guard case .reserving(let settings, _) = phase else { return [.leave(.signalingLost)] }
        var description = OfferedDescription(
            local: reservation.local,
            clientMedia: settings.clientMedia,
            receivesMedia: settings.role.watches,
            kinds: settings.kinds,
            offersData: settings.data != nil,
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
        let held = running.held.map { running.deliver($0, on: .notify) }
        running.held = []
        let remote = Self.remoteStreams(streams)
        guard case .idle = running.step, changeLayers(of: &running) || running.description.wouldChange(remote) else {
            phase = .running(running)
            return held + advance(at: now)
        }
        let sdp = running.description.makeOffer(remote, using: &generator)
        running.step = .offered(until: now + Interval(configuration.answerTimeout))
        running.quietUntil = now + Self.quiet(after: streams)
        phase = .running(running)
        return [running.deliver(SoraServerMessage.reoffer(sdp: sdp), on: .signaling)] + held
    }

    /// - Returns: whether the next offer pauses or resumes layers of the client.
    private func changeLayers(of running: inout Running) -> Bool {
        running.layersDueAt = nil
        return running.description.pauseLayers(running.unusedLayers)
    }

    private static func remoteStreams(_ streams: [VisibleStream]) -> [OfferedDescription.RemoteStream] {
        streams.map { stream in
            OfferedDescription.RemoteStream(
                id: stream.sender.value,
                tracks: stream.tracks.map {
                    OfferedDescription.RemoteTrack(kind: $0.kind, mid: $0.track, formats: $0.formats)
                }
            )
        }
    }

    private static func quiet(after streams: [VisibleStream]) -> Interval {
        min(quietMax, quietPerStream * streams.count)
    }

    /// The earliest time of the next offer; `nil` when nothing changed, or an offer is outstanding.
    private var nextOffer: Instant? {
        guard case .running(let running) = phase, case .idle = running.step, !running.isFinding else { return nil }
        let streamsDueAt = isStale && running.settings.role.watches ? running.quietUntil : nil
        return earliest(streamsDueAt, running.layersDueAt)
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

// MARK: - Requests

extension SoraStateMachine {
    /// The most requests of a client without a response.
    private static let requestsMax = 32

    /// Clients without the channel extension get no response: the type is unknown to them.
    private mutating func handle(_ fields: JSONFields, byteCount: Int) -> [Action] {
        switch phase {
        case .running(let running) where running.settings.options != nil:
            return enqueue(ChannelRequest(fields, byteCount: byteCount, from: running.reservation.participant))
        case .authorizing(let connect, _) where connect.options != nil: break
        case .reserving(let settings, _) where settings.options != nil: break
        case .waiting, .authorizing, .reserving, .running, .ended: return []
        }
        return response(ChannelRequest.reply(to: fields), .failure(.notJoined))
    }

    private mutating func enqueue(_ request: ChannelRequest) -> [Action] {
        guard case .running(var running) = phase else { return [] }
        guard running.requests.count < Self.requestsMax else {
            let sentence = "Too many requests are under way; wait for their responses."
            return response(request.reply, .failure(RequestFailure(.requestsFull, sentence)))
        }
        running.requests.append(request)
        let isFirst = running.requests.count == 1
        phase = .running(running)
        return isFirst ? performRequests() : []
    }

    /// A message of the data channel `rpc`. It counts against the client's budget as every other message.
    private mutating func called(_ bytes: [UInt8], at now: Instant) -> [Action] {
        lastMessage = now
        guard budget.take(MessageBudget.cost(of: bytes), at: now) else { return end(.messageRate) }
        guard case .running(let running) = phase, let methods = running.settings.data?.methods, !methods.isEmpty else {
            return []
        }
        let caller = SoraRPC.Caller(
            channel: running.settings.channel,
            connection: running.reservation.participant
        )
        return enqueue(SoraRPC.request(bytes, permitted: methods, from: caller))
    }

    private func response(_ reply: ChannelRequest.Reply, _ result: Result<String, RequestFailure>) -> [Action] {
        switch reply {
        case .response(let id):
            let text = SoraServerMessage.response(to: id, result)
            guard case .running(let running) = phase else { return [.send(text)] }
            return [running.deliver(text, on: .signaling)]
        case .rpc(let id): return [.sendData(SoraServerMessage.rpcResponse(to: id, result), on: .rpc)]
        case .none: return []
        }
    }

    /// Answers invalid requests, and performs the first valid one.
    private mutating func performRequests() -> [Action] {
        guard case .running(var running) = phase else { return [] }
        var actions: [Action] = []
        while let request = running.requests.first {
            switch request.method {
            case .success(let method):
                phase = .running(running)
                return actions + [.request(method)]
            case .failure(let failure):
                actions += response(request.reply, .failure(failure))
                running.requests.removeFirst()
            }
        }
        phase = .running(running)
        return actions
    }

    /// The owner performed a request, with a JSON object as text for the result.
    mutating func requested(_ result: Result<String, RequestFailure>) -> [Action] {
        guard case .running(var running) = phase, !running.requests.isEmpty else { return [] }
        let request = running.requests.removeFirst()
        phase = .running(running)
        return response(request.reply, result) + performRequests()
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
            if case .networkQuality(let quality) = notification.content {
                running.quality = QualityMessage(
                    quality,
                    unixNanoseconds: notification.timestamp,
                    at: now,
                    dueAt: running.quality?.dueAt ?? now
                )
                phase = .running(running)
                return sendQuality(at: now)
            }
            let text = notification.encoded(SoraServerMessage.notify)
            guard running.isFinding else { return [running.deliver(text, on: .notify)] }
            running.held.append(text)
            phase = .running(running)
            return []
        case .unusedLayers(let mid, let rids):
            guard mid == running.description.clientMIDs.video else { return [] }
            running.unusedLayers = Set(rids)
            let resumes = !running.description.pausedLayers.isSubset(of: rids)
            running.layersDueAt = resumes ? now : max(now, running.quietUntil)
            phase = .running(running)
            return advance(at: now)
        case .push(let json): return [running.deliver(SoraServerMessage.push(json), on: .push)]
        case .data(let event): return received(event, at: now)
        case .subscriptionsChanged, .ended: return []
        }
    }
}

// MARK: - Data channels

extension SoraStateMachine {
    private mutating func received(_ event: ParticipantDataEvent, at now: Instant) -> [Action] {
        guard case .running(var running) = phase, let data = running.settings.data else { return [] }
        switch event {
        case .opened:
            guard data.carriesSignaling else { return [] }
            running.isSwitched = true
            phase = .running(running)
            return [.send(SoraServerMessage.switched(ignoresSocketLoss: data.ignoresSocketLoss))]
        case .message(SoraDataChannels.Label.rpc.rawValue, let bytes, _): return called(bytes, at: now)
        case .message(let label, let bytes, _):
            // The others have messages to the client only.
            guard [.signaling, .stats].contains(SoraDataChannels.Label(rawValue: label)) else { return [] }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return end(SoraClose(.invalidJSON, "A message of the data channel \(label) is not UTF-8."))
            }
            return received(text, at: now)
        case .refused(let label, let violation): return end(SoraClose(violation, on: label))
        case .closed(let label):
            guard SoraDataChannels.Label(rawValue: label) != nil else { return [] }
            return end(SoraClose(.internalError, "The data channel \(label) closed."), leaving: .signalingLost)
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
            deadline = earliest(deadline, running.quality?.dueAt)
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
            guard let ping = running.nextPing, now >= ping else { return sendQuality(at: now) + advance(at: now) }
            // Some clients answer no ping before their transport is connected.
            if running.isConnected, !running.isSocketLost, now - lastMessage >= Interval(configuration.pongTimeout) {
                return end(.pongTimeout, leaving: .pongTimedOut)
            }
            running.nextPing = now + Interval(configuration.pingInterval)
            running.pingCount &+= 1
            let isAsked = running.settings.grants.userAgentStatistics ?? true
            let wantsStatistics = isAsked && running.pingCount % Self.statisticsPeriod == 0
            if wantsStatistics { running.awaitsReports = true }
            phase = .running(running)
            return running.pings(wantsStatistics: wantsStatistics) + sendQuality(at: now) + advance(at: now)
        }
    }

    /// Sends the quality of the client's network if it is due.
    private mutating func sendQuality(at now: Instant) -> [Action] {
        guard case .running(var running) = phase, var message = running.quality, now >= message.dueAt else { return [] }
        let text = SoraServerMessage.notify(message.send(at: now))
        running.quality = message
        phase = .running(running)
        return [running.deliver(text, on: .notify)]
    }

    /// - Parameter reason: The reason for the rooms; by default the rejection of the client.
    private mutating func end(_ close: SoraClose, leaving reason: EndReason? = nil) -> [Action] {
        phase = .ended
        return [.close(close), .leave(reason ?? .rejected(close.close.reason))]
    }
}

extension SoraStateMachine.Running {
    /// The messages of one period: none on a WebSocket that is closed, and requests of statistics on their data channel.
    fileprivate func pings(wantsStatistics: Bool) -> [SoraStateMachine.Action] {
        let ping = SoraServerMessage.ping(wantsStatistics: wantsStatistics && !isSwitched)
        let request = wantsStatistics && isSwitched ? SoraServerMessage.statisticsRequest : nil
        return (isSocketLost ? [] : [.send(ping)]) + (request.map { [.sendData($0, on: .stats)] } ?? [])
    }
}

extension SoraStateMachine.Running.Step {
    fileprivate var isIdle: Bool {
        if case .idle = self { true } else { false }
    }
}
