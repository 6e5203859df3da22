import Base
import ChannelTypes
import JSON
import Web

/// The signaling of one client of the Ayame protocol as a state machine: messages, results and instants in, actions out.
/// It does no I/O and reads no clock.
///
/// It waits for `register`, requests the admission, joins the room, and then relays descriptions and candidates to the
/// other member until either leaves or its permission ends. In a room whose media passes the node, the node answers the
/// client's offer instead.
struct AyameSession {
    /// An action of the owner. The owner performs actions in order.
    enum Action {
        case send(String)
        /// Closes the WebSocket; nothing is sent afterwards. Without ``leave`` after it, the client stays in the room as long
        /// as its media lasts.
        case close(AyameClose)
        /// Completed by ``admitted(_:)``.
        case authorize(AyameRegistration)
        /// Completed by ``joined(_:lifetime:at:)`` or ``refused(_:)``. The room sends `accept`. Until then further messages wait.
        case join(AyameRegistration, AyamePermission)
        /// Sends the text to the other member, if there is one.
        case relay(String)
        /// Answers the client's offer in place of the other member, the first one or a further one. Completed by ``answered(_:)``.
        case negotiate(sdp: String)
        /// The permission may have expired. Completed by ``expires(in:at:)``.
        case checkExpiry
        /// The permission ends soon.
        case warn
        /// Asks for a later end of the permission. Completed by ``refreshed(_:)``.
        case refresh(AyameCredentials)
        /// Leaves the room, if the client is in one.
        case leave
    }

    private enum Phase {
        case waiting(until: Instant)
        case authorizing(AyameRegistration, until: Instant)
        /// The messages were sent after `accept`, before the result was known here.
        case joining([(message: AyameClientMessage, text: String)])
        case joined
        case ended
    }

    /// Messages that may wait in ``Phase/joining(_:)``: a description and its candidates.
    private static let waitingMax = 256

    /// The least time between two warnings.
    private static let warningInterval = Interval.seconds(5)

    /// The time from the warning to the end of the permission.
    private static let warningTime = Interval.seconds(Int(AccessExpiry.tokenWarningSeconds))

    private let configuration: AyameConfiguration
    private var phase: Phase
    private var lastMessage: Instant
    private var nextPing: Instant
    private var budget = MessageBudget()
    /// The path of the room's media.
    private var media = CallMedia.direct
    /// Whether an offer waits for the node's answer.
    private var isNegotiating = false
    /// Whether the node answered the first offer.
    private var isAnswered = false
    /// When the permission expires as far as is known, and when its lifetime ends.
    private var expiresAt: Instant?
    /// When the client is warned of it; `nil` once it is.
    private var warnsAt: Instant?
    private var isWarned = false
    private var lastWarning: Instant?
    private var isRefreshing = false
    private var lifetimeEndsAt: Instant?

    init(configuration: AyameConfiguration, at now: Instant) {
        self.configuration = configuration
        phase = .waiting(until: now + Interval(configuration.registerTimeout))
        lastMessage = now
        nextPing = now + Interval(configuration.pingInterval)
    }

    /// Whether the client is not admitted, so that its messages count against the limit of its network.
    var isUnadmitted: Bool {
        switch phase {
        case .waiting, .authorizing: true
        case .joining, .joined, .ended: false
        }
    }

    /// Whether the client has left or was refused.
    var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// The client's registration; `nil` before `register`.
    private(set) var registration: AyameRegistration?

    private var isStandalone: Bool { registration?.isStandalone ?? false }

    // MARK: Messages

    mutating func received(_ text: String, at now: Instant) -> [Action] {
        if case .ended = phase { return [] }
        lastMessage = now
        guard budget.take(MessageBudget.cost(of: text), at: now) else { return end(.tooManyMessages) }
        do throws(AyameClose) {
            if isUnadmitted, text.utf8.count > configuration.registerBytesMax {
                throw AyameClose.refused("TOO-LONG", "A message before the admission is too long.")
            }
            let limits: JSONLimits = isUnadmitted ? .unauthenticated : .standard
            return try received(AyameClientMessage(decoding: text, limits: limits), text, at: now)
        } catch {
            return end(error)
        }
    }

