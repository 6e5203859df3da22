import MediaTypes
import SRTP
import Wire

/// The way to a loop of another node and back: sealed datagrams on the loops' UDP ports (``RelayEnvelope``).
///
/// Large packets leave in datagrams of their own; small ones and messages of a turn share datagrams, which leave at the
/// turn's end. What a datagram carried is remembered until it may not be repaired any more.
@safe
final class NodeLink: RelayLink {
    /// Between two reports while anything comes, while tracks cross, and until the first answer.
    private static let reportInterval = Interval.milliseconds(50)
    private static let probeInterval = Interval.seconds(1)
    private static let firstProbeInterval = Interval.milliseconds(200)
    /// A report follows the last packet after this time, because only what follows shows that the last one was lost.
    private static let tailDelay = Interval.milliseconds(30)
    /// Without a datagram for this long a link that is used counts as down.
    private static let silenceMax = Interval.seconds(3)
    /// The most times that a packet is repaired.
    private static let repairsMax: UInt8 = 2
    /// Sender clocks that wait for the first measurement of the other end's clock.
    private static let pendingClocksMax = 16

    let id: LinkID
    /// What datagrams to this loop name.
    let number: UInt16
    let location: MediaLocation
    /// Of this end.
    let secret: LinkSecret
    private(set) var remote: NodeLinkEnd?
    private let table: Unretained<NodeLinkTable>

    private var sender: RelaySender?
    private var receiver: RelayReceiver?
    private var paths: [NetworkPath] = []
    private var path: NetworkPath?
    /// Something came over the path.
    private var isProven = false

    private var sentRecords = SentRecords()
    private var bundle = RelayBundle()

    private(set) var clock = LinkClock()
    private var missing = MissingDatagrams()
    private var pendingClocks: [RelayMessage.Clock] = []
    private var wantsReport = false
    /// Media came since the last report.
    private var hasNews = false
    /// Packets were sent since the last report, the newest at `packetSentAt`.
    private var hasTail = false
    private var packetSentAt = Instant(nanoseconds: 0)
    private var reportedAt: Instant
    private var receivedAt: Instant
    /// In the table's list of links with work at the end of the turn.
    var isDirty = false

    init(id: LinkID, number: UInt16, to location: MediaLocation, secret: LinkSecret, _ table: NodeLinkTable) {
        self.id = id
        self.number = number
        self.location = location
        self.secret = secret
        self.table = Unretained(table)
        reportedAt = table.now
        receivedAt = table.now
    }

    private var now: Instant { table.with { $0.now } }

    // MARK: - The other end

    /// Takes what the other end says of itself. Its first word, and each new secret, makes new keys.
    /// - Throws: `linkFailed` when its version is not ours, no address of it can be reached, or the ciphers fail.
    func join(_ end: NodeLinkEnd) throws(ForwarderError) {
        guard end != remote else { return }
        guard end.version == RelayMessage.version, end.location == location else { throw .linkFailed(location) }
        let paths = table.with { $0.paths(to: end.addresses) }
        guard let first = paths.first else { throw .linkFailed(location) }
        if end.secret != remote?.secret {
            let here = RelayKeySchedule.End(location: table.with { $0.location }, secret: secret)
            let there = RelayKeySchedule.End(location: location, secret: end.secret)
            let engine = table.with { $0.engine }
            do {
                // Counters go on: an earlier secret of the other end may come back, and its keys with it.
                sender = try RelaySender(
                    RelayKeySchedule(from: here, to: there),
                    engine: engine,
                    after: sender?.counter ?? 0,
                    at: now
                )
                receiver = try RelayReceiver(RelayKeySchedule(from: there, to: here), engine: engine)
            } catch {
                throw .linkFailed(location)
            }
            clock = LinkClock()
            missing = MissingDatagrams()
        }
        remote = end
        self.paths = paths
        path = first
        isProven = false
        wantsReport = true
        receivedAt = now
        markDirty()
    }

    var state: NodeLinkState {
        NodeLinkState(
            location: location,
            isUsed: users > 0,
            isDown: users > 0 && now - receivedAt > Self.silenceMax,
            roundTrip: clock.roundTrip,
            clockOffset: clock.offset
        )
    }

    /// Silence counts from now on.
    override func becameUsed() {
        receivedAt = max(receivedAt, now)
        wantsReport = sender != nil
        markDirty()
    }

    private func markDirty() { table.with { $0.markDirty(self) } }

    private func count(_ body: (inout NodeLinkCounters) -> Void) { table.with { body(&$0.counters) } }

    // MARK: - Sending

    override func send(_ record: RelayRecord, _ bytes: RawSpan) -> Bool {
        guard case .packet(let packet) = record.message else { return queue(record.message, bytes, age: 0, nil) }
        let age = record.description.map { (now - $0.receivedAt).nanoseconds } ?? 0
        return queue(record.message, bytes, age: age, Self.reference(packet, repairs: 0))
    }

