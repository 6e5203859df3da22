/// A connection to a channel, again and again until it ends for good: sessions with pauses between them.
///
/// It has no clock, no random numbers and no input or output of its own: messages and times come in, and ``takeOutputs()`` says
/// what to do. Times count from any moment.
struct MemberConnection: Sendable {
    enum Slot: Hashable, Sendable { case main, screen }

    /// What the driver does.
    enum Command: Hashable, Sendable {
        case open(SignalingSession.ID, url: String)
        case send(ClientMessage, SignalingSession.ID)
        case closeSocket(SignalingSession.ID)
        /// Makes a media connection and answers the offer.
        case answer(ServerOffer, MediaConnectionSetup, session: SignalingSession.ID)
        case answerAgain(String, ServerMessage.AnswerType, session: SignalingSession.ID)
        /// Sends a pong with the statistics of the session's media.
        case sendStatistics(session: SignalingSession.ID, socket: SignalingSession.ID)
        /// Closes the WebSocket and the media. Where the place is to be kept, the media waits for the WebSocket's end, because
        /// the node takes the end of the media alone for a leave.
        case end(session: SignalingSession.ID, socket: SignalingSession.ID, keepsPlace: Bool)
    }

    /// What the channel has to know.
    enum Report: Hashable, Sendable {
        case status(ConnectionStatus, NagareError?)
        /// A new session begins: nothing is received of the earlier one.
        case began
        case joined(Notification)
        case notified(Notification)
        case pushed(JSONValue)
        case answered(RequestPurpose, Result<JSONValue, NagareError>)
        case media(MediaConnectionEvent)
        /// A session ended, and another one follows at this address first.
        case retries(at: String)
        case ended(Failure)
    }

    enum Output: Hashable, Sendable {
        case command(Command)
        case report(Report)
    }

    private enum State: Sendable {
        case idle
        case active(SignalingSession)
        case waiting(until: Duration)
        case over
    }

    private static let connectMax = Duration.seconds(15)
    /// The same where another node can be tried.
    private static let connectMaxOfSeveral = Duration.seconds(4)
    private static let mediaMax = Duration.seconds(15)
    private static let greetingMax = Duration.seconds(5)
    private static let mediaGrace = Duration.seconds(2)
    /// How long a node that closed the media may take to say why over the WebSocket: a kick, an expired token.
    private static let reasonMax = Duration.milliseconds(500)
    private static let questionMax = Duration.seconds(3)
    private static let requestMax = Duration.seconds(8)
    /// The node performs 32 requests at a time.
    private static let requestsAtOnceMax = 16
    private static let requestsQueuedMax = 2_000
    /// Offers of a node that waits for no answer.
    private static let pendingAnswersMax = 8

    let slot: Slot
    /// What the next session asks for.
    var connect: ConnectMessage
    var nodes: NodeList
    private let random: @Sendable () -> Double
    private var state = State.idle
    private var wasJoined = false
    private var attempt = 0
    private var resumeToken: String?
    private var sessionCount: Int
    private var socketCount: Int
    private var outputs: [Output] = []

    /// - Parameters:
    ///   - number: sessions and WebSockets are numbered from here, because those of an earlier connection may still close.
    ///   - random: draws from 0…1.
    init(
        _ slot: Slot,
        connect: ConnectMessage,
        nodes: NodeList,
        after number: Int,
        random: @escaping @Sendable () -> Double
    ) {
        sessionCount = number
        socketCount = number
        self.slot = slot
        self.connect = connect
        self.nodes = nodes
        self.random = random
    }

    mutating func takeOutputs() -> [Output] {
        defer { outputs = [] }
        return outputs
    }

    var session: SignalingSession? {
        if case .active(let session) = state { session } else { nil }
    }
    /// The highest number in use.
    var lastNumber: Int { max(sessionCount, socketCount) }
    var isJoined: Bool { session?.phase == .joined }

    // MARK: Beginning and end

    mutating func start(at now: Duration) {
        guard case .idle = state else { return }
        begin(at: now)
    }

