package import Client
import DTLS
import MediaTypes
package import NagareClient
import Negotiation
import Wire

/// What a client of the ``SyntheticEngine`` sends.
package struct SyntheticMedia: Sendable {
    /// Names the client in its packets' stamps.
    package var sourceNumber: UInt32 = 1
    package var video = SyntheticVideo.Settings()

    package init() {}

    var settings: MediaClient.Settings {
        var settings = MediaClient.Settings()
        settings.sourceNumber = sourceNumber
        settings.video = video
        return settings
    }
}

/// The media engine of bots and tests: it sends synthetic media, and verifies what it receives. It does without TURN.
package actor SyntheticEngine: MediaEngine {
    private let loop: EngineLoop
    private let media: SyntheticMedia
    private var started: Set<LocalMedia> = []
    private var muted: Set<LocalMedia> = []
    private var connections: [ObjectIdentifier: (source: TrackSource, connection: SyntheticConnection)] = [:]

    /// - Parameter loop: may be shared by several clients.
    package init(_ loop: EngineLoop, media: SyntheticMedia = SyntheticMedia()) {
        self.loop = loop
        self.media = media
    }

    package func start(_ media: LocalMedia) async {
        started.insert(media)
        await update(media)
    }

    package func stop(_ media: LocalMedia) async {
        started.remove(media)
        muted.remove(media)
        await update(media)
    }

    package func setMuted(_ media: LocalMedia, _ isMuted: Bool) async {
        if isMuted { muted.insert(media) } else { muted.remove(media) }
        await update(media)
    }

    /// A muted microphone sends silence, which is packets, too. A muted camera sends nothing.
    private func sends(_ media: LocalMedia) -> Bool {
        started.contains(media) && (media == .microphone || !muted.contains(media))
    }

    private func update(_ media: LocalMedia) async {
        for entry in connections.values where media == .microphone || entry.source == media.source {
            await entry.connection.setSending(sends(media), media.kind == .audio ? .audio : .video)
        }
    }

    package func makeConnection(
        _ setup: MediaConnectionSetup,
        events: @escaping @Sendable (MediaConnectionEvent) -> Void
    ) -> any MediaConnection {
        var kinds: Set<MediaKind> = []
        if setup.source == .camera, sends(.microphone) { kinds.insert(.audio) }
        if sends(setup.source == .camera ? .camera : .screen) { kinds.insert(.video) }
        let connection = SyntheticConnection(loop, media, sending: kinds, report: events) { [weak self] id in
            await self?.forget(id)
        }
        connections[ObjectIdentifier(connection)] = (setup.source, connection)
        return connection
    }

    private func forget(_ id: ObjectIdentifier) { connections[id] = nil }
}

/// One connection of a ``SyntheticEngine``.
actor SyntheticConnection: MediaConnection {
    private let loop: EngineLoop
    private let media: SyntheticMedia
    private var sending: Set<MediaKind>
    private let report: @Sendable (MediaConnectionEvent) -> Void
    private let onClose: @Sendable (ObjectIdentifier) async -> Void
    private var answerer: ClientAnswerer?
    private var peer: PeerID?

    init(
        _ loop: EngineLoop,
        _ media: SyntheticMedia,
        sending: Set<MediaKind>,
        report: @escaping @Sendable (MediaConnectionEvent) -> Void,
        onClose: @escaping @Sendable (ObjectIdentifier) async -> Void
    ) {
        self.loop = loop
        self.media = media
        self.sending = sending
        self.report = report
        self.onClose = onClose
    }

    func answer(_ offer: ServerOffer) async throws -> String {
        var generator = SystemRandomNumberGenerator()
        let transport = LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: loop.certificate.fingerprint,
            // The node learns the address from connectivity checks (RFC 8445 §7.3.1.3).
            candidates: []
        )
        var answerer = ClientAnswerer(transport: transport, codecs: [.opus, .vp8], using: &generator)
        let mids = offer.sendingMIDs.values.compactMap { MID($0) }
        let applied = try answerer.answer(offer: offer.sdp, sending: Set(mids), using: &generator)
        self.answerer = answerer
        peer = try await loop.add(
            transport.credentials,
            ClientAnswer(applied),
            media,
            sending: sending,
            report: report
        )
        announce(applied)
        return applied.answer
    }

    func answerAgain(_ sdp: String) async throws -> String {
        guard var answerer, let peer else { throw EngineError("There was no first offer.") }
        var generator = SystemRandomNumberGenerator()
        let applied = try answerer.answer(offer: sdp, using: &generator)
        self.answerer = answerer
        try await loop.change(peer, add: applied.added.map(\.parameters), remove: applied.removed)
        announce(applied)
        return applied.answer
    }

    private func announce(_ applied: ClientAnswerer.AppliedOffer) {
        for mid in applied.removed { report(.trackRemoved(mid: mid.value)) }
        for track in applied.added {
            guard let streamID = track.streamID else { continue }
            let kind: TrackKind = track.parameters.kind == .audio ? .audio : .video
            report(.trackAdded(ReceivedTrack(mid: track.parameters.mid.value, kind: kind, streamID: streamID)))
        }
    }

    func setSending(_ isSending: Bool, _ kind: MediaKind) async {
        if isSending { sending.insert(kind) } else { sending.remove(kind) }
        if let peer { await loop.setSending(isSending, kind, of: peer) }
    }

    func statistics() async -> MediaStatistics {
        guard let peer else { return MediaStatistics() }
        return await loop.statistics(of: peer)
    }

    func close() async {
        if let peer { await loop.remove(peer) }
        await onClose(ObjectIdentifier(self))
    }
}