    private static func reference(_ packet: RelayMessage.Packet, repairs: UInt8) -> SentRecords.Record {
        SentRecords.Record(relay: packet.relay, repairs: repairs, stream: packet.stream, sequence: packet.sequence)
    }

    /// - Parameters:
    ///   - age: in nanoseconds.
    ///   - reference: of a packet.
    private func queue(
        _ message: RelayMessage,
        _ bytes: RawSpan,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        guard sender != nil, path != nil else {
            count { $0.notSent &+= 1 }
            return false
        }
        let length = RelayEnvelope.recordHeaderBytes + message.encodedBytes(bodyBytes: bytes.byteCount)
        let isQueued: Bool
        if length <= RelayBundle.recordMax {
            if !bundle.hasRoom(for: length) { sealBundle() }
            isQueued = bundle.append(message, bytes, age: age, reference)
        } else {
            isQueued = sendAlone(message, bytes, length, age: age, reference)
        }
        guard isQueued else {
            count { $0.notSent &+= 1 }
            return false
        }
        if let reference {
            packetSentAt = now
            hasTail = true
            count { if reference.repairs == 0 { $0.sent.packets &+= 1 } else { $0.sent.repairs &+= 1 } }
        } else {
            count { $0.sent.messages &+= 1 }
        }
        markDirty()
        return true
    }

