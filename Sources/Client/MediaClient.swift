package import Forwarding
package import MediaTypes
package import Negotiation
package import Wire

/// One client's media: what a browser would publish or watch, made and judged here.
///
/// It lives in a forwarding core of its own or one shared with other clients. The same transport, retransmission,
/// feedback and report code as the server's runs in it, in the controlling role.
package final class MediaClient {
    package struct Settings {
        /// `nil`: no video.
        package var video: SyntheticVideo.Settings? = SyntheticVideo.Settings()
        package var sendsAudio = true
        /// Names the publisher in its packets' stamps; unique in a run.
        package var sourceNumber: UInt32 = 1
        /// Where to note the one-way delay of each packet that is received, by kind of media.
        package var videoDelays: DelayRecorder?
        package var audioDelays: DelayRecorder?
        package init() {}
    }

    private struct VideoSender {
        let rid: RID?
        var isPaused = false
        var maker: SyntheticVideo
        let source: LocalSource
    }
    private struct AudioSender {
        var maker: SyntheticAudio
        let source: LocalSource
    }

    /// What arrives in one m-section.
    package final class Listener {
        package let mid: MID
        package let kind: MediaKind
        /// The track was taken out of the session; what came until then still counts.
        package fileprivate(set) var hasEnded = false
        package fileprivate(set) var verifier = StampVerifier()
        fileprivate let delays: DelayRecorder?

        fileprivate init(mid: MID, kind: MediaKind, delays: DelayRecorder?) {
            self.mid = mid
            self.kind = kind
            self.delays = delays
        }

        /// One for every packet: it neither allocates nor looks anything up.
        fileprivate func received(_ stamped: RawSpan, isRestored: Bool, at now: Instant) {
            guard let stamp = verifier.received(stamped, isRestored: isRestored, at: now) else { return }
            delays?.observe(now - stamp.sentAt)
        }
    }

    package let id: PeerID
    private let core: Forwarder
    private var videos: [VideoSender] = []
    private var audio: AudioSender?
    private var isSending = false
    package private(set) var isConnected = false
    package private(set) var closedFor: PeerCloseReason?
    package private(set) var connectedAt: Instant?
    /// What is or was received, by m-section in the order in which they came.
    package private(set) var listeners: [Listener] = []
    private let delays: (video: DelayRecorder?, audio: DelayRecorder?)

    package var video: StampVerifier? { listeners.first { $0.kind == .video }?.verifier }
    package var audioReceived: StampVerifier? { listeners.first { $0.kind == .audio }?.verifier }
    /// What is received in one section.
    package func listener(_ mid: MID) -> Listener? { listeners.first { $0.mid == mid } }
    package var videoPacketsMade: Int { videos.reduce(0) { $0 + Int($1.maker.packetCount) } }
    package var videoFramesMade: Int { videos.reduce(0) { $0 + Int($1.maker.frameCount) } }
    package var keyFramesMade: Int { videos.reduce(0) { $0 + $1.maker.keyFramesMade } }
    package var audioPacketsMade: Int { Int(audio?.maker.packetCount ?? 0) }

    /// Makes the peer of a negotiated session.
    /// - Parameters:
    ///   - answer: the server's, to this client's offer.
    ///   - paths: our socket with each of the server's candidates.
    package init(
        core: Forwarder,
        id: PeerID,
        credentials: ICECredentials,
        answer: ClientAnswer,
        paths: [NetworkPath],
        settings: Settings = Settings(),
        at now: Instant,
        using generator: inout some RandomNumberGenerator
    ) throws(ForwarderError) {
        self.core = core
        self.id = id
        delays = (settings.videoDelays, settings.audioDelays)
        let sends = answer.send.flatMap { track in
            track.encodings.map { encoding in
                SendTrackParameters(
                    mid: track.mid,
                    kind: track.kind,
                    codecs: track.codecs,
                    extensions: track.extensions,
                    ssrc: encoding.ssrc,
                    rtxSSRC: encoding.rtxSSRC,
                    rid: encoding.rid,
                    cname: track.cname
                )
            }
        }
        let parameters = PeerParameters(
            id: id,
            localCredentials: credentials,
            remote: answer.remote,
            receive: answer.receive,
            send: sends
        )
        try core.addClientPeer(parameters, candidates: paths, at: now)
        for track in answer.receive { listen(to: track) }
        let layers = sends.count { $0.rid != nil }
        for (index, send) in sends.enumerated() {
            var settings = settings
            if send.rid != nil {
                // Lowest first; a layer halves the bitrate of the one above it, and stamps as a source of its own.
                let layer = videos.count
                settings.video?.bitrate >>= max(layers - 1 - layer, 0)
                settings.sourceNumber = Self.source(settings.sourceNumber, layer: layer)
            }
            try addSender(send, index: index, settings: settings, at: now, using: &generator)
        }
    }

    /// Lets other tracks arrive than before, as a later offer of the server has them.
    package func change(
        add: [ReceiveTrackParameters],
        remove: [MID],
        at now: Instant
    ) throws(ForwarderError) {
        try core.changeReceivedTracks(of: id, add: add, remove: remove, at: now)
        for listener in listeners where remove.contains(listener.mid) { listener.hasEnded = true }
        for track in add { listen(to: track) }
    }

    private func listen(to track: ReceiveTrackParameters) {
        let listener = Listener(
            mid: track.mid,
            kind: track.kind,
            delays: track.kind == .video ? delays.video : delays.audio
        )
        listeners.append(listener)
        let stampOffset = track.kind == .video ? SyntheticVideo.stampOffset : 0
        core.peer(id)?.track(track.mid)?.tap = { packet, description, now in
            let start = Int(description.payloadOffset) + stampOffset
            let end = Int(description.payloadOffset) + Int(description.payloadLength)
            guard start < end else { return }
            listener.received(packet.extracting(start..<end), isRestored: description.isRTXRecovered, at: now)
        }
    }

    /// Counts losses and gaps of what is received from here on.
    package func beginWindow() {
        for listener in listeners { listener.verifier.beginWindow() }
    }

    private func addSender(
        _ send: SendTrackParameters,
        index: Int,
        settings: Settings,
        at now: Instant,
        using generator: inout some RandomNumberGenerator
    ) throws(ForwarderError) {
        guard let codec = send.codecs.first else { return }
        let track = TrackID(peer: id, mid: send.slotName)
        let parameters = ReceiveTrackParameters(
            mid: send.slotName,
            kind: send.kind,
            codecs: [codec],
            ssrcs: [send.ssrc]
        )
        let source = LocalSource(
            id: track,
            parameters: parameters,
            streamID: StreamID(rawValue: 1 << 63 | id.rawValue << 8 | UInt64(index)),
            at: now
        )
        switch send.kind {
        case .video:
            guard let video = settings.video else { return }
            videos.append(
                VideoSender(
                    rid: send.rid,
                    maker: SyntheticVideo(
                        source: settings.sourceNumber,
                        settings: video,
                        payloadType: codec.payloadType,
                        ssrc: send.ssrc,
                        startingAt: now,
                        using: &generator
                    ),
                    source: source
                )
            )
        case .audio:
            guard settings.sendsAudio else { return }
            audio = AudioSender(
                maker: SyntheticAudio(
                    source: settings.sourceNumber,
                    payloadType: codec.payloadType,
                    ssrc: send.ssrc,
                    startingAt: now,
                    using: &generator
                ),
                source: source
            )
        }
        try core.connect(slot: track, to: source, at: now)
    }

    /// Takes an event that the core reported for this peer.
    package func handle(_ event: PeerEvent, at now: Instant) {
        switch event {
        case .connected:
            isConnected = true
            isSending = true
            connectedAt = now
        case .closed(let reason):
            isConnected = false
            isSending = false
            closedFor = reason
        default: break
        }
    }

    /// Stops and starts making media, as a muted or covered source does.
    package func setSending(_ sending: Bool) { isSending = sending && isConnected }

    /// Stops and starts one simulcast layer, as an encoder that lacks bandwidth does.
    package func setSending(_ sending: Bool, layer: RID) {
        for index in videos.indices where videos[index].rid == layer { videos[index].isPaused = !sending }
    }

    /// The source number in the stamps of a simulcast layer, counted from the lowest.
    package static func source(_ number: UInt32, layer: Int) -> UInt32 { number &+ UInt32(layer) &* 0x10000 }

    /// When the next frame or packet is due; `nil` while nothing is sent.
    package var nextDeadline: Instant? {
        guard isSending else { return nil }
        let video = videos.lazy.filter { !$0.isPaused }.map(\.maker.nextFrameAt).min()
        return earliest(video, audio?.maker.nextPacketAt)
    }

    /// Makes the media that is due.
    package func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        guard isSending else { return }
        for index in videos.indices {
            let source = videos[index].source
            guard !videos[index].isPaused, now >= videos[index].maker.nextFrameAt else { continue }
            source.noteCapture(videos[index].maker.timestamp(at: now), ntp: core.ntp(at: now))
            let wanted = source.takeKeyFrameRequest(at: now)
            _ = videos[index].maker.makeFrame(at: now, keyFrameWanted: wanted) { packet in
                source.send(packet, at: now, into: batch)
            }
        }
        while let source = audio?.source, let maker = audio?.maker, now >= maker.nextPacketAt {
            // A packet that is made late was captured when it was due.
            source.noteCapture(maker.timestamp, ntp: core.ntp(at: maker.nextPacketAt))
            _ = audio?.maker.makePacket(at: now) { source.send($0, at: now, into: batch) }
        }
    }
}
