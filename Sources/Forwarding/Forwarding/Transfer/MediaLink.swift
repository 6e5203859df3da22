import Base
import MediaTypes
import SRTP
import Wire

/// The way to a loop of another node and back: sealed datagrams on the loops' UDP ports (``TransferEnvelope``).
///
/// Large packets leave in datagrams of their own; small ones and messages of a turn share datagrams, which leave at the
/// turn's end. What a datagram carried is remembered until it may not be repaired any more.
@safe
final class MediaLink: TransferLink {
    /// Between two reports while anything comes, while tracks cross, and until the first answer.
    private static let reportInterval = Interval.milliseconds(50)
    private static let probeInterval = Interval.seconds(1)
    private static let firstProbeInterval = Interval.milliseconds(200)
    /// A report follows the last packet after this time, because only what follows shows that the last one was lost.
    private static let tailDelay = Interval.milliseconds(30)
    /// Without a datagram for this long a link that is used counts as down.
    private static let silenceMax = Interval.seconds(3)
    /// A link that no track crosses ends when nothing has come over it for this long. An end that still sends a track probes
    /// every second.
    private static let unusedMax = Interval.seconds(60)
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
    private(set) var remote: MediaLinkEnd?
    var renewal = LinkRenewal()
    private let table: Unretained<MediaLinkTable>

    private var paths: [NetworkPath] = []
    /// What every datagram needs.
    let traffic: UnsafeMutablePointer<MediaLinkTraffic>

    private var pendingClocks: [TransferMessage.Clock] = []
    private var reportedAt: Instant

    init(id: LinkID, number: UInt16, to location: MediaLocation, secret: LinkSecret, _ table: MediaLinkTable) {
        self.id = id
        self.number = number
        self.location = location
        self.secret = secret
        self.table = Unretained(table)
        reportedAt = table.now
        unsafe traffic = .allocate(capacity: 1)
        unsafe traffic.initialize(to: MediaLinkTraffic(id: id, table.shared))
    }

    deinit {
        unsafe traffic.deinitialize(count: 1)
        unsafe traffic.deallocate()
    }

    private var now: Instant { table.with { $0.now } }
    /// The difference of the ends' clocks and their round trip.
    var clock: LinkClock { unsafe traffic.pointee.clock }

    // MARK: - The other end

    /// Takes what the other end says of itself. Its first word, and each new secret, makes new keys.
    /// - Throws: `linkFailed` when its version is not ours, no address of it can be reached, or the ciphers fail.
    func join(_ end: MediaLinkEnd) throws(ForwarderError) {
        guard end != remote else { return }
        guard end.version == TransferMessage.version, end.location == location else { throw .linkFailed(location) }
        let paths = table.with { $0.paths(to: end.addresses) }
        guard let first = paths.first else { throw .linkFailed(location) }
        if end.secret != remote?.secret {
            let here = MediaLinkKeySchedule.End(location: table.with { $0.location }, secret: secret)
            let there = MediaLinkKeySchedule.End(location: location, secret: end.secret)
            let engine = table.with { $0.engine }
            do {
                try unsafe traffic.pointee.setKeys(
                    sending: MediaLinkKeySchedule(from: here, to: there),
                    receiving: MediaLinkKeySchedule(from: there, to: here),
                    engine: engine
                )
            } catch {
                throw .linkFailed(location)
            }
            if remote != nil { renewal.otherEndChanged() }
        }
        remote = end
        self.paths = paths
        unsafe traffic.pointee.setEnd(number: end.link, addresses: end.addresses, path: first)
        markDirty()
    }

    var state: MediaLinkState {
        MediaLinkState(
            location: location,
            isUsed: users > 0,
            isDown: users > 0 && isSilent(at: now),
            roundTrip: clock.roundTrip,
            clockOffset: clock.offset
        )
    }

    /// Silence counts from now on.
    override func becameUsed() {
        unsafe traffic.pointee.receivedAt = max(traffic.pointee.receivedAt, now)
        unsafe traffic.pointee.wantsReport = traffic.pointee.isJoined
        markDirty()
    }

    /// A call is about to use the link.
    func noteWanted() {
        if users == 0 { unsafe traffic.pointee.receivedAt = max(traffic.pointee.receivedAt, now) }
    }

    /// Whether neither end needs the link. An end that comes back to it gets a new link.
    func isAbandoned(at now: Instant) -> Bool {
        unsafe users == 0 && now - traffic.pointee.receivedAt > Self.unusedMax
    }

    private func isSilent(at now: Instant) -> Bool {
        unsafe now - traffic.pointee.receivedAt > Self.silenceMax
    }

    @inline(__always)
    private func markDirty() {
        guard unsafe !traffic.pointee.isDirty else { return }
        table.with { $0.markDirty(self) }
    }

    private func count(_ body: (inout MediaLinkCounters) -> Void) { table.with { body(&$0.counters) } }

    // MARK: - Sending