    private mutating func begin(at now: Duration) {
        sessionCount += 1
        socketCount += 1
        report(.status(wasJoined ? .reconnecting : .connecting, nil))
        report(.began)
        let session = SignalingSession(
            id: SignalingSession.ID(slot: slot, number: sessionCount),
            socket: SignalingSession.ID(slot: slot, number: socketCount),
            url: nodes.current,
            phase: .connecting(until: now + connectTimeout)
        )
        command(.open(session.socket, url: session.url))
        state = .active(session)
    }

    private var connectTimeout: Duration { nodes.hasOthers ? Self.connectMaxOfSeveral : Self.connectMax }

    /// Leaves: the node removes the member at once.
    mutating func leave() {
        switch state {
        case .over: return
        case .active(let session):
            if session.isOpen { command(.send(.disconnect, session.socket)) }
            close(session, .left)
        case .idle, .waiting: break
        }
        state = .over
        report(.ended(.left))
    }

    /// The network changed: tries at once, or asks whether the node is still there.
    mutating func networkChanged(at now: Duration) {
        switch state {
        case .waiting: begin(at: now)
        case .active(var session) where session.phase == .joined:
            ask(&session, at: now)
            state = .active(session)
        case .active, .idle, .over: break
        }
    }

    /// Asks the node for a sign. Silence ends the session.
    private mutating func ask(_ session: inout SignalingSession, at now: Duration) {
        guard session.question == nil else { return }
        session.question = (askedAt: now, until: now + Self.questionMax)
        send(
            SignalingSession.Request(method: "statistics", parameters: [:], purpose: .sign),
            of: &session,
            at: now
        )
    }

    /// Closes what a session has, and answers its requests.
    private mutating func close(_ session: SignalingSession, _ failure: Failure) {
        let waiting = session.requests.sorted { $0.key < $1.key }.map(\.value.request) + session.queuedRequests
        for request in waiting { report(.answered(request.purpose, .failure(.notConnected))) }
        command(.end(session: session.id, socket: session.socket, keepsPlace: !failure.isFinal))
    }

    /// A session ended by itself.
    private mutating func finish(_ session: SignalingSession, _ failure: Failure, at now: Duration) {
        close(session, failure)
        guard !failure.isFinal else {
            state = .over
            resumeToken = nil
            report(.ended(failure))
            return
        }
        attempt += 1
        let isCrowd = failure.error.reason == "TRY-AGAIN-LATER"
        let pause = isCrowd ? Backoff.crowdPause(random: random()) : Backoff.pause(attempt: attempt, random: random())
        nodes.failed(failure.error.reason, hadWorked: session.phase == .joined)
        state = .waiting(until: now + pause)
        report(.status(.disconnected, failure.error))
        report(.retries(at: nodes.current))
    }

    // MARK: Time

    var nextDeadline: Duration? {
        switch state {
        case .idle, .over: nil
        case .waiting(let until): until
        case .active(let session): session.nextDeadline
        }
    }

    mutating func handleTimeout(at now: Duration) {
        switch state {
        case .idle, .over: return
        case .waiting(let until):
            if now >= until { begin(at: now) }
        case .active(var session):
            expireRequests(of: &session, at: now)
            state = .active(session)
            if let failure = timeoutFailure(of: session, at: now) {
                // A client that cannot reach the node that it was sent to stays at the one that sent it.
                if !session.isOpen, session.origin != nil {
                    returnToOrigin(at: now)
                } else {
                    finish(session, failure, at: now)
                }
            } else if let question = session.question, now >= question.until {
                session.question = nil
                state = .active(session)
            }
        }
    }

    private func timeoutFailure(of session: SignalingSession, at now: Duration) -> Failure? {
        if let until = session.phase.deadline, now >= until {
            switch session.phase {
            case .connecting: return .unreachable(Self.host(of: session.url))
            case .negotiating: return .unreachableMedia
            case .greeting, .joined: return .unsupported
            }
        }
        if let silentAt = session.silentAt, now >= silentAt { return .silent }
        if let loss = session.mediaLoss, now >= loss.until {
            // A node that does not answer either hangs, and another one may not.
            return !loss.isFinal && session.isSilent(since: loss.since) ? .silent : .interrupted
        }
        if let question = session.question, now >= question.until, session.isSilent(since: question.askedAt) {
            return .silent
        }
        return nil
    }

