public import Wire

/// What the forwarding core reports to the owner of a peer.
public enum PeerEvent: Sendable, Equatable {
    /// ICE and DTLS are up: media flows.
    case connected
    /// The peer is gone and its resources are freed; the last event of a peer.
    case closed(PeerCloseReason)
    /// A published track's first packet arrived, or its codec changed.
    case trackStarted(mid: MID, codec: CodecName)
    /// Nothing of the track arrived for a while.
    case trackPaused(mid: MID)
    /// A slot's source sends a format that the peer did not negotiate, so it sees nothing.
    case formatUnsupported(slot: MID, codec: CodecName)
    /// Somebody began or stopped speaking into a published track, by the audio levels of its packets (RFC 6464);
    /// only where that extension was negotiated.
    case speech(mid: MID, isSpeaking: Bool)
    /// A slot plays another simulcast layer of its source from now on. `current` is `nil` when nothing is to be sent,
    /// `previous` when nothing of the source was sent before. `isWished` is false when the layer that the slot's
    /// ``LayerChoice`` names does not flow and the nearest one plays instead.
    case layerSwitched(slot: MID, current: RID?, previous: RID?, isWished: Bool)
    /// The network between the peer and us became more or less stable, by what both sides report of it: 0 stable,
    /// 1 slightly unstable, 2 unstable, 3 very unstable. It begins as 0, and changes every two seconds at most.
    case networkChanged(level: Int)
}

/// Events that wait for one reader.
extension PeerEvent {
    /// What an event is about. The latest event on a subject makes those before it obsolete.
    private enum Subject: Hashable {
        case connection, network
        case track(MID)
        case format(slot: MID)
        case speech(MID)
        case layer(slot: MID)
    }

    private var subject: Subject {
        switch self {
        case .connected, .closed: .connection
        case .trackStarted(let mid, _), .trackPaused(let mid): .track(mid)
        case .formatUnsupported(let slot, _): .format(slot: slot)
        case .speech(let mid, _): .speech(mid)
        case .layerSwitched(let slot, _, _, _): .layer(slot: slot)
        case .networkChanged: .network
        }
    }

    /// Adds the event to the earlier ones of its peer, so that what waits is bounded by the peer's tracks and slots: one
    /// event on each subject, two on speech, and only `closed` of a peer that closed.
    package func merge(into waiting: inout [PeerEvent]) {
        if case .closed? = waiting.last { return }
        var merged = self
        switch self {
        case .closed: waiting.removeAll()
        case .connected:
            waiting.insert(self, at: 0)
            return
        // The reader still learns that somebody spoke.
        case .speech(_, isSpeaking: false): waiting.removeAll { $0 == self }
        case .layerSwitched(let slot, let current, _, let isWished):
            if case .layerSwitched(_, _, let first, _)? = waiting.first(where: { $0.subject == subject }) {
                merged = .layerSwitched(slot: slot, current: current, previous: first, isWished: isWished)
            }
            waiting.removeAll { $0.subject == subject }
        default: waiting.removeAll { $0.subject == subject }
        }
        waiting.append(merged)
    }
}
