import Access
import Base
package import ChannelTypes
package import Logging
package import NIOCore
package import Room
package import Sora
package import Web
import Webhooks

/// The dependencies of all connections of the 1:1 relay.
package struct AyameContext: Sendable {
    let configuration: AyameConfiguration
    let admission: AyameAdmission
    let directory: ChannelDirectory
    let calls: AyameCalls
    let statistics: SignalingStatistics
    let logger: Logger
    let refusals: RefusalLog
    let limiter: AddressLimiter
    let clients: ClientAddresses
    let work: FairWorkQueue<WorkOwner, ChannelName?>

    package init(
        configuration: AyameConfiguration,
        admission: AyameAdmission,
        directory: ChannelDirectory,
        calls: AyameCalls,
        statistics: SignalingStatistics,
        logger: Logger,
        refusals: RefusalLog,
        limiter: AddressLimiter,
        clients: ClientAddresses,
        work: FairWorkQueue<WorkOwner, ChannelName?>
    ) {
        self.configuration = configuration
        self.admission = admission
        self.directory = directory
        self.calls = calls
        self.statistics = statistics
        self.logger = logger
        self.refusals = refusals
        self.limiter = limiter
        self.clients = clients
        self.work = work
    }
}

/// Runs one ``AyameSession``: passes messages from and to its WebSocket, and performs its actions on the rooms.
package actor AyameConnection {
    private nonisolated let executor: FairExecutor<WorkOwner, ChannelName?>
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let context: AyameContext
    private let writer: WebSocketWriter
    private var channel: any Channel { writer.channel }
    private var session: AyameSession
    /// The place in a room; `nil` before and after it.
    private var place: (registration: AyameRegistration, permission: AyamePermission, start: Instant)?
    /// Why the client leaves its room, for reports.
    private var departure = CallReport.leftByItself
    /// The client's media on the node; `nil` without it.
    private var media: AyameMedia.Opened?
    /// The admission, cancelled when the client disconnects.
    private var authorization: Task<Void, Never>?
    /// Until the room has answered, cancelled when the client leaves before.
    private var joining: Task<Void, Never>?
    private var timer = DeadlineTimer()

    package init(context: AyameContext, writer: WebSocketWriter) {
        self.context = context
        self.writer = writer
        let network = context.clients.network(of: writer.channel)
        executor = FairExecutor(context.work, share: nil, owner: WorkOwner(network, in: nil))
        session = AyameSession(configuration: context.configuration, at: DeadlineTimer.now)
    }

    private var network: ClientNetwork { context.clients.network(of: channel) }

    /// Returns when the WebSocket is closed.
    package func run(_ input: NIOAsyncChannelInboundStream<WebSocketInput>) async {
        await perform([])
        do {
            for try await message in input {
                switch message {
                case .text(let text):
                    // The texts that waited for the room go first.
                    if place != nil { await joining?.value }
                    await perform(receive(text))
                case .closed: await perform(session.socketClosed())
                case .refused(let close):
                    log(AyameClose(violation: close))
                    await perform(session.socketClosed())
                case .stopping: await perform(session.stopping())
                }
            }
        } catch {
            context.logger.debug("WebSocket failed", metadata: ["error": "\(error)"])
        }
        await perform(session.socketClosed())
        authorization?.cancel()
        timer.cancel()
    }

    private func receive(_ text: String) -> [AyameSession.Action] {
        let isWithin =
            !session.isUnadmitted
            || context.limiter.take(.message, cost: MessageBudget.cost(of: text), for: network) == nil
        return isWithin ? session.received(text, at: DeadlineTimer.now) : session.refusedAsTooMany()
    }

    /// Returns when the room has taken what it is sent, so that a client sends no faster than that.
    private func perform(_ actions: [AyameSession.Action]) async {
        for action in actions {
            switch action {
            case .send(let text): writer.write(.text(ByteBuffer(string: text)))
            case .close(let close):
                log(close)
                if close != .left { departure = close.close.reason }
                writer.write(.close(close.close))
            case .authorize(let registration): authorization = Task { await authorize(registration) }
            case .join(let registration, let permission): joining = Task { await join(registration, permission) }
            case .relay(let text): await relay(text)
            case .negotiate(let sdp): negotiate(sdp)
            case .checkExpiry: await checkExpiry()
            case .warn: await warn()
            case .refresh(let credentials): Task { await refresh(credentials) }
            case .leave: await leave()
            }
        }
        arm()
    }

    private func arm() {
        timer.set(session.nextDeadline, on: channel.eventLoop) { [weak self] in
            _ = Task { await self?.timeout() }
        }
    }

    private func timeout() async {
        timer.fired()
        await perform(session.handleTimeout(at: DeadlineTimer.now))
    }

    // MARK: Channels

    private func authorize(_ registration: AyameRegistration) async {
        let decision = await context.admission.decide(registration, from: network)
        if case .rejected(let reason) = decision {
            context.statistics.relayRegistered(.rejected)
            logRefusal(registration, reason)
        }
        await perform(session.admitted(decision))
    }

    private func join(_ registration: AyameRegistration, _ permission: AyamePermission) async {
        let (writer, connectionID) = (writer, permission.connectionID)
        let directory = context.directory
        let member = AyameRooms.Member(
            connectionID: connectionID,
            identity: AyameRooms.Identity(registration),
            isStandalone: registration.isStandalone,
            user: permission.clientID(registration) ?? connectionID,
            app: permission.grants.app,
            registeredAt: directory.unixSeconds,
            origin: .here { [weak self] notice in
                switch notice {
                case .accepted(let hasPartner, let media, let turn):
                    let text = AyameServerMessage.accept(
                        connectionID: connectionID,
                        hasPartner: hasPartner || media == .server,
                        media: media,
                        metadata: permission.acceptance.metadata,
                        iceServers: permission.iceServers(with: turn)
                    )
                    writer.write(.text(ByteBuffer(string: text)))
                case .text(let text): writer.write(.text(ByteBuffer(string: text)))
                case .ended(let close):
                    writer.write(.close(close.close))
                    Task { await self?.ended() }
                }
            }
        )
        let answer = await context.calls.join(
            registration.room,
            member,
            media: permission.media,
            isMediaRequired: permission.isMediaRequired,
            refusal: { directory.blockRefusal(of: member.user, in: registration.room, as: .sendrecv) }
        )
        if case .joined(let media) = answer {
            context.statistics.relayRegistered(.accepted)
            await joined(registration, permission, media)
        } else if let refusal = answer.refusal, !session.hasEnded {
            context.statistics.relayRegistered(answer == .full ? .full : .rejected)
            let isUnanswered = answer == .unreachable
            logRefusal(registration, isUnanswered ? "The node that has the room did not answer." : refusal.reason)
            await perform(session.refused(refusal.reason))
        }
    }

    private func joined(
        _ registration: AyameRegistration,
        _ permission: AyamePermission,
        _ media: CallMedia
    ) async {
        place = (registration, permission, DeadlineTimer.now)
        let lifetime = permission.grants.permissions.lifetime.map { Interval($0) }
        let actions = session.joined(media, lifetime: lifetime, at: DeadlineTimer.now)
        context.logger.info(
            "relay joined",
            metadata: [
                "channel": "\(registration.room)", "participant": "\(permission.connectionID.printable)",
                "protocol": "ayame", "address": "\(network)", "media": "\(media.rawValue)",
            ]
        )
        // The client may have left while it joined.
        guard !session.hasEnded || !actions.isEmpty else { return await leave() }
        await perform(actions)
        await checkExpiry()
    }

    private func checkExpiry() async {
        guard let expiry = place?.permission.grants.permissions.expiry else { return }
        await perform(session.expires(in: context.directory.timeLeft(until: expiry), at: DeadlineTimer.now))
    }

    // MARK: Refresh

    /// Tells a client that knows the message, and asks the operator's server where it decided on the end.
    private func warn() async {
        guard let place, let expiry = place.permission.grants.permissions.expiry else { return }
        if place.registration.isWarned {
            writer.write(.text(ByteBuffer(string: AyameServerMessage.expiring(at: expiry.unixSeconds))))
        }
        if place.permission.isExpiryOfWebhook { Task { _ = await self.renew(with: nil) } }
    }

    /// Each costs as much as a message before the admission, because it is decided by the same means.
    private func refresh(_ credentials: AyameCredentials) async {
        let cost = MessageBudget.cost(of: credentials.signalingKey ?? "")
        guard context.limiter.take(.message, cost: cost, for: network) == nil else {
            let refusal = AyameRefusal("Too many messages from this address; try again later.")
            return await perform(session.refreshed(.failure(refusal)))
        }
        let result = await renew(with: credentials)
        if case .failure(let refusal) = result { logRefusal("relay refresh refused", refusal.reason) }
        await perform(session.refreshed(result.map { $0?.unixSeconds }))
    }

    private func renew(with credentials: AyameCredentials?) async -> Result<AccessExpiry?, AyameRefusal> {
        guard let before = place else { return .failure(AyameRefusal(AyameSession.internalError)) }
        let result = await context.admission.renew(
            before.registration,
            before.permission,
            with: credentials,
            sending: media?.sentKinds ?? []
        )
        if credentials == nil, case .failure = result { session.warningFailed(at: DeadlineTimer.now) }
        defer { arm() }
        // The client may have left meanwhile, or have presented a token that ends later.
        guard case .success(let expiry) = result, let present = place?.permission.grants.permissions.expiry,
            expiry.map({ $0.unixSeconds > present.unixSeconds }) ?? true
        else { return result }
        place?.permission.grants.permissions.expiry = expiry
        session.permissionExtended()
        await extendMedia(until: expiry)
        await checkExpiry()
        return result
    }

    /// The client's participant has the permission of its registration.
    private func extendMedia(until expiry: AccessExpiry?) async {
        guard let resource = media?.resource, let participant = await context.directory.resource(resource)?.participant
        else { return }
        do throws(RoomError) {
            try await context.directory.perform(.extendAccess(of: participant, until: expiry), by: participant)
        } catch {
            context.logger.debug("relayed media not extended", metadata: ["reason": "\(HTTPFailure(error).message)"])
        }
    }

    /// The room ended this registration and closed its WebSocket.
    private func ended() async {
        await perform(session.socketClosed())
        await leave()
    }

    private func relay(_ text: String) async {
        guard let place else { return }
        if await context.calls.relay(text, in: place.registration.room, from: place.permission.connectionID) {
            context.statistics.relayedMessage()
        }
    }

    private func leave() async {
        authorization?.cancel()
        joining?.cancel()
        if let resource = media?.resource {
            media = nil
            let directory = context.directory
            Task { _ = await directory.end(resource) }
        }
        guard let place else { return }
        self.place = nil
        let connectionID = place.permission.connectionID
        await context.calls.leave(place.registration.room, connectionID, reason: departure)
        context.logger.info(
            "relay left",
            metadata: [
                "channel": "\(place.registration.room)", "participant": "\(connectionID.printable)",
                "protocol": "ayame",
                "address": "\(network)", "seconds": "\(Int((DeadlineTimer.now - place.start).seconds))",
                "reason": "\(departure.printable)",
            ]
        )
        let admission = context.admission
        Task { await admission.report(disconnected: place.registration, connectionID: connectionID) }
    }

    // MARK: Media through the node

    private func negotiate(_ sdp: String) {
        guard let place else { return }
        let call = AyameMedia(
            directory: context.directory,
            registration: place.registration,
            permission: place.permission
        )
        let network = network
        if let media {
            Task { await renegotiated(call.renegotiate(sdp, media)) }
        } else {
            Task { await negotiated(call.open(sdp, from: network)) }
        }
    }

    private func renegotiated(_ opened: Result<AyameMedia.Opened, AyameRefusal>) async {
        if case .success(let opened) = opened, media?.resource == opened.resource { media = opened }
        if case .failure(let refusal) = opened { logRefusal("relay offer refused", refusal.reason) }
        await perform(session.answered(opened.map(\.answer)))
    }

    private func negotiated(_ opened: Result<AyameMedia.Opened, AyameRefusal>) async {
        let isOver = place == nil
        if case .success(let opened) = opened {
            guard !isOver else {
                let directory = context.directory
                Task { _ = await directory.end(opened.resource) }
                return
            }
            media = opened
            let expiry = place?.permission.grants.permissions.expiry
            // The permission may have been extended since the offer.
            if expiry != opened.expiry { await extendMedia(until: expiry) }
            Task { await self.watch(opened.events) }
        }
        if case .failure(let refusal) = opened { logRefusal("relay offer refused", refusal.reason) }
        await perform(session.answered(opened.map(\.answer)))
    }

    /// Waits for the end of the client's media. A standalone client that has left the signaling leaves the room then.
    private func watch(_ events: ParticipantEvents) async {
        for await event in events {
            guard case .ended(let reason) = event else { continue }
            media = nil
            await perform(session.mediaEnded(reason))
        }
        await leave()
    }

    private func logRefusal(_ registration: AyameRegistration, _ reason: String) {
        context.refusals.write(
            "relay refused",
            of: network,
            [
                "channel": "\(registration.room)", "protocol": "ayame", "address": "\(network)",
                "reason": "\(reason.printable)",
            ]
        )
    }

    /// Logs what a client in a room was refused.
    private func logRefusal(_ message: Logger.Message, _ reason: String) {
        guard let place else { return }
        context.refusals.write(
            message,
            of: network,
            [
                "channel": "\(place.registration.room)", "protocol": "ayame", "address": "\(network)",
                "participant": "\(place.permission.connectionID.printable)", "reason": "\(reason.printable)",
            ]
        )
    }

    private func log(_ close: AyameClose) {
        var metadata: Logger.Metadata = [
            "close": "\(close.close.description.printable)", "reason": "\(close.message.printable)",
        ]
        if let registration = session.registration { metadata["channel"] = "\(registration.room)" }
        if let address = context.clients.address(of: channel) { metadata["address"] = "\(address)" }
        context.refusals.write("relay closed", of: network, level: close.isRefusal ? .notice : .debug, metadata)
    }
}
