public import Wire

/// An event of a peer, for its owner.
public enum PeerEvent: Sendable, Equatable {
    /// ICE and DTLS are connected: media flows.
    case connected(over: TransportProtocol)
    /// What ICE selects for a connected peer is now over the other protocol.
    case transportChanged(TransportProtocol)
    /// The peer is gone and its resources are freed; the last event of a peer.
    case closed(PeerCloseReason)
    /// A published track's first packet arrived, or its codec changed.
    case trackStarted(mid: MID, codec: CodecName)
    /// The track's packets have stopped.
    case trackPaused(mid: MID)
    /// Nothing comes of a publisher any more, not even answers to checks; or something comes again. Told within three seconds of the
    /// last sign of life.
    case silenceChanged(isSilent: Bool)
    /// A slot's source sends a format that the peer did not negotiate, so the slot plays nothing.
    case formatUnsupported(slot: MID, codec: CodecName)
    /// The track that a slot plays does not come from its loop or node any more, so the slot plays nothing. Whether there is
    /// still such a track is not known.
    case sourceLost(slot: MID)
    /// Speech started or stopped in a published track, by the audio levels of its packets (RFC 6464). Reported only
    /// where that extension was negotiated.
    case speech(mid: MID, isSpeaking: Bool)
    /// A slot plays another simulcast layer of its source. `current` is `nil` when nothing is sent, `previous` when
    /// nothing of the source was sent before. `isRequested` is false when the layer of the slot's ``LayerChoice`` does
    /// not flow and the nearest one plays instead.
    case layerSwitched(slot: MID, current: RID?, previous: RID?, isRequested: Bool)
    /// The simulcast layers of a published track that nobody wants have changed, here lowest first. The peer may pause them,
    /// and is to send all others. Reported only where ``ReceiveTrackParameters/canPauseLayers``. Layers are added at most every five seconds,
    /// and removed as soon as they are wanted.
    case unusedLayers(mid: MID, rids: [RID])
    /// The stability of the network to the peer changed, by the reports of both sides: 0 stable, 1 slightly unstable,
    /// 2 unstable, 3 very unstable. It starts at 0 and changes at most every two seconds.
    case networkChanged(level: Int)
    /// The quality of the network to the peer has another level in a direction. It starts as unknown, gets worse at most
    /// every two seconds, and better at most every three.
    case qualityChanged(LinkQuality)
    /// The set-up of the peer's media has come further. It is told at most six times: with `connected`, with the first packets
    /// and frames of each direction, and with `closed` of a peer that never was connected.
    case setupAdvanced(PeerSetup)
    /// Something happened to the peer's data channels. The ``DataCredit`` of the peer bounds how many of these wait.
    case data(DataEvent)
    /// The node ended the association of the peer's data channels, and all of them close. A peer has one such event at most.
    case dataEnded(DataAssociationEnd)
}

/// Receives the events of peers: the peer's channel, for one.
public protocol PeerEventReceiver: AnyObject, Sendable {
    /// Called on the thread of the peer's media loop, for one event after the other. It must not block.
    func receive(_ event: PeerEvent, from peer: PeerID)
}

/// Events that wait for one reader.
extension PeerEvent {
    /// What an event is about. The latest event on a subject makes those before it obsolete.
    private enum Subject: Hashable {
        case connection, transport, network, quality, setup, silence, dataEnd
        case track(MID)
        case format(slot: MID)
        case source(slot: MID)
        case speech(MID)
        case layer(slot: MID)
        case unusedLayers(MID)
    }

    /// `nil` for an event that makes no other obsolete.
    private var subject: Subject? {
        switch self {
        case .connected, .closed: .connection
        case .trackStarted(let mid, _), .trackPaused(let mid): .track(mid)
        case .formatUnsupported(let slot, _): .format(slot: slot)
        case .sourceLost(let slot): .source(slot: slot)
        case .speech(let mid, _): .speech(mid)
        case .layerSwitched(let slot, _, _, _): .layer(slot: slot)
        case .unusedLayers(let mid, _): .unusedLayers(mid)
        case .transportChanged: .transport
        case .networkChanged: .network
        case .silenceChanged: .silence
        case .qualityChanged: .quality
        case .setupAdvanced: .setup
        case .dataEnded: .dataEnd
        case .data: nil
        }
    }

    /// Adds the event to the earlier ones of its peer, so that what waits is bounded by the peer's tracks and slots: one
    /// event on each subject, two on speech, and only its set-up, the end of its data and `closed` of a peer that closed. Events of
    /// data channels are all kept, because the peer's credit bounds them.
    package func merge(into waiting: inout [PeerEvent]) {
        if case .closed? = waiting.last { return }
        var merged = self
        switch self {
        // A peer that closes at once cannot hide why its data was ended.
        case .closed: waiting.removeAll { $0.subject != .setup && $0.subject != .dataEnd }
        case .setupAdvanced:
            waiting.removeAll { $0.subject == .setup }
            waiting.insert(self, at: 0)
            return
        case .connected:
            waiting.insert(self, at: waiting.first?.subject == .setup ? 1 : 0)
            return
        case .data: break
        // The reader still learns that somebody spoke.
        case .speech(_, isSpeaking: false): waiting.removeAll { $0 == self }
        case .layerSwitched(let slot, let current, _, let isRequested):
            if case .layerSwitched(_, _, let first, _)? = waiting.first(where: { $0.subject == subject }) {
                merged = .layerSwitched(slot: slot, current: current, previous: first, isRequested: isRequested)
            }
            waiting.removeAll { $0.subject == subject }
        default: waiting.removeAll { $0.subject == subject }
        }
        waiting.append(merged)
    }
}
