public import MediaTypes
public import Wire

/// A call that a forwarding core cannot carry out.
public enum ForwarderError: Error, Hashable, Sendable, CustomStringConvertible {
    case unknownPeer(PeerID)
    case unknownTrack(TrackID)
    case kindMismatch(slot: TrackID, track: TrackID)
    case duplicatePeer(PeerID)
    case duplicateSlot(TrackID)
    case ssrcUsed(SSRC)
    case tooManySlots(limit: Int)
    case unknownLocation(MediaLocation)
    case unknownLink(LinkID)
    case tooManyMediaLinks(limit: Int)
    /// A track goes to as many other nodes as it may.
    case tooManyNodes(TrackID, limit: Int)
    /// The other end cannot be sent to: its version is not ours, or no address of it can be reached from here.
    case linkFailed(MediaLocation)
    case tooManyPeers(limit: Int)
    case tooManyMirrors(limit: Int)
    case transportSetupFailed

    public var description: String {
        switch self {
        case .unknownPeer(let id): "There is no \(id) here; it has left."
        case .unknownTrack(let id): "There is no track \(id) here; its peer has left."
        case .kindMismatch(let slot, let track): "\(slot) and \(track) are not of the same kind of media."
        case .duplicatePeer(let id): "\(id) is here already."
        case .duplicateSlot(let id): "The slot \(id) is here already; a new one needs a MID of its own."
        case .ssrcUsed(let ssrc): "SSRC \(ssrc) was used toward this peer before; a slot needs its own."
        case .tooManySlots(let limit):
            "The peer's slots had \(limit) SSRCs out of order, which is the limit; it must join again."
        case .unknownLocation(let location): "There is no media loop \(location) here."
        case .unknownLink(let link): "There is no link \(link.rawValue) from this loop."
        case .tooManyMediaLinks(let limit):
            "This loop has links to \(limit) loops of other nodes, which is its limit; use fewer or larger nodes."
        case .tooManyNodes(let id, let limit):
            "The track \(id) goes to \(limit) other nodes, which is the limit; viewers must join at one of the nodes that have it already."
        case .linkFailed(let location):
            """
            There is no media link to \(location): it must have an address of a family that this loop listens on, and run a \
            version of the server that this one can talk to.
            """
        case .tooManyPeers(let limit): "This loop carries \(limit) peers, which is its limit."
        case .tooManyMirrors(let limit): "This loop plays \(limit) tracks of other loops, which is its limit."
        case .transportSetupFailed: "The DTLS transport could not be set up; the machine may be out of memory."
        }
    }
}
