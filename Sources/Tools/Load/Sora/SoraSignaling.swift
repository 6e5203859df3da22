import ClientEngine
import NagareClient

/// Sora's signaling in the client's role, with a WebSocket for each client. The server offers.
final class SoraSignaling: Sendable {
    /// How long the server may take to offer.
    private static let offerTimeout = Duration.seconds(30)
    /// How long the server may take to close after `disconnect`.
    private static let closeTimeout = Duration.seconds(3)

    private let configuration: LoadConfiguration

    init(_ configuration: LoadConfiguration) { self.configuration = configuration }

    private func url(at server: String) -> String {
        let base = server.hasSuffix("/") ? String(server.dropLast()) : server
        let path = configuration.signalingPath
        return base + (path.hasPrefix("/") ? path : "/" + path)
    }

    /// Joins a channel.
    /// - Parameter server: its URL, if it is not that of the configuration.
    /// - Returns: the socket and the server's first offer, which the caller answers.
    func join(
        channel: String,
        role: SoraRequest.Role,
        at server: String? = nil
    ) async throws(LoadError) -> (socket: ClientWebSocket, offer: SoraMessage) {
        var url = url(at: server ?? configuration.url)
        // A node redirects once to the channel's own node.
        for isRedirected in [false, true] {
            let socket = try await open(url)
            let request = request(channel: channel, role: role, isRedirected: isRedirected)
            socket.send(SoraRequest.text(request))
            switch try await firstOffer(of: socket, at: url) {
            case .offer(let offer): return (socket, offer)
            case .redirect(let location) where !isRedirected: url = Self.web(location)
            case .redirect: throw .failed("The server redirects more than once.")
            }
        }
        throw .failed("The server redirects more than once.")
    }

    private func open(_ url: String) async throws(LoadError) -> ClientWebSocket {
        do throws(ClientWebSocketError) {
            return try await ClientWebSocket.open(url, tls: configuration.tls)
        } catch {
            switch error {
            case .invalidURL(let sentence): throw .usage(sentence)
            case .failed(let sentence): throw .failed(sentence)
            }
        }
    }

    private func request(channel: String, role: SoraRequest.Role, isRedirected: Bool) -> SoraRequest.Connect {
        let hasVideo = configuration.videoBitsPerSecond > 0
        return SoraRequest.Connect(
            role: role.rawValue,
            channelID: channel,
            audio: configuration.sendsAudio,
            video: role == .recvonly || !hasVideo ? .isEnabled(hasVideo) : .options(SoraRequest.Connect.Video()),
            metadata: configuration.token.map { SoraRequest.Connect.Metadata(accessToken: $0) },
            redirect: isRedirected ? true : nil
        )
    }

    private enum First {
        case offer(SoraMessage)
        case redirect(String)
    }

    private func firstOffer(of socket: ClientWebSocket, at url: String) async throws(LoadError) -> First {
        let limit = Task {
            guard (try? await Task.sleep(for: Self.offerTimeout)) != nil else { return }
            socket.abandon()
        }
        defer { limit.cancel() }
        for await event in socket.events {
            switch event {
            case .text(let text):
                guard let message = SoraMessage(text) else {
                    socket.abandon()
                    throw .failed("\(url) made no offer. \(SoraMessage.invalid)")
                }
                if message.type == "offer", message.sdp != nil { return .offer(message) }
                if message.type == "redirect", let location = message.location {
                    socket.close()
                    return .redirect(location)
                }
            case .ended(let end): throw .failed("\(url) made no offer. \(end.sentence)")
            }
        }
        throw .failed("\(url) made no offer.")
    }

    /// The URL of a WebSocket with the scheme of HTTP.
    private static func web(_ location: String) -> String {
        location.hasPrefix("ws") ? "http" + location.dropFirst(2) : location
    }

    /// Sends `disconnect` and waits for the server's close.
    /// - Parameter reader: the task that reads the socket's events, if any.
    func end(_ socket: ClientWebSocket, reader: Task<Void, Never>?) async {
        socket.send(SoraRequest.text(SoraRequest.Disconnect()))
        let limit = Task {
            guard (try? await Task.sleep(for: Self.closeTimeout)) != nil else { return }
            socket.abandon()
        }
        if let reader {
            await reader.value
        } else {
            for await event in socket.events { if case .ended = event { break } }
        }
        limit.cancel()
    }
}