    private func sendAlone(
        _ message: RelayMessage,
        _ bytes: RawSpan,
        _ length: Int,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        // A stream's packets stay in order.
        if let reference, bundle.mayCarry(reference.relay) { sealBundle() }
        let contentsEnd = RelayEnvelope.headerBytes + length
        guard contentsEnd + RelayEnvelope.tagBytes <= RelayEnvelope.bytesMax,
            let place = unsafe table.with({ unsafe $0.batch?.reserve() })
        else { return false }
        let slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: contentsEnd)
        var span = unsafe slot.mutableBytes
        guard
            RelayEnvelope.write(message, bytes, age: age, at: RelayEnvelope.headerBytes, of: &span) != nil,
            unsafe seal(place, .media, length: contentsEnd)
        else { return false }
        if let reference { sentRecords.note(reference, in: sender?.counter ?? 0, at: now) }
        return true
    }

    /// Sends the small records that wait.
    private func sealBundle() {
        guard !bundle.isEmpty else { return }
        defer { bundle.removeAll() }
        guard let place = unsafe table.with({ unsafe $0.batch?.reserve() }) else {
            let lost = UInt64(max(bundle.packetCount, 1))
            count { $0.notSent &+= lost }
            return
        }
        let length = unsafe bundle.copy(to: place)
        guard unsafe seal(place, .media, length: length), let counter = sender?.counter else { return }
        var index = 0
        while index < bundle.packetCount {
            sentRecords.note(bundle[index], in: counter, at: now)
            index += 1
        }
    }

    /// Seals a datagram in the batch and commits it.
    private func seal(_ place: UnsafeMutableRawPointer, _ kind: RelayEnvelope.Kind, length: Int) -> Bool {
        guard let path, let remote, let sender,
            let total = unsafe sender.seal(place, kind, link: remote.link, length: length)
        else { return false }
        table.with {
            $0.batch?.commit(total, to: path)
            $0.counters.sent.datagrams &+= 1
            $0.counters.sent.bytes &+= UInt64(total)
        }
        return true
    }

    // MARK: - Repair

    /// Sends a packet again, unless that was done too often.
    /// - Parameters:
    ///   - repairs: how often it was repaired before.
    ///   - age: in nanoseconds.
    func repair(_ packet: RelayMessage.Packet, _ bytes: RawSpan, repairs: UInt8, age: Int64) {
        var packet = packet
        packet.isRepair = true
        _ = queue(.packet(packet), bytes, age: age, Self.reference(packet, repairs: repairs + 1))
    }

    /// The packets of a datagram that the other end misses, the first time that it asks for them; those that were
    /// repaired often enough are counted.
    func takeRepairs(of counter: UInt64, _ body: (SentRecords.Record) -> Void) {
        for number in sentRecords.take(counter) {
            count { $0.repairsAsked &+= 1 }
            guard let record = sentRecords.record(number) else {
                count { $0.repairsMissed &+= 1 }
                continue
            }
            guard record.repairs < Self.repairsMax else {
                count { $0.repairsLate &+= 1 }
                continue
            }
            body(record)
        }
    }

    // MARK: - Receiving

    /// Decrypts a datagram in place.
    /// - Returns: where its contents are.
    func open(
        _ datagram: inout MutableRawSpan,
        length: Int,
        _ header: RelayEnvelope.Header,
        path: NetworkPath
    ) throws(LinkRefusal) -> Range<Int> {
        guard let receiver, let remote, remote.addresses.contains(path.remote) else { throw .drop(.relayAddress) }
        let newest = receiver.newest
        let contents: Range<Int>
        do {
            contents = try receiver.open(&datagram, length: length, header: header)
        } catch {
            throw .drop(error == .authentication ? .relayAuthentication : .relayReplay)
        }
        receivedAt = now
        if !isProven {
            isProven = true
            self.path = path
        }
        count {
            $0.received.datagrams &+= 1
            $0.received.bytes &+= UInt64(length)
        }
        noteArrival(header.counter, after: newest)
        if header.kind == .media { hasNews = true }
        markDirty()
        return contents
    }

    private func noteArrival(_ counter: UInt64, after newest: UInt64) {
        if counter > newest {
            // What was sent before the first datagram that came was for nobody.
            guard newest > 0, counter - newest > 1 else {
                if !missing.isEmpty { wantsReport = wantsReport || missing.isUrgent(newest: counter) }
                return
            }
            let overflows = missing.overflows
            missing.note(newest + 1..<counter)
            let (gaps, lost) = (missing.overflows - overflows, counter - newest - 1)
            count {
                $0.missing &+= lost
                $0.gapsGivenUp &+= gaps
            }
            wantsReport = wantsReport || missing.isUrgent(newest: counter)
        } else if missing.received(counter) {
            count { $0.late &+= 1 }
        }
    }

    /// Takes a report of the other end.
    /// - Returns: the sender clocks that waited for it.
    func received(_ report: RelayFeedback, wall: Int64) -> [RelayMessage.Clock] {
        count { $0.received.reports &+= 1 }
        let knewRoundTrip = clock.roundTrip != nil
        clock.received(report, wall: wall, at: now)
        // Each end needs an echo of its own report.
        if !knewRoundTrip { wantsReport = true }
        sender?.confirm(report.newest, at: now)
        guard clock.offset != nil, !pendingClocks.isEmpty else { return [] }
        defer { pendingClocks = [] }
        return pendingClocks
    }

    /// A sender's clock with its offset against our wall clock; `nil` while the other end's clock is not known, and then it
    /// is kept.
    func shifted(_ clock: RelayMessage.Clock) -> RelayMessage.Clock? {
        guard let offset = self.clock.offset else {
            pendingClocks.removeAll { $0.relay == clock.relay && $0.stream == clock.stream }
            if pendingClocks.count < Self.pendingClocksMax { pendingClocks.append(clock) }
            return nil
        }
        var clock = clock
        clock.offsetNanoseconds &-= offset
        return clock
    }

    // MARK: - Time

    /// When ``handleTimeout(at:)`` is due; `nil` while nothing crosses.
    var nextDeadline: Instant? {
        guard sender != nil else { return nil }
        var due: Instant?
        if users > 0 { due = reportedAt + (isProven ? Self.probeInterval : Self.firstProbeInterval) }
        if hasNews || !missing.isEmpty { due = earliest(due, reportedAt + Self.reportInterval) }
        if hasTail { due = earliest(due, packetSentAt + Self.tailDelay) }
        return due
    }

    func handleTimeout(at now: Instant) {
        guard let due = nextDeadline, due <= now else { return }
        if users > 0, now - receivedAt > Self.silenceMax { isProven = false }
        if !isProven, !paths.isEmpty, now - reportedAt >= Self.firstProbeInterval {
            // The next pair of addresses, until something comes.
            let index = path.flatMap { paths.firstIndex(of: $0) } ?? 0
            path = paths[(index + 1) % paths.count]
        }
        sendReport(at: now)
    }

    /// Ends a turn: sends what waits.
    func endTurn(at now: Instant) {
        isDirty = false
        // The times in a report are worth most in front of the messages that need them.
        if wantsReport { sendReport(at: now) }
        sealBundle()
    }

    private func sendReport(at now: Instant) {
        wantsReport = false
        hasNews = false
        hasTail = false
        reportedAt = now
        guard path != nil, let receiver else { return }
        let wall = table.with { $0.wall(at: now) }
        let report = RelayFeedback(
            sentAt: wall,
            echo: clock.newest?.sentAt,
            echoDelay: clock.newest.map { wall &- $0.receivedAt } ?? 0,
            newest: receiver.newest,
            missing: missing.takeReport(at: now)
        )
        let room = RelayEnvelope.headerBytes + RelayFeedback.bytesMax
        guard let place = unsafe table.with({ unsafe $0.batch?.reserve() }) else { return }
        let slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: room)
        var span = unsafe slot.mutableBytes
        guard let length = report.encode(at: RelayEnvelope.headerBytes, of: &span),
            unsafe seal(place, .report, length: RelayEnvelope.headerBytes + length)
        else { return }
        count { $0.sent.reports &+= 1 }
    }
}
