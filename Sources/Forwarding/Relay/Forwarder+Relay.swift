public import MediaTypes
public import Wire

/// Tracks that cross from one loop to another: exported where they are published, mirrored where they are played.
extension Forwarder {
    /// Makes the way to another loop known. It must stay for the core's life.
    public func setLink(_ link: RelayLink, to loop: LoopIndex) { links[loop] = link }

    // MARK: - Where a track is published

    /// Lets a track's packets go to another loop too, whose mirror is called `relay`.
    /// - Returns: what the mirror is made with.
    /// - Throws: `unknownTrack` when the track's peer has left, `unknownLoop` without a link.
    public func exportTrack(
        _ id: TrackID,
        as relay: RelayID,
        to loop: LoopIndex,
        at now: Instant
    ) throws(ForwarderError) -> RelayedTrack {
        guard let track = peer(id.peer)?.track(id.mid) else { throw .unknownTrack(id) }
        guard let link = links[loop] else { throw .unknownLoop(loop) }
        for export in track.exports where export.loop == loop {
            exportedTracks[ExportKey(loop: loop, relay: export.relay)] = nil
        }
        track.exports.removeAll { $0.loop == loop }
        track.exports.append(RelayExport(relay: relay, loop: loop, link: Unretained(link)))
        exportedTracks[ExportKey(loop: loop, relay: relay)] = track
        for stream in track.streams { relayClock(of: stream) }
        relayLayers(of: track)
        return RelayedTrack(id: id, parameters: track.parameters)
    }

    /// Which mirror an exported track goes to.
    struct ExportKey: Hashable {
        let loop: LoopIndex
        let relay: RelayID
    }

    /// Hands this turn's packets of a track to every other loop that plays it.
    func relay(_ track: ReceivedTrack) {
        guard track.backlogCount > 0, let backlog = unsafe track.backlog else { return }
        let count = track.backlogCount
        for export in track.exports {
            var record = RelayRecord(.packet, export.relay)
            record.exact = track.resolution.exact
            var index = 0
            while index < count {
                let packet = unsafe backlog + index
                index += 1
                if unsafe record.streamID != packet.pointee.streamID {
                    record.streamID = unsafe packet.pointee.streamID
                    record.choices = track.resolution.choices(of: record.streamID)
                }
                guard unsafe needs(export, packet, record.choices) else { continue }
                record.description = unsafe packet.pointee.description
                unsafe packet.pointee.stream.with {
                    record.ssrc = $0.ssrc
                    record.layer = $0.layer
                }
                let bytes = unsafe packet.pointee.span
                let isSent = export.link.with { $0.send(record, bytes) }
                if isSent { counters.packetsRelayed &+= 1 } else { counters.packetsNotRelayed &+= 1 }
            }
        }
    }

    /// Whether another loop needs a packet: of a stream that answers a choice made there, or that still plays there.
    private func needs(
        _ export: RelayExport,
        _ packet: UnsafePointer<PendingPacket>,
        _ choices: LayerChoices
    ) -> Bool {
        guard export.choices.isDisjoint(with: choices) else { return true }
        guard !export.layers.isEmpty else { return false }
        return unsafe packet.pointee.stream.with { export.layers.contains(LayerSet(layer: $0.layer)) }
    }

    /// Lets the other loops begin.
    func flushLinks() {
        for link in links.values { link.flush() }
    }

    /// Tells other loops what a sender report said, so that their sender reports keep audio and video together.
    func relayClock(of stream: ReceivedStream) {
        guard let anchor = stream.clock.newest, let offset = stream.track.clockOffset.nanoseconds else { return }
        for export in stream.track.exports {
            var record = RelayRecord(.clock, export.relay)
            record.streamID = stream.id.rawValue
            record.senderNanoseconds = anchor.senderNanoseconds
            record.timestamp = anchor.timestamp
            record.clockOffset = offset
            _ = export.link.with { $0.send(record, RawSpan()) }
        }
    }

    /// Tells other loops what layers a track has. A message that gets lost is followed by the next one a second later.
    func relayLayers(of track: ReceivedTrack) {
        guard !track.exports.isEmpty, track.parameters.kind == .video else { return }
        let bytes = track.table.encoded()
        for export in track.exports {
            let record = RelayRecord(.layers, export.relay)
            _ = export.link.with { $0.send(record, unsafe bytes.span.bytes) }
        }
    }

    func endExports(of track: ReceivedTrack) {
        for export in track.exports {
            exportedTracks[ExportKey(loop: export.loop, relay: export.relay)] = nil
        }
        track.exports.removeAll()
    }

    // MARK: - Where it is played

