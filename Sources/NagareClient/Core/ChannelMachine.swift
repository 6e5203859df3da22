/// A client's place in a channel: what it decides, without input and output.
///
/// Calls, messages and times come in; ``takeActions()`` says what to do. Times count from any moment.
struct ChannelMachine: Sendable {
    enum Action: Hashable, Sendable {
        case connection(MemberConnection.Command)
        case startMedia(LocalMedia)
        case stopMedia(LocalMedia)
        case muteMedia(LocalMedia, Bool)
        case emit(ChannelEvent)
        case finishJoin(Result<JoinedChannel, NagareError>)
        case finishCall(Int, Result<JSONValue, NagareError>)
    }

    private enum Phase: Sendable {
        case initial
        case joining(until: Duration?)
        case joined
        case over
    }

    /// A call of `subscribe` or `unsubscribe`.
    struct Subscription: Hashable, Sendable {
        var isWanted: Bool
        var user: String?
        var kind: TrackKind?
        var source: TrackSource?

        var parameters: JSONValue {
            var members: [String: JSONValue] = [:]
            members["user_id"] = user.map { .string($0) }
            members["kind"] = kind.map { .string($0.rawValue) }
            members["source"] = source.map { .string($0.rawValue) }
            return .object(members)
        }

        /// Whether it decides about everything that `other` decides about.
        func covers(_ other: Self) -> Bool {
            (user == nil || user == other.user) && (kind == nil || kind == other.kind)
                && (source == nil || source == other.source)
        }
    }

    /// The node keeps as many of single users.
    private static let subscriptionsMax = 1_024

    private let parameters: JoinParameters
    private var phase = Phase.initial
    private var main: MemberConnection
    private var screen: MemberConnection?
    private let random: @Sendable () -> Double
    private var lastScreenNumber: Int
    private var startedAt = Duration.zero
    /// When the connection was lost that the present try replaces.
    private var lostAt: Duration?
    private var failure: NagareError?
    /// Why joining is given up.
    private var lateness: NagareError?
    private var token: JSONValue?

    private(set) var status = ConnectionStatus.initial
    private(set) var role: ChannelRole
    private(set) var profile: ChannelProfile
    private var directory: UserDirectory
    /// What the client publishes.
    private(set) var published: Set<LocalMedia> = []
    private(set) var muted: Set<TrackKind> = []
    private var subscriptions: [Subscription] = []
    private var actions: [Action] = []

