/// Speaks Sora's signaling, in which the server offers: a WebSocket for each client.
final class SoraSignaling: Sendable {
    /// How long the server may take to offer.
    private static let offerTimeout = Duration.seconds(30)
    /// How long it may take to close after a client said good-bye.
    private static let closeTimeout = Duration.seconds(3)

    private let configuration: LoadConfiguration

    init(_ configuration: LoadConfiguration) { self.configuration = configuration }

    private var url: String {
        let base = configuration.url.hasSuffix("/") ? String(configuration.url.dropLast()) : configuration.url
        let path = configuration.signalingPath
        return base + (path.hasPrefix("/") ? path : "/" + path)
    }

    /// Asks to join a channel.
    /// - Returns: the session with the server's first offer, which is to be answered.
    func join(
        channel: String,
        role: SoraRequest.Role
    ) async throws(LoadError) -> (session: SoraSession, offer: SoraMessage) {
        var url = url
        // A node that is not the channel's own names the one that is, once.
        for isRedirected in [false, true] {
            let session = try await SoraSession.open(url)
            session.send(request(channel: channel, role: role, isRedirected: isRedirected))
            switch try await firstOffer(of: session, at: url) {
            case .offer(let offer): return (session, offer)
            case .redirect(let location) where !isRedirected: url = Self.web(location)
            case .redirect: throw .failed("The server redirects without end.")
            }
        }
        throw .failed("The server redirects without end.")
    }

    private func request(channel: String, role: SoraRequest.Role, isRedirected: Bool) -> SoraRequest.Connect {
        let hasVideo = configuration.videoBitsPerSecond > 0
        return SoraRequest.Connect(
            role: role.rawValue,
            channelID: channel,
            audio: configuration.sendsAudio,
            video: role == .recvonly || !hasVideo ? .isWanted(hasVideo) : .of(SoraRequest.Connect.Video()),
            metadata: configuration.token.map { SoraRequest.Connect.Metadata(accessToken: $0) },
            redirect: isRedirected ? true : nil
        )
    }

    private enum First {
        case offer(SoraMessage)
        case redirect(String)
    }

    private func firstOffer(of session: SoraSession, at url: String) async throws(LoadError) -> First {
        let limit = Task {
            guard (try? await Task.sleep(for: Self.offerTimeout)) != nil else { return }
            session.abandon()
        }
        defer { limit.cancel() }
        for await event in session.events {
            switch event {
            case .message(let message):
                if message.type == "offer", message.sdp != nil { return .offer(message) }
                if message.type == "redirect", let location = message.location {
                    session.close()
                    return .redirect(location)
                }
            case .closed(let how): throw .failed("\(url) made no offer. \(how)")
            }
        }
        throw .failed("\(url) made no offer.")
    }

    /// The address of a WebSocket in the form that the command line has it in.
    private static func web(_ location: String) -> String {
        location.hasPrefix("ws") ? "http" + location.dropFirst(2) : location
    }

    /// Says good-bye, and waits for the server's close.
    func end(_ session: SoraSession, followed: Task<Void, Never>?) async {
        session.send(SoraRequest.Disconnect())
        let limit = Task {
            guard (try? await Task.sleep(for: Self.closeTimeout)) != nil else { return }
            session.abandon()
        }
        if let followed {
            await followed.value
        } else {
            for await event in session.events { if case .closed = event { break } }
        }
        limit.cancel()
    }
}
