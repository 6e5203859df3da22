package import Base
package import Forwarding
package import MediaTypes
package import Negotiation
package import Wire

/// The media of one synthetic client: generates what a browser would publish, and verifies what it would watch.
///
/// It runs in a forwarding core of its own or one shared with other clients, with the server's transport,
/// retransmission, feedback and report code, as the ICE controlling agent.
package final class MediaClient {
    package struct Settings {
        /// `nil`: no video.
        package var video: SyntheticVideo.Settings? = SyntheticVideo.Settings()
        /// Of the simulcast layers, lowest first; empty: each layer has half the rate of the one above it.
        package var layerBitrates: [Int] = []
        package var sendsAudio = true
        package var audioBitrate = 48_000
        /// Names the publisher in its packets' stamps; unique in a run.
        package var sourceNumber: UInt32 = 1
        /// Record the one-way delay of each received packet, by kind of media.
        package var videoDelays: DelayRecorder?
        package var audioDelays: DelayRecorder?
        package init() {}
    }

    private struct VideoSender {
        let rid: RID?
        var isPaused = false
        var encoder: SyntheticVideo
        let source: LocalSource
    }
    private struct AudioSender {
        var isPaused = false
        var encoder: SyntheticAudio
        let source: LocalSource
    }

    /// Verifies the media of one received m-section.
    package final class Receiver {
        package let mid: MID
        package let kind: MediaKind
        /// Whether the track was removed by renegotiation. Earlier packets still count.
        package fileprivate(set) var hasEnded = false
        package fileprivate(set) var verifier = StampVerifier()
        fileprivate let delays: DelayRecorder?
        /// Whether no packet has come.
        package var isSilent: Bool { verifier.isSilent }

        fileprivate init(mid: MID, kind: MediaKind, delays: DelayRecorder?) {
            self.mid = mid
            self.kind = kind
            self.delays = delays
        }

        /// A decoder that gets packets and no picture for this time asks for a key frame, again and again (libwebrtc's
        /// `kMaxWaitForFrame`).
        private static let pictureWaitMax = Interval.seconds(3)
        private var askedAt: Instant?

        /// Whether a decoder would ask for a key frame now, which is after a packet.
        fileprivate func takesKeyFrameRequest(at now: Instant) -> Bool {
            guard kind == .video, let decodedAt = verifier.lastDecodedAt,
                now - max(decodedAt, askedAt ?? decodedAt) >= Self.pictureWaitMax
            else { return false }
            askedAt = now
            return true
        }

        /// Called for every packet: neither allocates nor looks anything up.
        fileprivate func received(_ stamped: RawSpan, of description: PacketDescription, at now: Instant) {
            let stamp = verifier.received(
                stamped,
                sequence: description.sequence,
                isRestored: description.isRTXRecovered,
                at: now
            )
            guard let stamp else { return }
            delays?.observe(now - stamp.sentAt)
        }
    }

    package let id: PeerID
    private let core: Forwarder
    private var videos: [VideoSender] = []
    private var audio: AudioSender?
    private var isSending = false
    package private(set) var isConnected = false
    package private(set) var closeReason: PeerCloseReason?
    package private(set) var connectedAt: Instant?
    /// One for each received m-section, present and removed ones, in the order of their negotiation.
    package private(set) var receivers: [Receiver] = []
    private let delays: (video: DelayRecorder?, audio: DelayRecorder?)

    package var video: StampVerifier? { receivers.first { $0.kind == .video }?.verifier }
    /// The receiver of one m-section.
    package func receiver(_ mid: MID) -> Receiver? { receivers.first { $0.mid == mid } }
    /// Whether its video has simulcast layers. The packets of each have numbers of their own.
    package var sendsLayers: Bool { videos.count > 1 }
    /// Of all layers together.
    package var videoPacketsMade: Int { videos.reduce(0) { $0 + Int($1.encoder.packetCount) } }
    package var videoFramesMade: Int { videos.reduce(0) { $0 + Int($1.encoder.frameCount) } }
    package var keyFramesMade: Int { videos.reduce(0) { $0 + $1.encoder.keyFramesMade } }
    package var audioPacketsMade: Int { Int(audio?.encoder.packetCount ?? 0) }

    /// Adds the client's peer to the core.
    /// - Parameters:
    ///   - answer: the server's answer to this client's offer.
    ///   - paths: this client's socket with each of the server's candidates.
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
            send: sends,
            data: answer.data
        )
        try core.addClientPeer(parameters, candidates: paths, at: now)
        for track in answer.receive { addReceiver(for: track) }
        let layers = sends.count { $0.rid != nil }
        for (index, send) in sends.enumerated() {
            var settings = settings
            if send.rid != nil {
                // Lowest first. Each layer has its own source number.
                let layer = videos.count
                if settings.layerBitrates.indices.contains(layer) {
                    settings.video?.bitrate = settings.layerBitrates[layer]
                } else {
                    settings.video?.bitrate >>= max(layers - 1 - layer, 0)
                }
                settings.sourceNumber = Self.source(settings.sourceNumber, layer: layer)
            }
            try addSender(send, index: index, settings: settings, at: now, using: &generator)
        }
    }

    /// Changes the received tracks, as a later offer of the server requires.
    package func change(
        add: [ReceiveTrackParameters],
        remove: [MID],
        at now: Instant
    ) throws(ForwarderError) {
        try core.changeReceivedTracks(of: id, add: add, remove: remove, at: now)
        for receiver in receivers where remove.contains(receiver.mid) { receiver.hasEnded = true }
        for track in add { addReceiver(for: track) }
    }

    private func addReceiver(for track: ReceiveTrackParameters) {
        let receiver = Receiver(
            mid: track.mid,
            kind: track.kind,
            delays: track.kind == .video ? delays.video : delays.audio
        )
        receivers.append(receiver)
        let stampOffset = track.kind == .video ? SyntheticVideo.stampOffset : 0
        core.peer(id)?.track(track.mid)?.tap = { [unowned core, id] packet, description, now in
            let start = Int(description.payloadOffset) + stampOffset
            let end = Int(description.payloadOffset) + Int(description.payloadLength)
            guard start < end else { return }
            receiver.received(packet.extracting(start..<end), of: description, at: now)
            if receiver.takesKeyFrameRequest(at: now) { core.requestKeyFrame(of: id, track.mid, at: now) }
        }
    }

    /// Restarts the counts of losses and gaps.
    package func beginWindow() {
        for receiver in receivers { receiver.verifier.beginWindow() }
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
                    encoder: SyntheticVideo(
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
                encoder: SyntheticAudio(
                    source: settings.sourceNumber,
                    payloadType: codec.payloadType,
                    ssrc: send.ssrc,
                    bitrate: settings.audioBitrate,
                    startingAt: now,
                    using: &generator
                ),
                source: source
            )
        }
        try core.connect(slot: track, to: source, at: now)
    }

    /// Handles an event that the core reported for this peer.
    package func handle(_ event: PeerEvent, at now: Instant) {
        switch event {
        case .connected:
            isConnected = true
            isSending = true
            connectedAt = now
        case .closed(let reason):
            isConnected = false
            isSending = false
            closeReason = reason
        default: break
        }
    }

    /// Stops and starts sending, as a muted source does.
    package func setSending(_ sending: Bool) { isSending = sending && isConnected }

    /// Stops and starts one simulcast layer, as an encoder that lacks bandwidth does.
    package func setSending(_ sending: Bool, layer: RID) {
        for index in videos.indices where videos[index].rid == layer { videos[index].isPaused = !sending }
    }

    /// Stops and starts a kind, as a device that is closed or opened does.
    package func setSending(_ sending: Bool, kind: MediaKind) {
        switch kind {
        case .audio: audio?.isPaused = !sending
        case .video: for index in videos.indices { videos[index].isPaused = !sending }
        }
    }

    /// Changes how all layers of the video are encoded from their next frames on.
    package func changeVideo(_ change: (inout SyntheticVideo.Settings) -> Void) {
        for index in videos.indices { change(&videos[index].encoder.settings) }
    }

    /// The source number in the stamps of a simulcast layer, counted from the lowest.
    package static func source(_ number: UInt32, layer: Int) -> UInt32 { number &+ UInt32(layer) &* 0x10000 }

    /// When the next frame or packet is due; `nil` while nothing is sent.
    package var nextDeadline: Instant? {
        guard isSending else { return nil }
        let video = videos.lazy.filter { !$0.isPaused }.map(\.encoder.nextFrameAt).min()
        return earliest(video, audio?.isPaused == false ? audio?.encoder.nextPacketAt : nil)
    }

    /// Generates and sends the media that is due.
    package func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        guard isSending else { return }
        for index in videos.indices {
            let source = videos[index].source
            guard !videos[index].isPaused, now >= videos[index].encoder.nextFrameAt else { continue }
            source.noteCapture(videos[index].encoder.timestamp(at: now), ntp: core.ntp(at: now))
            let wanted = source.takeKeyFrameRequest(at: now)
            _ = videos[index].encoder.makeFrame(at: now, keyFrameWanted: wanted) { packet in
                source.send(packet, at: now, into: batch)
            }
        }
        while let source = audio?.source, audio?.isPaused == false, let encoder = audio?.encoder,
            now >= encoder.nextPacketAt
        {
            // A late packet was captured when it was due.
            source.noteCapture(encoder.timestamp, ntp: core.ntp(at: encoder.nextPacketAt))
            _ = audio?.encoder.makePacket(at: now) { source.send($0, at: now, into: batch) }
        }
    }
}
