public import Base
public import MediaTypes
public import Wire

/// Links to loops of other nodes.
extension Forwarder {
    /// A packet is not repaired when it would arrive later than this after it was received.
    private static let repairAgeMax = Interval.milliseconds(250)
    /// Other nodes that one track goes to: all of them get it from its publisher's node.
    static let nodesPerTrackMax = 64
    /// Datagrams of one report whose packets are sent again.
    private static let repairsPerReportMax = 512

    /// Lets tracks cross to and from loops of other nodes; once, before anything else of this.
    /// - Parameters:
    ///   - location: of this loop, unique among the loops of all nodes.
    ///   - sockets: what each UDP socket of the loop is bound to, by its index.
    ///   - addresses: what other nodes reach the loop at, most preferred first, and what its datagrams come from.
    ///   - batch: the one that is passed to all calls.
    public func startMediaLinks(
        at location: MediaLocation,
        sockets: [TransportAddress],
        addresses: [TransportAddress],
        into batch: DatagramBatch
    ) {
        mediaLinks.start(location, sockets: sockets, addresses: addresses, into: batch)
    }

    /// This loop's end of the link to a loop of another node, which is made if there is none.
    /// - Throws: `unknownLocation` while links are not started, `tooManyMediaLinks`.
    public func mediaLinkEnd(to location: MediaLocation, at now: Instant) throws(ForwarderError) -> MediaLinkEnd {
        guard mediaLinks.isStarted, location.node != mediaLinks.location.node else { throw .unknownLocation(location) }
        mediaLinks.now = now
        if let link = mediaLinks.link(to: location) {
            link.noteWanted()
            return mediaLinks.end(of: link)
        }
        let link = try mediaLinks.makeLink(to: location)
        relays.setMediaLink(link, as: link.id)
        return mediaLinks.end(of: link)
    }

    /// Whether the link of an end of this loop is there still.
    public func hasMediaLink(_ end: MediaLinkEnd) -> Bool { mediaLinks.link(end.link)?.secret == end.secret }

    /// Tells a link of its other end. It may be told again, with the same end or another one.
    /// - Returns: the link's name.
    /// - Throws: `unknownLocation` when ``mediaLinkEnd(to:at:)`` was not called or the link has ended since, `linkFailed`
    ///   when nothing can be sent to that end.
    public func joinMediaLink(_ end: MediaLinkEnd, at now: Instant) throws(ForwarderError) -> LinkID {
        guard let link = mediaLinks.link(to: end.location) else { throw .unknownLocation(end.location) }
        mediaLinks.now = now
        try link.join(end)
        return link.id
    }

    /// Lets a track's packets go to a mirror of a loop of another node too. It may be told again.
    /// - Parameters:
    ///   - relay: the mirror's name there.
    ///   - receiver: that loop's end of the link.
    /// - Returns: what the mirror is made with, and this loop's end of the link.
    /// - Throws: `unknownTrack` when the track's peer has left, `tooManyNodes`; what ``mediaLinkEnd(to:at:)`` and
    ///   ``joinMediaLink(_:at:)`` throw.
    public func exportTrack(
        _ id: TrackID,
        as relay: MirrorID,
        to receiver: MediaLinkEnd,
        at now: Instant
    ) throws(ForwarderError) -> (track: MirroredTrack, origin: MediaLinkEnd) {
        guard let track = peer(id.peer)?.track(id.mid) else { throw .unknownTrack(id) }
        let nodes = Set(track.exports.compactMap { ($0.link.object as? MediaLink)?.location.node })
        guard nodes.count < Self.nodesPerTrackMax || nodes.contains(receiver.location.node) else {
            throw .tooManyNodes(id, limit: Self.nodesPerTrackMax)
        }
        let origin = try mediaLinkEnd(to: receiver.location, at: now)
        let link = try joinMediaLink(receiver, at: now)
        return (try exportTrack(id, as: relay, over: link, at: now), origin)
    }

    /// Ends all links to loops of one run of a node, the exports over them, and the mirrors of tracks of that node, those
    /// that come over another loop of this node included: their slots play nothing from now on.
    public func removeMediaLinks(to node: NodeIncarnation, at now: Instant) {
        mediaLinks.now = now
        for mirror in relays.mirrors(of: node) { abandonMirror(mirror, at: now) }
        for link in mediaLinks.all where link.location.node == node {
            relays.endExports(over: link.id)
            for mirror in relays.mirrors(from: link.id) { abandonMirror(mirror, at: now) }
            remove(link)
        }
    }

    /// Removes a link that nothing crosses.
    private func remove(_ link: MediaLink) {
        relays.removeMediaLink(link.id)
        mediaLinks.remove(link)
    }

    /// The mirrors to ask for once more, as for the first time (``mediaLinkEnd(to:at:)``, then ``joinMediaLink(_:at:)`` with the
    /// answer), because the other node may have forgotten them. Links that neither end needs end. To be called about once a
    /// second.
    public func mirrorsToRenew(at now: Instant) -> [LostMirror] {
        mediaLinks.now = now
        relays.repeatUnsubscriptions()
        var lost: [LostMirror] = []
        for link in mediaLinks.all {
            guard !link.isAbandoned(at: now) else {
                remove(link)
                continue
            }
            guard let scope = link.renewal.next(isSilent: link.state.isDown, at: now) else { continue }
            let mirrors = relays.mirrors(from: link.id)
            for track in scope == .all ? mirrors[...] : mirrors.prefix(1) {
                guard let relay = mirror(of: track.id) else { continue }
                lost.append(
                    LostMirror(track: track.id, relay: relay, origin: link.location, isBehindLoop: false)
                )
            }
        }
        return lost
    }