    /// The mirror of another loop's track, if there is one here.
    public func mirror(of track: TrackID) -> RelayID? { mirrors[track]?.origin?.relay }

    /// A name for a mirror that is to be made. Packets that come before ``addMirror(_:as:from:at:)`` are dropped: the track
    /// may be exported sooner than the mirror is made. ``discardRelayID(_:)`` gives up a name without a mirror.
    ///
    /// - Throws: `tooManyMirrors` when every name is in use.
    public func makeRelayID() throws(ForwarderError) -> RelayID {
        if let index = freeMirrorPlaces.popLast() {
            mirrorPlaces[index].generation &+= 1
            mirrorPlaces[index].isExpected = true
            return RelayID(place: index, generation: mirrorPlaces[index].generation)
        }
        guard mirrorPlaces.count < Self.mirrorsMax else { throw .tooManyMirrors(limit: Self.mirrorsMax) }
        mirrorPlaces.append(MirrorPlace(isExpected: true))
        return RelayID(place: mirrorPlaces.count - 1, generation: 0)
    }

    /// Mirrors of one core: as many as a name's half for the place tells apart.
    static let mirrorsMax = 0x1_0000

    /// Gives a name back that no mirror was made for.
    public func discardRelayID(_ relay: RelayID) { freePlace(relay.place) }

    private func freePlace(_ index: Int) {
        mirrorPlaces[index].isExpected = false
        mirrorPlaces[index].mirror = nil
        freeMirrorPlaces.append(index)
    }

    /// What a relay's name stands for.
    struct MirrorPlace {
        var generation: UInt16 = 0
        /// The name was given out and its mirror is still to be made.
        var isExpected: Bool
        var mirror: Unretained<ReceivedTrack>?
    }

    /// Makes the mirror of another loop's track, to which slots are connected like to a track of this loop.
    ///
    /// It goes by itself when its last slot lets go of it. Where none takes hold of it, ``removeUnusedMirror(of:)`` ends it.
    public func addMirror(_ track: RelayedTrack, as relay: RelayID, from loop: LoopIndex, at now: Instant) {
        precondition(mirrors[track.id] == nil, "a track has one mirror on a loop")
        let mirror = ReceivedTrack(
            id: track.id,
            parameters: track.parameters,
            clockOffset: PeerClock(),
            origin: RelayOrigin(relay: relay, loop: loop, link: links[loop], at: now)
        )
        mirrors[track.id] = mirror
        mirrorPlaces[relay.place].isExpected = false
        mirrorPlaces[relay.place].mirror = Unretained(mirror)
    }

    /// The slot that let go was perhaps the mirror's last.
    func noteDetached(_ track: ReceivedTrack, at now: Instant) {
        guard track.origin != nil, track.slots.isEmpty else { return }
        removeMirror(track)
    }

    /// Ends the mirror of a track if no slot plays it; for a slot that could not be connected.
    public func removeUnusedMirror(of track: TrackID) {
        guard let mirror = mirrors[track], mirror.slots.isEmpty else { return }
        removeMirror(mirror)
    }

    private func removeMirror(_ track: ReceivedTrack) {
        guard let origin = track.origin, mirrors[track.id] === track else { return }
        origin.unsubscribe()
        dropPending(track)
        for stream in track.streams { unregister(stream) }
        freePlace(origin.relay.place)
        mirrors[track.id] = nil
    }

    /// How long a mirror waits for its first slot, which the call that made it connects next.
    private static let mirrorPatience = Interval.seconds(5)

    // MARK: - Records

    /// Takes one record that came over the link from `loop`.
    /// - Parameter bytes: the packet, for a record that is one.
    public func receiveRelayed(
        _ record: RelayRecord,
        _ bytes: RawSpan,
        from loop: LoopIndex,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        switch record.kind {
        case .packet: receivePacket(record, bytes, from: loop, at: now, into: batch)
        case .clock: receiveClock(record)
        case .layers:
            guard let encodings = LayerTable.decodeEncodings(bytes) else { return }
            findPlace(record.relay)?.mirror?.with { $0.noteEncodings(encodings) }
        case .keyFrameRequest:
            guard let track = exportedTracks[ExportKey(loop: loop, relay: record.relay)] else { return }
            if record.streamID != 0 {
                track.stream(StreamID(rawValue: record.streamID))?.wantKeyFrame(at: now)
            } else if let export = track.exports.first(where: { $0.loop == loop }) {
                track.wantKeyFrames(of: export.choices, at: now)
            }
            markDirty(track.id.peer)
        case .repairRequest:
            guard let track = exportedTracks[ExportKey(loop: loop, relay: record.relay)],
                let stream = track.stream(StreamID(rawValue: record.streamID))
            else { return }
            if !stream.wantRepair(at: now) { counters.throttleKeyFrame(.layerBudget) }
            markDirty(track.id.peer)
        case .hold:
            guard let track = exportedTracks[ExportKey(loop: loop, relay: record.relay)],
                let stream = track.stream(StreamID(rawValue: record.streamID))
            else { return }
            if track.parameters.kind == .video { hold(stream, at: now) }
        case .wish:
            guard let track = exportedTracks[ExportKey(loop: loop, relay: record.relay)],
                let index = track.exports.firstIndex(where: { $0.loop == loop && $0.relay == record.relay })
            else { return }
            let added = record.choices.subtracting(track.exports[index].choices)
            track.exports[index].choices = record.choices
            track.exports[index].layers = record.layers
            guard !added.isEmpty else { return }
            track.wantKeyFrames(of: added, at: now)
            markDirty(track.id.peer)
        case .unsubscribe:
            guard let track = exportedTracks.removeValue(forKey: ExportKey(loop: loop, relay: record.relay)) else {
                return
            }
            track.exports.removeAll { $0.loop == loop && $0.relay == record.relay }
        }
    }