    private mutating func expireRequests(of session: inout SignalingSession, at now: Duration) {
        let late = session.requests.filter { now >= $0.value.until }.sorted { $0.key < $1.key }
        for (number, entry) in late {
            session.requests[number] = nil
            let message = "The server did not answer the request “\(entry.request.method)”."
            report(.answered(entry.request.purpose, .failure(NagareError(reason: "TIMEOUT", message: message))))
        }
        sendQueued(of: &session, at: now)
    }

    /// The part of a URL that people know a node by.
    private static func host(of url: String) -> String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        return String(rest.prefix { $0 != "/" && $0 != "?" })
    }

    // MARK: The WebSocket

    mutating func opened(_ socket: SignalingSession.ID) {
        guard case .active(var session) = state, session.socket == socket, !session.isOpen else { return }
        session.isOpen = true
        state = .active(session)
        var message = connect
        message.resumeToken = resumeToken
        message.isRedirected = session.isRedirected
        command(.send(.connect(message), socket))
    }

    mutating func closed(_ socket: SignalingSession.ID, _ end: SignalingSocketEnd, at now: Duration) {
        guard case .active(let session) = state, session.socket == socket else { return }
        guard session.isOpen else {
            if session.origin != nil {
                returnToOrigin(at: now)
            } else {
                finish(session, .unreachable(Self.host(of: session.url)), at: now)
            }
            return
        }
        finish(session, Failure(end, hasToken: connect.accessToken != nil), at: now)
    }

    private mutating func returnToOrigin(at now: Duration) {
        guard case .active(var session) = state, let origin = session.origin else { return }
        session.origin = nil
        reopen(&session, at: origin, now)
        state = .active(session)
    }

    /// - Parameter url: of another node, which does not redirect a client that says it was redirected.
    private mutating func reopen(_ session: inout SignalingSession, at url: String, _ now: Duration) {
        command(.closeSocket(session.socket))
        socketCount += 1
        session.socket = SignalingSession.ID(slot: slot, number: socketCount)
        session.url = url
        session.isRedirected = true
        session.isOpen = false
        session.phase = .connecting(until: now + connectTimeout)
        command(.open(session.socket, url: url))
    }

    mutating func received(_ message: ServerMessage, on socket: SignalingSession.ID, at now: Duration) {
        guard case .active(var session) = state, session.socket == socket else { return }
        session.heard(at: now)
        switch message {
        case .redirect(let location): redirected(&session, to: location, at: now)
        case .offer(let offer): offered(&session, offer, at: now)
        case .laterOffer(let sdp, let type):
            guard session.connectionID != nil else { break }
            session.pendingAnswers += 1
            if session.pendingAnswers <= Self.pendingAnswersMax {
                command(.answerAgain(sdp, type, session: session.id))
            }
        case .ping(let wantsStatistics):
            session.hasPinged = true
            if wantsStatistics {
                command(.sendStatistics(session: session.id, socket: session.socket))
            } else {
                command(.send(.pong(statistics: nil), session.socket))
            }
        case .notify(let notification): notified(&session, notification, at: now)
        case .push(let data): report(.pushed(data))
        case .response(let number, let result):
            if let entry = session.requests.removeValue(forKey: number) {
                report(.answered(entry.request.purpose, result))
                sendQueued(of: &session, at: now)
            }
        case .ignored: break
        case .unreadable:
            finish(session, .unreadable, at: now)
            return
        }
        guard session.pendingAnswers <= Self.pendingAnswersMax else {
            finish(session, .flooded, at: now)
            return
        }
        state = .active(session)
    }

    private mutating func redirected(_ session: inout SignalingSession, to location: String, at now: Duration) {
        guard !session.isRedirected, session.connectionID == nil, location.utf8.count <= 2_048,
            location.hasPrefix("ws://") || location.hasPrefix("wss://"), !Self.host(of: location).isEmpty
        else { return }
        session.origin = session.url
        reopen(&session, at: location, now)
    }

    private mutating func offered(_ session: inout SignalingSession, _ offer: OfferMessage, at now: Duration) {
        guard case .connecting = session.phase, session.isOpen else { return }
        session.connectionID = offer.connectionID
        session.phase = .negotiating(until: now + Self.mediaMax)
        session.pendingAnswers += 1
        command(.answer(offer.serverOffer, offer.setup(connect.source), session: session.id))
    }

    private mutating func notified(_ session: inout SignalingSession, _ message: Notification, at now: Duration) {
        switch (message.type, session.phase) {
        case ("connection.created", .negotiating) where message.connectionID == session.connectionID:
            session.phase = .greeting(until: now + Self.greetingMax)
        case ("channel.joined", .negotiating), ("channel.joined", .greeting):
            session.phase = .joined
            attempt = 0
            resumeToken = message.resumeToken
            report(.joined(message))
            wasJoined = true
            report(.status(.connected, nil))
        case ("channel.joined", _): break
        default: report(.notified(message))
        }
    }

    // MARK: Requests

    /// Sends a request of the channel extension, or keeps it until an earlier one is answered.
    mutating func request(_ request: SignalingSession.Request, at now: Duration) {
        guard case .active(var session) = state, session.phase == .joined else {
            report(.answered(request.purpose, .failure(.notConnected)))
            return
        }
        send(request, of: &session, at: now)
        state = .active(session)
    }

    private mutating func send(
        _ request: SignalingSession.Request,
        of session: inout SignalingSession,
        at now: Duration
    ) {
        guard session.queuedRequests.count < Self.requestsQueuedMax else {
            let error = NagareError(reason: "REQUESTS-FULL", message: "Too many requests wait for an answer.")
            report(.answered(request.purpose, .failure(error)))
            return
        }
        session.queuedRequests.append(request)
        sendQueued(of: &session, at: now)
    }

    private mutating func sendQueued(of session: inout SignalingSession, at now: Duration) {
        while session.requests.count < Self.requestsAtOnceMax, !session.queuedRequests.isEmpty {
            let request = session.queuedRequests.removeFirst()
            let number = session.nextRequestNumber()
            session.requests[number] = (request, now + Self.requestMax)
            command(
                .send(.request(number, method: request.method, parameters: request.parameters), session.socket)
            )
        }
    }

    // MARK: Media

    mutating func answered(_ sdp: String, _ type: ServerMessage.AnswerType, session id: SignalingSession.ID) {
        guard case .active(var session) = state, session.id == id else { return }
        session.pendingAnswers = max(session.pendingAnswers - 1, 0)
        state = .active(session)
        command(.send(.description(type, sdp: sdp), session.socket))
    }

    mutating func answerFailed(_ why: String, session id: SignalingSession.ID, at now: Duration) {
        guard case .active(let session) = state, session.id == id else { return }
        finish(session, .mediaRefused(why), at: now)
    }

    mutating func media(_ event: MediaConnectionEvent, session id: SignalingSession.ID, at now: Duration) {
        guard case .active(var session) = state, session.id == id else { return }
        switch event {
        case .stateChanged(.connected):
            guard session.mediaLoss?.isFinal == false else { return }
            session.mediaLoss = nil
            if session.phase == .joined { report(.status(.connected, nil)) }
        case .stateChanged(.disconnected):
            guard session.phase == .joined, session.mediaLoss == nil else { return }
            lose(&session, for: Self.mediaGrace, isFinal: false, at: now)
            ask(&session, at: now)
        case .stateChanged(.failed):
            guard session.phase == .joined else {
                finish(session, .unreachableMedia, at: now)
                return
            }
            guard session.mediaLoss?.isFinal != true else { return }
            lose(&session, for: Self.reasonMax, isFinal: true, at: now)
        case .trackAdded, .trackRemoved, .firstFrame: report(.media(event))
        }
        state = .active(session)
    }

    private mutating func lose(
        _ session: inout SignalingSession,
        for time: Duration,
        isFinal: Bool,
        at now: Duration
    ) {
        session.mediaLoss = SignalingSession.MediaLoss(since: now, until: now + time, isFinal: isFinal)
        report(.status(.disconnected, Failure.interrupted.error))
    }

    // MARK: Outputs

    private mutating func command(_ command: Command) { outputs.append(.command(command)) }
    private mutating func report(_ report: Report) { outputs.append(.report(report)) }
}
