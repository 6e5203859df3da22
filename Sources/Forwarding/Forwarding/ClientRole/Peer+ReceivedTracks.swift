package import Base
package import MediaTypes
package import Wire

extension Forwarder {
    /// In the client's role: changes what arrives at a peer, as a new offer of the server told it.
    ///
    /// - Parameters:
    ///   - add: One whose name is there already is left as it is.
    ///   - remove: Names that are not there are skipped.
    package func changeReceivedTracks(
        of id: PeerID,
        add: [ReceiveTrackParameters],
        remove: [MID],
        at now: Instant
    ) throws(ForwarderError) {
        guard let peer = peer(id) else { throw .unknownPeer(id) }
        for mid in remove { peer.removeTrack(mid, at: now) }
        for parameters in add where peer.track(parameters.mid) == nil { peer.addTrack(parameters) }
        markDirty(id)
    }
}

/// Received tracks that come and go while the peer is connected.
extension Peer {
    fileprivate func addTrack(_ parameters: ReceiveTrackParameters) {
        tracks.append(
            ReceivedTrack(id: TrackID(peer: id, mid: parameters.mid), parameters: parameters, clockOffset: clock)
        )
        for kind in HeaderExtension.allCases where extensions[kind] == nil {
            extensions[kind] = parameters.extensions[kind]
        }
        if extensions[.transportSequenceNumber] != nil { reporting.startTransportFeedback() }
    }

    fileprivate func removeTrack(_ mid: MID, at now: Instant) {
        guard let track = track(mid) else { return }
        for slot in track.slots { slot.connect(to: nil, at: now) }
        core.endExports(of: track)
        core.dropPending(track)
        directory.noteEnded(track.parameters.ssrcs)
        directory.noteEnded(track.parameters.rtxSSRCs.values)
        for stream in track.streams { forget(stream) }
        tracks.removeAll { $0 === track }
    }
}