    /// `nil` when the name is not in use any more, or by another mirror.
    private func findPlace(_ relay: RelayID) -> MirrorPlace? {
        guard relay.place < mirrorPlaces.count, mirrorPlaces[relay.place].generation == relay.generation else {
            return nil
        }
        return mirrorPlaces[relay.place]
    }

    private func receivePacket(
        _ record: RelayRecord,
        _ bytes: RawSpan,
        from loop: LoopIndex,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let place = findPlace(record.relay)
        guard let mirror = place?.mirror else {
            // The mirror is gone and its unsubscription was lost, unless it is only about to be made.
            if place?.isExpected != true { _ = links[loop]?.send(RelayRecord(.unsubscribe, record.relay), RawSpan()) }
            return
        }
        let isAbandoned = mirror.with { track in
            guard record.description.fits(bytes),
                let stream = track.relayedStream(record.streamID) ?? addRelayedStream(record, to: track, at: now)
            else { return false }
            stream.with { stream in
                stream.packetsReceived &+= 1
                track.noteResolution(record.choices, exact: record.exact, of: stream, at: now)
                stream.noteArrival(record.description, bytes: bytes.byteCount, at: now)
                var description = record.description
                // Ages are counted from here: the loop may have been held up.
                description.receivedAt = now
                _ = track.take(bytes, description, of: stream, core: self, into: batch)
            }
            guard track.slots.isEmpty, let origin = track.origin else { return false }
            return now - origin.createdAt > Self.mirrorPatience
        }
        if isAbandoned { removeMirror(mirror.object) }
    }

    private func addRelayedStream(
        _ record: RelayRecord,
        to track: ReceivedTrack,
        at now: Instant
    ) -> Unretained<ReceivedStream>? {
        // The origin evicts streams that went silent; what is left here of them gives way.
        while track.streams.count >= ReceivedTrack.streamsMax {
            guard let silent = track.evictSilentStream(at: now) else { return nil }
            unregister(silent)
        }
        let layers = track.parameters.rids
        let stream = ReceivedStream(
            id: makeStreamID(),
            ssrc: record.ssrc,
            rid: Int(record.layer) < layers.count ? layers[Int(record.layer)] : nil,
            track: track,
            historyBytesMax: historyBytesMax,
            at: now
        )
        stream.originID = record.streamID
        track.add(stream, at: now)
        register(stream)
        return Unretained(stream)
    }

    private func receiveClock(_ record: RelayRecord) {
        guard let mirror = findPlace(record.relay)?.mirror else { return }
        mirror.with { track in
            guard let stream = track.relayedStream(record.streamID) else { return }
            stream.with {
                $0.clock.receivedReport(senderNanoseconds: record.senderNanoseconds, timestamp: record.timestamp)
            }
            track.clockOffset.set(record.clockOffset)
        }
    }
}

extension ReceivedTrack {
    /// A mirror's stream by its number at the origin.
    func relayedStream(_ originID: UInt64) -> Unretained<ReceivedStream>? {
        var index = 0
        while index < streams.count {
            if streams[index].originID == originID { return Unretained(streams[index]) }
            index += 1
        }
        return nil
    }
}

extension PacketDescription {
    /// Whether everything that it describes lies within the packet.
    func fits(_ packet: RawSpan) -> Bool {
        payloadRange.upperBound <= packet.byteCount
            && max(audioLevel.range.upperBound, videoOrientation.range.upperBound) <= packet.byteCount
            && max(playoutDelay.range.upperBound, dependencyDescriptor.range.upperBound) <= packet.byteCount
    }
}
