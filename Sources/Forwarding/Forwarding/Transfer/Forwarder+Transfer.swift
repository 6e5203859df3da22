public import Base
public import MediaTypes
public import Wire

/// Tracks that cross from one loop to another: exported where they are published, mirrored where they are played.
extension Forwarder {
    /// Adds a link to another loop. It must stay for the core's life.
    public func setLink(_ link: TransferLink, as id: LinkID) { relays.setLink(link, as: id) }

    // MARK: - Where a track is published

    /// Lets a track's packets go over a link too, to the mirror that is called `relay` there.
    ///
    /// The track may be a mirror itself: what comes from another node goes on to the other loops of this one.
    /// - Returns: what the mirror is made with.
    /// - Throws: `unknownTrack` when the track's peer has left, `unknownLink` without the link.
    public func exportTrack(
        _ id: TrackID,
        as relay: MirrorID,
        over link: LinkID,
        at now: Instant
    ) throws(ForwarderError) -> MirroredTrack {
        guard let track = peer(id.peer)?.track(id.mid) ?? relays.mirrors[id]?.track else { throw .unknownTrack(id) }
        mediaLinks.now = now
        try relays.export(track, as: relay, over: link)
        for stream in track.streams { transferClock(of: stream) }
        transferLayers(of: track)
        return MirroredTrack(id: id, parameters: track.parameters)
    }

    /// Sends this turn's packets of a track to every other loop that plays it.
    func relay(_ track: ReceivedTrack) {
        guard track.backlogCount > 0, let backlog = unsafe track.backlog else { return }
        let count = track.backlogCount
        for export in track.exports {
            var packet = makePacket(for: export, of: track)
            var index = 0
            while index < count {
                let pending = unsafe backlog + index
                index += 1
                if unsafe packet.stream != pending.pointee.streamID {
                    unsafe pending.pointee.stream.with { setStream($0, of: track, in: &packet) }
                }
                guard needs(export, packet) else { continue }
                packet.isRTXRecovered = unsafe pending.pointee.description.isRTXRecovered
                packet.sequence = unsafe pending.pointee.description.sequence
                let record = unsafe TransferRecord(packet, pending.pointee.description)
                let bytes = unsafe pending.pointee.span
                let isSent = export.link.with { $0.send(record, bytes) }
                if isSent { counters.packetsTransferred &+= 1 } else { counters.packetsNotTransferred &+= 1 }
            }
        }
    }

    /// What all packets of a track to a mirror share.
    @inline(__always)
    func makePacket(for export: TrackExport, of track: ReceivedTrack) -> TransferMessage.Packet {
        TransferMessage.Packet(
            relay: export.relay,
            stream: 0,
            ssrc: SSRC(rawValue: 0),
            layer: .max,
            choices: 0,
            exactChoices: track.resolution.exact.rawValue,
            isRTXRecovered: false,
            sequence: ExtendedSequenceNumber(rawValue: 0)
        )
    }

    @inline(__always)
    func setStream(_ stream: ReceivedStream, of track: ReceivedTrack, in packet: inout TransferMessage.Packet) {
        packet.stream = stream.id.rawValue
        packet.choices = track.resolution.choices(of: packet.stream).rawValue
        packet.ssrc = stream.ssrc
        packet.layer = stream.layer
    }

    /// Whether a mirror needs a packet: its stream answers a choice made there, or still plays there.
    @inline(__always)
    private func needs(_ export: TrackExport, _ packet: TransferMessage.Packet) -> Bool {
        guard export.choices.isDisjoint(with: LayerChoices(rawValue: packet.choices)) else { return true }
        return export.layers.contains(LayerSet(layer: packet.layer))
    }

    /// Lets the other loops begin.
    func flushLinks() { relays.flushLinks() }

    /// Tells mirrors what a sender report said, so that their sender reports keep audio and video together.
    func transferClock(of stream: ReceivedStream) {
        guard let anchor = stream.clock.newest, let offset = stream.track.clockOffset.nanoseconds else { return }
        for export in stream.track.exports {
            let clock = TransferMessage.Clock(
                relay: export.relay,
                stream: stream.id.rawValue,
                senderNanoseconds: anchor.senderNanoseconds,
                timestamp: anchor.timestamp,
                offsetNanoseconds: offset
            )
            _ = export.link.with { $0.send(.clock(clock)) }
        }
    }

