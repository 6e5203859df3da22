import EventLoop
import Forwarding
public import MediaTypes
import Wire

/// The loop among the other loops of its node.
extension MediaLoop {
    /// Records that one turn takes from all other loops: as many as the datagrams that one readiness of a socket is
    /// worth. What is left waits for the next turn, behind the sockets.
    static let relayRecordsPerTurnMax = 256
    /// Records that one loop is worth before the next one has its turn.
    private static let relayRecordsPerVisitMax = 64

    /// Makes the other loops known; once, before there are peers.
    func link(as index: LoopIndex, to neighbours: [LoopNeighbour], of loops: [MediaLoop]) {
        precondition(links.isEmpty, "a loop is linked once")
        self.index = index
        self.loops = loops
        for neighbour in neighbours {
            let link = LoopLink(to: neighbour, cause: turnCause)
            links.append(link)
            forwarder.setLink(link, to: neighbour.index)
        }
        relaySources = neighbours.map { RelaySource(loop: $0.index, ring: $0.incoming) }
    }

    // MARK: The turn

    /// Takes what other loops sent.
    func takeRelayed(at now: Instant) {
        let (forwarder, batch, turnCause) = (forwarder, batch, turnCause)
        var budget = Self.relayRecordsPerTurnMax
        var emptyCount = 0
        while budget > 0, emptyCount < relaySources.count {
            let (loop, ring) = (relaySources[relayNext].loop, relaySources[relayNext].ring)
            relayNext = (relayNext + 1) % relaySources.count
            let count = ring.drain(min(budget, Self.relayRecordsPerVisitMax)) { message, bytes in
                if !bytes.isEmpty { turnCause.note(Instant(nanoseconds: message.readAtNanoseconds)) }
                forwarder.receiveRelayed(message.record, bytes, from: loop, at: now, into: batch)
            }
            budget -= count
            emptyCount = count == 0 ? emptyCount + 1 : 0
        }
        relayedRecords &+= UInt64(Self.relayRecordsPerTurnMax - budget)
        if budget == 0, relaySources.contains(where: { !$0.ring.isEmpty }) { eventLoop.signal() }
    }

    /// Lets the other loops take what this one sent.
    func publishRelayed() {
        for link in links { link.publish() }
    }

    // MARK: Control

    /// Lets a track play into a slot of a peer of this loop from its next key frame on, or with `nil` nothing. With the
    /// track that plays there already only the layer changes.
    /// - Throws: `ForwarderError` when a peer or a track is gone, `EventLoopError.stopped` when a loop was shut down.
    public func connect(slot: TrackID, to source: PlacedTrack?, layer: LayerChoice = .richest) async throws {
        if let source, source.home != Int(index.rawValue) {
            try beginCall()
            try await connect(slot: slot, to: source.track, of: loops[source.home], layer: layer)
        } else {
            try connect(slot: slot, to: source?.track, layer: layer)
        }
    }

    /// Lets a track of a peer of another loop play into a slot of a peer of this one, from its next key frame on.
    ///
    /// The track's packets come here once, for all slots that play it, until the last of them lets go of it.
    public func connect(
        slot: TrackID,
        to track: TrackID,
        of origin: MediaLoop,
        layer: LayerChoice = .richest
    ) async throws {
        // One call a track brings it here; the others wait for that.
        while true {
            try beginCall()
            if forwarder.mirror(of: track) != nil {
                try forwarder.connect(slot: slot, to: track, layer: layer, at: EventLoop.now())
                return
            }
            guard arriving[track] != nil else { break }
            await withCheckedContinuation { arriving[track]?.append($0) }
        }
        arriving[track] = []
        defer { for waiting in arriving.removeValue(forKey: track) ?? [] { waiting.resume() } }
        let relay = try forwarder.makeRelayID()
        let relayed: RelayedTrack
        let loop: LoopIndex
        do {
            (relayed, loop) = try await origin.export(track, as: relay, to: index)
        } catch {
            forwarder.discardRelayID(relay)
            throw error
        }
        try beginCall()
        let now = EventLoop.now()
        forwarder.addMirror(relayed, as: relay, from: loop, at: now)
        do {
            try forwarder.connect(slot: slot, to: track, layer: layer, at: now)
        } catch {
            // The slot went meanwhile. Those who waited for the track make a mirror of their own.
            forwarder.removeUnusedMirror(of: track)
            throw error
        }
    }

    /// Sends a track of a peer of this loop to another loop from now on. Returns it with this loop's index.
    private func export(
        _ track: TrackID,
        as relay: RelayID,
        to loop: LoopIndex
    ) throws -> (RelayedTrack, LoopIndex) {
        try beginCall()
        return (try forwarder.exportTrack(track, as: relay, to: loop, at: EventLoop.now()), index)
    }

    /// What went to and came from other loops.
    var relayCounters: RelayCounters {
        var counters = RelayCounters()
        for link in links { link.count(in: &counters) }
        counters.recordsReceived = relayedRecords
        return counters
    }
}

/// The reading end of the way from one other loop.
struct RelaySource {
    let loop: LoopIndex
    let ring: RelayRing<RelayMessage>
}
