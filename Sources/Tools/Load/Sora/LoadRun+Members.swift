import Base
import ClientEngine
import EventLoop
import MediaTypes
import NagareClient
import Negotiation
import Wire

/// A client of Sora's signaling and the task that answers the server's messages.
struct SoraMember {
    let socket: ClientWebSocket
    let reader: Task<Void, Never>
}

extension LoadRun {
    /// How long the server may take to offer all tracks to all members.
    private static let offersMax = Interval.seconds(10)

    /// Joins a channel. Returns when the client is connected.
    func join(_ sora: SoraSignaling, _ client: PendingClient, _ role: Role, _ number: Int) async throws(LoadError) {
        try await join(sora, client, role, number, at: configuration.url)
        let (channel, soraRole) = place(role, number)
        if soraRole != .recvonly { senders[channel, default: 0] += 1 }
        if soraRole != .sendonly { receivers[channel, default: 0] += 1 }
        if configuration.conferenceMembers != nil { report.subscribersConnected = streams }
    }

    /// The channel and the role of a client.
    private func place(_ role: Role, _ number: Int) -> (channel: String, role: SoraRequest.Role) {
        let publisher = role == .publisher ? number : configuration.publisher(watchedBy: number)
        let channel = configuration.channel(ofPublisher: publisher)
        guard configuration.conferenceMembers == nil else { return (channel, .sendrecv) }
        return (channel, role == .publisher ? .sendonly : .recvonly)
    }

    /// - Parameter server: its URL.
    func join(
        _ sora: SoraSignaling,
        _ client: PendingClient,
        _ role: Role,
        _ number: Int,
        at server: String
    ) async throws(LoadError) {
        let (channel, soraRole) = place(role, number)
        // Not cancelled with the run, because a socket that is lost could not be closed.
        let request = Task { () -> Result<(socket: ClientWebSocket, offer: SoraMessage), LoadError> in
            do throws(LoadError) {
                return .success(try await sora.join(channel: channel, role: soraRole, at: server))
            } catch {
                return .failure(error)
            }
        }
        let (socket, offer) = try await request.value.get()
        do throws(LoadError) {
            let answerer = try await answer(offer, client, socket)
            let reader = answerMessages(socket, client, answerer, role, number)
            members.append(SoraMember(socket: socket, reader: reader))
        } catch {
            await sora.end(socket, reader: nil)
            throw error
        }
        let (loop, id) = (client.loop, client.id)
        let outcome = await withTaskCancellationHandler {
            await loop.connectionResult(of: id)
        } onCancel: {
            Task { await loop.abandon(id) }
        }
        do {
            try outcome.get()
        } catch {
            socket.close()
            throw error
        }
        joined.insert(client.id)
        if endedEarly.remove(client.id) != nil { await returnToChannel(client, role, number) }
    }

    /// Answers the first offer and adds the client, which starts to connect.
    private func answer(
        _ offer: SoraMessage,
        _ client: PendingClient,
        _ socket: ClientWebSocket
    ) async throws(LoadError) -> ClientAnswerer {
        guard !Task.isCancelled else { throw .failed("The run was interrupted.") }
        var generator = SystemRandomNumberGenerator()
        var answerer = ClientAnswerer(transport: client.transport, codecs: [.opus, .vp8], using: &generator)
        let own = [offer.mid?.audio, offer.mid?.video].compactMap { $0.flatMap { MID($0) } }
        let turn: ClientAnswerer.AppliedOffer
        do throws(NegotiationError) {
            turn = try answerer.answer(offer: offer.sdp ?? "", sending: Set(own), using: &generator)
        } catch {
            throw .failed("The server's offer cannot be used: \(error.message)")
        }
        try await client.loop.add(
            client.id,
            endpoint: client.endpoint,
            credentials: client.transport.credentials,
            answer: ClientAnswer(turn),
            media: client.media
        )
        socket.send(SoraRequest.text(SoraRequest.Description(type: "answer", sdp: turn.answer)))
        return answerer
    }

    /// Answers the server's messages until it closes the socket.
    private func answerMessages(
        _ socket: ClientWebSocket,
        _ client: PendingClient,
        _ first: ClientAnswerer,
        _ role: Role,
        _ number: Int
    ) -> Task<Void, Never> {
        Task {
            var answerer = first
            var hasFailed = false
            for await event in socket.events where !hasFailed {
                switch event {
                case .text(let text):
                    do throws(LoadError) {
                        guard let message = SoraMessage(text) else { throw .failed(SoraMessage.invalid) }
                        try await take(message, socket, client, &answerer)
                    } catch {
                        // The close that follows is not counted again.
                        hasFailed = true
                        await noteEnd(of: client, error.message)
                        socket.close()
                    }
                case .ended(let end):
                    await noteEnd(of: client, end.sentence)
                    await returnToChannel(client, role, number)
                }
            }
        }
    }

    private func take(
        _ message: SoraMessage,
        _ socket: ClientWebSocket,
        _ client: PendingClient,
        _ answerer: inout ClientAnswerer
    ) async throws(LoadError) {
        switch message.type {
        case "ping": socket.send(SoraRequest.text(SoraRequest.Pong(stats: message.stats == true ? [] : nil)))
        case "re-offer", "update":
            var generator = SystemRandomNumberGenerator()
            let turn: ClientAnswerer.AppliedOffer
            do throws(NegotiationError) {
                turn = try answerer.answer(offer: message.sdp ?? "", using: &generator)
            } catch {
                throw .failed("A later offer of the server cannot be used: \(error.message)")
            }
            try await client.loop.change(client.id, add: turn.added.map(\.parameters), remove: turn.removed)
            let type = message.type == "update" ? "update" : "re-answer"
            socket.send(SoraRequest.text(SoraRequest.Description(type: type, sdp: turn.answer)))
        default: break
        }
    }

    private func noteEnd(of client: PendingClient, _ reason: String) async {
        guard !isEnding else { return }
        report.disconnections[reason, default: 0] += 1
        await client.loop.expectEnd(of: client.id)
    }

    /// Disconnects every member.
    func disconnectMembers() async {
        guard let sora else { return }
        for task in returns { task.cancel() }
        for task in returns { await task.value }
        await withTaskGroup { group in
            for member in members { group.addTask { await sora.end(member.socket, reader: member.reader) } }
        }
        members = []
    }

    /// Pairs of a publisher and a subscriber of it.
    var streams: Int {
        senders.reduce(0) { sum, entry in
            let (channel, count) = entry
            let watching = receivers[channel] ?? 0
            // In a conference members do not watch themselves.
            return sum + (configuration.conferenceMembers == nil ? count * watching : count * (watching - 1))
        }
    }

    /// Waits until all tracks were offered to all members, up to ``offersMax``.
    func waitForTracks() async {
        guard sora != nil else { return }
        let kinds = (configuration.videoBitsPerSecond > 0 ? 1 : 0) + (configuration.sendsAudio ? 1 : 0)
        let expected = streams * kinds
        let start = EventLoop.now()
        var missing = expected
        while true {
            var tracks = 0
            for loop in loops { tracks += await loop.tracks }
            missing = max(expected - tracks, 0)
            guard missing > 0, EventLoop.now() - start < Self.offersMax,
                (try? await Task.sleep(for: .milliseconds(20))) != nil
            else { break }
        }
        report.tracksMissing = missing
    }
}
