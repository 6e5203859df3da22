import Base
package import CongestionControl
import SRTP
package import Wire

/// The way out to one peer: media, retransmissions, RTCP and the records of the handshake all leave through it.
///
/// For each packet it writes what differs per send, takes the transport-wide sequence number, encrypts, records the
/// packet for a bandwidth estimator, and commits it to the batch. Nothing else encrypts for the peer. What the fan-out
/// needs of it lies in `state`, in plain memory.
@safe
package final class Egress {
    let state: UnsafeMutablePointer<EgressState>
    private let slab: StateSlab<EgressState>
    /// Encrypts RTCP; `nil` unless the peer is connected.
    private(set) var transform: (any SRTPTransform)?
    /// Decides when packets leave.
    var policy = SendPolicy.immediate { didSet { noteMode() } }
    /// The packets that may not leave yet.
    package private(set) var waiting = PacketQueue() { didSet { noteMode() } }

    /// - Parameter firstTransportSequence: random; the number before the first one that is taken.
    init(slab: StateSlab<EgressState>, firstTransportSequence: UInt16) {
        self.slab = slab
        unsafe state = slab.make(EgressState(sentPackets: SentPacketRing(first: firstTransportSequence)))
    }

    deinit {
        unsafe state.pointee.sentPackets.deallocate()
        unsafe state.pointee.sentIndex.deallocate()
        unsafe slab.free(state)
    }

    /// The peer is connected: packets can be encrypted.
    @inline(__always)
    var isOpen: Bool { unsafe state.pointee.sender != nil }
    /// Resolves and forgets SRTP streams; `nil` unless the peer is connected.
    var sender: SRTPSender? { unsafe state.pointee.sender }
    /// Bytes that the peer's record of sent packets holds of the machine's memory.
    var footprintBytes: Int {
        unsafe state.pointee.sentPackets.footprintBytes + state.pointee.sentIndex.footprintBytes
    }

    /// The packet that left with a transport-wide sequence number; `nil` when none did, or too long ago.
    package func sentPacket(_ number: TransportSequenceNumber) -> SentPacket? {
        unsafe state.pointee.sentPackets[number]
    }
    /// The number that the next numbered packet takes.
    package var nextTransportSequence: UInt16 { unsafe state.pointee.sentPackets.next }

    /// Keeps a record of what is sent. To be called once a slot that numbers its packets is added.
    func recordSentPackets() { unsafe state.pointee.sentPackets.isRecording = true }

    /// The peer is connected.
    func open(_ transform: any SRTPTransform, path: NetworkPath?) {
        self.transform = transform
        unsafe state.pointee.sender = transform.sender
        setPath(path)
    }

    /// The connection ended: nothing is encrypted any more.
    func close() {
        transform = nil
        unsafe state.pointee.sender = nil
        unsafe state.pointee.isSendable = false
        waiting.removeAll()
    }

    /// The selected pair changed. Without one nothing leaves.
    func setPath(_ path: NetworkPath?) {
        if let path { unsafe state.pointee.path = path }
        unsafe state.pointee.isSendable = isOpen && path != nil
        noteMode()
    }

    private func noteMode() {
        let asks = if case .deciding = policy { true } else { false }
        unsafe state.pointee.leavesAtOnce = state.pointee.isSendable && !asks && waiting.isEmpty
    }

    /// The part of the pacer's rate that retransmissions of video may take. On a path that reorders, a quarter of all packets is
    /// asked for again.
    private static let retransmissionShare = 0.4
    /// The packets of one key frame may be sent again within half a second at any rate.
    private static let retransmissionRateMin = 500_000
    private static let retransmissionBurst = Interval.milliseconds(500)

    /// Sets the rate at which packets leave; `nil` for no limit.
    /// - Parameter burst: the time whose bytes may leave at once.
    func pace(_ bitsPerSecond: Int?, burst: Interval, at now: Instant) {
        unsafe state.pointee.pacer.set(bitsPerSecond, burst: burst, at: now)
        unsafe state.pointee.retransmissions.set(
            bitsPerSecond.map { max(Int(Double($0) * Self.retransmissionShare), Self.retransmissionRateMin) },
            burst: Self.retransmissionBurst,
            at: now
        )
        if policy.isPaced != (bitsPerSecond != nil) { policy = bitsPerSecond == nil ? .immediate : .paced }
    }

    /// The probe cluster to which all numbered packets belong that leave; 0 for none.
    var cluster: UInt8 {
        get { unsafe state.pointee.cluster }
        set { unsafe state.pointee.cluster = newValue }
    }
    /// The numbered packets that left so far, and the UDP payload bytes of those from one of them on.
    var packetsSent: UInt64 { unsafe state.pointee.sentPackets.count }
    func bytesSent(from packet: UInt64) -> Int { unsafe state.pointee.sentPackets.bytes(from: packet) }

    /// How long the last of the packets that wait will wait.
    var queueDelay: Interval {
        let rate = unsafe state.pointee.pacer.rate
        guard rate > 0 else { return .zero }
        return Interval(nanoseconds: Int64(waiting.bytes) * 1_000_000_000 / rate)
    }

    // MARK: - Packets that wait

    /// What becomes of a packet.
    enum Admission {
        case leaves
        /// It is in the queue. The queue is to be looked at again at this instant; `nil` when that is known already.
        case waits(Instant?)
        /// Too many wait.
        case refused
    }

    /// Packets leave now without being asked about.
    @inline(__always)
    func leavesAtOnce(at now: Instant) -> Bool { unsafe state.pointee.leavesAtOnce(at: now) }

    /// Asks whether a packet may leave, and queues it when it may not. Behind one that waits every packet waits, so that the
    /// order is kept.
    func admit(_ packet: PacketReference, at now: Instant) -> Admission {
        var wakesAt: Instant?
        if waiting.isEmpty {
            guard case .later(let instant) = decision(packet, at: now) else { return .leaves }
            wakesAt = max(instant, now + Interval(nanoseconds: 1))
        }
        return waiting.append(packet) ? .waits(wakesAt) : .refused
    }

    /// What the policy says of a packet.
    func decision(_ packet: PacketReference, at now: Instant) -> SendPolicy.Decision {
        switch policy {
        case .immediate: return .now
        case .paced:
            if unsafe state.pointee.pacer.mayLeave(at: now) { return .now }
            let wait = unsafe state.pointee.pacer.wait
            return .later(now + wait)
        case .deciding(let decide):
            return decide(SendPolicy.Request(kind: packet.kind, bytes: Int(packet.bytes)), now)
        }
    }

    func removeFirstWaiting() { waiting.removeFirst() }
    func dropWaitingMedia(of slot: SSRC, where isNeedless: (PacketReference) -> Bool = { _ in true }) {
        waiting.dropMedia(of: slot, where: isNeedless)
    }
    func removeWaiting(of slot: SSRC) { waiting.removeAll(of: slot) }

    // MARK: - RTCP and DTLS

    /// Encrypts and sends one compound RTCP packet. RTCP never waits.
    /// - Returns: whether it was put into the batch.
    @discardableResult
    package func sendRTCP(_ packet: [UInt8], into batch: DatagramBatch) -> Bool {
        guard let transform, unsafe state.pointee.isSendable else { return false }
        return unsafe batch.append(to: state.pointee.path) { slot in
            guard packet.count + SRTPLimits.overheadBytesMax <= slot.byteCount else { return nil }
            slot.store(unsafe packet.span.bytes, at: 0)
            return try? transform.protectRTCP(&slot, length: packet.count)
        }
    }

    /// Sends one DTLS datagram as it is. It never waits.
    /// - Parameter path: the pair that the handshake runs over, which need not be selected yet.
    func sendDTLS(_ datagram: RawSpan, over path: NetworkPath, into batch: DatagramBatch) {
        batch.append(to: path, copying: datagram)
    }
}

