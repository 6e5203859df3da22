/// One WebSocket and one media connection, from `connect` to the end of either.
struct SignalingSession: Sendable {
    enum Phase: Hashable, Sendable {
        /// Until the offer has come.
        case connecting(until: Duration)
        /// The offer is answered, and the media connects.
        case negotiating(until: Duration)
        /// The media is connected. The node's list of users is awaited.
        case greeting(until: Duration)
        case joined

        var deadline: Duration? {
            switch self {
            case .connecting(let until), .negotiating(let until), .greeting(let until): until
            case .joined: nil
            }
        }
    }

    /// Names a session and its WebSockets among all of a client.
    struct ID: Hashable, Sendable {
        var slot: MemberConnection.Slot
        var number: Int
    }

    /// The media connection is interrupted, or has failed.
    struct MediaLoss: Hashable, Sendable {
        let since: Duration
        /// When the session ends of it.
        let until: Duration
        let isFinal: Bool
    }

    struct Request: Hashable, Sendable {
        var method: String
        var parameters: JSONValue
        var purpose: RequestPurpose
    }

    let id: ID
    var socket: ID
    var url: String
    /// The address that redirected to the present one.
    var origin: String?
    var isRedirected = false
    var isOpen = false
    var phase: Phase
    /// What the node calls this connection, from the offer on.
    var connectionID: String?
    /// Offers that the engine has not answered yet.
    var pendingAnswers = 0

    private(set) var lastMessageAt: Duration?
    private var longestGap = Duration.seconds(5)
    var hasPinged = false
    var mediaLoss: MediaLoss?
    /// When it was asked whether the node is still there, and until when it may answer.
    var question: (askedAt: Duration, until: Duration)?

    var requests: [Int: (request: Request, until: Duration)] = [:]
    var queuedRequests: [Request] = []
    private var requestCount = 0

    init(id: ID, socket: ID, url: String, phase: Phase) {
        self.id = id
        self.socket = socket
        self.url = url
        self.phase = phase
    }

    /// The node pings every 5 s unless configured otherwise: three missing pings are silence.
    private static let silenceMin = Duration.seconds(15)

    mutating func heard(at now: Duration) {
        if let lastMessageAt, phase == .joined { longestGap = max(longestGap, now - lastMessageAt) }
        lastMessageAt = now
    }

    /// When the node counts as silent.
    var silentAt: Duration? {
        guard hasPinged, let lastMessageAt else { return nil }
        return lastMessageAt + max(Self.silenceMin, longestGap * 3)
    }

    /// Whether nothing has come since `time`.
    func isSilent(since time: Duration) -> Bool { lastMessageAt.map { $0 <= time } ?? true }

    mutating func nextRequestNumber() -> Int {
        requestCount += 1
        return requestCount
    }

    var nextDeadline: Duration? {
        let times = [phase.deadline, silentAt, mediaLoss?.until, question?.until, requests.values.map(\.until).min()]
        return times.compactMap { $0 }.min()
    }
}

/// What a request is for.
enum RequestPurpose: Hashable, Sendable {
    /// A call of the application that waits for the answer.
    case call(Int)
    case setRole(ChannelRole, call: Int)
    case setMuted(TrackKind, Bool, call: Int?)
    case refresh(JSONValue, call: Int)
    case subscription(call: Int?)
    /// Only the answer matters, not what it says.
    case sign

    var call: Int? {
        switch self {
        case .call(let call), .setRole(_, let call), .refresh(_, let call): call
        case .setMuted(_, _, let call), .subscription(let call): call
        case .sign: nil
        }
    }
}
