public import Base
public import MediaTypes

/// How much a peer is sent.
extension Forwarder {
    /// Limits the rate at which a peer is sent media; does nothing when the peer is not here.
    ///
    /// - Parameter bitsPerSecond: of all its media together, from the IP header on; `nil` for the settings' maximum.
    public func limitSending(to id: PeerID, bitsPerSecond: Int?, at now: Instant) {
        guard let peer = peer(id) else { return }
        peer.setSendRateMax(bitsPerSecond, at: now)
        schedule.markDirty(peer)
    }
}