    private mutating func received(
        _ message: AyameClientMessage,
        _ text: String,
        at now: Instant
    ) throws(AyameClose) -> [Action] {
        switch (message, phase) {
        case (.pong, _): return []
        case (.register(let registration), .waiting):
            self.registration = registration
            phase = .authorizing(registration, until: now + Interval(configuration.admissionTimeout))
            return [.authorize(registration)]
        case (.register, _): throw .registeredTwice
        case (_, .joining(var waiting)):
            guard waiting.count < Self.waitingMax else { throw .tooManyMessages }
            waiting.append((message, text))
            phase = .joining(waiting)
            return []
        case (.offer(let sdp), .joined) where media == .server: return try negotiated(sdp)
        // The node is an ICE lite agent, which needs no candidates.
        case (.description, .joined) where media == .server: return []
        case (.offer, .joined), (.description, .joined): return [.relay(text)]
        case (.connected, .joined):
            guard isStandalone else { return [] }
            guard isAnswered else { return end(.connected) }
            // The node knows how long the media lasts. The place in the room lasts as long.
            phase = .ended
            return [.close(.connected)]
        case (.refresh(let credentials), .joined):
            guard !isRefreshing else { throw .refreshedAgain }
            isRefreshing = true
            return [.refresh(credentials)]
        case (.offer, _), (.description, _), (.connected, _), (.refresh, _): throw .notRegistered
        }
    }

    private mutating func negotiated(_ sdp: String?) throws(AyameClose) -> [Action] {
        guard !isNegotiating else { throw .offeredAgain }
        guard let sdp else { throw .offerMissing }
        isNegotiating = true
        return [.negotiate(sdp: sdp)]
    }

    /// The client's network sent too many messages before their admission.
    mutating func refusedAsTooMany() -> [Action] { end(.tooManyMessages) }

    // MARK: Results

    mutating func admitted(_ decision: AyameDecision) -> [Action] {
        guard case .authorizing(let registration, _) = phase else { return [] }
        switch decision {
        case .rejected(let reason): return reject(reason)
        case .allowed(let permission):
            phase = .joining([])
            return [.join(registration, permission)]
        }
    }

    /// The client is in the room.
    /// - Parameters:
    ///   - media: the path of the room's media.
    ///   - lifetime: how long it may stay; `nil` without a limit.
    mutating func joined(_ media: CallMedia, lifetime: Interval? = nil, at now: Instant) -> [Action] {
        guard case .joining(let waiting) = phase else { return [] }
        phase = .joined
        self.media = media
        lifetimeEndsAt = lifetime.map { Self.instant(now, after: $0) }
        var actions: [Action] = []
        for (message, text) in waiting where !hasEnded {
            do throws(AyameClose) {
                actions += try received(message, text, at: now)
            } catch {
                actions += end(error)
            }
        }
        return actions
    }

    /// The room does not take the client.
    mutating func refused(_ reason: String) -> [Action] { hasEnded ? [] : reject(reason) }

    /// The client's token expires so much later. Its registration ends with it.
    mutating func expires(in interval: Interval, at now: Instant) -> [Action] {
        guard case .joined = phase else { return [] }
        guard interval > .zero else { return endCall(.tokenExpired) }
        expiresAt = Self.instant(now, after: interval)
        if !isWarned {
            let due = Self.instant(now, after: interval - min(interval, Self.warningTime))
            warnsAt = lastWarning.map { max(due, $0 + Self.warningInterval) } ?? due
        }
        return []
    }

    /// The client's permission ends later, or never: after this comes ``expires(in:at:)`` with the new end, if there is one.
    mutating func permissionExtended() {
        expiresAt = nil
        warnsAt = nil
        isWarned = false
    }

    /// Nobody decided on a later end, or decided against it: asked again in a moment, as long as there is time.
    mutating func warningFailed(at now: Instant) {
        guard expiresAt != nil else { return }
        warnsAt = now + Self.warningInterval
    }

