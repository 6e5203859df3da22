package import Forwarding
package import Room
package import Wire

/// A media plane that keeps what it was told, and can be made to wait or to fail.
package actor FakeMediaPlane: MediaPlane {
    package struct Refusal: Error {}
    package private(set) var peers: [PeerID: PeerParameters] = [:]
    package private(set) var sources: [TrackID: PlacedTrack] = [:]
    /// The layer of each slot that has a source.
    package private(set) var layers: [TrackID: LayerChoice] = [:]
    package private(set) var keyFrameRequests: [PeerID: Int] = [:]
    private var figures: [PeerID: PeerStatistics] = [:]
    package private(set) var connectCount = 0
    package private(set) var removed: [PeerID] = []
    private var loopLoad = LoopLoad()
    private var refuses = false
    private var isGateClosed = false
    /// The home whose tracks are waited for at the gate; `nil` while none are.
    private var gatedHome: Int?
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var arrivals: [CheckedContinuation<Void, Never>] = []

    package init() {}

    package static let candidate = TransportAddress(ip: .loopbackV4, port: 7000)

    package func transport() -> MediaTransport {
        MediaTransport(
            fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32))!,
            candidates: [Self.candidate]
        )
    }

    package func addPeer(_ parameters: PeerParameters) async throws {
        await passGate()
        guard !refuses else { throw Refusal() }
        peers[parameters.id] = parameters
    }

    package func removePeer(_ peer: PeerID) {
        guard peers.removeValue(forKey: peer) != nil else { return }
        removed.append(peer)
        for (slot, source) in sources where slot.peer == peer || source.track.peer == peer { forget(slot) }
        keyFrameRequests[peer] = nil
        figures[peer] = nil
    }

    package func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws {
        await passGate()
        guard !refuses, peers[peer] != nil else { throw Refusal() }
        peers[peer]?.localCredentials = local
        peers[peer]?.remote.credentials = remote
    }

    package func changeSlots(of peer: PeerID, add: [SendTrackParameters], remove: [MID]) async throws {
        await passGate()
        guard !refuses, peers[peer] != nil else { throw Refusal() }
        peers[peer]?.send.removeAll { remove.contains($0.mid) }
        peers[peer]?.send.append(contentsOf: add)
        for mid in remove { forget(TrackID(peer: peer, mid: mid)) }
    }

    package func connect(slot: TrackID, to source: PlacedTrack?, layer: LayerChoice) async throws {
        connectCount += 1
        if let source, source.home == gatedHome { await passGate() }
        guard peers[slot.peer] != nil else { throw Refusal() }
        sources[slot] = source
        layers[slot] = source.map { _ in layer }
    }

    package func requestKeyFrame(of peer: PeerID) { keyFrameRequests[peer, default: 0] += 1 }

    package func statistics(of peer: PeerID) -> PeerStatistics? { figures[peer] }

    private func forget(_ slot: TrackID) {
        sources[slot] = nil
        layers[slot] = nil
    }

    package func load() async -> LoopLoad {
        await passGate()
        return loopLoad
    }

    // MARK: - Control by tests

    /// What the plane says from now on that it carries.
    package func carry(_ load: LoopLoad) { loopLoad = load }

    /// What the plane answers from now on when asked for a peer's statistics.
    package func report(_ statistics: PeerStatistics?, of peer: PeerID) { figures[peer] = statistics }

    package func refuse(_ refuses: Bool) { self.refuses = refuses }

    /// Forgets a peer as if its transport had ended.
    package func lose(_ peer: PeerID) { peers[peer] = nil }

    package func closeGate() { isGateClosed = true }

    /// From now on connections to tracks of `home` wait at the gate, as do other calls.
    package func closeGate(forTracksOf home: Int) {
        isGateClosed = true
        gatedHome = home
    }

    package func openGate() {
        isGateClosed = false
        gatedHome = nil
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    /// Returns when somebody waits at the gate.
    package func waitForArrival() async {
        guard waiting.isEmpty else { return }
        await withCheckedContinuation { arrivals.append($0) }
    }

    private func passGate() async {
        guard isGateClosed else { return }
        await withCheckedContinuation { continuation in
            waiting.append(continuation)
            for arrival in arrivals { arrival.resume() }
            arrivals = []
        }
    }
}
