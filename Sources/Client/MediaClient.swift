package import Forwarding
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
        package init() {}
    }

    private struct VideoSender {
        var maker: SyntheticVideo
        let source: LocalSource
    }
    private struct AudioSender {
        var maker: SyntheticAudio
        let source: LocalSource
    }

    package let id: PeerID
    private let core: Forwarder
    private var videos: [VideoSender] = []
    private var audio: AudioSender?
    private var isSending = false
    package private(set) var isConnected = false
    package private(set) var closedFor: PeerCloseReason?
    package private(set) var connectedAt: Instant?
    /// What was received, by m-section.
    package private(set) var received: [MID: StampVerifier] = [:]
    private var kinds: [MID: MediaKind] = [:]

    package var video: StampVerifier? { received.first { kinds[$0.key] == .video }?.value }
    package var audioReceived: StampVerifier? { received.first { kinds[$0.key] == .audio }?.value }
    package var videoPacketsMade: Int { videos.reduce(0) { $0 + Int($1.maker.packetCount) } }
    package var videoFramesMade: Int { videos.reduce(0) { $0 + Int($1.maker.frameCount) } }
    package var keyFramesMade: Int { videos.reduce(0) { $0 + $1.maker.keyFramesMade } }
    package var audioPacketsMade: Int { Int(audio?.maker.packetCount ?? 0) }

    /// Makes the peer of a negotiated session.
    /// - Parameters:
    ///   - answer: the server's, to this client's offer.
    ///   - paths: our socket with each of the server's candidates.
    package init(
        core: Forwarder, id: PeerID, credentials: ICECredentials, answer: ClientAnswer, paths: [NetworkPath],
        settings: Settings = Settings(), at now: Instant, using generator: inout some RandomNumberGenerator
    ) throws(ForwarderError) {
        self.core = core
        self.id = id
        let sends = answer.send.flatMap { track in
            track.encodings.map { encoding in
                SendTrackParameters(
                    mid: track.mid, kind: track.kind, codecs: track.codecs, extensions: track.extensions,
                    ssrc: encoding.ssrc, rtxSSRC: encoding.rtxSSRC, rid: encoding.rid, cname: track.cname)
            }
        }
        let parameters = PeerParameters(
            id: id, localCredentials: credentials, remote: answer.remote, receive: answer.receive, send: sends)
        try core.addClientPeer(parameters, candidates: paths, at: now)
        for track in answer.receive { listen(to: track) }
        for (index, send) in sends.enumerated() {
            try addSender(send, layer: index, settings: settings, at: now, using: &generator)
        }
    }

    private func listen(to track: ReceiveTrackParameters) {
        received[track.mid] = StampVerifier()
        kinds[track.mid] = track.kind
        let stampOffset = track.kind == .video ? SyntheticVideo.stampOffset : 0
        core.peer(id)?.track(track.mid)?.tap = { [weak self] packet, description, now in
            let start = Int(description.payloadOffset) + stampOffset
            let end = Int(description.payloadOffset) + Int(description.payloadLength)
            guard start < end else { return }
            self?.received[track.mid]?.received(packet.extracting(start..<end), at: now)
        }
    }

    private func addSender(
        _ send: SendTrackParameters, layer: Int, settings: Settings, at now: Instant,
        using generator: inout some RandomNumberGenerator
    ) throws(ForwarderError) {
        guard let codec = send.codecs.first else { return }
        let track = TrackID(peer: id, mid: send.slotName)
        // A layer halves the bitrate of the one above it.
        let parameters = ReceiveTrackParameters(mid: send.slotName, kind: send.kind, codecs: [codec], ssrcs: [send.ssrc])
        let source = LocalSource(
            id: track, parameters: parameters,
            streamID: StreamID(rawValue: 1 << 63 | id.rawValue << 8 | UInt64(layer)), at: now)
        switch send.kind {
        case .video:
            guard let video = settings.video else { return }
            videos.append(
                VideoSender(
                    maker: SyntheticVideo(
                        source: settings.sourceNumber, settings: video, payloadType: codec.payloadType,
                        ssrc: send.ssrc, startingAt: now, using: &generator),
                    source: source))
        case .audio:
            guard settings.sendsAudio else { return }
            audio = AudioSender(
                maker: SyntheticAudio(
                    source: settings.sourceNumber, payloadType: codec.payloadType, ssrc: send.ssrc, startingAt: now,
                    using: &generator),
                source: source)
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
        case .trackStarted, .trackPaused, .formatUnsupported: break
        }
    }

    /// Stops and starts making media, as a muted or covered source does.
    package func setSending(_ sending: Bool) { isSending = sending && isConnected }

    /// When the next frame or packet is due; `nil` while nothing is sent.
    package var nextDeadline: Instant? {
        guard isSending else { return nil }
        let video = videos.map(\.maker.nextFrameAt).min()
        return earliest(video, audio?.maker.nextPacketAt)
    }

    /// Makes the media that is due.
    package func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        guard isSending else { return }
        for index in videos.indices {
            let source = videos[index].source
            guard now >= videos[index].maker.nextFrameAt else { continue }
            source.noteCapture(videos[index].maker.timestamp(at: now), ntp: core.ntp(at: now))
            let wanted = source.takeKeyFrameRequest(at: now)
            _ = videos[index].maker.makeFrame(at: now, keyFrameWanted: wanted) { packet in
                source.send(packet, at: now, into: batch)
            }
        }
        while let source = audio?.source, let timestamp = audio?.maker.timestamp {
            source.noteCapture(timestamp, ntp: core.ntp(at: now))
            let made = audio?.maker.makePacket(at: now) { source.send($0, at: now, into: batch) }
            guard made == true else { break }
        }
    }
}