    /// The permission was extended until then, in seconds since 1970, or without an end; or it was not, for a reason.
    mutating func refreshed(_ result: Result<Int64?, AyameRefusal>) -> [Action] {
        guard case .joined = phase else { return [] }
        isRefreshing = false
        return [.send(AyameServerMessage.refreshed(result))]
    }

    /// The node answered the client's offer, or refuses it for a reason.
    mutating func answered(_ answer: Result<String, AyameRefusal>) -> [Action] {
        guard case .joined = phase else { return [] }
        isNegotiating = false
        switch answer {
        case .success(let sdp):
            isAnswered = true
            return [.send(AyameServerMessage.answer(sdp))]
        case .failure(let refusal): return reject(refusal.reason)
        }
    }

    /// The node ended the client's media.
    mutating func mediaEnded(_ reason: EndReason) -> [Action] {
        guard case .joined = phase else { return [] }
        return endCall(AyameClose(reason))
    }

    private static func instant(_ now: Instant, after interval: Interval) -> Instant {
        let (sum, overflows) = now.nanoseconds.addingReportingOverflow(interval.nanoseconds)
        return Instant(nanoseconds: overflows ? .max : sum)
    }

    private mutating func reject(_ reason: String) -> [Action] {
        [.send(AyameServerMessage.reject(reason))] + end(.rejected(reason))
    }

    // MARK: End

    /// The WebSocket is closed, by the client or by the room, or closes because the client violated its protocol.
    mutating func socketClosed() -> [Action] {
        if case .ended = phase { return [] }
        phase = .ended
        return [.leave]
    }

    mutating func stopping() -> [Action] {
        if case .ended = phase { return [] }
        return end(.stopping)
    }

    /// The client's call is over, but not because it left.
    private mutating func endCall(_ close: AyameClose) -> [Action] {
        (isStandalone ? [] : [.send(AyameServerMessage.bye)]) + end(close)
    }

    private mutating func end(_ close: AyameClose) -> [Action] {
        phase = .ended
        return [.close(close), .leave]
    }

    // MARK: Time

    /// The time of the next ``handleTimeout(at:)``; `nil` when there is none.
    var nextDeadline: Instant? {
        switch phase {
        case .waiting(let until), .authorizing(_, let until): min(until, nextPing, silenceDeadline)
        case .joining: min(nextPing, silenceDeadline)
        case .joined:
            earliest(
                earliest(earliest(warnsAt, expiresAt), lifetimeEndsAt),
                isStandalone ? nil : min(nextPing, silenceDeadline)
            )
        case .ended: nil
        }
    }

    private var silenceDeadline: Instant { lastMessage + Interval(configuration.pongTimeout) }

    mutating func handleTimeout(at now: Instant) -> [Action] {
        switch phase {
        case .ended: return []
        case .waiting(let until) where now >= until: return end(.registerTimeout)
        case .authorizing(_, let until) where now >= until:
            let reason = "The admission of the client took too long; is the node overloaded?"
            return [.send(AyameServerMessage.reject(Self.internalError))] + end(.refused("REJECTED", reason))
        case .waiting, .authorizing, .joining, .joined: break
        }
        if let lifetimeEndsAt, now >= lifetimeEndsAt { return endCall(.lifetimeExpired) }
        if let expiresAt, now >= expiresAt {
            self.expiresAt = nil
            return [.checkExpiry]
        }
        if let warnsAt, now >= warnsAt {
            self.warnsAt = nil
            isWarned = true
            lastWarning = now
            return [.warn]
        }
        if case .joined = phase, isStandalone { return [] }
        if now >= silenceDeadline { return end(.pongTimeout) }
        guard now >= nextPing else { return [] }
        nextPing = now + Interval(configuration.pingInterval)
        return [.send(AyameServerMessage.ping)]
    }

    /// The reason of a reject when there is no decision.
    static let internalError = "InternalServerError"
}