    /// All mirrors of a loop that the last ``mirrorsToRenew(at:)`` named were asked for.
    public func mirrorsRenewed(from origin: MediaLocation) { mediaLinks.link(to: origin)?.renewal.succeeded() }

    /// The links as they are now.
    public func mediaLinkStates(at now: Instant) -> [MediaLinkState] {
        mediaLinks.now = now
        return mediaLinks.all.map(\.state)
    }

    /// What the links have done.
    public var mediaLinkCounters: MediaLinkCounters { mediaLinks.counters }

    // MARK: - Datagrams

    /// Takes a datagram of a link.
    func receivedMediaLink(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard let header = TransferEnvelope.Header(datagram.bytes.extracting(0..<length)) else {
            counters.drop(.malformedRelay)
            return
        }
        guard let traffic = unsafe mediaLinks.traffic(header.link) else {
            counters.drop(.relayUnknownLink)
            return
        }
        mediaLinks.now = now
        let range: Range<Int>
        do {
            range = try unsafe traffic.pointee.open(&datagram, length: length, header, path: path)
        } catch {
            switch error {
            case .drop(let reason): counters.drop(reason)
            }
            return
        }
        if unsafe !traffic.pointee.isDirty { mediaLinks.link(header.link).map(mediaLinks.markDirty) }
        let contents = datagram.bytes.extracting(range)
        switch header.kind {
        case .media:
            if unsafe !receivedRecords(contents, header.link, traffic, at: now, into: batch) {
                counters.drop(.malformedRelay)
            }
        case .report:
            if let link = mediaLinks.link(header.link) { receivedReport(contents, over: link, at: now) }
        }
    }

    /// - Parameter number: the link's.
    /// - Returns: `false` where the contents are broken; what is in front of that place was taken.
    @unsafe
    private func receivedRecords(
        _ contents: RawSpan,
        _ number: UInt16,
        _ traffic: UnsafeMutablePointer<MediaLinkTraffic>,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Bool {
        let id = unsafe traffic.pointee.id
        let roundTrip = unsafe traffic.pointee.clock.roundTrip
        var offset = 0
        while offset < contents.byteCount {
            guard let record = TransferEnvelope.record(at: offset, of: contents) else { return false }
            offset = record.range.upperBound
            let bytes = contents.extracting(record.range)
            do throws(TransferMessageError) {
                let (message, bodyOffset) = try TransferMessage.decode(bytes)
                let body = bytes.extracting(bodyOffset...)
                if case .packet(let packet) = message {
                    notePacket(packet, record.age, roundTrip)
                    receivePacket(packet, nil, body, from: id, at: now, into: batch)
                } else {
                    receiveMessage(message, body, over: number, as: id, at: now, into: batch)
                }
            } catch {
                return false
            }
        }
        return true
    }

    @inline(__always)
    private func notePacket(_ packet: TransferMessage.Packet, _ age: Int64, _ roundTrip: Interval?) {
        guard !packet.isRepair else {
            mediaLinks.counters.received.repairs &+= 1
            return
        }
        mediaLinks.counters.received.packets &+= 1
        if let roundTrip { mediaLinks.counters.hops.record(Interval(nanoseconds: age + roundTrip.nanoseconds / 2)) }
    }

    @inline(never)
    private func receiveMessage(
        _ message: TransferMessage,
        _ body: RawSpan,
        over number: UInt16,
        as id: LinkID,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        mediaLinks.counters.received.messages &+= 1
        guard case .clock(let clock) = message else {
            receiveTransferred(TransferRecord(message), body, from: id, at: now, into: batch)
            return
        }
        if let shifted = mediaLinks.link(number)?.shifted(clock) { receiveClock(shifted, from: id) }
    }

    private func receivedReport(_ contents: RawSpan, over link: MediaLink, at now: Instant) {
        guard let report = TransferFeedback(contents) else {
            counters.drop(.malformedRelay)
            return
        }
        for clock in link.received(report, wall: mediaLinks.wall(at: now)) {
            if let shifted = link.shifted(clock) { receiveClock(shifted, from: link.id) }
        }
        var budget = Self.repairsPerReportMax
        for range in report.missing {
            // Only the newest are remembered and young enough.
            var counter = range.first + UInt64(range.count) - min(UInt64(range.count), UInt64(budget))
            let end = range.first + UInt64(range.count)
            while counter < end {
                link.takeRepairs(of: counter) { repair($0, over: link, at: now) }
                counter += 1
                budget -= 1
            }
        }
    }

    /// Sends a packet again that the other end of a link misses.
    private func repair(_ record: SentRecords.Record, over link: MediaLink, at now: Instant) {
        guard let track = relays.exportedTrack(to: record.relay, over: link.id),
            let stream = track.stream(StreamID(rawValue: record.stream)),
            let export = track.exports.first(where: { $0.linkID == link.id })
        else {
            mediaLinks.counters.repairsMissed &+= 1
            return
        }
        let roundTrip = link.clock.roundTrip ?? .zero
        let isKept: Void? = stream.history.withPacket(record.sequence) { bytes, description in
            let age = now - description.receivedAt
            guard age + roundTrip < Self.repairAgeMax else {
                mediaLinks.counters.repairsLate &+= 1
                return
            }
            var packet = makePacket(for: export, of: track)
            setStream(stream, of: track, in: &packet)
            packet.isRTXRecovered = description.isRTXRecovered
            packet.sequence = record.sequence
            link.repair(packet, bytes, repairs: record.repairs, age: age.nanoseconds)
        }
        if isKept == nil { mediaLinks.counters.repairsMissed &+= 1 }
    }
}
