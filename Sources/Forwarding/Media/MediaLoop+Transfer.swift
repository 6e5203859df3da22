import Base
import EventLoop
package import Forwarding
package import MediaTypes
package import Wire

/// The loop among the other loops of its node.
extension MediaLoop {
    /// Records that one turn takes from all other loops, like the datagrams of one socket. The rest waits for the next turn,
    /// behind the sockets.
    static let transferRecordsPerTurnMax = 256
    /// Records that are taken from one loop before the next one.
    private static let transferRecordsPerVisitMax = 64

    /// Makes the other loops known; once, before there are peers.
    func link(to neighbours: [LoopNeighbour], of loops: [MediaLoop], sharing receivingLoops: ReceivingLoops) {
        precondition(self.neighbours.links.isEmpty, "a loop is linked once")
        mirrors.receivingLoops = receivingLoops
        self.neighbours = LoopNeighbours(neighbours, of: loops, cause: receiveTime)
        for (neighbour, link) in zip(neighbours, self.neighbours.links) { forwarder.setLink(link, as: neighbour.link) }
    }

    // MARK: The turn

    /// Takes what other loops sent.
    func takeTransferred(at now: Instant) {
        let (forwarder, batch, receiveTime) = (forwarder, batch, receiveTime)
        var budget = Self.transferRecordsPerTurnMax
        var emptyCount = 0
        while budget > 0, emptyCount < neighbours.sourceCount {
            let source = neighbours.nextSource()
            let count = source.ring.drain(min(budget, Self.transferRecordsPerVisitMax)) { message, bytes in
                if !bytes.isEmpty { receiveTime.note(Instant(nanoseconds: message.readAtNanoseconds)) }
                forwarder.receiveTransferred(message.record, bytes, from: source.link, at: now, into: batch)
            }
            budget -= count
            emptyCount = count == 0 ? emptyCount + 1 : 0
        }
        neighbours.took(Self.transferRecordsPerTurnMax - budget)
        if budget == 0, neighbours.hasWaiting { eventLoop.signal() }
    }

    // MARK: Control

    /// Lets a track play into a slot of a peer of this loop from its next key frame on, or with `nil` nothing. With the
    /// track that plays there already only the preference changes.
    /// A track of another node is asked of that node (``setRemoteOrigins(_:)``).
    /// - Throws: `ForwarderError` when a peer or a track is gone, or the location is none of the linked loops nor of another
    ///   node that can be asked; `EventLoopError.stopped` when a loop was shut down; what the other node answered.
    package func connect(
        slot: TrackID,
        to source: PlacedTrack?,
        preference: LayerPreference = LayerPreference()
    ) async throws {
        if let source, source.location != location {
            try beginCall()
            let origin = neighbours.loops[source.location].map(TrackSource.loop) ?? .remote(source.location)
            try await connect(slot: slot, to: source.track, from: origin, preference: preference)
        } else {
            try connect(slot: slot, to: source?.track, preference: preference)
        }
    }

    /// Lets a track of a peer of another loop play into a slot of a peer of this one, from its next key frame on.
    ///
    /// The track's packets come here once for all slots that play it, until the last of these plays something else.
    package func connect(
        slot: TrackID,
        to track: TrackID,
        of origin: MediaLoop,
        preference: LayerPreference = LayerPreference()
    ) async throws {
        try await connect(slot: slot, to: track, from: .loop(origin), preference: preference)
    }

    /// Where a track of another loop is asked for.
    enum TrackSource {
        case loop(MediaLoop)
        /// A loop of another node.
        case remote(MediaLocation)

        /// The loop of another node.
        var remote: MediaLocation? { if case .remote(let location) = self { location } else { nil } }
    }

    /// Connects a slot to the mirror of a track, which is made first unless it is here.
    func connect(
        slot: TrackID,
        to track: TrackID,
        from source: TrackSource,
        preference: LayerPreference
    ) async throws {
        // The first call for a track makes its mirror; the others wait for that.
        while true {
            try beginCall()
            if forwarder.mirror(of: track) != nil {
                try forwarder.connect(slot: slot, to: track, preference: preference, at: EventLoop.now())
                return
            }
            guard mirrors.isArriving(track) else { break }
            try await arrival(of: track)
        }
        mirrors.begin(track)
        var failure: (any Error)?
        defer { mirrors.ended(track, failure) }
        let relay = try forwarder.makeMirrorID()
        let relayed: MirroredTrack
        let link: LinkID
        do {
            (relayed, link) = try await ask(source, for: track, as: relay)
            try beginCall()
        } catch {
            forwarder.discardMirrorID(relay)
            // Others need not ask in vain too, unless only this call was given up.
            if !(error is CancellationError) { failure = error }
            throw error
        }
        let now = EventLoop.now()
        forwarder.addMirror(relayed, as: relay, from: link, publishedAt: source.remote, at: now)
        do {
            try forwarder.connect(slot: slot, to: track, preference: preference, at: now)
        } catch {
            // The slot went meanwhile. Those who waited for the track make a mirror of their own.
            forwarder.removeUnusedMirror(of: track)
            throw error
        }
    }

    /// Waits until the call that makes a track's mirror has ended.
    /// - Throws: why the track did not come.
    func arrival(of track: TrackID) async throws {
        if let failure = await withCheckedContinuation({ mirrors.wait(for: track, $0) }) { throw failure }
    }

    /// Lets a track be sent to a mirror of this loop.
    private func ask(
        _ source: TrackSource,
        for track: TrackID,
        as relay: MirrorID
    ) async throws -> (MirroredTrack, LinkID) {
        switch source {
        case .loop(let origin):
            guard let link = neighbours.linkIDs[origin.location] else {
                throw ForwarderError.unknownLocation(origin.location)
            }
            return (try await origin.export(track, as: relay, to: location), link)
        case .remote(let origin): return try await askReceivingLoop(origin, for: track, as: relay)
        }
    }

    /// Starts to send a track of a peer of this loop, or the mirror of another node's track, to another loop: a media loop or a
    /// gateway loop.
    /// - Throws: `ForwarderError` when the track is not here or the location is none of a linked loop.
    package func export(_ track: TrackID, as relay: MirrorID, to location: MediaLocation) throws -> MirroredTrack {
        try beginCall()
        guard let link = neighbours.linkIDs[location] else { throw ForwarderError.unknownLocation(location) }
        return try forwarder.exportTrack(track, as: relay, over: link, at: EventLoop.now())
    }
}