    /// Tells mirrors what layers a track has. A message that gets lost is followed by the next one a second later.
    func transferLayers(of track: ReceivedTrack) {
        guard !track.exports.isEmpty, track.parameters.kind == .video else { return }
        var bytes: [UInt8] = []
        swap(&bytes, &relays.layerBytes)
        defer { swap(&bytes, &relays.layerBytes) }
        bytes.removeAll(keepingCapacity: true)
        track.appendEncodings(to: &bytes)
        for export in track.exports {
            let record = TransferRecord(.layers(export.relay))
            _ = export.link.with { $0.send(record, unsafe bytes.span.bytes) }
        }
    }

    func endExports(of track: ReceivedTrack) { relays.endExports(of: track) }

    // MARK: - Where it is played

    /// The mirror of another loop's track, if there is one here.
    public func mirror(of track: TrackID) -> MirrorID? { relays.mirrors[track]?.relay }

    /// A name for a mirror that is to be made. Packets that come before ``addMirror(_:as:from:at:)`` are dropped: the track
    /// may be exported sooner than the mirror is made. ``discardMirrorID(_:)`` gives up a name without a mirror.
    ///
    /// - Throws: `tooManyMirrors` when every name is in use.
    public func makeMirrorID() throws(ForwarderError) -> MirrorID { try relays.makeMirrorID() }

    /// Gives a name back that no mirror was made for.
    public func discardMirrorID(_ relay: MirrorID) { relays.discard(relay) }

    /// Makes the mirror of another loop's track, to which slots are connected like to a track of this loop.
    ///
    /// It ends with its last slot and with the last loop that it goes on to. If there was none, ``removeUnusedMirror(of:)``
    /// ends it.
    /// - Parameters:
    ///   - link: the one that the track's packets come over.
    ///   - location: where a track of another node is published, if it comes over another loop of this node.
    public func addMirror(
        _ track: MirroredTrack,
        as relay: MirrorID,
        from link: LinkID,
        publishedAt location: MediaLocation? = nil,
        at now: Instant
    ) {
        let mirror = ReceivedTrack(
            id: track.id,
            parameters: track.parameters,
            clockOffset: PeerClock(),
            origin: TransferOrigin(relay: relay, link: relays.links[link], at: now)
        )
        mediaLinks.now = now
        relays.addMirror(mirror, as: relay, from: link, publishedAt: location, at: now)
    }

    /// A slot was detached, perhaps the mirror's last one.
    func noteDetached(_ track: ReceivedTrack, at now: Instant) {
        guard track.origin != nil, !track.isPlayed else { return }
        removeMirror(track)
    }

    /// Ends the mirror of a track if nobody plays it; for a slot that could not be connected.
    public func removeUnusedMirror(of track: TrackID) {
        guard let mirror = relays.mirrors[track]?.track, !mirror.isPlayed else { return }
        removeMirror(mirror)
    }

    private func removeMirror(_ track: ReceivedTrack) {
        guard let (relay, link) = relays.removeMirror(track) else { return }
        if track.origin?.unsubscribe() == false { relays.unsubscribeLater(relay, over: link) }
        dropPending(track)
        for stream in track.streams { streams.remove(stream) }
    }

    /// How long a mirror waits for its first slot, which the call that made it connects next.
    private static let mirrorPatience = Interval.seconds(5)

    // MARK: - Messages

