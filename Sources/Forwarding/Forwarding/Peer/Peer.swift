import Base
import CPrefetch
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
    package internal(set) var tracks: [ReceivedTrack] {
        get { receivedTracks }
        set { receivedTracks = newValue }
    }
    /// Stored privately, as each deadline reads it: the compiler then proves that no access overlaps, and does not check.
    private var receivedTracks: [ReceivedTrack]
    var slotTable = SlotTable()
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

    /// What the peer sends, by SSRC.
    var directory: StreamDirectory {
        _read { yield unsafe receivedDirectory }
        _modify { yield unsafe &receivedDirectory }
    }
    /// Every packet goes through it, in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var receivedDirectory = StreamDirectory()
    /// When feedback and reports are due.
    var reporting: ReportSchedule {
        _read { yield unsafe reportSchedule }
        _modify { yield unsafe &reportSchedule }
    }
    /// Every numbered packet goes through it, in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var reportSchedule: ReportSchedule
    /// What the owner was told that the selected pair is over.
    private(set) var reportedTransport = TransportProtocol.udp
    /// Since when that is TCP; `nil` while it is not.
    private(set) var onTCPSince: Instant?
    var network = NetworkQuality()
    /// Of what the peer sends, and of what it is sent.
    var uplink = LinkMeter()
    var downlink = LinkMeter()
    /// What the peer's network carries; `nil` where nothing is estimated.
    var sendRate: SendRate? {
        get { unsafe estimatedRate }
        set {
            unsafe estimatedRate = newValue
            unsafe unretainedRate = newValue.map(Unretained.init)
        }
    }
    /// It is set once, and every turn of the peer reads it, so accesses are not checked.
    @exclusivity(unchecked) private var estimatedRate: SendRate?
    /// The same without counting references, which would wait for its memory.
    @exclusivity(unchecked) private var unretainedRate: Unretained<SendRate>?
    /// Bit/s that the peer may be sent by a grant or an operator; `nil` for the settings' maximum.
    var sendRateMax: Int?
    /// Divides the rate over the video slots.
    var allocator = LayerAllocator()
    /// The input of the allocator; kept so that it is allocated once.
    var layerRequests: [LayerRequest] = []
    // What every report reads is stored privately, too.
    /// How its rate was divided over the slots.
    var divided: DividedRate {
        get { dividedNow }
        set { dividedNow = newValue }
    }
    private var dividedNow = DividedRate()
    var isAllocating = false
    /// Probe clusters and bytes of padding that the core's counters include.
    var sendingCounted: (probes: UInt64, paddingBytes: UInt64) = (0, 0)
    /// The peer has the turn to probe of those at its address, or waits for it since an instant.
    var hasProbeTurn = false
    var probeWaitsSince: Instant?
    /// The probe cluster that is being sent.
    var probe: ProbeProgress?
    /// Retransmissions that leave more than once.
    var retransmissionCopies = RetransmissionCopies()
    /// The path whose packets are marked as ECN-capable.
    var markedPath: NetworkPath? {
        get { markedPathNow }
        set { markedPathNow = newValue }
    }
    private var markedPathNow: NetworkPath?
    /// Media may be sent and is accepted.
    @inline(__always)
    var isConnected: Bool { transport.isConnected }
    var setup: SetupProgress
    /// Its datagrams in the core's ``HandshakeQueue``.
    var waitingHandshakeDatagrams = 0
    /// Where the peer stands in the core's schedule.
    var turn = ScheduledPeer()
    /// Whether the publisher is still there.
    var silence: PublisherSilence {
        _read { yield unsafe publisherSilence }
        _modify { yield unsafe &publisherSilence }
    }
    /// Every tick goes through it, in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var publisherSilence: PublisherSilence

    /// Streams of one peer that publishes: two tracks of four layers, each with RTX, and as many again.
    static let streamsMax = 16
    /// In the client's role there are as many tracks as the server says.
    private var streamsLimit: Int { max(Self.streamsMax, 4 * tracks.count) }

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
        setup = SetupProgress(at: now)
        unsafe publisherSilence = PublisherSilence(at: now)
        let clock = PeerClock()
        self.clock = clock
        receivedTracks = parameters.receive.map {
            ReceivedTrack(id: TrackID(peer: parameters.id, mid: $0.mid), parameters: $0, clockOffset: clock)
        }
        for track in receivedTracks where track.parameters.canPauseLayers && core.configuration.pausesUnusedLayers {
            track.unusedLayers = UnusedLayers(layerCount: track.parameters.rids.count, at: now)
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
        unsafe reportSchedule = ReportSchedule(at: now)
        if extensions[.transportSequenceNumber] != nil { reporting.startTransportFeedback() }
        sendRateMax = parameters.receiveBitsPerSecondMax
        addSlots(parameters.send, random: random, at: now)
    }

    /// Asks for the memory that a report changes, before the report is decrypted. Between two reports of a peer, others take the
    /// cache, and each line would be waited for by itself.
    @inline(__always)
    func prefetchReport() {
        guard let sendRate = unsafe unretainedRate else { return }
        sendRate.with { $0.prefetch() }
        unsafe nagare_prefetch(Unmanaged.passUnretained(self).toOpaque(), Self.prefetchedBytes)
        unsafe transport.egress.state.pointee.sentPackets.prefetch()
    }
    /// Of an instance, as far as reports read it.
    private static let prefetchedBytes = 1_024

    package func track(_ mid: MID) -> ReceivedTrack? { tracks.first { $0.id.mid == mid } }

    /// When the peer next has something to do by itself.
    var nextDeadline: Instant? {
        guard transport.isConnected else { return transport.nextDeadline }
        var deadline = earliest(transport.nextDeadline, reporting.nextReportAt)
        deadline = earliest(deadline, sendRate?.nextDeadline)
        guard !tracks.isEmpty else { return deadline }
        deadline = earliest(earliest(deadline, reporting.nextTickAt), reporting.nextFeedbackAt)
        var index = 0
        while index < directory.unretained.count {
            deadline = earliest(deadline, directory.unretained[index].with { $0.nextDeadline })
            index += 1
        }
        return deadline
    }

    /// Media flows: slots that were connected before wait for a key frame.
    func becameConnected(at now: Instant) {
        reporting.connected(at: now)
        silence = PublisherSilence(at: now)
        let sender = transport.egress.sender
        for slot in slots {
            if let sender { slot.connected(sender) }
            slot.wantKeyFrame(at: now)
        }
        beginSendRate(at: now)
    }

    /// Tells the owner how far the set-up has come.
    func emitSetup() { core.emit(.setupAdvanced(setup.times), of: id) }

    /// The selected pair is over another transport, of which the owner is told.
    func noteTransport(_ transport: TransportProtocol, at now: Instant) {
        reportedTransport = transport
        onTCPSince = transport == .tcp ? now : nil
    }

    /// Takes the peer out of everything that it plays and that plays it.
    func detach(at now: Instant) {
        endMarking()
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

    package var streams: ContiguousArray<ReceivedStream> { directory.streams }
    func stream(_ ssrc: SSRC) -> ReceivedStream? { directory.stream(ssrc) }

    func addStream(_ ssrc: SSRC, rid: RID?, to track: ReceivedTrack, at now: Instant) throws(PacketRefusal)
        -> ReceivedStream
    {
        if streams.count >= streamsLimit || track.streams.count >= ReceivedTrack.streamsMax {
            guard let silent = track.evictSilentStream(at: now) else { throw .drop(.streamLimit) }
            forget(silent)
        }
        let stream = ReceivedStream(
            id: core.streams.makeID(),
            ssrc: ssrc,
            rid: rid,
            track: track,
            historyBytesMax: core.historyBytesMax,
            at: now
        )
        directory.add(stream)
        if let rtx = track.parameters.rtxSSRCs[ssrc] { directory.addRTX(rtx, of: stream) }
        track.add(stream, at: now)
        core.streams.add(stream)
        if setup.packetReceived(at: now) { emitSetup() }
        return stream
    }

    func forget(_ stream: ReceivedStream) {
        directory.remove(stream)
        core.streams.remove(stream)
        transport.forgetSource(stream.ssrc)
        if let rtx = stream.rtxSSRC { transport.forgetSource(rtx) }
    }

    /// Makes room for another SSRC in the SRTP table: that of a reporter that went silent.
    /// - Returns: whether there is a place now.
    func forgetSilentReporter(at now: Instant) -> Bool {
        guard let silent = directory.removeSilentReporter(at: now) else { return false }
        transport.forgetSource(silent)
        return true
    }
}

/// Why a decrypted packet went no further.
enum PacketRefusal: Error {
    case drop(DropReason)
}
