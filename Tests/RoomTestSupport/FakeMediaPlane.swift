package import MediaTypes
package import Wire

/// A media plane that records its calls, and can be made to wait or to fail.
package actor FakeMediaPlane: MediaPlane {
    package struct Refusal: Error {}
    package nonisolated let location: MediaLocation
    package private(set) var peers: [PeerID: PeerParameters] = [:]
    /// Who receives the events of each peer, also after its end.
    private var receivers: [PeerID: any PeerEventReceiver] = [:]
    package private(set) var sources: [TrackID: PlacedTrack] = [:]
    /// What each slot's receiver prefers of its source.
    package private(set) var preferences: [TrackID: LayerPreference] = [:]
    /// The limits that peers were given, in order.
    package private(set) var sendLimits: [(peer: PeerID, bitsPerSecond: Int?)] = []
    /// The peers that were asked for key frames, in order.
    package private(set) var keyFrameRequests: [PeerID] = []
    /// The commands about data channels, in order.
    package private(set) var dataCommands: [DataCommand] = []
    package private(set) var connectCount = 0
    package private(set) var removed: [PeerID] = []
    /// Peers with TURN credentials that have not ended.
    package private(set) var turnPeers: Set<PeerID> = []
    private var turnAccess: TURNAccess?
    /// The relays of calls that have not ended, and those that ended but for their allocations.
    package private(set) var callRelays: [CallTURNID] = []
    package private(set) var keptCallRelays: [CallTURNID] = []
    private var callNumber: UInt64 = 0
    private var loopLoad = LoopLoad()
    private var figures: [PeerID: PeerStatistics] = [:]
    private var refuses = false
    private var refusedLocation: MediaLocation?
    private var isGateClosed = false
    /// Connections to tracks of this location wait at the gate; `nil` for none.
    private var gatedLocation: MediaLocation?
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var arrivals: [CheckedContinuation<Void, Never>] = []

    package init(_ location: MediaLocation = 0) { self.location = location }

    package static let candidate = TransportAddress(ip: .loopbackV4, port: 7000)

    package let transport = MediaTransport(
        fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32))!,
        candidates: [candidate]
    )

    package func openTURN(for peer: PeerID) async -> TURNAccess? {
        guard let turnAccess else { return nil }
        await passGate()
        turnPeers.insert(peer)
        return turnAccess
    }

    package func openCallRelay() -> CallTURN? {
        guard let turnAccess else { return nil }
        callNumber += 1
        let id = CallTURNID(location: location, number: callNumber)
        callRelays.append(id)
        return CallTURN(id: id, first: turnAccess, second: turnAccess)
    }

    package func closeCallRelay(_ id: CallTURNID, keepsAllocations: Bool) {
        callRelays.removeAll { $0 == id }
        if keepsAllocations { keptCallRelays.append(id) }
    }

    package func addPeer(_ parameters: PeerParameters) async throws {
        receivers[parameters.id] = parameters.events
        await passGate()
        guard !refuses else { throw Refusal() }
        peers[parameters.id] = parameters
    }

    package func removePeer(_ peer: PeerID) {
        turnPeers.remove(peer)
        guard peers.removeValue(forKey: peer) != nil else { return }
        removed.append(peer)
        sources = sources.filter { $0.key.peer != peer && $0.value.track.peer != peer }
        preferences = preferences.filter { sources[$0.key] != nil }
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
        peers[peer]?.send += add
        for mid in remove {
            sources[TrackID(peer: peer, mid: mid)] = nil
            preferences[TrackID(peer: peer, mid: mid)] = nil
        }
    }

    package func connect(slot: TrackID, to source: PlacedTrack?, preference: LayerPreference) async throws {
        connectCount += 1
        if let source, source.location == gatedLocation { await passGate() }
        guard peers[slot.peer]?.send.contains(where: { $0.mid == slot.mid }) == true else { throw Refusal() }
        if let source, source.location == refusedLocation { throw Refusal() }
        sources[slot] = source
        preferences[slot] = source == nil ? nil : preference
    }

    package func limitSending(to peer: PeerID, bitsPerSecond: Int?) {
        if peers[peer] != nil { sendLimits.append((peer, bitsPerSecond)) }
    }

    package func requestKeyFrame(of peer: PeerID) {
        if peers[peer] != nil { keyFrameRequests.append(peer) }
    }

    package func perform(_ commands: [DataCommand]) {
        dataCommands += commands
        for case .closeAll(let peer) in commands { peers[peer] = nil }
    }

    package func statistics(of peer: PeerID) -> PeerStatistics? { figures[peer] }

    package func load() async -> LoopLoad {
        await passGate()
        return loopLoad
    }

    // MARK: - Control by tests

    /// Something happens to a peer that was added.
    package func report(_ event: PeerEvent, from peer: PeerID) { receivers[peer]?.receive(event, from: peer) }

    /// Gives the plane a TURN server, which tells this to everyone.
    package func setTURN(_ access: TURNAccess?) { turnAccess = access }

    /// Sets the load that the plane reports.
    package func setLoad(_ load: LoopLoad) { loopLoad = load }

    /// Sets the statistics of a peer.
    package func setStatistics(_ statistics: PeerStatistics?, of peer: PeerID) { figures[peer] = statistics }

    package func setRefuses(_ refuses: Bool) { self.refuses = refuses }

    /// From now on connections to tracks of `location` fail; `nil` for none.
    package func setRefused(_ location: MediaLocation?) { refusedLocation = location }

    /// A slot plays nothing from now on, as when its track does not come any more.
    package func dropSource(of slot: TrackID) { sources[slot] = nil }

    /// Forgets a peer as if its transport had ended.
    package func lose(_ peer: PeerID) { peers[peer] = nil }

    package func closeGate() { isGateClosed = true }

    /// From now on connections to tracks of `location` wait at the gate, as do other calls.
    package func closeGate(forTracksOf location: MediaLocation) {
        isGateClosed = true
        gatedLocation = location
    }

    package func openGate() {
        isGateClosed = false
        gatedLocation = nil
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    /// The number of calls that wait at the gate.
    package var waitingCount: Int { waiting.count }

    /// Waits until a call waits at the gate.
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

/// Locations of a node without an incarnation, written as the loops' indices.
extension MediaLocation: ExpressibleByIntegerLiteral {
    package init(integerLiteral index: UInt16) { self.init(loop: LoopIndex(rawValue: index)) }
}

extension [MediaLocation] {
    /// The first loops of a node without an incarnation.
    package static func loops(_ count: Int) -> Self {
        (0..<count).map { MediaLocation(loop: LoopIndex(rawValue: UInt16($0))) }
    }
}
