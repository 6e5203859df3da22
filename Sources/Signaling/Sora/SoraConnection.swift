package import Access
import Base
package import ChannelTypes
import Foundation
import JSON
package import Logging
import MediaTypes
package import NIOCore
import Negotiation
package import Room
package import Telemetry
package import Web
import Wire

/// The dependencies of all Sora connections.
package struct SoraContext: Sendable {
    let directory: ChannelDirectory
    let authorizer: any Authorizer
    let configuration: SoraConfiguration
    let clientStatistics: ClientStatistics
    let signalingStatistics: SignalingStatistics
    let logger: Logger
    /// The other nodes; `nil` outside of a cluster.
    var cluster: (any OtherNodes)?
    /// Limits newcomers; `nil` outside of a cluster.
    var joins: JoinGate?
    /// `nil` for a node without traces.
    package var traces: JoinTracer?
    let refusals: RefusalLog
    let limiter: AddressLimiter
    let clients: ClientAddresses
    /// Shared with the other protocols over WebSocket.
    let work: FairWorkQueue<WorkOwner, ChannelName?>

    package init(
        directory: ChannelDirectory,
        authorizer: any Authorizer,
        configuration: SoraConfiguration,
        clientStatistics: ClientStatistics,
        signalingStatistics: SignalingStatistics,
        logger: Logger,
        cluster: (any OtherNodes)?,
        joins: JoinGate?,
        traces: JoinTracer?,
        refusals: RefusalLog,
        limiter: AddressLimiter,
        clients: ClientAddresses,
        work: FairWorkQueue<WorkOwner, ChannelName?>
    ) {
        self.directory = directory
        self.authorizer = authorizer
        self.configuration = configuration
        self.clientStatistics = clientStatistics
        self.signalingStatistics = signalingStatistics
        self.logger = logger
        self.cluster = cluster
        self.joins = joins
        self.traces = traces
        self.refusals = refusals
        self.limiter = limiter
        self.clients = clients
        self.work = work
    }
}

/// The owner of jobs in the ``FairWorkQueue``: the connection's network, so that more channels give a network no more turns.
/// For shared networks it is the channel.
package enum WorkOwner: Hashable, Sendable {
    case network(ClientNetwork)
    case channel(ChannelName)
    /// Of no client.
    case probe

    /// - Parameter channel: The client's channel; `nil` before its reservation.
    package init(_ network: ClientNetwork, in channel: ChannelName?) {
        if network.isShared, let channel {
            self = .channel(channel)
        } else {
            self = .network(network)
        }
    }
}

