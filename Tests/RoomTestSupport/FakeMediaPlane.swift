package import Forwarding
package import Room
package import Wire

/// A media plane that keeps what it was told, and can be made to wait or to fail.
package actor FakeMediaPlane: MediaPlane {
    package struct Refusal: Error {}
    package private(set) var peers: [PeerID: PeerParameters] = [:]
    package private(set) var sources: [TrackID: PlacedTrack] = [:]
    package private(set) var connectCount = 0
    package private(set) var removed: [PeerID] = []
    private var loopLoad = LoopLoad()
    private var refuses = false
    private var isGateClosed = false
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
        sources = sources.filter { $0.key.peer != peer && $0.value.track.peer != peer }
    }

    package func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws {
        await passGate()
        guard !refuses, peers[peer] != nil else { throw Refusal() }
        peers[peer]?.localCredentials = local
        peers[peer]?.remote.credentials = remote
    }

    package func connect(slot: TrackID, to source: PlacedTrack?) throws {
        connectCount += 1
        guard peers[slot.peer] != nil else { throw Refusal() }
        sources[slot] = source
    }

    package func load() async -> LoopLoad {
        await passGate()
        return loopLoad
    }

    // MARK: - Control by tests

    /// What the plane says from now on that it carries.
    package func carry(_ load: LoopLoad) { loopLoad = load }

    package func refuse(_ refuses: Bool) { self.refuses = refuses }

    /// Forgets a peer as if its transport had ended.
    package func lose(_ peer: PeerID) { peers[peer] = nil }

    package func closeGate() { isGateClosed = true }

    package func openGate() {
        isGateClosed = false
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
