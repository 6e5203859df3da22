import JSON
import Wire

/// The signaling of one client of the Ayame protocol as a state machine: messages, results and instants in, actions out.
/// It does no I/O and reads no clock.
///
/// It waits for `register`, requests the admission, joins the room, and then relays descriptions and candidates to the
/// other member until either leaves.
struct AyameSession {
    /// An action of the owner. The owner performs actions in order.
    enum Action {
        case send(String)
        /// Closes the WebSocket; nothing is sent afterwards.
        case close(AyameClose)
        /// Completed by ``admitted(_:at:)``.
        case authorize(AyameRegistration)
        /// Completed by ``joined(_:)``. The room sends `accept`.
        case join(AyameRegistration, connectionID: String, AyameAcceptance)
        /// Sends the text to the other member, if there is one.
        case relay(String)
        /// Leaves the room, if the client is in one.
        case leave
    }

    private enum Phase {
        case waiting(until: Instant)
        case authorizing(AyameRegistration, until: Instant)
        case joined(AyameRegistration)
        case ended
    }

    private let configuration: AyameConfiguration
    private var phase: Phase
    private var lastMessage: Instant
    private var nextPing: Instant
    private var budget: MessageBudget

    init(configuration: AyameConfiguration, at now: Instant) {
        self.configuration = configuration
        phase = .waiting(until: now + Interval(configuration.registerTimeout))
        lastMessage = now
        nextPing = now + Interval(configuration.pingInterval)
        budget = MessageBudget(at: now)
    }

    /// Whether the client is not admitted, so that its messages count against the limit of its network.
    var isUnadmitted: Bool {
        switch phase {
        case .waiting, .authorizing: true
        case .joined, .ended: false
        }
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
                throw AyameClose("TOO-LONG", "A message before the admission is too long.")
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
        case (.description, .joined): return [.relay(text)]
        case (.connected, .joined): return isStandalone ? end(.connected) : []
        case (.description, _), (.connected, _): throw .notRegistered
        }
    }

    /// The client's network sent too many messages before their admission.
    mutating func refusedAsTooMany() -> [Action] { end(.tooManyMessages) }

    // MARK: Results

    mutating func admitted(_ decision: AyameDecision) -> [Action] {
        guard case .authorizing(let registration, _) = phase else { return [] }
        switch decision {
        case .rejected(let reason): return reject(reason)
        case .allowed(let connectionID, let acceptance):
            phase = .joined(registration)
            return [.join(registration, connectionID: connectionID, acceptance)]
        }
    }

    /// The room has two members already.
    mutating func refusedAsFull() -> [Action] { reject("full") }

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

    private mutating func end(_ close: AyameClose) -> [Action] {
        phase = .ended
        return [.close(close), .leave]
    }

    // MARK: Time

    /// The time of the next ``handleTimeout(at:)``; `nil` when there is none.
    var nextDeadline: Instant? {
        switch phase {
        case .waiting(let until), .authorizing(_, let until): min(until, nextPing, silenceDeadline)
        case .joined: isStandalone ? nil : min(nextPing, silenceDeadline)
        case .ended: nil
        }
    }

    private var silenceDeadline: Instant { lastMessage + Interval(configuration.pongTimeout) }

    mutating func handleTimeout(at now: Instant) -> [Action] {
        switch phase {
        case .ended: return []
        case .waiting(let until) where now >= until: return end(.registerTimeout)
        case .authorizing(_, let until) where now >= until: return reject(Self.internalError)
        case .waiting, .authorizing, .joined: break
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
