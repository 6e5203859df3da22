import MediaTypes

/// How a loop comes by the tracks of other loops and nodes that its slots play.
struct MirrorRequests {
    /// Tracks whose mirrors are being made here, with the calls that wait for that. They are told why a track did not come.
    private(set) var arriving: [TrackID: [CheckedContinuation<(any Error)?, Never>]] = [:]
    /// Shared by the node's loops.
    var receivingLoops = ReceivingLoops()
    /// Tracks of other nodes that this loop receives for the others.
    var receivedTracks: Set<TrackID> = []
    /// Asks loops of other nodes for their tracks; `nil` for a node by itself.
    var remoteOrigins: (any RemoteOrigins)?
    /// Whether other nodes are being asked again for their tracks.
    var isRenewing = false

    func isArriving(_ track: TrackID) -> Bool { arriving[track] != nil }

    mutating func begin(_ track: TrackID) { arriving[track] = [] }

    mutating func wait(for track: TrackID, _ caller: CheckedContinuation<(any Error)?, Never>) {
        arriving[track]?.append(caller)
    }

    /// The track has come, or `failure` is why it did not.
    mutating func ended(_ track: TrackID, _ failure: (any Error)?) {
        for caller in arriving.removeValue(forKey: track) ?? [] { caller.resume(returning: failure) }
    }
}
