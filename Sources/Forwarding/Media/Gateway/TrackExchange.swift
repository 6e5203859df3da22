package import Base
import EventLoop
package import Forwarding
package import MediaTypes
package import Wire

/// A gateway loop's side of the rings: the tracks that it takes from media loops.
///
/// It belongs to the actor of the gateway loop and is used on its thread only. A track costs its media loop one append to a ring
/// for each packet, whatever is done with it here.
package final class TrackExchange {
    /// Records that one turn takes from all media loops. The rest waits for the next turn, behind the loop's sockets.
    package static let recordsPerTurnMax = 1_024
    /// Records that are taken from one media loop before the next one.
    private static let recordsPerVisitMax = 128
    /// Sinks at once: as many as a ``MirrorID`` tells apart.
    package static let sinksMax = 0x1_0000
    /// Subscriptions are repeated once in this time.
    private static let refreshInterval = Interval.seconds(1)

    private struct Source {
        let link: LoopLink
        let ring: LoopRing<TimedTransferRecord>
    }
    private struct Place {
        var generation: UInt16 = 0
        /// The name was given out and its sink is still to be made.
        var isExpected = true
        var sink: TrackSink?
    }

    private let port: GatewayPort
    private let sources: [Source]
    private let links: [MediaLocation: Int]
    private var nextSource = 0
    private var places: [Place] = []
    private var freePlaces: [Int] = []
    private var sinks: [TrackID: TrackSink] = [:]
    private var recordsReceived: UInt64 = 0
    private var refreshAt: Instant?

    package init(_ port: GatewayPort) {
        self.port = port
        let cause = ReceiveTime()
        sources = port.neighbours.map { Source(link: LoopLink(to: $0, cause: cause), ring: $0.incoming) }
        links = Dictionary(uniqueKeysWithValues: port.neighbours.enumerated().map { ($1.location, $0) })
    }

    /// The sinks that are there.
    package var count: Int { sinks.count }

    /// When ``refresh(at:)`` is due; `nil` without sinks.
    package var nextDeadline: Instant? { refreshAt }

    // MARK: - Sinks

    /// A name for the sink that ``addSink(as:of:at:choosing:receiver:)`` makes. The caller then lets the track's media loop
    /// send to it (``MediaLoop/export(_:as:to:)``); packets that come before the sink is made are dropped.
    /// - Throws: `tooManyMirrors` when every name is in use.
    package func makeSinkID() throws(ForwarderError) -> MirrorID {
        if let index = freePlaces.popLast() {
            places[index].generation &+= 1
            places[index].isExpected = true
            return MirrorID(place: index, generation: places[index].generation)
        }
        guard places.count < Self.sinksMax else { throw .tooManyMirrors(limit: Self.sinksMax) }
        places.append(Place())
        return MirrorID(place: places.count - 1, generation: 0)
    }

    /// Gives a name back that no sink was made for.
    package func discardSinkID(_ id: MirrorID) {
        guard isExpected(id) else { return }
        places[id.place].isExpected = false
        freePlaces.append(id.place)
    }

    /// Makes the sink of a track that its media loop sends. A track has one sink here: an earlier one ends.
    /// - Parameters:
    ///   - id: of ``makeSinkID()``.
    ///   - track: what the media loop answered.
    ///   - location: of the media loop that sends it.
    ///   - choice: the simulcast layer that is wanted.
    /// - Throws: `unknownLocation` for a location of no media loop.
    package func addSink(
        as id: MirrorID,
        of track: MirroredTrack,
        at location: MediaLocation,
        choosing choice: LayerChoice = .richest,
        receiver: any TrackSinkReceiver,
        at now: Instant
    ) throws(ForwarderError) -> TrackSink {
        guard let link = links[location], isExpected(id) else { throw .unknownLocation(location) }
        if let earlier = sinks[track.id] {
            remove(earlier)
            earlier.end()
        }
        let sink = TrackSink(
            track,
            as: id,
            over: sources[link].link,
            choosing: choice,
            receiver: receiver
        )
        places[id.place].sink = sink
        places[id.place].isExpected = false
        sinks[track.id] = sink
        if refreshAt == nil { refreshAt = now + Self.refreshInterval }
        sink.subscribe()
        sink.link.publish()
        return sink
    }

    /// Ends a sink. Its receiver is not called any more.
    package func removeSink(_ sink: TrackSink) {
        guard self.sink(sink.relay) === sink else { return }
        _ = sink.link.send(TransferRecord(.unsubscribe(sink.relay)), RawSpan())
        sink.link.publish()
        remove(sink)
    }

    private func remove(_ sink: TrackSink) {
        places[sink.relay.place].sink = nil
        freePlaces.append(sink.relay.place)
        sinks[sink.track] = nil
        if sinks.isEmpty { refreshAt = nil }
    }

    private func sink(_ id: MirrorID) -> TrackSink? {
        guard id.place < places.count, places[id.place].generation == id.generation else { return nil }
        return places[id.place].sink
    }

    // MARK: - The turn

    /// Takes what media loops sent. To be called when the loop is signalled.
    /// - Returns: whether something waits for another turn.
    package func takeTransferred(at now: Instant) -> Bool {
        guard !sources.isEmpty else { return false }
        var budget = Self.recordsPerTurnMax
        var emptyCount = 0
        while budget > 0, emptyCount < sources.count {
            let source = sources[nextSource]
            nextSource = (nextSource + 1) % sources.count
            let count = source.ring.drain(min(budget, Self.recordsPerVisitMax)) { message, bytes in
                receive(message.record, bytes, over: source.link, at: now)
            }
            budget -= count
            emptyCount = count == 0 ? emptyCount + 1 : 0
        }
        recordsReceived &+= UInt64(Self.recordsPerTurnMax - budget)
        return budget == 0 && sources.contains { !$0.ring.isEmpty }
    }

    private func receive(_ record: TransferRecord, _ bytes: RawSpan, over link: LoopLink, at now: Instant) {
        switch record.message {
        case .packet(let packet):
            guard let description = record.description else { return }
            guard let sink = sink(packet.relay) else {
                // The end of the sink found no room in the ring, or the sink is only about to be made.
                if !isExpected(packet.relay) { _ = link.send(TransferRecord(.unsubscribe(packet.relay)), RawSpan()) }
                return
            }
            sink.receive(packet, description, bytes, at: now)
        case .clock(let clock): sink(clock.relay)?.receive(clock)
        case .ended(let relay):
            guard let sink = sink(relay) else { return }
            remove(sink)
            sink.end()
        case .layers, .keyFrameRequest, .repairRequest, .hold, .subscribe, .unsubscribe: break
        }
    }

    private func isExpected(_ id: MirrorID) -> Bool {
        id.place < places.count && places[id.place].generation == id.generation && places[id.place].isExpected
    }

    /// Repeats the subscriptions once a second: one may have found no room in a ring, and the media loop answers one for a
    /// track that has left with the end.
    package func refresh(at now: Instant) {
        guard let due = refreshAt, now >= due else { return }
        refreshAt = now + Self.refreshInterval
        for sink in sinks.values { sink.subscribe() }
        publish()
    }

    /// Lets the media loops take what was sent. To be called at the end of each turn.
    package func publish() {
        for source in sources { source.link.publish() }
    }

    /// What the loop took from media loops and sent to them.
    package var counters: TransferCounters {
        var counters = TransferCounters()
        for source in sources { source.link.count(in: &counters) }
        counters.recordsReceived = recordsReceived
        return counters
    }
}
