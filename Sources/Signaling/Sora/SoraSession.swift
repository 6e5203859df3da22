import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import Room
import Web
import Wire

/// Why a session ends: the close for the client, and the reason for the rooms.
struct SoraEnd: Error {
    let close: SoraClose
    /// `nil` for the rejection of the client.
    var reason: EndReason?
}

/// A Sora client with a reservation: its offers and answers, its requests, its pings and its data channels. It is the state of
/// a running ``SoraStateMachine``.
struct SoraSession {
    typealias Action = SoraStateMachine.Action

    private enum Step {
        /// Waits for an answer until the deadline.
        case offered(until: Instant)
        /// The owner applies an answer.
        case applying
        case idle
    }

    /// The most requests of a client without a response.
    private static let requestsMax = 32
    /// The delay of the next offer for each stream of the last one. The cost of an offer grows with its streams, and when
    /// many clients join at once, each join would otherwise cause an offer to each member.
    private static let quietPerStream = Interval.milliseconds(10)
    private static let quietMax = Interval.seconds(1)
    /// Every so many pings, a `ping` asks for statistics.
    private static let statisticsPeriod = 6

    private let configuration: SoraConfiguration
    private let settings: SoraSettings
    private let reservation: SoraStateMachine.Reservation
    private var description: OfferedDescription
    private var step: Step
    /// Whether remote streams changed since the last `findStreams`.
    private var isStale: Bool
    /// Whether requested statistics of the client are outstanding.
    private var awaitsReports = false
    /// Whether the first answer was applied.
    private var isActive = false
    /// The deadline for the transport to connect; `nil` when there is none.
    private var connectedUntil: Instant?
    private var isConnected = false
    /// The earliest time of the next offer, so that one offer has all changes of a short period.
    private var quietUntil: Instant
    /// The client's layers that nobody wants.
    private var unusedLayers: Set<RID> = []
    /// When these are to be offered, if they differ from those of the last offer: layers that somebody wants again at once.
    private var layersDueAt: Instant?
    /// Whether `findStreams` is outstanding.
    private var isFinding = false
    /// Messages to send after the offer that `findStreams` may lead to.
    private var held: [String] = []
    /// Requests of the client without a response, the first of them under way.
    private var requests: [ChannelRequest] = []
    private var nextPing: Instant?
    private var pingCount = 0
    /// The quality of the client's network, and when it is sent next; `nil` before it is known.
    private var quality: QualityMessage?
    /// Whether the signaling moved to data channels.
    private var isSwitched = false
    /// Whether the rooms keep the client's place when its connection is lost.
    var keepsPlace: Bool { settings.options != nil }
    /// Whether the WebSocket is closed, and the connection goes on without.
    private var isSocketLost = false

    /// - Parameter isStale: whether `streams` may lack the latest ones.
    /// - Returns: the session, and its first offer.
    static func begin(
        _ settings: SoraSettings,
        _ reservation: SoraStateMachine.Reservation,
        streams: [VisibleStream],
        isStale: Bool,
        configuration: SoraConfiguration,
        at now: Instant
    ) -> (session: Self, offer: String) {
        var generator = SystemRandomNumberGenerator()
        var description = OfferedDescription(
            local: reservation.local,
            clientMedia: settings.clientMedia,
            receivesMedia: settings.role.watches,
            kinds: settings.kinds,
            offersData: settings.data != nil,
            using: &generator
        )
        let sdp = description.makeOffer(remoteStreams(streams), using: &generator)
        let offer = SoraServerMessage.offer(
            settings,
            reservation: reservation,
            sdp: sdp,
            mids: description.clientMIDs,
            configuration: configuration
        )
        let session = Self(
            configuration: configuration,
            settings: settings,
            reservation: reservation,
            description: description,
            step: .offered(until: now + Interval(configuration.answerTimeout)),
            isStale: isStale,
            quietUntil: now + quiet(after: streams)
        )
        return (session, offer)
    }

    /// Sends a message on a data channel, or on the WebSocket before the signaling moved.
    private func deliver(_ text: String, on label: SoraDataChannels.Label) -> Action {
        isSwitched ? .sendData(text, on: label) : .send(text)
    }
}

// MARK: - Messages of the client

extension SoraSession {
    mutating func received(_ message: SoraClientMessage, at now: Instant) throws(SoraEnd) -> [Action] {
        switch message {
        case .answer(let sdp):
            guard case .offered = step else { throw refusal("The client sent an answer without an outstanding offer.") }
            return try apply(sdp, at: now) + (isIdle ? advance(at: now) : [])
        case .pong(let reports?), .statistics(let reports?):
            guard awaitsReports else { return [] }
            awaitsReports = false
            return [.record(reports)]
        case .request(let members, let byteCount):
            // Clients that say nothing of channels get no response: the type is unknown to them.
            guard settings.options != nil else { return [] }
            let fields = JSONFields(members)
            return enqueue(ChannelRequest(fields, byteCount: byteCount, from: reservation.participant))
        case .connect, .disconnect, .candidate, .pong, .statistics, .ignored: return []
        }
    }