    /// Takes one record that came over a link.
    /// - Parameters:
    ///   - bytes: the RTP packet or the layer table, for a record that has one.
    ///   - link: this core's name of the link.
    public func receiveTransferred(
        _ record: TransferRecord,
        _ bytes: RawSpan,
        from link: LinkID,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        switch record.message {
        case .packet(let packet):
            receivePacket(packet, record.description, bytes, from: link, at: now, into: batch)
        case .clock(let clock): receiveClock(clock, from: link)
        case .layers(let relay): receiveLayers(of: relay, bytes, from: link, at: now)
        case .keyFrameRequest(let relay, let stream):
            guard let track = relays.exportedTrack(to: relay, over: link) else { return tellEnd(of: relay, over: link) }
            if let stream {
                track.stream(StreamID(rawValue: stream))?.wantKeyFrame(at: now)
            } else if let origin = track.origin {
                origin.requestKeyFrames(at: now)
            } else if let export = track.exports.first(where: { $0.linkID == link }) {
                track.wantKeyFrames(of: export.choices, at: now)
            }
            markDirty(track.id.peer)
        case .repairRequest(let relay, let number):
            guard let track = relays.exportedTrack(to: relay, over: link) else { return tellEnd(of: relay, over: link) }
            guard let stream = track.stream(StreamID(rawValue: number)) else { return }
            if !stream.wantRepair(at: now) { counters.throttleKeyFrame(.layerBudget) }
            markDirty(track.id.peer)
        case .hold(let relay, let number):
            guard let track = relays.exportedTrack(to: relay, over: link) else { return tellEnd(of: relay, over: link) }
            guard track.parameters.kind == .video, let stream = track.stream(StreamID(rawValue: number)) else { return }
            hold(stream, at: now)
        case .subscribe(let subscription): receiveSubscription(subscription, from: link, at: now)
        case .unsubscribe(let relay):
            guard let track = relays.exportedTrack(to: relay, over: link) else { return }
            relays.endExport(to: relay, over: link)
            track.forgetUnusedChoices()
            noteDetached(track, at: now)
        case .ended(let relay): receiveEnd(of: relay, from: link, at: now)
        }
    }

    private func receiveSubscription(
        _ subscription: TransferMessage.Subscription,
        from link: LinkID,
        at now: Instant
    ) {
        guard let track = relays.exportedTrack(to: subscription.relay, over: link),
            let index = track.exports.firstIndex(where: { $0.linkID == link && $0.relay == subscription.relay })
        else { return tellEnd(of: subscription.relay, over: link) }
        let choices = LayerChoices(rawValue: subscription.choices)
        var added = choices.subtracting(track.exports[index].choices)
        // Slots request the key frame that they begin with once their peer is connected.
        if !track.exports[index].isSubscribed { added = [] }
        track.exports[index].choices = choices
        track.exports[index].layers = subscription.layers
        track.exports[index].wanted = subscription.wanted
        noteWanted(subscription.wanted, of: track, at: now)
        if let origin = track.origin {
            track.forgetUnusedChoices()
            origin.subscribe(track)
            // Without a slot of its own nothing else refreshes it.
            origin.refreshSubscription(of: track, at: now)
        }
        if !track.exports[index].isSubscribed {
            // What was said before was lost when the mirror's loop did not know the link yet.
            track.exports[index].isSubscribed = true
            for stream in track.streams { transferClock(of: stream) }
            transferLayers(of: track)
        }
        guard !added.isEmpty else { return }
        track.wantKeyFrames(of: added, at: now)
        markDirty(track.id.peer)
    }

    /// - Parameter known: what the origin's parse found; `nil` when the packet is to be parsed here.
    ///
    /// Never inlined: in a loop over records, the checks of what is rarely accessed here would move to where they are always
    /// made.
    @inline(never)
    func receivePacket(
        _ packet: TransferMessage.Packet,
        _ known: PacketDescription?,
        _ bytes: RawSpan,
        from link: LinkID,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let found = relays.place(of: packet.relay)
        guard let place = found, let mirror = place.mirror, place.link == link else {
            // The mirror is gone and its unsubscription was lost, unless it is only about to be made.
            if found?.isExpected != true { _ = relays.links[link]?.send(.unsubscribe(packet.relay)) }
            return
        }
        let isAbandoned = mirror.with { track in
            guard
                let stream = track.relayedStream(packet.stream)
                    ?? addMirroredStream(packet.stream, ssrc: packet.ssrc, layer: packet.layer, to: track, at: now),
                var description = known ?? describe(packet, bytes, of: stream, track, at: now), description.fits(bytes)
            else { return false }
            // Ages are counted from here: the loop may have been held up.
            description.receivedAt = now
            stream.with { stream in
                stream.packetsReceived &+= 1
                track.noteResolution(
                    LayerChoices(rawValue: packet.choices),
                    exact: LayerChoices(rawValue: packet.exactChoices),
                    of: stream,
                    at: now
                )
                stream.noteArrival(description, bytes: bytes.byteCount, at: now)
                if description.startsKeyFrame { stream.noteKeyFrameStart(description) }
                if description.startsKeyFrame, known != nil { stream.noteMirroredStructure(bytes, description) }
                _ = track.take(bytes, description, of: stream, core: self, into: batch)
            }
            return !track.isPlayed && now - place.createdAt > Self.mirrorPatience
        }
        if isAbandoned { removeMirror(mirror.object) }
    }

