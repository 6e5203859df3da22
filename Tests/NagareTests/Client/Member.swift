import Client
import ClientEngine
import Foundation
import NagareClient
import Synchronization
import TestSupport
import Testing

/// A user of the Swift client, with all its events.
final class Member: Sendable {
    let client: ChannelClient
    let transport = BreakableTransport()
    private let log = Mutex<[ChannelEvent]>([])
    private let reader: Mutex<Task<Void, Never>?> = Mutex(nil)

    init(
        _ user: String,
        on loop: EngineLoop,
        ports: [Int],
        channel: String = "room",
        token: ChannelToken? = nil,
        _ edit: (inout ChannelOptions) -> Void = { _ in }
    ) throws {
        let urls = try ports.map { try #require(URL(string: "ws://127.0.0.1:\($0)")) }
        var options = ChannelOptions(urls: urls, channel: channel, user: user, token: token)
        edit(&options)
        var media = SyntheticMedia()
        media.sourceNumber = UInt32(truncatingIfNeeded: user.hashValue) >> 4
        media.video.bitrate = 200_000
        client = ChannelClient(options, transport: transport, engine: SyntheticEngine(loop, media: media))
        let events = client.events
        reader.withLock { task in
            task = Task { [weak self] in
                for await event in events { self?.log.withLock { $0.append(event) } }
            }
        }
    }

    deinit { reader.withLock { $0?.cancel() } }

    var events: [ChannelEvent] { log.withLock { $0 } }

    func clear() { log.withLock { $0 = [] } }

    func hasSeen(_ condition: (ChannelEvent) -> Bool) -> Bool { events.contains(where: condition) }

    /// Waits for an event.
    func sees(_ name: String, _ condition: (ChannelEvent) -> Bool) async throws {
        try await eventually(name) { hasSeen(condition) }
    }

    /// How many frames of other users' video the engine has decoded in the present connection.
    func frames() async -> Int {
        await client.statistics()?.received.filter { $0.kind == .video }.map(\.frames).reduce(0, +) ?? 0
    }

    func audioPackets() async -> Int {
        await client.statistics()?.received.filter { $0.kind == .audio }.map(\.packets).reduce(0, +) ?? 0
    }
}

/// Opens WebSockets that can be cut.
final class BreakableTransport: SignalingTransport {
    private let transport = NIOSignaling()
    private let open = Mutex<[ClientWebSocket]>([])

    func connect(to url: URL) async throws -> any SignalingSocket {
        let socket = try await transport.connect(to: url)
        if let socket = socket as? ClientWebSocket { open.withLock { $0.append(socket) } }
        return socket
    }

    /// Ends the TCP connections, as a network does.
    func cut() {
        for socket in open.withLock({ $0 }) { socket.abandon() }
    }
}

extension ChannelEvent {
    func isOnline(_ user: String) -> Bool {
        if case .userOnline(let other, _) = self { other.id == user } else { false }
    }

    func isOffline(_ user: String, _ reason: OfflineReason) -> Bool {
        if case .userOffline(let other, reason) = self { other.id == user } else { false }
    }

    func isFlow(of user: String, source: TrackSource = .camera, audio: Bool, video: Bool) -> Bool {
        guard case .trackAvailable(let other, let connection) = self else { return false }
        return other.id == user && connection.source == source && connection.audio == audio && connection.video == video
    }

    func isMute(of user: String, _ kind: TrackKind, _ isMuted: Bool) -> Bool {
        if case .remoteMuted(let other, _, kind, isMuted) = self { other.id == user } else { false }
    }

    func isFirstFrame(of user: String, _ kind: TrackKind, _ source: TrackSource = .camera) -> Bool {
        if case .firstFrameReceived(let track) = self {
            track.user == user && track.kind == kind && track.source == source
        } else {
            false
        }
    }

    func isBye(_ reason: ByeReason) -> Bool { if case .bye(reason, _) = self { true } else { false } }

    var joined: JoinedChannel? { if case .joined(let joined) = self { joined } else { nil } }
    var isReturn: Bool { joined?.isReturn == true }
    var quality: NetworkQuality? { if case .networkQuality(let quality) = self { quality } else { nil } }
}
