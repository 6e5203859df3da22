public import Base
public import Wire

/// One DTLS-SRTP association over DTLS 1.2 (RFC 5764, RFC 6347). Sans-IO: the caller passes in datagrams and instants,
/// and takes out datagrams and events.
///
/// After every call, send what ``drainOutput(_:)`` returns and set the timer to ``nextDeadline``. An instance belongs
/// to one thread at a time.
public final class DTLSConnection {
    /// The SRTP protection profiles that are offered and accepted, best first.
    public static let profiles: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1]
    /// The most time for a handshake, from ``start(at:)``.
    public static let handshakeTimeout = Interval.seconds(30)
    /// The delay of a flight's first retransmission. Deviation: RFC 6347 §4.2.4.1 recommends 1 s. Browsers start at 50
    /// ms, because ICE has just checked the path.
    static let retransmitIntervalMin = Interval.milliseconds(100)
    /// The retransmission delay doubles up to this.
    static let retransmitIntervalMax = Interval.seconds(3)
    /// The time that a handshake has left after a possibly forged refusal: an unprotected alert or an unacceptable
    /// ClientHello. If the peer continues the handshake, the refusal is ignored.
    public static let refusalGrace = Interval.seconds(5)
    /// The range to which the MTU is clamped: from OpenSSL's minimum to an Ethernet frame.
    public static let mtuRange = 256...1500

    /// Unacceptable ClientHellos that are answered; the next one fails the handshake at once.
    private static let refusedHellosMax = 16
    /// Protected records that OpenSSL may buffer before it can decrypt them, 16 kB each.
    private static let earlyRecordsMax = 16
    /// Records of one datagram that are processed; a whole handshake has fewer.
    private static let recordsPerDatagramMax = 32
    /// The burst of records that is processed after the handshake, and the interval at which one more is. An honest
    /// peer retransmits its last flight a few times and sends one close_notify.
    private static let establishedRecordsMax = 32
    private static let establishedRecordInterval = Interval.milliseconds(100)
    /// The longest application data of one record, in bytes.
    public static let dataBytesMax = RecordFilter.dataBytesMax
    /// The same for records of application data: 20,000 a second are 190 Mbit/s in full packets.
    private static let dataRecordsMax = 4_096
    private static let dataRecordInterval = Interval.microseconds(50)
    /// How long the record buffers stay allocated without a record of data. Allocating them for each record would take as long
    /// as encrypting a short one, and they are more than half of the memory of a connection that has them.
    static let buffersKept = Interval.seconds(1)
    /// When OpenSSL uses its own clock: the delay before another attempt when its timer is not due yet.
    private static let recheckInterval = Interval.milliseconds(20)

    private enum Phase { case idle, handshaking, established, ended }

    private let certificate: DTLSCertificate
    private let role: DTLSRole
    private let remoteFingerprints: [Fingerprint]
    private let mtuBytes: Int
    private let offeredProfiles: [SRTPProfile]
    private let acceptsData: Bool

    private var openSSL: OpenSSLConnection
    /// Datagrams of earlier OpenSSL connections that are not sent yet; see ``restart(at:because:)``.
    private var pendingOutput: [[UInt8]] = []
    private var phase = Phase.idle
    private var hasSentFlight = false
    private var handshakeDeadline: Instant?
    private var pendingFailure: (at: Instant, failure: DTLSFailure)?
    private var retransmitAt: Instant?
    private var retransmitInterval = DTLSConnection.retransmitIntervalMin
    private var refusedHellos = 0
    private var earlyRecords = 0
    private var closedAt: Instant?
    private var dataAt = Instant(nanoseconds: .min)
    /// When to look whether the record buffers are still needed; `nil` while they are not allocated.
    private var buffersCheckAt: Instant?
    private var recordTokens = TokenBucket(
        1,
        per: DTLSConnection.establishedRecordInterval,
        burst: DTLSConnection.establishedRecordsMax
    )
    // Each record takes one, in one step: a check of exclusive access would find nothing.
    @exclusivity(unchecked) private var dataTokens = TokenBucket(
        1,
        per: DTLSConnection.dataRecordInterval,
        burst: DTLSConnection.dataRecordsMax
    )

    /// Records dropped: records that no honest peer sends, too many records after the handshake, and records that do
    /// not decrypt.
    public private(set) var recordsDropped = 0

    /// - Parameters:
    ///   - remoteFingerprints: the certificate digests that the peer signaled (RFC 8122 §5); its certificate must match
    ///     one of them.
    ///   - mtuBytes: the most bytes of DTLS in one datagram, clamped to ``mtuRange``.
    ///   - acceptsData: whether application data may be sent and is accepted.
    /// - Throws: ``DTLSError/noFingerprint`` when `remoteFingerprints` is empty, or ``DTLSError/setup``.
    public convenience init(
        certificate: DTLSCertificate,
        role: DTLSRole,
        remoteFingerprints: [Fingerprint],
        mtuBytes: Int = 1200,
        acceptsData: Bool = false
    ) throws(DTLSError) {
        try self.init(
            certificate: certificate,
            role: role,
            remoteFingerprints: remoteFingerprints,
            mtuBytes: mtuBytes,
            profiles: Self.profiles,
            acceptsData: acceptsData
        )
    }

    /// Like the other initializer, with any profiles.
    package init(
        certificate: DTLSCertificate,
        role: DTLSRole,
        remoteFingerprints: [Fingerprint],
        mtuBytes: Int = 1200,
        profiles: [SRTPProfile],
        acceptsData: Bool = false
    ) throws(DTLSError) {
        guard !remoteFingerprints.isEmpty else { throw .noFingerprint }
        self.certificate = certificate
        self.role = role
        self.remoteFingerprints = remoteFingerprints
        self.mtuBytes = min(max(mtuBytes, Self.mtuRange.lowerBound), Self.mtuRange.upperBound)
        offeredProfiles = profiles
        self.acceptsData = acceptsData
        openSSL = try OpenSSLConnection(
            certificate: certificate,
            role: role,
            remoteFingerprints: remoteFingerprints,
            mtuBytes: self.mtuBytes,
            profiles: profiles
        )
    }

    /// Whether the handshake is complete and the connection is not closed.
    public var isEstablished: Bool { phase == .established }

    /// When to call ``handleTimeout(at:)`` next; `nil` when no timer is needed.
    public var nextDeadline: Instant? {
        let handshake = earliest(earliest(handshakeDeadline, pendingFailure?.at), retransmitAt)
        return earliest(earliest(handshake, closedAt), buffersCheckAt)
    }

    /// Whether ``drainOutput(_:)`` has something to pass.
    public var hasOutput: Bool { openSSL.buffer.outputCount > 0 || !pendingOutput.isEmpty }

    /// Starts the handshake timeout; a client writes its ClientHello. Later calls do nothing.
    public func start(at now: Instant) {
        guard phase == .idle else { return }
        phase = .handshaking
        handshakeDeadline = now + Self.handshakeTimeout
        if role == .client {
            _ = openSSL.handshake()
            noteFlight(at: now)
        }
    }

    /// Handles one datagram that was demultiplexed as DTLS (first byte 20…63, RFC 7983).
    ///
    /// The first datagram starts a server that was not started. Nothing unauthenticated ends an established connection.
    /// - Parameter data: takes the application data of each record, one after the other. A span is valid during its call only.
    public func receive(_ datagram: RawSpan, at now: Instant, data: (RawSpan) -> Void = { _ in }) -> DTLSEvent? {
        if role == .server { start(at: now) }
        var event: DTLSEvent?
        var offset = 0
        for _ in 0..<Self.recordsPerDatagramMax {
            guard phase == .handshaking || phase == .established,
                let record = RecordHeader(datagram, at: offset)
            else { break }
            offset = record.range.upperBound
            guard let next = process(record, of: datagram, at: now, data: data) else { continue }
            if case .closed = next, event != nil {
                // One datagram established and closed the connection: the second event follows at once.
                closedAt = now
            } else {
                event = next
            }
        }
        if offset < datagram.byteCount { recordsDropped &+= 1 }
        return event
    }

    /// Retransmits a flight that is due, fails the handshake on a timeout, or frees memory that is not used any more.
    public func handleTimeout(at now: Instant) -> DTLSEvent? {
        if let buffersCheckAt, now >= buffersCheckAt { checkBuffers(at: now) }
        if let closedAt, now >= closedAt {
            self.closedAt = nil
            return .closed
        }
        guard phase == .handshaking else { return nil }
        if let pendingFailure, now >= pendingFailure.at { return fail(pendingFailure.failure) }
        if let handshakeDeadline, now >= handshakeDeadline { return fail(.timedOut) }
        guard let retransmitAt, now >= retransmitAt else { return nil }
        let next = min(retransmitInterval * 2, Self.retransmitIntervalMax)
        guard let hasSent = openSSL.retransmit(next: next) else { return fail(.timedOut) }
        if hasSent {
            retransmitInterval = next
            self.retransmitAt = now + next
        } else {
            self.retransmitAt = openSSL.hasOutstandingFlight ? now + Self.recheckInterval : nil
        }
        return nil
    }

    /// Passes every datagram to send to `body`, in order. A span is valid during its call only.
    public func drainOutput(_ body: (RawSpan) -> Void) {
        if !pendingOutput.isEmpty {
            let first = pendingOutput
            pendingOutput = []
            for datagram in first { body(unsafe datagram.span.bytes) }
        }
        openSSL.buffer.drain(body)
    }

    /// Closes the connection, with a close_notify to send when it was established. Datagrams are ignored after this.
    public func close() {
        if phase == .established { openSSL.shutdown() }
        end()
    }

    /// Encrypts application data of 1...``dataBytesMax`` bytes as one record, which is the next datagram of the output.
    /// - Returns: whether it was encrypted: the connection is established and accepts data.
    public func send(_ data: RawSpan, at now: Instant) -> Bool {
        guard phase == .established, acceptsData, (1...Self.dataBytesMax).contains(data.byteCount) else { return false }
        usesBuffers(at: now)
        return openSSL.write(data)
    }

    private func usesBuffers(at now: Instant) {
        dataAt = now
        if buffersCheckAt == nil { buffersCheckAt = now + Self.buffersKept }
    }

    /// Frees the record buffers when there was no data for a while.
    private func checkBuffers(at now: Instant) {
        let until = dataAt + Self.buffersKept
        if until > now {
            buffersCheckAt = until
        } else {
            buffersCheckAt = nil
            openSSL.releaseBuffers()
        }
    }

    private func process(
        _ record: RecordHeader,
        of datagram: RawSpan,
        at now: Instant,
        data: (RawSpan) -> Void
    ) -> DTLSEvent? {
        let verdict = RecordFilter.judge(
            record,
            in: datagram,
            role: role,
            stage: stage,
            overheadBytes: record.epoch == 0 ? nil : openSSL.recordOverheadBytes,
            acceptsData: acceptsData
        )
        switch verdict {
        case .drop:
            recordsDropped &+= 1
            return nil
        case .unprotectedFatalAlert:
            if pendingFailure == nil { pendingFailure = (now + Self.refusalGrace, .handshake) }
            return nil
        case .accept: break
        }
        let bytes = datagram.extracting(record.range)
        if phase == .established {
            let isData = record.contentType == .applicationData
            return readEstablished(bytes, isData: isData, at: now, data: data)
        }
        if record.epoch > 0, !openSSL.readsProtected {
            guard earlyRecords < Self.earlyRecordsMax else {
                recordsDropped &+= 1
                return nil
            }
            earlyRecords += 1
        }
        let waiting = openSSL.buffer.outputCount
        let step = openSSL.handshake(bytes)
        switch step {
        case .established: return establish()
        case .failed, .closed:
            let failure = openSSL.buffer.refusal ?? .handshake
            return role == .server && !hasSentFlight ? restart(at: now, because: failure) : fail(failure)
        case .waiting:
            if openSSL.buffer.outputCount > waiting { noteFlight(at: now) }
            if !openSSL.hasOutstandingFlight { retransmitAt = nil }
            return nil
        }
    }

    private var stage: RecordFilter.Stage {
        if phase == .established { return .established }
        return role == .server && !hasSentFlight ? .awaitingHello : .handshaking
    }

    private func readEstablished(
        _ record: RawSpan,
        isData: Bool,
        at now: Instant,
        data: (RawSpan) -> Void
    ) -> DTLSEvent? {
        guard isData ? unsafe dataTokens.take(at: now) : recordTokens.take(at: now) else {
            recordsDropped &+= 1
            return nil
        }
        if isData { usesBuffers(at: now) }
        defer { if buffersCheckAt == nil { openSSL.releaseBuffers() } }
        let waiting = openSSL.buffer.outputCount
        var isUsed = false
        let step = openSSL.read(record) { bytes in
            isUsed = true
            data(bytes)
        }
        switch step {
        case .waiting, .established:
            // OpenSSL ignores what does not decrypt, and answers a retransmitted last flight.
            if !isUsed, openSSL.buffer.outputCount == waiting { recordsDropped &+= 1 }
            return nil
        case .closed:
            openSSL.shutdown()
            end()
            return .closed
        // Unauthenticated records never reach this: the peer sent a fatal alert or violated the protocol.
        case .failed:
            end()
            return .closed
        }
    }

    private func establish() -> DTLSEvent {
        guard let keys = openSSL.exportKeys(role: role) else { return fail(.noCommonProfile) }
        end()
        phase = .established
        return .connected(keys)
    }

    /// A new flight was written: its retransmission starts with the shortest delay.
    private func noteFlight(at now: Instant) {
        hasSentFlight = true
        pendingFailure = nil
        retransmitInterval = Self.retransmitIntervalMin
        retransmitAt = openSSL.hasOutstandingFlight ? now + retransmitInterval : nil
    }

    /// Restarts the handshake of a server that has answered no ClientHello yet: the refused one may be forged, and the
    /// next one may be acceptable.
    private func restart(at now: Instant, because failure: DTLSFailure) -> DTLSEvent? {
        refusedHellos += 1
        guard refusedHellos <= Self.refusedHellosMax,
            let openSSL = try? OpenSSLConnection(
                certificate: certificate,
                role: role,
                remoteFingerprints: remoteFingerprints,
                mtuBytes: mtuBytes,
                profiles: offeredProfiles
            )
        else { return fail(failure) }
        self.openSSL.buffer.drain { pendingOutput.append($0.array()) }
        self.openSSL = openSSL
        if pendingFailure == nil { pendingFailure = (now + Self.refusalGrace, failure) }
        return nil
    }

    private func fail(_ failure: DTLSFailure) -> DTLSEvent {
        end()
        return .failed(failure)
    }

    private func end() {
        phase = .ended
        handshakeDeadline = nil
        pendingFailure = nil
        retransmitAt = nil
        closedAt = nil
        buffersCheckAt = nil
        openSSL.releaseBuffers()
    }
}
