import MediaTypes
import Synchronization

/// Which loop of a node receives each track of another node. The node's other loops get the track from that loop,
/// so the track's packets cross between the nodes once, however many loops play it.
///
/// Only calls that connect slots read it. An entry may outlive the mirror of its track for a second; a loop that finds no
/// mirror at the receiving loop takes over.
final class ReceivingLoops: Sendable {
    private let loops = Mutex<[TrackID: MediaLocation]>([:])

    /// The loop that receives a track; the loop at `location` becomes it where there is none.
    /// - Parameter ended: a loop that has no mirror of the track any more.
    func loop(of track: TrackID, orElse location: MediaLocation, insteadOf ended: MediaLocation?) -> MediaLocation {
        loops.withLock { loops in
            if let loop = loops[track], loop != ended { return loop }
            loops[track] = location
            return location
        }
    }

    /// A loop receives a track no longer, if it did.
    func release(_ track: TrackID, by location: MediaLocation) {
        loops.withLock { if $0[track] == location { $0[track] = nil } }
    }
}
