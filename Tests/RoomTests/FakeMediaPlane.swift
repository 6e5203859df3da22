import Forwarding
import Room
import Wire

/// A media plane that keeps what it was told, and can be made to wait or to fail.
actor FakeMediaPlane: MediaPlane {
    struct Refusal: Error {}
    private(set) var peers: [PeerID: PeerParameters] = [:]
    private(set) var sources: [TrackID: TrackID] = [:]
    private(set) var connectCount = 0
    private(set) var removed: [PeerID] = []
    private var refuses = false
    private var isGateClosed = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var arrivals: [CheckedContinuation<Void, Never>] = []

    static let candidate = TransportAddress(ip: .loopbackV4, port: 7000)

    func transport() -> MediaTransport {
        MediaTransport(
            fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32))!,
            candidates: [Self.candidate]
        )
    }

    func addPeer(_ parameters: PeerParameters) async throws {
        await passGate()
        guard !refuses else { throw Refusal() }
        peers[parameters.id] = parameters
    }

    func removePeer(_ peer: PeerID) {
        guard peers.removeValue(forKey: peer) != nil else { return }
        removed.append(peer)
        sources = sources.filter { $0.key.peer != peer && $0.value.peer != peer }
    }

    func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws {
        await passGate()
        guard !refuses, peers[peer] != nil else { throw Refusal() }
        peers[peer]?.localCredentials = local
        peers[peer]?.remote.credentials = remote
    }

    func connect(slot: TrackID, to source: TrackID?) throws {
        connectCount += 1
        guard peers[slot.peer] != nil else { throw Refusal() }
        sources[slot] = source
    }

    // MARK: - Control by tests

    func refuse(_ refuses: Bool) { self.refuses = refuses }

    /// Forgets a peer as if its transport had ended.
    func lose(_ peer: PeerID) { peers[peer] = nil }

    func closeGate() { isGateClosed = true }

    func openGate() {
        isGateClosed = false
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    /// Returns when somebody waits at the gate.
    func waitForArrival() async {
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
