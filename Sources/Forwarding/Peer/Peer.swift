import CongestionControl
import ICE
package import MediaTypes
import SRTP
package import Wire

/// One peer on the loop: its transport, what it sends us and what we send it.
@safe
package final class Peer {
    package let id: PeerID
    package let transport: PeerTransport
    private unowned(unsafe) let owner: Forwarder
    /// The core that the peer is of, which outlives it.
    var core: Forwarder { unsafe owner }
    package internal(set) var tracks: [ReceivedTrack]
    var slotTable = SlotTable()
    /// Every SSRC that a slot of the peer has or had.
    var usedSSRCs = SSRCMemory()
    /// Equal for all m-sections of one BUNDLE group (RFC 8843 §9.2); a packet is read before its section is known.
    var extensions: HeaderExtensionMap {
        get { unsafe negotiatedExtensions }
        set { unsafe negotiatedExtensions = newValue }
    }
    /// Every packet reads it and only negotiation writes it, each in one step, so accesses are not checked.
    @exclusivity(unchecked) private var negotiatedExtensions: HeaderExtensionMap
    /// What the peer publishes against what it may. Every packet changes it, in one step and nothing else at that time.
    @exclusivity(unchecked) private var limiter: PublishLimiter
    /// Whose media the peer's is, where what can be sent is shared.
    let share: UInt64
    let clock: PeerClock
    /// Our SSRC in feedback to this peer.
    let feedbackSSRC: SSRC

    private(set) var streams: ContiguousArray<ReceivedStream> = [] {
        didSet { eachStream = ContiguousArray(streams.map(Uncounted.init)) }
    }
    /// The same, to be gone through in every turn without counting references.
    private var eachStream: ContiguousArray<Uncounted<ReceivedStream>> = []
    /// Which stream the packets of an SSRC are of: all of `streams`, and what repeats them.
    private var sources: ContiguousArray<Source> = []
    /// Who sends RTCP and no media, and when each did last.
    var reporters: [(ssrc: SSRC, heardAt: Instant)] {
        get { unsafe heardReporters }
        _modify { yield unsafe &heardReporters }
    }
    /// Every RTCP packet goes through it, in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var heardReporters: [(ssrc: SSRC, heardAt: Instant)] = []
    /// Where the last packet's source stands; packets of one come in runs.
    private var lastSource = 0

    /// One SSRC that the peer sends. Its stream is in `streams`, which keeps it alive.
    struct Source {
        let ssrc: SSRC
        let isRTX: Bool
        let stream: Uncounted<ReceivedStream>
    }
    var transportFeedback: TransportFeedbackGenerator?
    private var nextTickAt: Instant
    private var nextReportAt: Instant
    private var wroteLoss: [SequenceNumber] = []
    /// From our sender reports and the peer's answers; `nil` before the first.
    package private(set) var roundTrip: Interval?
    private(set) var roundTripAt: Instant?
    var network = NetworkQuality()
    package private(set) var reportedBandwidth: UInt64?
    /// Media may be sent and is accepted.
    @inline(__always)
    var isConnected: Bool { transport.egress.isOpen }
    /// Where the peer stands among those whose deadlines the core looks at again at the end of the turn; `nil` when it is
    /// not there.
    var dirtyPlace: Int?
    /// When the core will look at the peer by itself.
    var wakesAt: Instant?
    /// The validated pairs under which the core knows the peer, the newest last.
    var paths: [(path: NetworkPath, checkedAt: Instant)] = []
    /// The user name fragments under which checks find the peer: the current and, after a restart, the one before.
    var usernameFragments: [String]

    /// Streams of one peer that publishes: two tracks of four layers, each with RTX, and as many again.
    static let streamsMax = 16
    /// In the client's role there are as many tracks as the server says.
    private var streamsLimit: Int { max(Self.streamsMax, 4 * tracks.count) }
    /// How often layers are chosen and silence is noticed.
    static let tickInterval = Interval.milliseconds(250)
    /// RFC 3550 §6.2 would allow 5 s; browsers report every second.
    static let reportInterval = Interval.seconds(1)
    /// A loop's peers report at common times, a few of them each, so that a thousand peers do not wake it a thousand
    /// times a second for one datagram each.
    private static let reportSpacing = Interval.milliseconds(50)

    private static func reportTime(after now: Instant) -> Instant {
        let earliest = (now + reportInterval).nanoseconds
        return Instant(nanoseconds: earliest - earliest % reportSpacing.nanoseconds)
    }

    /// Reports gathered into one datagram before it goes out.
    private static let reportBytesMax = 1_000
    /// Requests gathered into one datagram before it goes out.
    private static let requestBytesMax = 256
    /// One carries hundreds of arrivals; the rest waits for the next turn.
    private static let feedbackPacketsPerTurnMax = 4

    init(
        _ parameters: PeerParameters,
        transport: PeerTransport,
        core: Forwarder,
        at now: Instant,
        random: () -> UInt64
    ) {
        id = parameters.id
        self.transport = transport
        unsafe owner = core
        let clock = PeerClock()
        self.clock = clock
        tracks = parameters.receive.map {
            ReceivedTrack(id: TrackID(peer: parameters.id, mid: $0.mid), parameters: $0, clockOffset: clock)
        }
        var extensions = HeaderExtensionMap()
        for track in parameters.receive {
            for kind in HeaderExtension.allCases where extensions[kind] == nil {
                extensions[kind] = track.extensions[kind]
            }
        }
        unsafe negotiatedExtensions = extensions
        unsafe limiter = PublishLimiter(bitsPerSecondMax: parameters.publishBitsPerSecondMax)
        share = parameters.share
        feedbackSSRC = parameters.send.first?.ssrc ?? SSRC(rawValue: UInt32(truncatingIfNeeded: random()) | 1)
        nextTickAt = now + Self.tickInterval
        nextReportAt = now + Self.reportInterval
        usernameFragments = [parameters.localCredentials.usernameFragment]
        if extensions[.transportSequenceNumber] != nil { transportFeedback = TransportFeedbackGenerator() }
        for slot in parameters.send { addSlot(slot, seed: random()) }
    }

    package func track(_ mid: MID) -> ReceivedTrack? { tracks.first { $0.id.mid == mid } }

    /// Notes an authenticated connectivity check.
    func noteCheck(on path: NetworkPath, at now: Instant) {
        for index in paths.indices where paths[index].path == path { paths[index].checkedAt = now }
    }

    func lastCheck(on path: NetworkPath) -> Instant {
        paths.first { $0.path == path }?.checkedAt ?? Instant(nanoseconds: .min / 2)
    }

    /// When the peer next has something to do by itself.
    var nextDeadline: Instant? {
        guard transport.isConnected else { return transport.nextDeadline }
        var deadline = earliest(transport.nextDeadline, nextReportAt)
        guard !tracks.isEmpty else { return deadline }
        deadline = earliest(earliest(deadline, nextTickAt), transportFeedback?.nextDeadline)
        var index = 0
        while index < eachStream.count {
            deadline = earliest(deadline, eachStream[index].with { $0.nextDeadline })
            index += 1
        }
        return deadline
    }

    /// Media flows from now on: what was connected before waits for a key frame.
    func becameConnected(at now: Instant) {
        nextReportAt = Self.reportTime(after: now)
        let sender = transport.egress.sender
        for slot in slots {
            if let sender { slot.connected(sender) }
            slot.wantKeyFrame(at: now)
        }
    }

    /// Takes the peer out of everything that it plays and that plays it.
    func detach(at now: Instant) {
        for slot in slots { slot.connect(to: nil, at: now) }
        for track in tracks {
            for slot in track.slots { slot.connect(to: nil, at: now) }
            core.endExports(of: track)
        }
    }

    // MARK: - The peer's rate

    /// See ``PublishLimiter/take(bytes:isAudio:at:)``.
    @inline(__always)
    func takeIn(bytes: Int, isAudio: Bool = false, at now: Instant) -> Bool {
        unsafe limiter.take(bytes: bytes, isAudio: isAudio, at: now)
    }
    func limiterHasRoom(at now: Instant) -> Bool { unsafe limiter.hasRoom(at: now) }
    func relieveLimiter(at now: Instant) { unsafe limiter.relieve(at: now) }

    // MARK: - Streams

    func stream(_ ssrc: SSRC) -> ReceivedStream? { streams.first { $0.ssrc == ssrc } }

    /// The stream of an SSRC, as every packet finds it.
    @inline(__always)
    func source(_ ssrc: SSRC) -> Source? {
        if lastSource < sources.count, sources[lastSource].ssrc == ssrc { return sources[lastSource] }
        var index = 0
        while index < sources.count {
            if sources[index].ssrc == ssrc {
                lastSource = index
                return sources[index]
            }
            index += 1
        }
        return nil
    }

    func addStream(_ ssrc: SSRC, rid: RID?, to track: ReceivedTrack, at now: Instant) throws(PacketRefusal)
        -> ReceivedStream
    {
        if streams.count >= streamsLimit || track.streams.count >= ReceivedTrack.streamsMax {
            guard let silent = track.evictSilentStream(at: now) else { throw .drop(.streamLimit) }
            forget(silent)
        }
        let stream = ReceivedStream(
            id: core.makeStreamID(),
            ssrc: ssrc,
            rid: rid,
            track: track,
            historyBytesMax: core.historyBytesMax,
            at: now
        )
        streams.append(stream)
        sources.append(Source(ssrc: ssrc, isRTX: false, stream: Uncounted(stream)))
        if let rtx = track.parameters.rtxSSRCs[ssrc] { addRTX(rtx, of: stream) }
        track.add(stream, at: now)
        core.register(stream)
        return stream
    }

    /// Learns which stream an RTX SSRC repeats.
    func addRTX(_ ssrc: SSRC, of stream: ReceivedStream) {
        removeSources(of: stream, rtxOnly: true)
        // An SSRC that the peer uses for media already keeps meaning that.
        if source(ssrc) == nil { sources.append(Source(ssrc: ssrc, isRTX: true, stream: Uncounted(stream))) }
        stream.rtxSSRC = ssrc
    }

    private func removeSources(of stream: ReceivedStream, rtxOnly: Bool) {
        sources.removeAll { $0.stream.refers(to: stream) && ($0.isRTX || !rtxOnly) }
    }

    func forget(_ stream: ReceivedStream) {
        removeSources(of: stream, rtxOnly: false)
        streams.removeAll { $0 === stream }
        core.unregister(stream)
        transport.forgetSource(stream.ssrc)
        if let rtx = stream.rtxSSRC { transport.forgetSource(rtx) }
    }

    func noteTransportSequence(_ number: TransportSequenceNumber, core: Forwarder, at now: Instant) {
        transportFeedback?.received(number, at: now)
        if let deadline = transportFeedback?.nextDeadline { core.wake(self, at: deadline) }
    }

    func noteRoundTrip(_ sample: Interval, at now: Instant) {
        guard sample >= .zero, sample < .seconds(30) else { return }
        roundTripAt = now
        guard let roundTrip else {
            self.roundTrip = sample
            return
        }
        self.roundTrip = Interval(nanoseconds: (roundTrip.nanoseconds * 7 + sample.nanoseconds) / 8)
    }

    func noteBandwidth(_ bitsPerSecond: UInt64) { reportedBandwidth = bitsPerSecond }

    // MARK: - Time

    /// Sends the feedback and reports that are due.
    func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        guard transport.isConnected else { return }
        if !tracks.isEmpty {
            if now >= nextTickAt {
                nextTickAt = now + Self.tickInterval
                tick(at: now)
            }
            sendTransportFeedback(at: now, into: batch)
            sendRequests(at: now, into: batch)
        }
        if now >= nextReportAt {
            nextReportAt = Self.reportTime(after: now)
            sendReports(at: now, into: batch)
        }
    }

    private func tick(at now: Instant) {
        for track in tracks {
            if track.streams.count > 1 { track.selectLayers(at: now) }
            if let isSpeaking = track.noteSilence(at: now) {
                core.emit(.speech(mid: track.id.mid, isSpeaking: isSpeaking), of: id)
            }
            if track.announcedCodec != nil, !track.streams.contains(where: { $0.isFlowing(at: now) }) {
                track.announcedCodec = nil
                // Nothing waits: a turn's packets are sent on before anything that is due is done.
                for stream in track.streams { stream.history.trim() }
                core.emit(.trackPaused(mid: track.id.mid), of: id)
            }
        }
    }

    private func sendTransportFeedback(at now: Instant, into batch: DatagramBatch) {
        guard let deadline = transportFeedback?.nextDeadline, deadline <= now else { return }
        // Packets that belong to no stream count too; feedback is about the transport, whatever source it names.
        let media = streams.first?.ssrc ?? feedbackSSRC
        for _ in 0..<Self.feedbackPacketsPerTurnMax {
            core.writer.removeAll()
            guard
                transportFeedback?.makeFeedback(
                    at: now,
                    writer: &core.writer,
                    senderSSRC: feedbackSSRC,
                    mediaSSRC: media
                ) == true
            else { return }
            if flushRTCP(into: batch) { core.counters.transportFeedbackSent &+= 1 }
        }
    }

    /// Asks for missing packets and key frames.
    private func sendRequests(at now: Instant, into batch: DatagramBatch) {
        core.writer.removeAll()
        var index = 0
        while index < eachStream.count {
            eachStream[index].with { request(of: $0, at: now) }
            index += 1
            // The worst list of one stream is a kilobyte; that of the next one goes into a datagram of its own.
            if core.writer.count > Self.requestBytesMax {
                flushRTCP(into: batch)
                core.writer.removeAll()
            }
        }
        if !core.writer.isEmpty { _ = flushRTCP(into: batch) }
    }

    /// Writes what is to be asked for of one stream.
    private func request(of stream: ReceivedStream, at now: Instant) {
        if let deadline = stream.losses.nextDeadline, deadline <= now {
            wroteLoss.removeAll(keepingCapacity: true)
            let (gaveUp, asked) = stream.losses.takeRequests(at: now, into: &wroteLoss)
            if asked > 0 {
                core.writer.appendNACK(sender: feedbackSSRC, media: stream.ssrc, lost: wroteLoss)
                core.counters.nacksSent &+= 1
                core.counters.nackedPacketsRequested &+= UInt64(asked)
            }
            core.counters.packetsLostByPublishers &+= UInt64(gaveUp)
            if gaveUp > 0, stream.track.parameters.kind == .video { stream.keyFrames.want(at: now) }
        }
        if stream.keyFrames.takeRequest(at: now) {
            core.writer.appendPictureLoss(sender: feedbackSSRC, media: stream.ssrc)
            core.counters.pliSent &+= 1
            stream.keyFrameRequests &+= 1
        }
    }

    private func sendReports(at now: Instant, into batch: DatagramBatch) {
        core.writer.removeAll()
        for slot in slots {
            slot.tick(at: now)
            guard let info = slot.senderInfo(at: now) else { continue }
            core.writer.appendSenderReport(sender: slot.parameters.ssrc, info: info)
            core.writer.appendSourceDescription(ssrc: slot.parameters.ssrc, cname: slot.parameters.cname)
            if core.writer.count > Self.reportBytesMax {
                flushRTCP(into: batch)
                core.writer.removeAll()
            }
        }
        if !core.writer.isEmpty { _ = flushRTCP(into: batch) }
        var blocks: [ReportBlock] = []
        for stream in streams {
            stream.measureBitrate(at: now)
            if let block = stream.makeReportBlock(at: now) { blocks.append(block) }
        }
        for track in tracks {
            track.measureLayers(at: now)
            core.relayLayers(of: track)
        }
        rateNetwork(at: now)
        guard !blocks.isEmpty else { return }
        core.writer.removeAll()
        core.writer.appendReceiverReport(sender: feedbackSSRC, blocks: blocks)
        core.writer.appendSourceDescription(ssrc: feedbackSSRC, cname: "nagare")
        _ = flushRTCP(into: batch)
    }

    @discardableResult
    private func flushRTCP(into batch: DatagramBatch) -> Bool {
        guard !core.writer.isEmpty, transport.egress.sendRTCP(core.writer.bytes, into: batch) else { return false }
        core.counters.rtcpSent &+= 1
        return true
    }
}

/// Why a decrypted packet went no further.
enum PacketRefusal: Error {
    case drop(DropReason)
}
