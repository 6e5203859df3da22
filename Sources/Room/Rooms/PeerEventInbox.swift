import MediaTypes
import Synchronization
import Wire

/// Events of peers on their way from a media thread to an actor.
///
/// The number that waits is bounded by the peers and their tracks, however fast a peer makes events: of each kind of a
/// track's, a slot's or the peer's own events the latest is kept, and only `closed` of a peer that closed.
final class PeerEventInbox: Sendable {
    fileprivate struct Pending {
        var isConnected = false
        var tracks: [(mid: MID, event: PeerEvent)] = []
        var formats: [(mid: MID, event: PeerEvent)] = []
        var speech: [(mid: MID, event: PeerEvent)] = []
        /// What each slot played before the first of its switches and after the last.
        var layers: [(mid: MID, event: PeerEvent)] = []
        var network: PeerEvent?
        var closed: PeerEvent?
    }
    private struct State {
        var order: [PeerID] = []
        var pending: [PeerID: Pending] = [:]
    }
    private let state = Mutex(State())

    /// Returns whether nothing was waiting.
    func post(_ event: PeerEvent, from peer: PeerID) -> Bool {
        state.withLock { state in
            let wasEmpty = state.order.isEmpty
            if state.pending[peer] == nil { state.order.append(peer) }
            state.pending[peer, default: Pending()].merge(event)
            return wasEmpty
        }
    }

    /// All that arrived since the last call, peers in the order of their first event.
    func take() -> [(peer: PeerID, event: PeerEvent)] {
        let taken = state.withLock { state in
            let taken = state
            state = State()
            return taken
        }
        return taken.order.flatMap { peer in (taken.pending[peer]?.events ?? []).map { (peer, $0) } }
    }
}

extension PeerEventInbox.Pending {
    mutating func merge(_ event: PeerEvent) {
        guard closed == nil else { return }
        switch event {
        case .connected: isConnected = true
        case .closed: self = Self(closed: event)
        case .trackStarted(let mid, _), .trackPaused(let mid): Self.replace(mid, with: event, in: &tracks)
        case .formatUnsupported(let mid, _): Self.replace(mid, with: event, in: &formats)
        case .networkChanged: network = event
        case .speech(let mid, let isSpeaking): mergeSpeech(mid, isSpeaking)
        case .layerSwitched(let slot, let current, let previous, let isWished):
            var first = previous
            if case .layerSwitched(_, _, let earlier, _)? = layers.first(where: { $0.mid == slot })?.event {
                first = earlier
            }
            let merged = PeerEvent.layerSwitched(slot: slot, current: current, previous: first, isWished: isWished)
            Self.replace(slot, with: merged, in: &layers)
        }
    }
    /// That somebody spoke is kept when the end of it comes before it was read.
    private mutating func mergeSpeech(_ mid: MID, _ isSpeaking: Bool) {
        let hasSpoken = speech.contains { $0.mid == mid && $0.event == .speech(mid: mid, isSpeaking: true) }
        speech.removeAll { $0.mid == mid }
        if isSpeaking || hasSpoken { speech.append((mid, .speech(mid: mid, isSpeaking: true))) }
        if !isSpeaking { speech.append((mid, .speech(mid: mid, isSpeaking: false))) }
    }
    private static func replace(_ mid: MID, with event: PeerEvent, in list: inout [(mid: MID, event: PeerEvent)]) {
        list.removeAll { $0.mid == mid }
        list.append((mid, event))
    }
    var events: [PeerEvent] {
        if let closed { return [closed] }
        return (isConnected ? [.connected] : []) + (tracks + formats + speech + layers).map(\.event)
            + (network.map { [$0] } ?? [])
    }
}
