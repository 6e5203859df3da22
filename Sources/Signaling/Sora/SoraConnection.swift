import Forwarding
import Foundation
import Logging
import NIOCore
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
}

/// Drives one ``SoraSession``: carries texts from and to its WebSocket, and its wishes to the rooms.
actor SoraConnection {
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
        session = SoraSession(configuration: context.configuration, at: Self.now)
    }

    private static var now: Instant {
        Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    }

    /// Returns when the WebSocket is gone.
    func run(_ input: NIOAsyncChannelInboundStream<WebSocketInput>) async {
        perform([])
        do {
            for try await message in input {
                switch message {
                case .text(let text): perform(session.received(text, at: Self.now))
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
        let prospect = await context.rooms.prospect(connect.channel)
        let decision = await context.authorizer.admit(
            AccessRequest(
                channel: connect.channel,
                role: connect.role,
                participant: prospect.id,
                session: prospect.session,
                agent: ClientAgent(signaling: .sora, name: connect.client, environment: connect.environment),
                clientID: connect.clientID,
                bundleID: context.configuration.acceptsBundleID ? connect.bundleID : nil,
                libwebrtc: connect.libwebrtc,
                metadata: connect.metadata,
                notifyMetadata: connect.notifyMetadata,
                audio: connect.audio.accessRequest,
                video: connect.video.accessRequest,
                isSimulcast: connect.isSimulcast,
                spotlight: connect.spotlight,
                counts: prospect.counts
            )
        )
        perform(session.admitted(decision, id: prospect.id, at: Self.now))
    }

    private func reserve(_ request: JoinRequest) async {
        let rooms = context.rooms
        do throws(RoomError) {
            let reservation = try await rooms.reserve(request)
            self.reservation = reservation
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
                headKind: outcome.receive.first?.kind ?? .audio,
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
        if let address = channel.remoteAddress?.ipAddress { metadata["address"] = "\(address)" }
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
