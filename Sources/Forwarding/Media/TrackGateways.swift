import MediaTypes
import Synchronization

/// Which loop of a node receives each track of another node. The node's other loops get the track from that loop, its gateway,
/// so the track's packets cross between the nodes once, however many loops play it.
///
/// Only calls that connect slots read it. An entry may outlive the mirror of its track for a second; a loop that finds no
/// mirror at the gateway takes over.
final class TrackGateways: Sendable {
    private let gateways = Mutex<[TrackID: MediaLocation]>([:])

    /// The gateway of a track, which the loop `location` becomes where there is none.
    /// - Parameter ended: a gateway that has no mirror of the track any more.
    func gateway(of track: TrackID, orElse location: MediaLocation, insteadOf ended: MediaLocation?) -> MediaLocation {
        gateways.withLock { gateways in
            if let gateway = gateways[track], gateway != ended { return gateway }
            gateways[track] = location
            return location
        }
    }

    /// A loop is the gateway of a track no longer, if it was.
    func release(_ track: TrackID, by location: MediaLocation) {
        gateways.withLock { if $0[track] == location { $0[track] = nil } }
    }
}