    private func refusal(_ message: String) -> SoraEnd { SoraEnd(close: SoraClose(.invalidMessage, message)) }

    private mutating func apply(_ sdp: String, at now: Instant) throws(SoraEnd) -> [Action] {
        let outcome: OfferedDescription.Outcome
        do {
            outcome = try description.apply(answer: sdp)
        } catch {
            throw refusal("The client's answer is refused: \(error.message)")
        }
        let reports = outcome.unsupported.isEmpty ? [] : [Action.reportUnsupported(outcome.unsupported)]
        guard isActive else {
            step = .applying
            connectedUntil = now + Interval(configuration.connectionCreatedTimeout)
            return reports + [.activate(outcome)]
        }
        guard !outcome.added.isEmpty || !outcome.removed.isEmpty else {
            step = .idle
            return reports
        }
        step = .applying
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

    /// The WebSocket closed.
    /// - Returns: whether the connection goes on without it.
    mutating func survivesSocketLoss() -> Bool {
        guard isSwitched, settings.data?.ignoresSocketLoss == true else { return false }
        isSocketLost = true
        return true
    }
}

// MARK: - Offers

extension SoraSession {
    private var isIdle: Bool {
        if case .idle = step { true } else { false }
    }

    /// The media of the first answer is active.
    mutating func activated(at now: Instant) -> [Action] {
        isActive = true
        step = .idle
        nextPing = now + Interval(configuration.pingInterval)
        return advance(at: now)
    }

    /// The slots of a later answer are active.
    mutating func slotsChanged(at now: Instant) -> [Action] {
        step = .idle
        return advance(at: now)
    }

    /// The streams that the client can receive now.
    mutating func found(_ streams: [VisibleStream], at now: Instant) -> [Action] {
        isFinding = false
        let held = held.map { deliver($0, on: .notify) }
        self.held = []
        let remote = Self.remoteStreams(streams)
        guard isIdle, changeLayers() || description.wouldChange(remote) else { return held + advance(at: now) }
        var generator = SystemRandomNumberGenerator()
        let sdp = description.makeOffer(remote, using: &generator)
        step = .offered(until: now + Interval(configuration.answerTimeout))
        quietUntil = now + Self.quiet(after: streams)
        return [deliver(SoraServerMessage.reoffer(sdp: sdp), on: .signaling)] + held
    }

    /// - Returns: whether the next offer pauses or resumes layers of the client.
    private mutating func changeLayers() -> Bool {
        layersDueAt = nil
        return description.pauseLayers(unusedLayers)
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
        guard isIdle, !isFinding else { return nil }
        return earliest(isStale && settings.role.watches ? quietUntil : nil, layersDueAt)
    }

    /// Asks for the current streams when the next offer is due.
    private mutating func advance(at now: Instant) -> [Action] {
        guard let nextOffer, now >= nextOffer else { return [] }
        isStale = false
        isFinding = true
        return [.findStreams]
    }
}

// MARK: - Requests

extension SoraSession {
    /// A message of the data channel `rpc`.
    mutating func called(_ bytes: [UInt8]) -> [Action] {
        guard let methods = settings.data?.methods, !methods.isEmpty else { return [] }
        let caller = SoraRPC.Caller(channel: settings.channel, connection: reservation.participant)
        return enqueue(SoraRPC.request(bytes, permitted: methods, from: caller))
    }

    private mutating func enqueue(_ request: ChannelRequest) -> [Action] {
        guard requests.count < Self.requestsMax else {
            let message = "Too many requests are under way; wait for their responses."
            return response(to: request, .failure(RequestFailure(.requestsFull, message)))
        }
        requests.append(request)
        return requests.count == 1 ? performRequests() : []
    }

    private func response(to request: ChannelRequest, _ result: Result<String, RequestFailure>) -> [Action] {
        switch request.reply {
        case .response(let id): [deliver(SoraServerMessage.response(to: id, result), on: .signaling)]
        case .rpc(let id): [.sendData(SoraServerMessage.rpcResponse(to: id, result), on: .rpc)]
        case .none: []
        }
    }

    /// Answers invalid requests, and performs the first valid one.
    private mutating func performRequests() -> [Action] {
        var actions: [Action] = []
        while let request = requests.first {
            switch request.method {
            case .success(let method): return actions + [.request(method)]
            case .failure(let failure):
                actions += response(to: request, .failure(failure))
                requests.removeFirst()
            }
        }
        return actions
    }