    override func send(_ record: TransferRecord, _ bytes: RawSpan) -> Bool {
        guard case .packet(let packet) = record.message else { return queue(record.message, bytes, age: 0, nil) }
        let age = record.description.map { (now - $0.receivedAt).nanoseconds } ?? 0
        return queue(record.message, bytes, age: age, Self.reference(packet, repairs: 0))
    }

    /// - Parameters:
    ///   - age: in nanoseconds.
    ///   - reference: of a packet.
    @inline(__always)
    private func queue(
        _ message: TransferMessage,
        _ bytes: RawSpan,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        guard unsafe traffic.pointee.queue(message, bytes, age: age, reference) else { return false }
        markDirty()
        return true
    }

    @inline(__always)
    private static func reference(_ packet: TransferMessage.Packet, repairs: UInt8) -> SentRecords.Record {
        SentRecords.Record(relay: packet.relay, repairs: repairs, stream: packet.stream, sequence: packet.sequence)
    }

    // MARK: - Repair

    /// Sends a packet again, unless that was done too often.
    /// - Parameters:
    ///   - repairs: how often it was repaired before.
    ///   - age: in nanoseconds.
    func repair(_ packet: TransferMessage.Packet, _ bytes: RawSpan, repairs: UInt8, age: Int64) {
        var packet = packet
        packet.isRepair = true
        _ = queue(.packet(packet), bytes, age: age, Self.reference(packet, repairs: repairs + 1))
    }

    /// The packets of a datagram that the other end misses, the first time that it asks for them; those that were
    /// repaired often enough are counted.
    func takeRepairs(of counter: UInt64, _ body: (SentRecords.Record) -> Void) {
        for number in unsafe traffic.pointee.takeRecords(of: counter) {
            count { $0.repairsAsked &+= 1 }
            guard let record = unsafe traffic.pointee.sentRecord(number) else {
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

    // MARK: - Reports of the other end

    /// Takes a report of the other end.
    /// - Returns: the sender clocks that waited for it.
    func received(_ report: TransferFeedback, wall: Int64) -> [TransferMessage.Clock] {
        count { $0.received.reports &+= 1 }
        let knewRoundTrip = clock.roundTrip != nil
        unsafe traffic.pointee.clock.received(report, wall: wall, at: now)
        // Each end needs an echo of its own report.
        if !knewRoundTrip { unsafe traffic.pointee.wantsReport = true }
        unsafe traffic.pointee.confirm(report.newest, at: now)
        guard clock.offset != nil, !pendingClocks.isEmpty else { return [] }
        defer { pendingClocks = [] }
        return pendingClocks
    }

    /// A sender's clock with its offset against our wall clock; `nil` while the other end's clock is not known, and then it
    /// is kept.
    func shifted(_ clock: TransferMessage.Clock) -> TransferMessage.Clock? {
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
        guard unsafe traffic.pointee.isJoined else { return nil }
        var due: Instant?
        if users > 0 {
            due = unsafe reportedAt + (traffic.pointee.isProven ? Self.probeInterval : Self.firstProbeInterval)
        }
        if unsafe traffic.pointee.hasNews || !traffic.pointee.missing.isEmpty {
            due = earliest(due, reportedAt + Self.reportInterval)
        }
        if unsafe traffic.pointee.hasTail { due = unsafe earliest(due, traffic.pointee.packetSentAt + Self.tailDelay) }
        return due
    }

    func handleTimeout(at now: Instant) {
        guard let due = nextDeadline, due <= now else { return }
        if users > 0, isSilent(at: now) { unsafe traffic.pointee.isProven = false }
        if unsafe !traffic.pointee.isProven, !paths.isEmpty, now - reportedAt >= Self.firstProbeInterval {
            // The next pair of addresses, until something comes.
            let index = unsafe traffic.pointee.path.flatMap { paths.firstIndex(of: $0) } ?? 0
            unsafe traffic.pointee.path = paths[(index + 1) % paths.count]
        }
        sendReport(at: now)
    }

    /// Ends a turn: sends what waits.
    func endTurn(at now: Instant) {
        unsafe traffic.pointee.isDirty = false
        // The times in a report are worth most in front of the messages that need them.
        if unsafe traffic.pointee.wantsReport { sendReport(at: now) }
        unsafe traffic.pointee.sealBundle()
    }

    private func sendReport(at now: Instant) {
        unsafe traffic.pointee.wantsReport = false
        unsafe traffic.pointee.hasNews = false
        unsafe traffic.pointee.hasTail = false
        reportedAt = now
        guard unsafe traffic.pointee.isJoined else { return }
        let wall = table.with { $0.wall(at: now) }
        let report = TransferFeedback(
            sentAt: wall,
            echo: clock.newest?.sentAt,
            echoDelay: clock.newest.map { wall &- $0.receivedAt } ?? 0,
            newest: unsafe traffic.pointee.newest,
            missing: unsafe traffic.pointee.missing.takeReport(at: now)
        )
        unsafe traffic.pointee.send(report)
    }
}
