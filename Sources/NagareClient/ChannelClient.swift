internal import Foundation

/// One user's place in a channel of a node, or of a cluster of nodes.
///
/// It joins, reconnects and resumes by itself. ``events`` says what happens. The media is the ``MediaEngine``'s.
public actor ChannelClient {
    /// What happens, in order. For one reader; one that lags a thousand events behind loses the oldest.
    public nonisolated let events: AsyncStream<ChannelEvent>
    public nonisolated let options: ChannelOptions

    private let sink: AsyncStream<ChannelEvent>.Continuation
    private let transport: any SignalingTransport
    private let engine: any MediaEngine
    private weak var delegate: (any ChannelClientDelegate)?

    private let start = ContinuousClock.now
    private var machine: ChannelMachine?
    private var sockets: [SignalingSession.ID: SocketTask] = [:]
    private var media: [SignalingSession.ID: MediaTask] = [:]
    /// The last call of the engine for a device, which the next one waits for.
    private var deviceTail: Task<Void, Never>?
    private var joining: CheckedContinuation<Result<JoinedChannel, NagareError>, Never>?
    private var calls: [Int: CheckedContinuation<Result<JSONValue, NagareError>, Never>] = [:]
    private var callCount = 0
    private var timer: (deadline: Duration, task: Task<Void, Never>)?

    private static let eventsKeptMax = 1_000
    /// How long the media waits for the end of the WebSocket.
    private static let socketEndMax = Duration.seconds(1)

    /// A WebSocket that opens or is open.
    private struct SocketTask {
        var socket: (any SignalingSocket)?
        let reader: Task<Void, Never>
        /// Finishes when the WebSocket has ended.
        let ended: AsyncStream<Void>
    }
    /// The media of a session.
    private struct MediaTask {
        var connection: (any MediaConnection)?
        var events: AsyncStream<MediaConnectionEvent>.Continuation?
        /// The last call of the engine, which the next one waits for.
        var tail: Task<Void, Never>?
    }

    /// - Parameters:
    ///   - transport: opens WebSockets.
    ///   - engine: one of this client alone.
    ///   - delegate: takes the events besides ``events``.
    public init(
        _ options: ChannelOptions,
        transport: any SignalingTransport,
        engine: any MediaEngine,
        delegate: (any ChannelClientDelegate)? = nil
    ) {
        self.options = options
        self.transport = transport
        self.engine = engine
        self.delegate = delegate
        (events, sink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.eventsKeptMax))
    }

    deinit {
        sink.finish()
        timer?.task.cancel()
        for socket in sockets.values {
            socket.socket?.close()
            socket.reader.cancel()
        }
        for case let connection? in media.values.map(\.connection) { Task { await connection.close() } }
    }

    private var now: Duration { ContinuousClock.now - start }

    // MARK: Joining and leaving

    /// Joins the channel, and stays in it until ``leave()``, a ``ChannelEvent/bye(_:_:)``, a refusal or the token's expiry.
    /// - Parameter token: in place of that of the options, for the same channel and user.
    /// - Throws: why the server refused, or why it could not be reached in ``ChannelOptions/joinTimeout``.
    @discardableResult
    public func join(token: ChannelToken? = nil) async throws(NagareError) -> JoinedChannel {
        guard machine?.isOver ?? true else { throw .alreadyJoined }
        var options = options
        if let token { options.token = token }
        let parameters = try options.checked()
        var machine = ChannelMachine(
            parameters,
            after: machine?.lastNumber ?? 0,
            random: { Double.random(in: 0...1) }
        )
        machine.join(at: now)
        self.machine = machine
        let result = await withCheckedContinuation { continuation in
            joining = continuation
            perform()
        }
        return try result.get()
    }

    /// Leaves the channel. Returns when the node was told, and the media is closed.
    public func leave() async {
        act { machine, now in machine.leave(at: now) }
        for task in media.values { await task.tail?.value }
        await deviceTail?.value
    }

    /// To be called when the device has another network: the client reconnects at once instead of after a pause, or asks whether
    /// the connection still works.
    public func networkChanged() { act { machine, now in machine.networkChanged(at: now) } }

    // MARK: State

    public var status: ConnectionStatus { machine?.status ?? .initial }
    public var role: ChannelRole { machine?.role ?? options.role ?? (options.canPublish ? .host : .audience) }
    public var profile: ChannelProfile { machine?.profile ?? options.profile ?? .communication }
    /// The other users, without the audience of an interactive channel.
    public var users: [RemoteUser] { machine?.users ?? [] }
    /// What this client publishes.
    public var published: Set<LocalMedia> { machine?.published ?? [] }
    public func isMuted(_ kind: TrackKind) -> Bool { machine?.muted.contains(kind) ?? false }

    // MARK: Media

    /// Publishes a device. A screen is a second connection of the same user, beside the camera.
    public func publish(_ media: LocalMedia) throws(NagareError) {
        guard var machine else { throw .notConnected }
        try machine.publish(media, at: now)
        self.machine = machine
        perform()
    }

    /// Stops publishing a device, and closes it.
    public func unpublish(_ media: LocalMedia) { act { machine, now in machine.unpublish(media, at: now) } }

    /// Mutes or unmutes the microphone or the camera.
    /// - Throws: `MUTED-BY-OPERATOR` while an operator's mute lasts: then the kind stays muted.
    public func setMuted(_ kind: TrackKind, _ isMuted: Bool) async throws(NagareError) {
        _ = try await call { machine, call, now in machine.setMuted(kind, isMuted, call: call, at: now) }
    }

    /// Becomes a host or a member of the audience of an interactive channel.
    public func setRole(_ role: ChannelRole) async throws(NagareError) {
        _ = try await call { machine, call, now in machine.setRole(role, call: call, at: now) }
    }

    /// Receives media. `nil` stands for all users, kinds or sources.
    public func subscribe(user: String? = nil, kind: TrackKind? = nil, source: TrackSource? = nil)
        async throws(NagareError)
    {
        try await subscribe(ChannelMachine.Subscription(isWanted: true, user: user, kind: kind, source: source))
    }

    /// Receives media no more. `nil` stands for all users, kinds or sources.
    public func unsubscribe(user: String? = nil, kind: TrackKind? = nil, source: TrackSource? = nil)
        async throws(NagareError)
    {
        try await subscribe(ChannelMachine.Subscription(isWanted: false, user: user, kind: kind, source: source))
    }

    private func subscribe(_ subscription: ChannelMachine.Subscription) async throws(NagareError) {
        _ = try await call { machine, call, now in machine.subscribe(subscription, call: call, at: now) }
    }

    // MARK: Requests

    /// Replaces the token before it expires; the media goes on.
    /// - Returns: the new expiry in seconds since 1970; `nil` where it has none.
    @discardableResult
    public func refreshToken(_ token: ChannelToken) async throws(NagareError) -> Int? {
        var options = options
        options.token = token
        let accessToken = try options.checked().accessToken ?? .null
        let result = try await call { machine, call, now in machine.refreshToken(accessToken, call: call, at: now) }
        return result["expires_at"]?.number.flatMap { Int(exactly: $0.rounded()) }
    }

    /// Asks the node who is in the channel.
    public func listMembers() async throws(NagareError) -> [RemoteUser] {
        let result = try await call { machine, call, now in machine.request("listMembers", call: call, at: now) }
        guard let data = try? JSONEncoder().encode(result),
            let list = try? JSONDecoder().decode(MemberList.self, from: data)
        else { throw NagareError(reason: "INVALID-MESSAGE", message: "The server's list of members cannot be read.") }
        var directory = UserDirectory(ownUser: "")
        directory.joined(list.users, elapsed: .zero)
        return directory.all
    }

    private struct MemberList: Decodable { var users: [Notification.User] }

    /// What the node sends to this client, and why not more.
    public func serverStatistics() async throws(NagareError) -> JSONValue {
        try await call { machine, call, now in machine.request("statistics", call: call, at: now) }
    }

    /// What the engine counted since the present connection began; `nil` without one.
    public func statistics() async -> MediaStatistics? {
        let session = media.keys.filter { $0.slot == .main }.max { $0.number < $1.number }
        return await session.flatMap { media[$0]?.connection }?.statistics()
    }

    // MARK: The machine

    private func act(_ body: (inout ChannelMachine, Duration) -> Void) {
        guard var machine else { return }
        body(&machine, now)
        self.machine = machine
        perform()
    }

    private func call(
        _ body: (inout ChannelMachine, Int, Duration) -> Void
    ) async throws(NagareError) -> JSONValue {
        guard var machine, !machine.isOver else { throw .notConnected }
        callCount += 1
        body(&machine, callCount, now)
        self.machine = machine
        let call = callCount
        let result = await withCheckedContinuation { continuation in
            calls[call] = continuation
            perform()
        }
        return try result.get()
    }

    private func perform() {
        while let actions = machine?.takeActions(), !actions.isEmpty {
            for action in actions { perform(action) }
        }
        schedule()
    }

    private func perform(_ action: ChannelMachine.Action) {
        switch action {
        case .connection(let command): perform(command)
        case .startMedia(let device): start(device)
        case .stopMedia(let device): enqueue { engine in await engine.stop(device) }
        case .muteMedia(let device, let isMuted): enqueue { engine in await engine.setMuted(device, isMuted) }
        case .emit(let event):
            sink.yield(event)
            delegate?.channelClient(self, didReceive: event)
        case .finishJoin(let result):
            joining?.resume(returning: result)
            joining = nil
        case .finishCall(let call, let result): calls.removeValue(forKey: call)?.resume(returning: result)
        }
    }

    private func perform(_ command: MemberConnection.Command) {
        switch command {
        case .open(let id, let url): open(id, url)
        case .send(let message, let id): sockets[id]?.socket?.send(message.text)
        case .closeSocket(let id): close(id)
        case .answer(let offer, let setup, let session): answer(offer, setup, session)
        case .answerAgain(let sdp, let type, let session):
            enqueue(session) { connection in
                try await connection?.answerAgain(sdp)
            } answered: { client, sdp in
                await client.answered(sdp, type, session)
            }
        case .sendStatistics(let session, let socket):
            let connection = media[session]?.connection
            Task {
                let report = await connection?.statistics().rtcStats
                sendPong(report, on: socket)
            }
        case .end(let session, let socket, let keepsPlace): end(session, socket, keepsPlace: keepsPlace)
        }
    }

    private func sendPong(_ report: String?, on socket: SignalingSession.ID) {
        let statistics = report.flatMap { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
        sockets[socket]?.socket?.send(ClientMessage.pong(statistics: statistics ?? .array([])).text)
    }

    private func schedule() {
        let deadline = machine?.nextDeadline
        guard timer?.deadline != deadline else { return }
        timer?.task.cancel()
        timer = nil
        guard let deadline else { return }
        let time = start + deadline
        let task = Task { [weak self] in
            guard (try? await Task.sleep(until: time, clock: .continuous)) != nil else { return }
            await self?.timerFired()
        }
        timer = (deadline, task)
    }

    private func timerFired() {
        timer = nil
        act { machine, now in machine.handleTimeout(at: now) }
    }

    // MARK: WebSockets

    private func open(_ id: SignalingSession.ID, _ text: String) {
        let (ended, sink) = AsyncStream.makeStream(of: Void.self)
        let client: @Sendable () -> ChannelClient? = { [weak self] in self }
        let reader = Task { [transport] in
            await Self.serve(id, text, transport, client)
            sink.finish()
        }
        sockets[id] = SocketTask(reader: reader, ended: ended)
    }

    /// Opens a WebSocket and hands over what comes, until its end.
    private static func serve(
        _ id: SignalingSession.ID,
        _ text: String,
        _ transport: any SignalingTransport,
        _ client: @Sendable () -> ChannelClient?
    ) async {
        let socket: any SignalingSocket
        do {
            guard let url = URL(string: text) else { throw NagareError.badParameter("\(text) is no URL.") }
            socket = try await transport.connect(to: url)
        } catch {
            await client()?.ended(id, .lost("\(error)"))
            return
        }
        guard await client()?.opened(id, socket) == true else { return socket.close() }
        for await event in socket.events {
            switch event {
            case .text(let text): await client()?.received(text, on: id)
            case .ended(let end):
                await client()?.ended(id, end)
                return
            }
        }
        await client()?.ended(id, .lost("The WebSocket ended."))
    }

    /// - Returns: whether the WebSocket is still wanted.
    private func opened(_ id: SignalingSession.ID, _ socket: any SignalingSocket) -> Bool {
        guard sockets[id] != nil, !Task.isCancelled else { return false }
        sockets[id]?.socket = socket
        act { machine, now in machine.opened(id, at: now) }
        return true
    }

    private func received(_ text: String, on id: SignalingSession.ID) {
        guard sockets[id] != nil else { return }
        let message = ServerMessage.parse(text)
        act { machine, now in machine.received(message, on: id, at: now) }
    }

    private func ended(_ id: SignalingSession.ID, _ end: SignalingSocketEnd) {
        guard let task = sockets.removeValue(forKey: id) else { return }
        // What sends on it ends, too.
        task.socket?.close()
        act { machine, now in machine.closed(id, end, at: now) }
    }

    /// - Returns: what finishes when the WebSocket has ended.
    @discardableResult
    private func close(_ id: SignalingSession.ID) -> AsyncStream<Void>? {
        guard let task = sockets.removeValue(forKey: id) else { return nil }
        if let socket = task.socket { socket.close() } else { task.reader.cancel() }
        return task.ended
    }

    // MARK: The engine

    private func start(_ device: LocalMedia) {
        let previous = deviceTail
        deviceTail = Task { [weak self, engine] in
            await previous?.value
            do {
                try await engine.start(device)
            } catch {
                await self?.mediaFailed(device, error)
            }
        }
    }

    private func mediaFailed(_ device: LocalMedia, _ error: any Error) {
        act { machine, now in machine.mediaFailed(device, "\(error)", at: now) }
    }

    private func enqueue(_ body: @escaping @Sendable (any MediaEngine) async -> Void) {
        let previous = deviceTail
        deviceTail = Task { [engine] in
            await previous?.value
            await body(engine)
        }
    }

    private func answer(_ offer: ServerOffer, _ setup: MediaConnectionSetup, _ session: SignalingSession.ID) {
        let (stream, continuation) = AsyncStream.makeStream(of: MediaConnectionEvent.self)
        media[session] = MediaTask(events: continuation)
        Task { [weak self] in
            for await event in stream { await self?.mediaEvent(event, session) }
        }
        enqueue(session) { [weak self, engine] _ in
            let connection = try await engine.makeConnection(setup) { continuation.yield($0) }
            await self?.made(connection, session)
            return try await connection.answer(offer)
        } answered: { client, sdp in
            await client.answered(sdp, .answer, session)
        }
    }

    /// Calls the engine after its earlier calls for the session.
    private func enqueue(
        _ session: SignalingSession.ID,
        _ body: @escaping @Sendable ((any MediaConnection)?) async throws -> String?,
        answered: @escaping @Sendable (ChannelClient, String) async -> Void
    ) {
        let previous = media[session]?.tail
        media[session]?.tail = Task { [weak self] in
            await previous?.value
            do {
                guard let sdp = try await body(await self?.media[session]?.connection) else { return }
                if let self { await answered(self, sdp) }
            } catch {
                await self?.answerFailed(error, session)
            }
        }
    }

    private func made(_ connection: any MediaConnection, _ session: SignalingSession.ID) {
        media[session]?.connection = connection
    }

    private func answered(_ sdp: String, _ type: ServerMessage.AnswerType, _ session: SignalingSession.ID) {
        act { machine, now in machine.answered(sdp, type, session: session, at: now) }
    }

    private func answerFailed(_ error: any Error, _ session: SignalingSession.ID) {
        act { machine, now in machine.answerFailed("\(error)", session: session, at: now) }
    }

    private func mediaEvent(_ event: MediaConnectionEvent, _ session: SignalingSession.ID) {
        act { machine, now in machine.media(event, session: session, at: now) }
    }

    private func end(_ session: SignalingSession.ID, _ socket: SignalingSession.ID, keepsPlace: Bool) {
        let ended = close(socket)
        guard let task = media[session] else { return }
        task.events?.finish()
        media[session]?.tail = Task { [weak self] in
            await task.tail?.value
            // The node may notice the end of a lost WebSocket later than the client.
            if keepsPlace { await Self.wait(for: ended, atMost: Self.socketEndMax) }
            await self?.closeMedia(session)
        }
    }

    private func closeMedia(_ session: SignalingSession.ID) async {
        await media.removeValue(forKey: session)?.connection?.close()
    }

    private static func wait(for ended: AsyncStream<Void>?, atMost limit: Duration) async {
        await withTaskGroup { group in
            if let ended { group.addTask { for await _ in ended {} } }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }
}