/// Runs one ``SoraStateMachine``: passes messages from and to its WebSocket, and performs its actions on the rooms.
///
/// It runs on the work queue of all connections, outside the channel's actor: parsing and serializing SDP takes at most one
/// thread, and delays no HTTP request.
package actor SoraConnection {
    private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    let context: SoraContext
    private let writer: WebSocketWriter
    private var channel: any Channel { writer.channel }
    private var state: SoraStateMachine
    private var reservation: ChannelDirectory.Reservation?
    /// The admission, cancelled when the client disconnects.
    private var authorization: Task<Void, Never>?
    private var timer = DeadlineTimer()
    /// When the client asked to join; `nil` before.
    private var askedAt: Instant?
    /// When its authorization was decided.
    private var decidedAt: Instant?
    private let parent: TraceContext?
    /// Of its join; `nil` where there is none, or it is not sampled.
    private var trace: JoinTrace?
    /// Messages for the client's data channels, sent in their order.
    private var dataOutput: AsyncStream<(label: SoraDataChannels.Label, text: String)>.Continuation?

    /// - Parameter parent: The client's span; `nil` without one.
    package init(context: SoraContext, writer: WebSocketWriter, parent: TraceContext? = nil) {
        self.parent = parent
        self.context = context
        self.writer = writer
        let network = context.clients.network(of: writer.channel)
        executor = FairExecutor(context.work, share: nil, owner: WorkOwner(network, in: nil))
        state = SoraStateMachine(configuration: context.configuration, at: DeadlineTimer.now)
    }

    /// The participant; `nil` without a reservation.
    var participant: ParticipantID? { reservation?.participant }

    var channelName: ChannelName? { state.channel }
    /// The client's network.
    private var network: ClientNetwork { context.clients.network(of: channel) }

    /// Returns when the WebSocket is closed. The connection may go on over data channels.
    package func run(_ input: NIOAsyncChannelInboundStream<WebSocketInput>) async {
        perform([])
        do {
            for try await message in input {
                switch message {
                case .text(let text): perform(receive(text))
                case .closed: perform(state.socketClosed())
                case .refused(let close): perform(state.socketRefused(close))
                case .stopping: perform(state.stopping())
                }
            }
        } catch {
            context.logger.debug("WebSocket failed", metadata: ["error": "\(error)"])
        }
        perform(state.socketClosed())
        guard state.hasEnded else { return }
        authorization?.cancel()
        timer.cancel()
    }

    private func receive(_ text: String) -> [SoraStateMachine.Action] {
        if state.isUnadmitted {
            let isWithin = context.limiter.take(.message, cost: MessageBudget.cost(of: text), for: network) == nil
            return isWithin ? state.received(text, at: DeadlineTimer.now) : state.refusedAsTooMany()
        }
        return state.received(text, isRead: mayRead(text), at: DeadlineTimer.now)
    }

    /// Whether to parse a message of an admitted client. Statistics beyond the network's limit are dropped.
    private func mayRead(_ text: String) -> Bool {
        let network = network
        guard !network.isShared, SoraClientMessage.isStatistics(text) else { return true }
        return context.limiter.take(.memberMessage, cost: MessageBudget.cost(of: text), for: network) == nil
    }

    private func perform(_ actions: [SoraStateMachine.Action]) {
        for action in actions {
            switch action {
            case .send(let text): writer.write(.text(ByteBuffer(string: text)))
            case .sendData(let text, let label): dataOutput?.yield((label, text))
            case .close(let close):
                log(close)
                trace?.closed(close)
                writer.write(.close(close.close))
            case .authorize(let connect): authorization = Task { await authorize(connect) }
            case .reserve(let request): Task { await reserve(request) }
            case .activate(let outcome): Task { await activate(outcome) }
            case .changeSlots(let added, let removed): Task { await changeSlots(added: added, removed: removed) }
            case .reportUnsupported(let tracks): reportUnsupported(tracks)
            case .findStreams: Task { await findStreams() }
            case .request(let method): Task { await request(method) }
            case .record(let reports): record(reports)
            case .leave(let reason): leave(reason)
            }
        }
        arm()
    }

    // MARK: Timer

    private func arm() {
        timer.set(state.nextDeadline, on: channel.eventLoop) { [weak self] in
            _ = Task { await self?.timeout() }
        }
    }

    private func timeout() {
        timer.fired()
        perform(state.handleTimeout(at: DeadlineTimer.now))
    }

    // MARK: Channels

    private func authorize(_ connect: SoraConnect) async {
        trace = context.traces?.begin(
            JoinTrace.Request(route: "/signaling"),
            .sora,
            to: connect.channel,
            role: connect.role,
            after: parent
        )
        // The phases of a trace begin after the trace itself.
        let now = DeadlineTimer.now
        askedAt = now
        if let address = await redirect(connect) { return perform(state.redirected(to: address)) }
        let prospect = await context.directory.joinContext(of: connect.channel)
        var request = AccessRequest(
            channel: connect.channel,
            role: connect.role,
            participant: prospect.id,
            session: prospect.session,
            agent: ClientAgent(signaling: .sora, name: connect.client, environment: connect.environment),
            network: network,
            clientID: connect.clientID,
            bundleID: context.configuration.acceptsBundleID ? connect.bundleID : nil,
            libwebrtc: connect.libwebrtc,
            metadata: connect.metadata,
            notifyMetadata: connect.notifyMetadata,
            audio: connect.audio.accessRequest,
            video: connect.video.accessRequest,
            isSimulcast: connect.isSimulcast,
            spotlight: connect.spotlight,
            counts: prospect.counts,
            members: prospect.members
        )
        request.options = connect.webhookOptions
        let decision = await decide(since: now, request)
        decidedAt = DeadlineTimer.now
        perform(state.admitted(decision, id: prospect.id, decoders: prospect.decoders, at: DeadlineTimer.now))
    }

    private func decide(since start: Instant, _ request: AccessRequest) async -> AccessDecision {
        let authorizer = context.authorizer
        guard let trace else { return await authorizer.admit(request) }
        return await trace.authorizing(since: start) { await authorizer.admit(request) }
    }

    private func reserve(_ request: JoinRequest) async {
        let directory = context.directory
        var request = request
        request.network = network
        request.receivedAt = askedAt
        request.authorizedAt = decidedAt
        switch await crowding(request, isRedirected: state.isRedirected) {
        case .redirect(let address): return perform(state.redirected(to: address))
        case .refuse: return perform(state.overloaded())
        case nil: break
        }
        do throws(RoomError) {
            let reservation = try await directory.reserve(request)
            self.reservation = reservation
            trace?.reserved(reservation.participant, session: reservation.channelSession)
            executor.move(to: request.channel, owner: WorkOwner(network, in: request.channel))
            let events = await directory.events(of: reservation.participant)
            Task {
                for await event in events { self.deliver(event) }
            }
            if request.data != nil { startDataOutput(to: reservation.participant) }
            let streams = await directory.visibleStreams(to: reservation.participant)
            let place = SoraStateMachine.Reservation(
                participant: reservation.participant,
                session: reservation.channelSession,
                local: reservation.local,
                resumedClientID: reservation.resumedClientID,
                turn: reservation.turn
            )
            let now = DeadlineTimer.now
            trace?.responded()
            perform(state.reserved(place, streams: streams, at: now))
            if let askedAt { context.signalingStatistics.answered(after: now - askedAt) }
        } catch {
            perform(state.refused(error, at: DeadlineTimer.now))
        }
    }

    private func deliver(_ event: ParticipantEvent) {
        // Statistics beyond the network's limit are dropped, as over the WebSocket.
        if case .data(.message(SoraDataChannels.Label.stats.rawValue, let bytes, _)) = event, !network.isShared,
            context.limiter.take(.memberMessage, cost: MessageBudget.cost(of: bytes), for: network) != nil
        {
            return
        }
        perform(state.received(event, at: DeadlineTimer.now))
    }

    private func startDataOutput(to participant: ParticipantID) {
        let (messages, output) = AsyncStream.makeStream(of: (label: SoraDataChannels.Label, text: String).self)
        dataOutput = output
        let directory = context.directory
        Task {
            for await (label, text) in messages {
                await directory.send([Array(text.utf8)], on: label.rawValue, to: participant)
            }
        }
    }

    private func activate(_ outcome: OfferedDescription.Outcome) async {
        guard let reservation else { return }
        let mids = outcome.receive.map(\.mid) + outcome.added.map(\.parameters.mid)
        await context.joins?.began()
        do throws(RoomError) {
            _ = try await context.directory.activate(
                reservation,
                remote: outcome.remote,
                receive: outcome.receive,
                slots: SoraSession.assignments(outcome.added),
                data: outcome.data,
                firstMediaKind: outcome.receive.first?.kind ?? .audio,
                mids: mids
            )
            perform(state.activated(at: DeadlineTimer.now))
        } catch {
            perform(state.refused(error, at: DeadlineTimer.now))
        }
        await context.joins?.ended()
    }

    private func changeSlots(added: [SlotAssignment], removed: [MID]) async {
        guard let reservation else { return }
        do throws(RoomError) {
            try await context.directory.changeSlots(of: reservation.participant, add: added, remove: removed)
            perform(state.slotsChanged(at: DeadlineTimer.now))
        } catch {
            perform(state.refused(error, at: DeadlineTimer.now))
        }
    }

    private func findStreams() async {
        guard let reservation else { return }
        let streams = await context.directory.visibleStreams(to: reservation.participant)
        perform(state.found(streams, at: DeadlineTimer.now))
    }

    private func request(_ method: ChannelRequest.Method) async {
        let result = await result(of: method)
        if case .failure(let failure) = result { log(failure) }
        perform(state.requested(result))
    }

    private func reportUnsupported(_ tracks: [UnsupportedTrack]) {
        guard let participant = reservation?.participant else { return }
        let directory = context.directory
        Task { await directory.codecsRefused(by: participant, tracks) }
    }

    private func leave(_ reason: EndReason) {
        authorization?.cancel()
        dataOutput?.finish()
        guard let reservation else { return }
        self.reservation = nil
        context.clientStatistics.forget(reservation.participant)
        let directory = context.directory
        Task { _ = await directory.end(reservation, reason: reason) }
    }

    private func record(_ reports: JSONValue) {
        guard let reservation, let channel = state.channel else { return }
        context.clientStatistics.record(
            reservation.participant,
            channel: channel,
            reports: reports,
            unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9)
        )
    }

    // MARK: Log

    private func log(_ close: SoraClose) {
        if let limit = close.limit { context.signalingStatistics.refused(limit) }
        let isOrdinary = close.close.code < 4000
        if !isOrdinary {
            // The rooms report the failure of a participant.
            context.signalingStatistics.signalingFailed(
                client: state.client,
                isConnection: reservation == nil,
                reason: close.word
            )
        }
        var metadata: Logger.Metadata = [
            "close": "\(close.close.code) \(close.word.printable)", "reason": "\(close.message.printable)",
        ]
        if let channel = state.channel { metadata["channel"] = "\(channel)" }
        if let reservation { metadata["participant"] = "\(reservation.participant)" }
        if !state.client.isEmpty { metadata["client"] = "\(state.client)" }
        if let address = context.clients.address(of: channel) { metadata["address"] = "\(address)" }
        context.refusals.write("signaling closed", of: network, level: close.logLevel, metadata)
    }

    /// Logs a request that was refused. Only a refused token concerns operators.
    private func log(_ failure: RequestFailure) {
        guard let channel = state.channel, let participant else { return }
        context.refusals.write(
            "request of a member refused",
            of: network,
            level: failure.reason == .tokenInvalid ? .notice : .debug,
            [
                "channel": "\(channel)", "participant": "\(participant)", "protocol": "sora",
                "address": "\(network)", "code": "\(failure.reason.rawValue)",
                "reason": "\(failure.message.printable)",
            ]
        )
    }
}

extension SoraConnect.Media {
    fileprivate var accessRequest: AccessRequest.Media {
        AccessRequest.Media(isEnabled: isEnabled, codec: codec, bitRate: bitRate)
    }
}
