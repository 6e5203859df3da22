import EventLoop
import MediaTypes
import Negotiation
import Wire

/// A client of Sora's signaling, and who reads what the server tells it.
struct SoraMember {
    let session: SoraSession
    let follower: Task<Void, Never>
}

extension LoadRun {
    /// How long the server may take until it has offered everybody's tracks to everybody.
    private static let offersMax = Interval.seconds(10)

    /// Joins a channel and returns when media may flow.
    func join(_ sora: SoraSignaling, _ seat: Seat, _ role: Role, _ number: Int) async throws(LoadError) {
        let publisher = role == .publisher ? number : configuration.publisher(watchedBy: number)
        let channel = configuration.channel(ofPublisher: publisher)
        let soraRole: SoraRequest.Role =
            if configuration.conferenceMembers != nil { .sendrecv } else { role == .publisher ? .sendonly : .recvonly }
        // Not cut short by the end of the run, because a session that was thrown away could not be ended.
        let request = Task { () -> Result<(session: SoraSession, offer: SoraMessage), LoadError> in
            do throws(LoadError) {
                return .success(try await sora.join(channel: channel, role: soraRole))
            } catch {
                return .failure(error)
            }
        }
        let (session, offer) = try await request.value.get()
        do throws(LoadError) {
            let answerer = try await answer(offer, seat, session)
            members.append(SoraMember(session: session, follower: follow(session, seat, answerer)))
        } catch {
            await sora.end(session, followed: nil)
            throw error
        }
        let (loop, id) = (seat.loop, seat.id)
        let outcome = await withTaskCancellationHandler {
            await loop.attempt(id)
        } onCancel: {
            Task { await loop.abandon(id) }
        }
        try outcome.get()
        if soraRole != .recvonly { senders[channel, default: 0] += 1 }
        if soraRole != .sendonly { receivers[channel, default: 0] += 1 }
        if configuration.conferenceMembers != nil { report.subscribersConnected = streams }
    }

    /// Answers the first offer, and lets the client connect.
    private func answer(
        _ offer: SoraMessage,
        _ seat: Seat,
        _ session: SoraSession
    ) async throws(LoadError) -> ClientAnswerer {
        guard !Task.isCancelled else { throw .failed("The run was interrupted.") }
        var generator = SystemRandomNumberGenerator()
        var answerer = ClientAnswerer(transport: seat.transport, codecs: [.opus, .vp8], using: &generator)
        let own = [offer.mid?.audio, offer.mid?.video].compactMap { $0.flatMap { MID($0) } }
        let turn: ClientAnswerer.Turn
        do throws(NegotiationError) {
            turn = try answerer.answer(offer: offer.sdp ?? "", sending: Set(own), using: &generator)
        } catch {
            throw .failed("The server's offer cannot be used: \(error.sentence)")
        }
        try await seat.loop.add(
            seat.id,
            endpoint: seat.endpoint,
            credentials: seat.transport.credentials,
            answer: ClientAnswer(turn),
            media: seat.media
        )
        session.send(SoraRequest.Description(type: "answer", sdp: turn.answer))
        return answerer
    }

    /// Answers what the server says until it closes.
    private func follow(_ session: SoraSession, _ seat: Seat, _ first: ClientAnswerer) -> Task<Void, Never> {
        Task {
            var answerer = first
            var hasFailed = false
            for await event in session.events where !hasFailed {
                switch event {
                case .message(let message):
                    do throws(LoadError) {
                        try await take(message, session, seat, &answerer)
                    } catch {
                        // Its close, which this brings about, is not another end.
                        hasFailed = true
                        noteEnd(error.sentence)
                        session.close()
                    }
                case .closed(let how): noteEnd(how)
                }
            }
        }
    }

    private func take(
        _ message: SoraMessage,
        _ session: SoraSession,
        _ seat: Seat,
        _ answerer: inout ClientAnswerer
    ) async throws(LoadError) {
        switch message.type {
        case "ping": session.send(SoraRequest.Pong(stats: message.stats == true ? [] : nil))
        case "re-offer", "update":
            var generator = SystemRandomNumberGenerator()
            let turn: ClientAnswerer.Turn
            do throws(NegotiationError) {
                turn = try answerer.answer(offer: message.sdp ?? "", using: &generator)
            } catch {
                throw .failed("A later offer of the server cannot be used: \(error.sentence)")
            }
            try await seat.loop.change(seat.id, add: turn.added.map(\.parameters), remove: turn.removed)
            let type = message.type == "update" ? "update" : "re-answer"
            session.send(SoraRequest.Description(type: type, sdp: turn.answer))
        default: break
        }
    }

    private func noteEnd(_ reason: String) {
        guard !isEnding else { return }
        report.disconnections[reason, default: 0] += 1
    }

    /// Says good-bye for every member.
    func endMembers() async {
        guard let sora else { return }
        await withTaskGroup { group in
            for member in members { group.addTask { await sora.end(member.session, followed: member.follower) } }
        }
        members = []
    }

    /// Publishers that are watched, counted once for each who watches.
    var streams: Int {
        senders.reduce(0) { sum, entry in
            let (channel, count) = entry
            let watching = receivers[channel] ?? 0
            // In a conference nobody watches itself.
            return sum + (configuration.conferenceMembers == nil ? count * watching : count * (watching - 1))
        }
    }

    /// Waits until everybody was offered everybody's tracks, or it is clear that they will not be.
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