    /// The owner performed a request, with a JSON object as text for the result.
    mutating func requested(_ result: Result<String, RequestFailure>) -> [Action] {
        guard !requests.isEmpty else { return [] }
        let request = requests.removeFirst()
        return response(to: request, result) + performRequests()
    }
}

// MARK: - Events of the rooms

extension SoraSession {
    /// Whether the client has data channels.
    var takesMessages: Bool { settings.data != nil }

    mutating func received(_ event: ParticipantEvent, at now: Instant) throws(SoraEnd) -> [Action] {
        switch event {
        case .subscriptionsChanged:
            isStale = true
            return advance(at: now)
        case .connected:
            isConnected = true
            connectedUntil = nil
            return []
        case .notification(let notification):
            if case .networkQuality(let level) = notification.content {
                let time = notification.timestamp
                quality = QualityMessage(level, unixNanoseconds: time, at: now, after: quality)
                return sendQuality(at: now)
            }
            let text = notification.encoded(SoraServerMessage.notify)
            guard isFinding else { return [deliver(text, on: .notify)] }
            held.append(text)
            return []
        case .unusedLayers(let mid, let rids):
            guard mid == description.clientMIDs.video else { return [] }
            unusedLayers = Set(rids)
            let resumes = !description.pausedLayers.isSubset(of: rids)
            layersDueAt = resumes ? now : max(now, quietUntil)
            return advance(at: now)
        case .push(let json): return [deliver(SoraServerMessage.push(json), on: .push)]
        case .data(let event): return try received(event)
        case .ended: return []
        }
    }

    private mutating func received(_ event: ParticipantDataEvent) throws(SoraEnd) -> [Action] {
        guard let data = settings.data else { return [] }
        switch event {
        case .opened:
            guard data.carriesSignaling else { return [] }
            isSwitched = true
            return [.send(SoraServerMessage.switched(ignoresSocketLoss: data.ignoresSocketLoss))]
        case .refused(let label, let violation): throw SoraEnd(close: SoraClose(violation, on: label))
        case .closed(let label):
            guard data.carriesSignaling, SoraDataChannels.Label(rawValue: label) != nil else { return [] }
            let close = SoraClose(.internalError, "The data channel \(label) closed.")
            throw SoraEnd(close: close, reason: .signalingLost)
        // The state machine takes them, against the client's budget.
        case .message: return []
        }
    }
}

// MARK: - Timeouts

extension SoraSession {
    var nextDeadline: Instant? {
        var deadline = earliest(earliest(connectedUntil, nextPing), nextOffer)
        deadline = earliest(deadline, quality?.dueAt)
        if case .offered(let until) = step { deadline = earliest(deadline, until) }
        return deadline
    }

    /// - Parameter lastMessage: when the client gave its last sign of life.
    mutating func handleTimeout(lastMessage: Instant, at now: Instant) throws(SoraEnd) -> [Action] {
        if case .offered(let until) = step, now >= until { throw SoraEnd(close: .answerTimeout) }
        if let connectedUntil, now >= connectedUntil { throw SoraEnd(close: .connectionCreatedWaitTimeout) }
        guard let nextPing, now >= nextPing else { return sendQuality(at: now) + advance(at: now) }
        // Some clients answer no ping before their transport is connected.
        if isConnected, !isSocketLost, now - lastMessage >= Interval(configuration.pongTimeout) {
            throw SoraEnd(close: .pongTimeout, reason: .pongTimedOut)
        }
        self.nextPing = now + Interval(configuration.pingInterval)
        pingCount &+= 1
        let isAsked = settings.grants.userAgentStatistics ?? true
        let wantsStatistics = isAsked && pingCount % Self.statisticsPeriod == 0
        if wantsStatistics { awaitsReports = true }
        return pings(wantsStatistics: wantsStatistics) + sendQuality(at: now) + advance(at: now)
    }

    /// The messages of one period: none on a WebSocket that is closed, and requests of statistics on their data channel.
    private func pings(wantsStatistics: Bool) -> [Action] {
        let ping = SoraServerMessage.ping(wantsStatistics: wantsStatistics && !isSwitched)
        let request = wantsStatistics && isSwitched ? SoraServerMessage.statisticsRequest : nil
        return (isSocketLost ? [] : [.send(ping)]) + (request.map { [.sendData($0, on: .stats)] } ?? [])
    }

    /// Sends the quality of the client's network if it is due.
    private mutating func sendQuality(at now: Instant) -> [Action] {
        guard let notification = quality?.takeDue(at: now) else { return [] }
        return [deliver(SoraServerMessage.notify(notification), on: .notify)]
    }
}
