import Access
import Logging
import NIOCore
import Room
import Wire

/// The dependencies of all connections of the 1:1 relay.
struct AyameContext: Sendable {
    let configuration: AyameConfiguration
    let admission: AyameAdmission
    let rooms = AyameRooms()
    let statistics: SignalingStatistics
    let logger: Logger
    let limiter: AddressLimiter
    let clients: ClientAddresses
    let work: FairWorkQueue<WorkOwner, ChannelName?>
}

/// Runs one ``AyameSession``: passes messages from and to its WebSocket, and performs its actions on the rooms.
actor AyameConnection {
    private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let context: AyameContext
    private let channel: any Channel
    private var session: AyameSession
    /// The place in a room; `nil` before and after it.
    private var place: (registration: AyameRegistration, connectionID: String)?
    /// The admission, cancelled when the client disconnects.
    private var authorization: Task<Void, Never>?
    private var timer = DeadlineTimer()

    init(context: AyameContext, channel: any Channel) {
        self.context = context
        self.channel = channel
        let network = context.clients.network(of: channel)
        executor = FairExecutor(context.work, share: nil, owner: WorkOwner(network, in: nil))
        session = AyameSession(configuration: context.configuration, at: DeadlineTimer.now)
    }

    private var network: ClientNetwork { context.clients.network(of: channel) }

    /// Returns when the WebSocket is closed.
    func run(_ input: NIOAsyncChannelInboundStream<WebSocketInput>) async {
        perform([])
        do {
            for try await message in input {
                switch message {
                case .text(let text): perform(receive(text))
                case .closed, .refused: perform(session.socketClosed())
                case .stopping: perform(session.stopping())
                }
            }
        } catch {
            context.logger.debug("WebSocket failed", metadata: ["error": "\(error)"])
        }
        perform(session.socketClosed())
        authorization?.cancel()
        timer.cancel()
    }

    private func receive(_ text: String) -> [AyameSession.Action] {
        let isWithin =
            !session.isUnadmitted
            || context.limiter.take(.message, cost: MessageBudget.cost(of: text), for: network) == nil
        return isWithin ? session.received(text, at: DeadlineTimer.now) : session.refusedAsTooMany()
    }

    private func perform(_ actions: [AyameSession.Action]) {
        for action in actions {
            switch action {
            case .send(let text): Self.write(.text(ByteBuffer(string: text)), to: channel)
            case .close(let close):
                log(close)
                Self.write(.close(close.close), to: channel)
            case .authorize(let registration): authorization = Task { await authorize(registration) }
            case .join(let registration, let connectionID, let acceptance):
                join(registration, connectionID, acceptance)
            case .relay(let text): relay(text)
            case .leave: leave()
            }
        }
        arm()
    }

    private static func write(_ output: WebSocketOutput, to channel: any Channel) {
        channel.writeAndFlush(output, promise: nil)
    }

    private func arm() {
        timer.set(session.nextDeadline, on: channel.eventLoop) { [weak self] in
            _ = Task { await self?.timeout() }
        }
    }

    private func timeout() {
        timer.fired()
        perform(session.handleTimeout(at: DeadlineTimer.now))
    }

    // MARK: Rooms

    private func authorize(_ registration: AyameRegistration) async {
        let decision = await context.admission.decide(registration, from: network)
        if case .rejected = decision { context.statistics.relayRegistered(.rejected) }
        perform(session.admitted(decision))
    }

    private func join(_ registration: AyameRegistration, _ connectionID: String, _ acceptance: AyameAcceptance) {
        let channel = channel
        let member = AyameRooms.Member(
            connectionID: connectionID,
            identity: AyameRooms.Identity(registration),
            isStandalone: registration.isStandalone,
            send: { Self.write(.text(ByteBuffer(string: $0)), to: channel) },
            close: { Self.write(.close($0.close), to: channel) }
        )
        let isIn = context.rooms.join(registration.room, member) { hasPartner in
            let text = AyameServerMessage.accept(
                connectionID: connectionID,
                hasPartner: hasPartner,
                acceptance
            )
            member.send(text)
        }
        context.statistics.relayRegistered(isIn ? .accepted : .full)
        guard isIn else { return perform(session.refusedAsFull()) }
        place = (registration, connectionID)
        context.logger.info(
            "relay joined",
            metadata: ["room": "\(registration.room)", "connection": "\(connectionID)"]
        )
    }

    private func relay(_ text: String) {
        guard let place else { return }
        if context.rooms.relay(text, in: place.registration.room, from: place.connectionID) {
            context.statistics.relayedMessage()
        }
    }

    private func leave() {
        authorization?.cancel()
        guard let place else { return }
        self.place = nil
        context.rooms.leave(place.registration.room, place.connectionID)
        context.logger.info(
            "relay left",
            metadata: ["room": "\(place.registration.room)", "connection": "\(place.connectionID)"]
        )
        let admission = context.admission
        Task { await admission.report(disconnected: place.registration, connectionID: place.connectionID) }
    }

    private func log(_ close: AyameClose) {
        var metadata: Logger.Metadata = [
            "close": "\(close.close.description.printable)", "reason": "\(close.sentence.printable)",
        ]
        if let registration = session.registration { metadata["room"] = "\(registration.room)" }
        if let address = context.clients.address(of: channel) { metadata["address"] = "\(address)" }
        context.logger.debug("relay closed", metadata: metadata)
    }
}
