import EventLoop
import Forwarding
public import MediaTypes
import Wire

/// The loop among the loops of other nodes.
extension MediaLoop {
    /// Sets who is asked for tracks of other nodes. Without it ``connect(slot:to:preference:)`` fails for them.
    public func setRemoteOrigins(_ origins: (any RemoteOrigins)?) { remoteOrigins = origins }

    /// Lets a track of a peer of this loop be sent to a mirror of a loop of another node, as that one asks. It may ask again.
    /// - Throws: `ForwarderError` when the peer has left, the request is for another loop, the receiver cannot be reached or
    ///   speaks another version, or there are too many links; `EventLoopError.stopped` after a shutdown.
    public func export(_ request: RemoteExport) throws -> RemoteExportAnswer {
        try beginCall()
        guard request.origin == location else { throw ForwarderError.unknownLocation(request.origin) }
        let exported = try forwarder.exportTrack(
            request.track,
            as: request.relay,
            to: request.receiver,
            at: EventLoop.now()
        )
        return RemoteExportAnswer(parameters: exported.track.parameters, origin: exported.origin)
    }

    /// One run of a node is gone: all links to its loops end, what is sent over them, and what came over them. Slots that
    /// played its tracks play nothing from now on.
    public func remoteNodeLeft(_ node: NodeIncarnation) {
        forwarder.removeNodeLinks(to: node, at: EventLoop.now())
    }

    /// Asks a loop of another node to send a track to a mirror of this loop.
    func askRemote(
        _ origin: MediaLocation,
        for track: TrackID,
        as relay: RelayID
    ) async throws -> (RelayedTrack, LinkID) {
        guard let remoteOrigins, origin.node != location.node else { throw ForwarderError.unknownLocation(origin) }
        let end = try forwarder.nodeLinkEnd(to: origin, at: EventLoop.now())
        let answer = try await remoteOrigins.export(
            RemoteExport(track: track, relay: relay, receiver: end, origin: origin)
        )
        // The node may have been given up meanwhile, and perhaps asked again.
        guard answer.origin.location == origin, forwarder.hasNodeLink(end) else {
            throw ForwarderError.unknownLocation(origin)
        }
        let link = try forwarder.joinNodeLink(answer.origin, at: EventLoop.now())
        return (RelayedTrack(id: track, parameters: answer.parameters), link)
    }
}

extension MediaLoops {
    /// Sets who is asked for tracks of other nodes, on every loop.
    public func setRemoteOrigins(_ origins: (any RemoteOrigins)?) async {
        for loop in loops { await loop.setRemoteOrigins(origins) }
    }

    /// Hands another node's request to the loop that it names (``MediaLoop/export(_:)``).
    public func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        guard let loop = loops.first(where: { $0.location == request.origin }) else {
            throw ForwarderError.unknownLocation(request.origin)
        }
        return try await loop.export(request)
    }

    /// One run of a node is gone (``MediaLoop/remoteNodeLeft(_:)``).
    public func remoteNodeLeft(_ node: NodeIncarnation) async {
        for loop in loops { await loop.remoteNodeLeft(node) }
    }
}
