import Base
import ICE
import MediaTypes
import Wire

/// The peers of one core, and what finds them: their identifiers, the user name fragments that checks name, and the
/// address pairs that checks validated.
final class PeerDirectory {
    /// A class, because looking a peer up would copy and count all of a value's parts.
    private final class Entry {
        let peer: Peer
        /// The current user name fragment and, after an ICE restart, the one before.
        var usernameFragments: [String]
        /// The validated pairs, the newest last.
        var paths: [(path: NetworkPath, checkedAt: Instant)] = []

        init(peer: Peer, usernameFragments: [String]) {
            self.peer = peer
            self.usernameFragments = usernameFragments
        }

        func lastCheck(over path: NetworkPath) -> Instant? { paths.first { $0.path == path }?.checkedAt }

        func noteCheck(over path: NetworkPath, at now: Instant) {
            for index in paths.indices where paths[index].path == path { paths[index].checkedAt = now }
        }

        /// Makes room for a new pair. The selected one stays, however old.
        /// - Returns: the removed pair; `nil` while there is room.
        func removeExcessPath() -> NetworkPath? {
            guard paths.count > PeerDirectory.pathsPerPeerMax else { return nil }
            let oldest = paths.firstIndex { $0.path != peer.transport.selectedPath } ?? 0
            return paths.remove(at: oldest).path
        }
    }

    private var entries: [PeerID: Entry] = [:]
    private var byFragment: [String: Peer] = [:]
    private var byPath: PathTable
    /// In the client's role: the pairs that peers check.
    var controllingPairs = ControllingPairs()

    /// Validated pairs that one peer may be reached by at a time.
    static let pathsPerPeerMax = 8
    /// Silence after which another peer may take over an address pair: longer than clients let pass between two
    /// checks, so that a forged source address takes nobody's media away.
    private static let takeoverSilence = Interval.seconds(10)

    /// - Parameter seed: random, so that nobody can pick address pairs that collide.
    init(seed: UInt64) { byPath = PathTable(seed: seed) }

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty && byFragment.isEmpty && byPath.isEmpty && controllingPairs.isEmpty }
    /// In no order.
    var peers: some Sequence<Peer> { entries.values.lazy.map(\.peer) }

    // MARK: - Finding a peer

    func peer(_ id: PeerID) -> Peer? { entries[id]?.peer }

    /// The peer that validated a pair.
    @inline(__always)
    func peer(over path: NetworkPath) -> Unretained<Peer>? { byPath[path] }

    /// The peer that a STUN message is for.
    ///
    /// A request names our user name fragment; a response is to a check of ours and comes from where that went. Some
    /// agents, libnice among them, repeat the request's USERNAME in it, which names their fragment first.
    func peer(of message: borrowing STUNMessageView, over path: NetworkPath) -> Peer? {
        switch message.messageClass {
        case .success, .error: return peerThatChecks(path)
        case .request, .indication:
            if let fragment = message.localUsernameFragment() { return byFragment[fragment] }
            return message.messageClass == .request ? nil : peerThatChecks(path)
        }
    }

    private func peerThatChecks(_ path: NetworkPath) -> Peer? { byPath[path]?.object ?? controllingPairs[path] }

    // MARK: - Changes

    func add(_ peer: Peer, usernameFragment: String) {
        entries[peer.id] = Entry(peer: peer, usernameFragments: [usernameFragment])
        byFragment[usernameFragment] = peer
    }

    /// After an ICE restart: checks find the peer by the new fragment and by the one before.
    func addUsernameFragment(_ fragment: String, of peer: Peer) {
        guard var fragments = entries[peer.id]?.usernameFragments else { return }
        fragments.append(fragment)
        byFragment[fragment] = peer
        if fragments.count > 2 { byFragment[fragments.removeFirst()] = nil }
        entries[peer.id]?.usernameFragments = fragments
    }

    /// Notes an authenticated check of a peer over a pair that its ICE agent has validated.
    func noteCheck(over path: NetworkPath, of peer: Peer, at now: Instant) {
        guard entries[peer.id] != nil else { return }
        if let owner = byPath[path]?.object {
            guard owner !== peer else {
                entries[peer.id]?.noteCheck(over: path, at: now)
                return
            }
            if let last = entries[owner.id]?.lastCheck(over: path), now - last < Self.takeoverSilence { return }
            entries[owner.id]?.paths.removeAll { $0.path == path }
        }
        byPath.set(path, to: peer)
        entries[peer.id]?.paths.append((path, now))
        if let removed = entries[peer.id]?.removeExcessPath() { byPath.remove(removed) }
    }

    /// Removes a peer, which something else must keep alive as long as anybody works on it.
    func remove(_ peer: Peer) {
        guard let entry = entries.removeValue(forKey: peer.id) else { return }
        for (path, _) in entry.paths where byPath.isOf(peer, path) { byPath.remove(path) }
        for fragment in entry.usernameFragments where byFragment[fragment] === peer { byFragment[fragment] = nil }
        controllingPairs.remove(peer)
    }
}
