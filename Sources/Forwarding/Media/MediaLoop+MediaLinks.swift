import Base
import EventLoop
import Forwarding
package import MediaTypes
import Wire

/// The loop among the loops of other nodes.
extension MediaLoop {
    /// A node that did not answer so often is asked again later.
    private static let renewalFailuresMax = 3

    /// Sets who is asked for tracks of other nodes. Without it ``connect(slot:to:preference:)`` fails for them.
    package func setRemoteOrigins(_ origins: (any RemoteOrigins)?) { mirrors.remoteOrigins = origins }

    /// Lets a track of a peer of this loop be sent to a mirror of a loop of another node, as that one asks. It may ask again.
    /// - Throws: `ForwarderError` when the peer has left, the request is for another loop, the receiver cannot be reached or
    ///   speaks another version, or there are too many links; `EventLoopError.stopped` after a shutdown.
    package func export(_ request: RemoteExport) throws -> RemoteExportAnswer {
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
    package func remoteNodeLeft(_ node: NodeIncarnation) {
        forwarder.removeMediaLinks(to: node, at: EventLoop.now())
    }

    /// Asks again for tracks of other nodes that do not come any more: because the other node took this one for gone, or
    /// because the loop that sends a track does not know the mirror here. To be called about once a second; a call during
    /// another one does nothing.
    package func renewRemoteTracks() async {
        guard !mirrors.isRenewing, mirrors.remoteOrigins != nil else { return }
        releaseReceivedTracks()
        mirrors.isRenewing = true
        defer { mirrors.isRenewing = false }
        let lost = forwarder.mirrorsToRenew(at: EventLoop.now())
        var failures: [MediaLocation: Int] = [:]
        for mirror in lost where failures[mirror.origin, default: 0] < Self.renewalFailuresMax {
            if await !renew(mirror) { failures[mirror.origin, default: 0] += 1 }
        }
        for origin in Set(lost.map(\.origin)) where failures[origin] == nil { forwarder.mirrorsRenewed(from: origin) }
        for mirror in forwarder.endedMirrors() where failures[mirror.origin, default: 0] < Self.renewalFailuresMax {
            if await !renew(mirror) {
                failures[mirror.origin, default: 0] += 1
                forwarder.mirrorNotAnswered(mirror, at: EventLoop.now())
            }
        }
    }

    /// Asks for a mirror's track again.
    /// - Returns: whether it comes, or is not played any more.
    private func renew(_ mirror: LostMirror) async -> Bool {
        guard forwarder.mirror(of: mirror.track) == mirror.relay else { return true }
        do {
            if mirror.isBehindLoop {
                try await replace(mirror)
            } else {
                _ = try await askRemote(mirror.origin, for: mirror.track, as: mirror.relay)
            }
        } catch {
            return false
        }
        forwarder.mirrorAnswered(mirror)
        return true
    }

    /// Asks for a track that came over another loop of this node, which may have become this loop's task.
    private func replace(_ mirror: LostMirror) async throws {
        let relay = try forwarder.makeMirrorID()
        do {
            let (relayed, link) = try await askReceivingLoop(mirror.origin, for: mirror.track, as: relay)
            try beginCall()
            forwarder.replaceMirror(mirror, by: relayed, as: relay, from: link, at: EventLoop.now())
        } catch {
            forwarder.discardMirrorID(relay)
            throw error
        }
    }

    /// Lets a track of another node be sent to a mirror of this loop: by the loop of this node that receives it, or else by
    /// its origin, and then this loop is the one that the others ask.
    func askReceivingLoop(
        _ origin: MediaLocation,
        for track: TrackID,
        as relay: MirrorID
    ) async throws -> (MirroredTrack, LinkID) {
        var ended: MediaLocation?
        // Each further turn means that one more loop's mirror ended just now.
        for _ in neighbours.loops.indices {
            let receiver = mirrors.receivingLoops.loop(of: track, orElse: location, insteadOf: ended)
            guard receiver != location, let loop = neighbours.loops[receiver], let link = neighbours.linkIDs[receiver]
            else { break }
            if let relayed = try await loop.exportMirror(of: track, as: relay, to: location) { return (relayed, link) }
            try beginCall()
            ended = receiver
        }
        mirrors.receivedTracks.insert(track)
        return try await askRemote(origin, for: track, as: relay)
    }

    /// Lets a mirror's track go on to another loop of this node.
    /// - Returns: `nil` when there is no mirror here.
    /// - Throws: why the track did not come, if it was awaited here; `EventLoopError.stopped` after a shutdown.
    private func exportMirror(
        of track: TrackID,
        as relay: MirrorID,
        to location: MediaLocation
    ) async throws -> MirroredTrack? {
        try beginCall()
        if forwarder.mirror(of: track) == nil, mirrors.isArriving(track) {
            do {
                try await arrival(of: track)
            } catch let error as ForwarderError where error.isOfLoop {
                return nil
            }
            try beginCall()
        }
        guard forwarder.mirror(of: track) != nil else { return nil }
        return try export(track, as: relay, to: location)
    }

    /// Other loops need not ask this one any more for tracks that it receives no longer.
    private func releaseReceivedTracks() {
        for track in mirrors.receivedTracks where forwarder.mirror(of: track) == nil && !mirrors.isArriving(track) {
            mirrors.receivedTracks.remove(track)
            mirrors.receivingLoops.release(track, by: location)
        }
    }

    /// Asks a loop of another node to send a track to a mirror of this loop.
    func askRemote(
        _ origin: MediaLocation,
        for track: TrackID,
        as relay: MirrorID
    ) async throws -> (MirroredTrack, LinkID) {
        guard let remoteOrigins = mirrors.remoteOrigins, origin.node != location.node else {
            throw ForwarderError.unknownLocation(origin)
        }
        let end = try forwarder.mediaLinkEnd(to: origin, at: EventLoop.now())
        let answer = try await remoteOrigins.export(
            RemoteExport(track: track, relay: relay, receiver: end, origin: origin)
        )
        // The node may have been given up meanwhile, and perhaps asked again.
        guard answer.origin.location == origin, forwarder.hasMediaLink(end) else {
            throw ForwarderError.unknownLocation(origin)
        }
        let link = try forwarder.joinMediaLink(answer.origin, at: EventLoop.now())
        return (MirroredTrack(id: track, parameters: answer.parameters), link)
    }
}

extension MediaLoops {
    /// Sets who is asked for tracks of other nodes, on every loop.
    package func setRemoteOrigins(_ origins: (any RemoteOrigins)?) async {
        for loop in loops { await loop.setRemoteOrigins(origins) }
    }

    /// Hands another node's request to the loop that it names (``MediaLoop/export(_:)``).
    package func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        guard let loop = loops.first(where: { $0.location == request.origin }) else {
            throw ForwarderError.unknownLocation(request.origin)
        }
        return try await loop.export(request)
    }

    /// Asks other nodes again for tracks of all loops (``MediaLoop/renewRemoteTracks()``).
    package func renewRemoteTracks() async {
        await withTaskGroup(of: Void.self) { group in
            for loop in loops { group.addTask { await loop.renewRemoteTracks() } }
        }
    }

    /// One run of a node is gone (``MediaLoop/remoteNodeLeft(_:)``).
    package func remoteNodeLeft(_ node: NodeIncarnation) async {
        for loop in loops { await loop.remoteNodeLeft(node) }
    }
}

extension ForwarderError {
    /// Whether another loop of the node may succeed where one failed.
    fileprivate var isOfLoop: Bool {
        switch self {
        case .tooManyMediaLinks, .tooManyMirrors, .linkFailed: true
        default: false
        }
    }
}
