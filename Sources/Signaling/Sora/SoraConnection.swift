import Access
import Foundation
import JSON
import Logging
import MediaTypes
import NIOCore
import Negotiation
import Room
import Wire

/// What every connection of the signaling needs.
struct SoraContext: Sendable {
    let rooms: Rooms
    let authorizer: any Authorizer
    let configuration: SoraConfiguration
    let clientStatistics: ClientStatistics
    let signalingStatistics: SignalingStatistics
    let logger: Logger
    let limiter: AddressLimiter
    let clients: ClientAddresses
    let work = FairWorkQueue<WorkOwner, ChannelName?>(label: "nagare.signaling")
}

/// Who takes turns at signaling's work: a connection's network, whose channels take the network's turns, so that nobody has
/// more turns for being in more channels. Clients whose network is shared take turns by their channel.
enum WorkOwner: Hashable, Sendable {
    case network(ClientNetwork)
    case channel(ChannelName)

    /// - Parameter channel: where the client has a place; `nil` while it has none.
    init(_ network: ClientNetwork, in channel: ChannelName?) {
        if network.isShared, let channel {
            self = .channel(channel)
        } else {
            self = .network(network)
        }
    }
}

/// Drives one ``SoraSession``: carries texts from and to its WebSocket, and its wishes to the rooms.
///
/// It runs on the work queue that all connections share, so that the descriptions of a crowded channel take at most one
/// thread, and no request over HTTP waits for them.
actor SoraConnection {
    private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let context: SoraContext
    private let channel: any Channel
    private var session: SoraSession
    private var reservation: Rooms.Reservation?
    /// The question whether the client may join; nobody waits for its answer once the client is gone.
    private var authorization: Task<Void, Never>?
    private var timer: (deadline: Instant, task: Scheduled<Void>)?

    init(context: SoraContext, channel: any Channel) {
        self.context = context
        self.channel = channel
        let network = context.clients.network(of: channel)
        executor = FairExecutor(context.work, share: nil, owner: WorkOwner(network, in: nil))
        session = SoraSession(configuration: context.configuration, at: Self.now)
    }

    /// Where the client comes from.
    private var network: ClientNetwork { context.clients.network(of: channel) }

    private static var now: Instant {
        Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    }

    /// Returns when the WebSocket is gone.
    func run(_ input: NIOAsyncChannelInboundStream<WebSocketInput>) async {
        perform([])
        do {
            for try await message in input {
                switch message {
                case .text(let text): perform(receive(text))
                case .closed: perform(session.socketClosed())
                case .refused(let close): perform(session.socketRefused(close))
                case .stopping: perform(session.stopping())
                }
            }
        } catch {
            context.logger.debug("WebSocket failed", metadata: ["error": "\(error)"])
        }
        perform(session.socketClosed())
        authorization?.cancel()
        timer?.task.cancel()
        timer = nil
    }

    private func receive(_ text: String) -> [SoraSession.Action] {
        if session.isStranger {
            let isWithin = context.limiter.take(.message, cost: MessageBudget.cost(of: text), for: network) == nil
            return isWithin ? session.received(text, at: Self.now) : session.refusedAsTooMany()
        }
        return session.received(text, isRead: mayRead(text), at: Self.now)
    }

    /// Whether a member's message is read: statistics are not while the members of its network have sent more of them
    /// than their limit permits. Nobody's call depends on them.
    private func mayRead(_ text: String) -> Bool {
        let network = network
        guard !network.isShared, SoraClientMessage.isStatistics(text) else { return true }
        return context.limiter.take(.memberMessage, cost: MessageBudget.cost(of: text), for: network) == nil
    }

    private func perform(_ actions: [SoraSession.Action]) {
        for action in actions {
            switch action {
            case .send(let text): write(.text(ByteBuffer(string: text)))
            case .close(let close):
                log(close)
                write(.close(close.close))
            case .authorize(let connect): authorization = Task { await authorize(connect) }
            case .reserve(let request): Task { await reserve(request) }
            case .activate(let outcome): Task { await activate(outcome) }
            case .changeSlots(let added, let removed): Task { await changeSlots(added: added, removed: removed) }
            case .reportUnsupported(let tracks): reportUnsupported(tracks)
            case .findStreams: Task { await findStreams() }
            case .record(let reports): record(reports)
            case .leave(let reason): leave(reason)
            }
        }
        arm()
    }

    private func write(_ output: WebSocketOutput) { channel.writeAndFlush(output, promise: nil) }

    // MARK: Time

    private func arm() {
        let deadline = session.nextDeadline
        guard deadline != timer?.deadline else { return }
        timer?.task.cancel()
        timer = deadline.map { deadline in
            let wait = max(.zero, deadline - Self.now)
            let task = channel.eventLoop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
                _ = Task { await self?.timeout() }
            }
            return (deadline, task)
        }
    }

    private func timeout() {
        timer = nil
        perform(session.handleTimeout(at: Self.now))
    }

    // MARK: Rooms

    private func authorize(_ connect: SoraConnect) async {
        let prospect = await context.rooms.joinContext(of: connect.channel)
        let decision = await context.authorizer.admit(
            AccessRequest(
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
        )
        perform(session.admitted(decision, id: prospect.id, decoders: prospect.decoders, at: Self.now))
    }

    private func reserve(_ request: JoinRequest) async {
        let rooms = context.rooms
        var request = request
        request.network = network
        do throws(RoomError) {
            let reservation = try await rooms.reserve(request)
            self.reservation = reservation
            executor.move(to: request.channel, owner: WorkOwner(network, in: request.channel))
            let events = await rooms.events(of: reservation.participant)
            Task {
                for await event in events { self.deliver(event) }
            }
            let streams = await rooms.visibleStreams(to: reservation.participant)
            let place = SoraSession.Place(
                participant: reservation.participant,
                session: reservation.channelSession,
                local: reservation.local
            )
            perform(session.reserved(place, streams: streams, at: Self.now))
        } catch {
            perform(session.refused(error, at: Self.now))
        }
    }

    private func deliver(_ event: ParticipantEvent) { perform(session.received(event, at: Self.now)) }

    private func activate(_ outcome: OfferedSession.Outcome) async {
        guard let reservation else { return }
        let mids = outcome.receive.map(\.mid) + outcome.added.map(\.parameters.mid)
        do throws(RoomError) {
            _ = try await context.rooms.activate(
                reservation,
                remote: outcome.remote,
                receive: outcome.receive,
                slots: SoraSession.assignments(outcome.added),
                firstMediaKind: outcome.receive.first?.kind ?? .audio,
                mids: mids
            )
            perform(session.activated(at: Self.now))
        } catch {
            perform(session.refused(error, at: Self.now))
        }
    }

    private func changeSlots(added: [SlotAssignment], removed: [MID]) async {
        guard let reservation else { return }
        do throws(RoomError) {
            try await context.rooms.changeSlots(of: reservation.participant, add: added, remove: removed)
            perform(session.slotsChanged(at: Self.now))
        } catch {
            perform(session.refused(error, at: Self.now))
        }
    }

    private func findStreams() async {
        guard let reservation else { return }
        let streams = await context.rooms.visibleStreams(to: reservation.participant)
        perform(session.found(streams, at: Self.now))
    }

    private func reportUnsupported(_ tracks: [UnsupportedTrack]) {
        guard let participant = reservation?.participant else { return }
        let rooms = context.rooms
        Task { await rooms.codecsRefused(by: participant, tracks) }
    }

    private func leave(_ reason: EndReason) {
        authorization?.cancel()
        guard let reservation else { return }
        self.reservation = nil
        context.clientStatistics.forget(reservation.participant)
        let rooms = context.rooms
        Task { _ = await rooms.end(reservation.participant, reason: reason) }
    }

    private func record(_ reports: JSONValue) {
        guard let reservation, let channel = session.channel else { return }
        context.clientStatistics.record(
            reservation.participant,
            channel: channel,
            reports: reports,
            unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9)
        )
    }

    // MARK: Log

    private func log(_ close: SoraClose) {
        let isOrdinary = close.close.code < 4000
        if !isOrdinary {
            // Rooms report one that they know themselves.
            context.signalingStatistics.signalingFailed(
                client: session.client,
                isConnection: reservation == nil,
                reason: close.close.reason
            )
        }
        var metadata: Logger.Metadata = [
            "close": "\(close.close.description.printable)", "reason": "\(close.sentence.printable)",
        ]
        if let channel = session.channel { metadata["channel"] = "\(channel)" }
        if let reservation { metadata["participant"] = "\(reservation.participant)" }
        if !session.client.isEmpty { metadata["client"] = "\(session.client)" }
        if let address = context.clients.address(of: channel) { metadata["address"] = "\(address)" }
        // Sockets that never say anything are what SDKs leave behind that try several URLs.
        let isNoise = isOrdinary || session.channel == nil
        context.logger.log(level: isNoise ? .debug : .notice, "signaling closed", metadata: metadata)
    }
}

extension SoraConnect.Media {
    fileprivate var accessRequest: AccessRequest.Media {
        AccessRequest.Media(isEnabled: isEnabled, codec: codec, bitRate: bitRate)
    }
}