/// What sending to a peer reads for every packet: plain memory without references, kept up to date by its `Egress`.
struct EgressState {
    /// The selected pair; meaningful while `isSendable`.
    var path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: TransportAddress(ip: .anyV4, port: 0))
    /// The peer is connected and has a path.
    var isSendable = false
    /// It is sendable, and neither does a packet wait nor does a function decide about each of them: the plain path, as far
    /// as the pacer allows.
    var leavesAtOnce = false
    var pacer = Pacer()
    /// Bounds what retransmissions of video take, so that a peer that asks for everything again leaves room for media.
    var retransmissions = Pacer()
    /// The probe cluster under way, which all numbered packets that leave are of; 0 for none.
    var cluster: UInt8 = 0
    /// Set as long as the peer is connected.
    var sender: SRTPSender?
    /// The transport-wide sequence numbers and what was sent with them.
    var sentPackets: SentPacketRing
    /// The same packets by stream and RTP sequence number, of a peer that reports on them so, or to which they may leave again.
    var sentIndex = SentPacketIndex()

    init(sentPackets: SentPacketRing) { self.sentPackets = sentPackets }

    /// Packets leave now without being asked about.
    @inline(__always)
    mutating func leavesAtOnce(at now: Instant) -> Bool { leavesAtOnce && pacer.mayLeave(at: now) }

    /// The number under which a packet of a slot without RTX left; `nil` when that is too long ago.
    func number(of ssrc: SSRC, _ sequence: SequenceNumber) -> UInt64? {
        sentIndex.number(of: ssrc, sequence, newest: sentPackets.newest)
    }

    /// Writes the header extensions whose values differ from one sending to the next: abs-send-time and the
    /// transport-wide sequence number, which `send` takes.
    /// - Parameter repeated: the number under which the packet left already, if it did.
    @inline(__always)
    func writePerSendElements(
        _ extensions: SentExtensions,
        repeated: UInt64? = nil,
        _ turn: SendTurn,
        to writer: inout HeaderWriter
    ) {
        if extensions.absoluteSendTime != 0 {
            writer.append(extensions.absoluteSendTime, bigEndianUInt24: turn.absoluteSendTime)
        }
        if extensions.transportSequenceNumber != 0 {
            let number = repeated.map { UInt16(truncatingIfNeeded: $0) } ?? sentPackets.next
            writer.append(extensions.transportSequenceNumber, bigEndianUInt16: number)
        }
    }

    /// Encrypts, records and commits one RTP packet.
    ///
    /// - Parameters:
    ///   - place: what the batch reserved last; the header stands there.
    ///   - index: the SRTP packet index (RFC 3711 §3.3.1).
    ///   - numbering: how the peer reports on the packet. With `transportWide` the header carries the number that is next.
    ///   - repeated: the number under which the packet left already, if it did; the header carries that one.
    /// - Returns: the packet's length on the wire; 0 or less when it could not be encrypted. Nothing is taken or sent then.
    @inline(__always)
    mutating func send(
        _ stream: SRTPOutboundStream,
        _ place: UnsafeMutableRawPointer,
        headerLength: Int,
        payload: UnsafeRawPointer,
        payloadLength: Int,
        index: UInt64,
        numbering: PacketNumbering,
        repeated: UInt64? = nil,
        kind: SentKind,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Int {
        guard let sender else { return 0 }
        let length = unsafe sender.protectRTP(
            stream,
            place,
            headerLength: headerLength,
            payload: payload,
            payloadLength: payloadLength,
            index: index
        )
        guard length > 0 else { return length }
        if numbering == .transportWide {
            sentPackets.record(
                SentPacket(
                    sentAt: turn.sentAtMicroseconds,
                    bytes: length,
                    kind: kind,
                    cluster: cluster
                )
            )
        } else {
            unsafe recordOther(place, length: length, numbering: numbering, repeated: repeated, kind: kind, turn)
        }
        pacer.take(length)
        batch.commit(length, to: path)
        return length
    }

    @inline(never)
    private mutating func recordOther(
        _ header: UnsafeMutableRawPointer,
        length: Int,
        numbering: PacketNumbering,
        repeated: UInt64?,
        kind: SentKind,
        _ turn: SendTurn
    ) {
        guard numbering != .none, repeated == nil else {
            if let repeated { sentPackets.repeated(repeated) }
            return
        }
        sentPackets.record(
            SentPacket(sentAt: turn.sentAtMicroseconds, bytes: length, kind: kind, cluster: cluster)
        )
        // SRTP leaves the fixed header as it is.
        unsafe sentIndex.insert(
            UInt32(bigEndian: header.loadUnaligned(fromByteOffset: 8, as: UInt32.self)),
            UInt16(bigEndian: header.loadUnaligned(fromByteOffset: 2, as: UInt16.self)),
            number: sentPackets.newest
        )
    }
}
