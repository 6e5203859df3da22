import Base
import SRTP
import Wire

/// What every datagram of one link reads and writes. It lies in plain memory, where no access is checked for exclusivity
/// and nothing is counted.
@safe
struct MediaLinkTraffic: ~Copyable {
    /// What the links of a loop share, in plain memory too.
    struct Shared {
        /// Of the present turn.
        var now = Instant(nanoseconds: 0)
        /// Where datagrams go; `nil` before the start.
        var batch: Unretained<DatagramBatch>?
        var counters = MediaLinkCounters()
    }

    /// The link's name here.
    let id: LinkID
    private let shared: UnsafeMutablePointer<Shared>

    /// Both are `nil` until the other end is known. The receiver is large, and lies apart so that nothing moves it.
    private var sender: MediaLinkSender?
    private var receiver: UnsafeMutablePointer<MediaLinkReceiver>?
    /// Where datagrams go; `nil` until the other end is known.
    var path: NetworkPath?
    /// The other end's number of the link.
    private var number: UInt16 = 0
    /// What datagrams may come from.
    private var addresses: [TransportAddress] = []
    /// What the newest datagram came from.
    private var source: TransportAddress?
    /// Something came over the path.
    var isProven = false

    private var sentRecords = SentRecords()
    private var bundle = TransferBundle()
    /// Packets were sent since the last report, the newest at ``packetSentAt``.
    var hasTail = false
    private(set) var packetSentAt = Instant(nanoseconds: 0)

    var clock = LinkClock()
    var missing = MissingDatagrams()
    var wantsReport = false
    /// Media came since the last report.
    var hasNews = false
    var receivedAt: Instant
    /// In the table's list of links with work at the end of the turn.
    var isDirty = false

    init(id: LinkID, _ shared: UnsafeMutablePointer<Shared>) {
        self.id = id
        unsafe self.shared = shared
        receivedAt = unsafe shared.pointee.now
    }

    deinit {
        unsafe receiver?.deinitialize(count: 1)
        unsafe receiver?.deallocate()
    }

    private var now: Instant { unsafe shared.pointee.now }

    // MARK: - The other end

    /// Begins with new keys. Counters go on, because an earlier secret of the other end may come back, and its keys with it.
    mutating func setKeys(
        sending: MediaLinkKeySchedule,
        receiving: MediaLinkKeySchedule,
        engine: SRTPEngine
    ) throws(SRTPError) {
        let newSender = try MediaLinkSender(sending, engine: engine, after: counter, at: now)
        let newReceiver = try MediaLinkReceiver(receiving, engine: engine)
        sender = consume newSender
        if let receiver = unsafe receiver { unsafe receiver.deinitialize(count: 1) }
        let place = unsafe receiver ?? .allocate(capacity: 1)
        unsafe place.initialize(to: newReceiver)
        unsafe receiver = place
        clock = LinkClock()
        missing = MissingDatagrams()
    }

    /// Names the other end, after ``setKeys(sending:receiving:engine:)``.
    /// - Parameters:
    ///   - number: its number of the link.
    ///   - addresses: what its datagrams come from.
    ///   - path: the way that is tried first.
    mutating func setEnd(number: UInt16, addresses: [TransportAddress], path: NetworkPath) {
        self.number = number
        self.addresses = addresses
        self.path = path
        source = nil
        isProven = false
        wantsReport = true
        receivedAt = now
    }

    /// Whether the other end is known.
    var isJoined: Bool { path != nil }
    /// The counter of the newest datagram that was sent; 0 before the first.
    private var counter: UInt64 {
        switch sender {
        case .some(let sender): sender.counter
        case nil: 0
        }
    }
    /// The greatest counter that was received; 0 before the first.
    var newest: UInt64 { unsafe receiver?.pointee.newest ?? 0 }

    /// The other end got the datagram with the counter `newest`, as it says.
    mutating func confirm(_ newest: UInt64, at now: Instant) { sender?.confirm(newest, at: now) }

    // MARK: - Sending

    /// Sends a packet or a message, at the end of the turn at the latest.
    /// - Parameters:
    ///   - age: in nanoseconds.
    ///   - reference: of a packet.
    /// - Returns: `false` when it could not be sent, which is counted.
    @inline(__always)
    mutating func queue(
        _ message: TransferMessage,
        _ bytes: RawSpan,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        let length = TransferEnvelope.recordHeaderBytes + message.encodedBytes(bodyBytes: bytes.byteCount)
        let isQueued =
            length <= TransferBundle.recordMax
            ? appendToBundle(message, bytes, length, age: age, reference)
            : sendAlone(message, bytes, length, age: age, reference)
        guard isQueued else {
            unsafe shared.pointee.counters.notSent &+= 1
            return false
        }
        guard let reference else {
            unsafe shared.pointee.counters.sent.messages &+= 1
            return true
        }
        packetSentAt = now
        hasTail = true
        if reference.repairs == 0 {
            unsafe shared.pointee.counters.sent.packets &+= 1
        } else {
            unsafe shared.pointee.counters.sent.repairs &+= 1
        }
        return true
    }

    private mutating func appendToBundle(
        _ message: TransferMessage,
        _ bytes: RawSpan,
        _ length: Int,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        guard isJoined else { return false }
        if !bundle.hasRoom(for: length) { sealBundle() }
        return bundle.append(message, bytes, age: age, reference)
    }