    /// Parses a packet of another node, whose offsets are not trusted.
    /// - Returns: `nil`, counted as a drop, when it is no RTP packet of the track.
    @inline(__always)
    private func describe(
        _ packet: TransferMessage.Packet,
        _ bytes: RawSpan,
        of stream: Unretained<ReceivedStream>,
        _ track: ReceivedTrack,
        at now: Instant
    ) -> PacketDescription? {
        let view: RTPPacketView
        do {
            view = try RTPPacketView(bytes)
        } catch {
            counters.drop(.malformedRTP)
            return nil
        }
        guard view.sequenceNumber == packet.sequence.wire else {
            counters.drop(.malformedRTP)
            return nil
        }
        return stream.with { describe(view, packet, of: $0, track, at: now) }
    }

    @inline(__always)
    private func describe(
        _ view: borrowing RTPPacketView,
        _ packet: TransferMessage.Packet,
        of stream: ReceivedStream,
        _ track: ReceivedTrack,
        at now: Instant
    ) -> PacketDescription? {
        guard let format = stream.format(of: view.payloadType, in: track) else {
            counters.drop(.unknownPayloadType)
            return nil
        }
        var description = PacketDescription(
            view,
            sequence: packet.sequence,
            codec: format.codec,
            extensions: track.parameters.extensions,
            templates: stream.templates,
            at: now
        )
        description?.isRTXRecovered = packet.isRTXRecovered
        return description
    }

    /// - Parameters:
    ///   - number: the stream's at its origin.
    ///   - layer: its place among the track's rids.
    private func addMirroredStream(
        _ number: UInt64,
        ssrc: SSRC,
        layer: UInt8,
        to track: ReceivedTrack,
        at now: Instant
    ) -> Unretained<ReceivedStream>? {
        // The origin evicts streams that went silent; what is left here of them gives way.
        while track.streams.count >= ReceivedTrack.streamsMax {
            guard let silent = track.evictSilentStream(at: now) else { return nil }
            streams.remove(silent)
        }
        let layers = track.parameters.rids
        let stream = ReceivedStream(
            id: streams.makeID(),
            ssrc: ssrc,
            rid: Int(layer) < layers.count ? layers[Int(layer)] : nil,
            track: track,
            historyBytesMax: historyBytesMax,
            at: now
        )
        stream.originID = number
        track.add(stream, at: now)
        streams.add(stream)
        return Unretained(stream)
    }

    func receiveClock(_ clock: TransferMessage.Clock, from link: LinkID) {
        guard let mirror = mirror(clock.relay, from: link) else { return }
        mirror.with { track in
            guard let stream = track.relayedStream(clock.stream) else { return }
            stream.with {
                $0.clock.receivedReport(senderNanoseconds: clock.senderNanoseconds, timestamp: clock.timestamp)
            }
            track.clockOffset.set(clock.offsetNanoseconds)
            if !track.exports.isEmpty { stream.with { transferClock(of: $0) } }
        }
    }

    /// The mirror of a name, if it is one of the link's.
    func mirror(_ relay: MirrorID, from link: LinkID) -> Unretained<ReceivedTrack>? {
        guard let place = relays.place(of: relay), place.link == link else { return nil }
        return place.mirror
    }

    private func receiveLayers(of relay: MirrorID, _ bytes: RawSpan, from link: LinkID, at now: Instant) {
        mirror(relay, from: link)?.with { track in
            track.receiveEncodings(bytes, at: now) { number, place in
                track.relayedStream(number)
                    ?? addMirroredStream(
                        number,
                        ssrc: SSRC(rawValue: 0),
                        layer: UInt8(clamping: place),
                        to: track,
                        at: now
                    )
            }
            transferLayers(of: track)
        }
    }
}

extension ReceivedTrack {
    /// A mirror's stream by its number at the origin.
    func relayedStream(_ originID: UInt64) -> Unretained<ReceivedStream>? {
        unretainedStream { $0.originID == originID }
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
