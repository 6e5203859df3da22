package import Base
import ICE
package import MediaTypes
package import Wire

/// In the client's role: the peer that checks each of the server's candidates, which the responses are for.
struct ControllingPairs {
    private var peers: [NetworkPath: Peer] = [:]

    var isEmpty: Bool { peers.isEmpty }
    subscript(path: NetworkPath) -> Peer? { peers[path] }

    mutating func add(_ pairs: [NetworkPath], of peer: Peer) {
        for path in pairs { peers[path] = peer }
    }

    mutating func remove(_ peer: Peer) { peers = peers.filter { $0.value !== peer } }
}

extension Forwarder {
    /// Adds a peer in the client's role, which checks the server's candidates and nominates.
    /// - Parameter candidates: the pairs to check; each must be used by no other peer of this core.
    package func addClientPeer(
        _ parameters: PeerParameters,
        candidates: [NetworkPath],
        at now: Instant
    ) throws(ForwarderError) {
        var generator = configuration.generator
        let agent = ICEControllingAgent(
            local: parameters.localCredentials,
            remote: parameters.remote.credentials,
            candidates: candidates,
            at: now,
            tieBreaker: configuration.random(),
            using: &generator
        )
        let peer = try addPeer(parameters, agent: .controlling(agent), at: now)
        directory.controllingPairs.add(candidates, of: peer)
    }
}