    @inline(__always)
    private mutating func sendAlone(
        _ message: TransferMessage,
        _ bytes: RawSpan,
        _ length: Int,
        age: Int64,
        _ reference: SentRecords.Record?
    ) -> Bool {
        guard isJoined else { return false }
        // A stream's packets stay in order.
        if let reference, bundle.mayCarry(reference.relay) { sealBundle() }
        let contentsEnd = TransferEnvelope.headerBytes + length
        guard contentsEnd + TransferEnvelope.tagBytes <= TransferEnvelope.bytesMax, let place = unsafe reserve() else {
            return false
        }
        let slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: contentsEnd)
        var span = unsafe slot.mutableBytes
        guard
            TransferEnvelope.write(message, bytes, age: age, at: TransferEnvelope.headerBytes, of: &span) != nil,
            unsafe seal(place, .media, length: contentsEnd)
        else { return false }
        if let reference { sentRecords.note(reference, in: counter, at: now) }
        return true
    }

    /// Sends the small records that wait.
    mutating func sealBundle() {
        guard !bundle.isEmpty else { return }
        defer { bundle.removeAll() }
        guard let place = unsafe reserve() else {
            unsafe shared.pointee.counters.notSent &+= UInt64(max(bundle.packetCount, 1))
            return
        }
        let length = unsafe bundle.copy(to: place)
        guard unsafe seal(place, .media, length: length) else { return }
        var index = 0
        while index < bundle.packetCount {
            sentRecords.note(bundle[index], in: counter, at: now)
            index += 1
        }
    }

    /// Sends a report.
    mutating func send(_ report: TransferFeedback) {
        guard isJoined, let place = unsafe reserve() else { return }
        let room = TransferEnvelope.headerBytes + TransferFeedback.bytesMax
        let slot = unsafe UnsafeMutableRawBufferPointer(start: place, count: room)
        var span = unsafe slot.mutableBytes
        guard let length = report.encode(at: TransferEnvelope.headerBytes, of: &span),
            unsafe seal(place, .report, length: TransferEnvelope.headerBytes + length)
        else { return }
        unsafe shared.pointee.counters.sent.reports &+= 1
    }

    @unsafe
    @inline(__always)
    private func reserve() -> UnsafeMutableRawPointer? {
        guard let batch = unsafe shared.pointee.batch else { return nil }
        return unsafe batch.with { unsafe $0.reserve() }
    }

    /// Seals a datagram in the batch and commits it.
    @unsafe
    @inline(__always)
    private mutating func seal(_ place: UnsafeMutableRawPointer, _ kind: TransferEnvelope.Kind, length: Int) -> Bool {
        let number = number
        guard let path, let batch = unsafe shared.pointee.batch,
            let total = unsafe sender?.seal(place, kind, link: number, length: length)
        else { return false }
        batch.with { $0.commit(total, to: path) }
        unsafe shared.pointee.counters.sent.datagrams &+= 1
        unsafe shared.pointee.counters.sent.bytes &+= UInt64(total)
        return true
    }

    /// The numbers of a datagram's packets, the first time that the other end asks for it; then none.
    mutating func takeRecords(of counter: UInt64) -> Range<UInt64> { sentRecords.take(counter) }

    /// A packet that was sent; `nil` when it is not remembered any more.
    func sentRecord(_ number: UInt64) -> SentRecords.Record? { sentRecords.record(number) }

    // MARK: - Receiving

    /// Decrypts a datagram in place.
    /// - Returns: where its contents are.
    @inline(__always)
    mutating func open(
        _ datagram: inout MutableRawSpan,
        length: Int,
        _ header: TransferEnvelope.Header,
        path: NetworkPath
    ) throws(LinkRefusal) -> Range<Int> {
        guard path.remote == source || addresses.contains(path.remote), let receiver = unsafe receiver else {
            throw .drop(.relayAddress)
        }
        let newest = unsafe receiver.pointee.newest
        let contents: Range<Int>
        do throws(MediaLinkOpenError) {
            contents = try unsafe receiver.pointee.open(&datagram, length: length, header: header)
        } catch {
            throw .drop(error == .authentication ? .relayAuthentication : .relayReplay)
        }
        source = path.remote
        receivedAt = now
        if !isProven {
            isProven = true
            self.path = path
        }
        unsafe shared.pointee.counters.received.datagrams &+= 1
        unsafe shared.pointee.counters.received.bytes &+= UInt64(length)
        if header.counter != newest &+ 1 || !missing.isEmpty { noteDisorder(header.counter, after: newest) }
        if header.kind == .media { hasNews = true }
        return contents
    }

    private mutating func noteDisorder(_ counter: UInt64, after newest: UInt64) {
        guard counter > newest else {
            if missing.received(counter) { unsafe shared.pointee.counters.late &+= 1 }
            return
        }
        // What was sent before the first datagram that came was for nobody.
        if newest > 0, counter - newest > 1 {
            let overflows = missing.overflows
            missing.note(newest + 1..<counter)
            unsafe shared.pointee.counters.missing &+= counter - newest - 1
            unsafe shared.pointee.counters.gapsGivenUp &+= missing.overflows - overflows
        }
        wantsReport = wantsReport || missing.isUrgent(newest: counter)
    }
}