    /// - Parameters:
    ///   - number: the highest of an earlier machine of the same driver.
    ///   - random: draws from 0…1.
    init(_ parameters: JoinParameters, after number: Int = 0, random: @escaping @Sendable () -> Double) {
        self.parameters = parameters
        lastScreenNumber = number
        self.random = random
        token = parameters.accessToken
        role = parameters.role
        profile = parameters.profile ?? .communication
        directory = UserDirectory(ownUser: parameters.user)
        main = MemberConnection(
            .main,
            connect: parameters.connect,
            nodes: NodeList(parameters.urls),
            after: number,
            random: random
        )
        if parameters.subscribes.count == 1, let kind = parameters.subscribes.first {
            subscriptions = [Subscription(isWanted: true, kind: kind)]
        }
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    var users: [RemoteUser] { directory.all }
    var isOver: Bool { if case .over = phase { true } else { false } }
    /// Whether the client has begun to join.
    var isInitial: Bool { if case .initial = phase { true } else { false } }
    /// The highest number of a session or WebSocket.
    var lastNumber: Int { max(main.lastNumber, screen?.lastNumber ?? 0, lastScreenNumber) }
    var connectionID: String? { main.session?.connectionID }

    // MARK: Joining and leaving

    mutating func join(at now: Duration) {
        guard case .initial = phase else { return }
        phase = .joining(until: parameters.joinTimeout.map { now + $0 })
        startedAt = now
        main.start(at: now)
        drainMain(at: now)
        if role == .host { publishDefaults() }
    }

    mutating func leave(at now: Duration) {
        guard !isOver, !isInitial else { return }
        main.leave()
        drainMain(at: now)
    }

    mutating func networkChanged(at now: Duration) {
        main.networkChanged(at: now)
        screen?.networkChanged(at: now)
        drain(at: now)
    }

    var nextDeadline: Duration? {
        var join: Duration?
        if case .joining(let until) = phase { join = until }
        return [join, main.nextDeadline, screen?.nextDeadline].compactMap { $0 }.min()
    }

    mutating func handleTimeout(at now: Duration) {
        if case .joining(let until?) = phase, now >= until {
            let error = NagareError(
                reason: "JOIN-TIMEOUT",
                message: failure?.message ?? "The server did not answer in time.",
                code: 0x0102_0204
            )
            lateness = error
            leave(at: now)
            return
        }
        main.handleTimeout(at: now)
        screen?.handleTimeout(at: now)
        drain(at: now)
    }

    // MARK: What the driver hands in

    mutating func opened(_ socket: SignalingSession.ID, at now: Duration) {
        change(socket.slot, at: now) { $0.opened(socket) }
    }

    mutating func closed(_ socket: SignalingSession.ID, _ end: SignalingSocketEnd, at now: Duration) {
        change(socket.slot, at: now) { $0.closed(socket, end, at: now) }
    }

    mutating func received(_ message: ServerMessage, on socket: SignalingSession.ID, at now: Duration) {
        change(socket.slot, at: now) { $0.received(message, on: socket, at: now) }
    }

    mutating func answered(
        _ sdp: String,
        _ type: ServerMessage.AnswerType,
        session: SignalingSession.ID,
        at now: Duration
    ) {
        change(session.slot, at: now) { $0.answered(sdp, type, session: session) }
    }

    mutating func answerFailed(_ why: String, session: SignalingSession.ID, at now: Duration) {
        change(session.slot, at: now) { $0.answerFailed(why, session: session, at: now) }
    }

    mutating func media(_ event: MediaConnectionEvent, session: SignalingSession.ID, at now: Duration) {
        change(session.slot, at: now) { $0.media(event, session: session, at: now) }
    }

    /// The engine could not open a device.
    mutating func mediaFailed(_ media: LocalMedia, _ why: String, at now: Duration) {
        guard published.remove(media) != nil else { return }
        if media == .screen { endScreen(at: now) }
        let message = "The \(media.rawValue) could not be started: \(why)"
        add(.emit(.failed(NagareError(reason: "MEDIA-FAILED", message: message))))
    }

    private mutating func change(
        _ slot: MemberConnection.Slot,
        at now: Duration,
        _ body: (inout MemberConnection) -> Void
    ) {
        switch slot {
        case .main:
            body(&main)
            drainMain(at: now)
        case .screen:
            guard var connection = screen else { return }
            body(&connection)
            screen = connection
            drainScreen(at: now)
        }
    }

    private mutating func drain(at now: Duration) {
        drainMain(at: now)
        drainScreen(at: now)
    }

    private mutating func drainMain(at now: Duration) {
        while true {
            let outputs = main.takeOutputs()
            guard !outputs.isEmpty else { return }
            for output in outputs {
                switch output {
                case .command(let command): add(.connection(command))
                case .report(let report): handle(report, at: now)
                }
            }
        }
    }

    private mutating func drainScreen(at now: Duration) {
        guard var connection = screen else { return }
        let outputs = connection.takeOutputs()
        screen = connection
        for output in outputs {
            switch output {
            case .command(let command): add(.connection(command))
            case .report(.retries(let url)): screen?.nodes.use(url)
            case .report(.ended(let failure)):
                lastScreenNumber = connection.lastNumber
                screen = nil
                if published.remove(.screen) != nil { add(.stopMedia(.screen)) }
                guard failure != .left, failure.bye == nil else { continue }
                let message = "The screen is not shared any more: \(failure.error.message)"
                let error = NagareError(reason: failure.error.reason, message: message, code: failure.error.code)
                add(.emit(.failed(error)))
            // Of everything else the main connection tells.
            case .report: break
            }
        }
    }

    // MARK: Reports of the main connection

    private mutating func handle(_ report: MemberConnection.Report, at now: Duration) {
        switch report {
        case .status(let status, let error):
            if status == .disconnected { lostAt = lostAt ?? now }
            failure = error ?? failure
            become(status, error)
        case .began:
            directory.restart()
            main.connect.role = parameters.statesRole || profile == .interactive ? role : nil
            main.connect.accessToken = token
        case .joined(let message): joined(message, at: now)
        case .notified(let message): notified(message, at: now)
        case .pushed(let data): add(.emit(.pushed(data)))
        case .answered(let purpose, let result): answered(purpose, result, at: now)
        case .media(let event):
            directory.media(event)
            emitUsers()
        case .retries(let url): screen?.nodes.use(url)
        case .ended(let failure): ended(failure, at: now)
        }
    }

    private mutating func become(_ status: ConnectionStatus, _ error: NagareError?) {
        guard status != self.status || error != nil else { return }
        self.status = status
        add(.emit(.connectionStatus(status, failure: error)))
    }

    private mutating func joined(_ message: Notification, at now: Duration) {
        let isReturn: Bool
        if case .joining = phase { isReturn = false } else { isReturn = true }
        let since = isReturn ? lostAt ?? startedAt : startedAt
        lostAt = nil
        profile = message.profile.flatMap { ChannelProfile(rawValue: $0) } ?? profile
        if let given = message.roleValue, given != role, profile == .interactive { become(given, by: .`self`, at: now) }
        directory.joined(message.users ?? [], elapsed: now - startedAt)
        let result = JoinedChannel(
            channel: parameters.channel,
            user: parameters.user,
            connectionID: message.connectionID ?? main.session?.connectionID ?? "",
            profile: profile,
            role: role,
            elapsed: now - since,
            isReturn: isReturn,
            grace: .seconds(message.resumeToken == nil ? 0 : min(max(message.grace ?? 0, 0), 86_400)),
            users: directory.all
        )
        add(.emit(.joined(result)))
        emitUsers()
        if !isReturn {
            phase = .joined
            add(.finishJoin(.success(result)))
        }
        restore(isReturn: isReturn, at: now)
    }

    /// Tells the node what it may not know of this connection: mutes and subscriptions.
    private mutating func restore(isReturn: Bool, at now: Duration) {
        for kind in TrackKind.allCases where parameters.canPublish && (isReturn || muted.contains(kind)) {
            sendMute(kind, call: nil, at: now)
        }
        for subscription in subscriptions { send(subscription, call: nil, at: now) }
    }

    private mutating func notified(_ message: Notification, at now: Duration) {
        let elapsed = now - startedAt
        switch message.type {
        case "user.online":
            guard let id = message.userID else { return }
            directory.online(
                id,
                name: message.displayName,
                role: message.role,
                metadata: message.metadata,
                elapsed: elapsed
            )
        case "user.offline":
            guard let id = message.userID else { return }
            directory.offline(id, message.reason.map { OfflineReason(rawValue: $0) ?? .ended } ?? .quit)
        case "user.interrupted", "user.resumed":
            guard let id = message.userID else { return }
            directory.interrupt(id, message.type == "user.interrupted")
        case "track.changed":
            guard let id = message.userID, let connection = message.connection else { return }
            if message.ended == true {
                directory.connectionEnded(connection.connectionID)
            } else {
                directory.changed(connection, of: id, elapsed: elapsed)
            }
        case "connection.destroyed":
            if let id = message.connectionID { directory.connectionEnded(id) }
        case "track.first_frame":
            guard let id = message.connectionID, let user = message.userID else { return }
            directory.firstFrame(of: id, user: user)
        case "user.network_quality":
            if let id = message.connectionID { directory.quality(of: id, message.uplink, message.downlink) }
        case "network.quality":
            let quality = NetworkQuality(uplink: message.uplink ?? 0, downlink: message.downlink ?? 0)
            add(.emit(.networkQuality(quality)))
        case "role.changed":
            if let role = message.roleValue { become(role, by: Initiator(message.by), at: now) }
        case "muted":
            guard let kind = message.kindValue, let isMuted = message.muted else { return }
            if isMuted { setMuted(kind) }
            add(.emit(.muted(kind, isMuted: isMuted, by: Initiator(message.by))))
        case "token.expiring":
            if let seconds = message.expiresAt { add(.emit(.tokenExpires(unixSeconds: seconds))) }
        default: break
        }
        emitUsers()
    }

    private mutating func emitUsers() {
        for event in directory.takeEvents() { add(.emit(event)) }
    }

    private mutating func ended(_ failure: Failure, at now: Duration) {
        let wasJoining: Bool
        if case .joining = phase { wasJoining = true } else { wasJoining = false }
        phase = .over
        endScreen(at: now)
        for media in LocalMedia.allCases where published.contains(media) { add(.stopMedia(media)) }
        published = []
        directory.clear()
        emitUsers()
        let isLeave = failure == .left && lateness == nil
        let error = lateness ?? failure.error
        become(isLeave || failure.bye != nil ? .disconnected : .failed, isLeave ? nil : error)
        if let bye = failure.bye { add(.emit(.bye(bye, failure.error))) }
        if failure.isExpiry { add(.emit(.tokenExpired(failure.error))) }
        if isLeave { add(.emit(.left)) }
        if wasJoining { add(.finishJoin(.failure(error))) }
    }

    // MARK: Local media

    private mutating func publishDefaults() {
        guard parameters.canPublish else { return }
        for kind in TrackKind.allCases where parameters.publishes.contains(kind) {
            let media: LocalMedia = kind == .audio ? .microphone : parameters.source == .screen ? .screen : .camera
            guard published.insert(media).inserted else { continue }
            add(.startMedia(media))
            if muted.contains(kind) { add(.muteMedia(media, true)) }
        }
    }

    /// Publishes a device. A screen beside the camera gets a connection of its own.
    mutating func publish(_ media: LocalMedia, at now: Duration) throws(NagareError) {
        guard parameters.canPublish else { throw .notPublisher }
        guard role == .host else { throw .notHost }
        guard !isOver, !isInitial else { throw .notConnected }
        guard published.insert(media).inserted else { return }
        add(.startMedia(media))
        if media == .screen, parameters.source == .camera {
            var connection = MemberConnection(
                .screen,
                connect: screenConnect,
                nodes: main.nodes,
                after: lastScreenNumber,
                random: random
            )
            connection.start(at: now)
            screen = connection
            drainScreen(at: now)
        } else if muted.contains(media.kind) {
            add(.muteMedia(media, true))
        }
    }

    private var screenConnect: ConnectMessage {
        var message = parameters.connect
        message.accessToken = token
        message.direction = .sendonly
        message.audio = false
        message.options = VideoOptions(codec: parameters.connect.options.codec)
        message.source = .screen
        message.role = profile == .interactive ? .host : nil
        message.subscribesManually = false
        return message
    }

    mutating func unpublish(_ media: LocalMedia, at now: Duration) {
        guard published.remove(media) != nil else { return }
        add(.stopMedia(media))
        if media == .screen { endScreen(at: now) }
    }

    private mutating func endScreen(at now: Duration) {
        guard screen != nil else { return }
        screen?.leave()
        drainScreen(at: now)
    }

    /// The device of the main connection that has a kind.
    private func device(_ kind: TrackKind) -> LocalMedia {
        kind == .audio ? .microphone : parameters.source == .screen ? .screen : .camera
    }

    private mutating func setMuted(_ kind: TrackKind) {
        guard muted.insert(kind).inserted else { return }
        if published.contains(device(kind)) { add(.muteMedia(device(kind), true)) }
    }

    private mutating func setUnmuted(_ kind: TrackKind) {
        guard muted.remove(kind) != nil else { return }
        if published.contains(device(kind)) { add(.muteMedia(device(kind), false)) }
    }

    // MARK: Calls

    /// Mutes at once. An unmute waits for the node: an operator may have muted the client.
    mutating func setMuted(_ kind: TrackKind, _ isMuted: Bool, call: Int, at now: Duration) {
        guard parameters.canPublish else { return finish(call, .failure(.notPublisher)) }
        guard isMuted || main.isJoined else { return finish(call, .failure(.notConnected)) }
        guard isMuted else {
            send("setMuted", Self.muteParameters(kind, false), .setMuted(kind, false, call: call), at: now)
            return
        }
        setMuted(kind)
        if main.isJoined { sendMute(kind, call: call, at: now) } else { finish(call, .success(.object([:]))) }
    }

    private mutating func sendMute(_ kind: TrackKind, call: Int?, at now: Duration) {
        let isMuted = muted.contains(kind)
        send("setMuted", Self.muteParameters(kind, isMuted), .setMuted(kind, isMuted, call: call), at: now)
    }

    private static func muteParameters(_ kind: TrackKind, _ isMuted: Bool) -> JSONValue {
        ["kind": .string(kind.rawValue), "muted": .bool(isMuted)]
    }

    mutating func setRole(_ role: ChannelRole, call: Int, at now: Duration) {
        guard role != self.role else { return finish(call, .success(.object([:]))) }
        send("setRole", ["role": .string(role.rawValue)], .setRole(role, call: call), at: now)
    }

    mutating func subscribe(_ subscription: Subscription, call: Int, at now: Duration) {
        subscriptions.removeAll { subscription.covers($0) }
        subscriptions.append(subscription)
        if subscriptions.count > Self.subscriptionsMax { subscriptions.removeFirst() }
        send(subscription, call: call, at: now)
    }

    private mutating func send(_ subscription: Subscription, call: Int?, at now: Duration) {
        let method = subscription.isWanted ? "subscribe" : "unsubscribe"
        send(method, subscription.parameters, .subscription(call: call), at: now)
    }

    mutating func refreshToken(_ token: JSONValue, call: Int, at now: Duration) {
        send("refreshToken", ["access_token": token], .refresh(token, call: call), at: now)
    }

    /// A request whose answer only the caller needs: `listMembers`, `statistics`.
    mutating func request(_ method: String, call: Int, at now: Duration) {
        send(method, .object([:]), .call(call), at: now)
    }

    private mutating func send(_ method: String, _ parameters: JSONValue, _ purpose: RequestPurpose, at now: Duration) {
        main.request(
            SignalingSession.Request(method: method, parameters: parameters, purpose: purpose),
            at: now
        )
        drainMain(at: now)
    }

    private mutating func answered(
        _ purpose: RequestPurpose,
        _ result: Result<JSONValue, NagareError>,
        at now: Duration
    ) {
        switch (purpose, result) {
        case (.setRole(let role, _), .success): become(role, by: .`self`, at: now)
        case (.setMuted(let kind, false, let call), .success): if call != nil { setUnmuted(kind) }
        case (.setMuted(let kind, false, nil), .failure(let error)):
            // A kept place of a user whom an operator muted meanwhile.
            if error.reason == "MUTED-BY-OPERATOR" { setMuted(kind) }
        case (.refresh(let token, _), .success):
            self.token = token
            screen?.connect.accessToken = token
        default: break
        }
        guard let call = purpose.call else { return }
        finish(call, result)
    }

    private mutating func finish(_ call: Int, _ result: Result<JSONValue, NagareError>) {
        add(.finishCall(call, result))
    }

    private mutating func become(_ role: ChannelRole, by initiator: Initiator, at now: Duration) {
        guard role != self.role else { return }
        self.role = role
        add(.emit(.roleChanged(role, by: initiator)))
        switch role {
        case .host: publishDefaults()
        case .audience: for media in LocalMedia.allCases { unpublish(media, at: now) }
        }
    }

    private mutating func add(_ action: Action) { actions.append(action) }
}
