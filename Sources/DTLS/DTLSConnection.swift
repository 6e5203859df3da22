public import Wire

/// One DTLS 1.2 association that keys SRTP (RFC 5764, RFC 6347), sans-IO: datagrams and instants come in, datagrams
/// and events come out.
///
/// After every call, hand what ``drainOutput(_:)`` gives to the socket and set the timer to ``nextDeadline``. An
/// instance belongs to one thread at a time.
public final class DTLSConnection {
    /// The profiles that are offered and accepted, best first.
    public static let profiles: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1]
    /// How long a handshake may take, from ``start(at:)``.
    public static let handshakeTimeout = Interval.seconds(30)
    /// When a flight is first sent again. RFC 6347 §4.2.4.1 suggests 1 s; browsers start at 50 ms, as ICE has just
    /// shown the path to be good and the call waits for this.
    public static let retransmitIntervalMin = Interval.milliseconds(100)
    /// The interval doubles up to this.
    public static let retransmitIntervalMax = Interval.seconds(3)
    /// How long a handshake still has after a refusal that may be forged: an unprotected alert, or a ClientHello that
    /// is not acceptable. A peer that goes on with the handshake takes the refusal back.
    public static let refusalGrace = Interval.seconds(5)
    /// The range that an MTU is brought into: what the library manages with, and an Ethernet frame.
    public static let mtuRange = 256...1500

    /// Refused ClientHellos that are answered before the connection fails at once.
    private static let refusedHellosMax = 16
    /// Protected records that the library may set aside before it can read them; each costs it a 16 kB buffer.
    private static let earlyRecordsMax = 16
    /// Records of one datagram that are looked at: a whole handshake has fewer.
    private static let recordsPerDatagramMax = 32
    /// Records after the handshake that are looked at in a burst, and how long until one more is. An honest peer sends its
    /// last flight again a few times, and one close_notify.
    private static let establishedRecordsMax = 32
    private static let establishedRecordInterval = Interval.milliseconds(100)
    /// With a library that keeps its own time, when to try again if its timer is not due yet.
    private static let recheckInterval = Interval.milliseconds(20)

    private enum Phase { case idle, handshaking, established, ended }

    private let certificate: DTLSCertificate
    private let role: DTLSRole
    private let remoteFingerprints: [Fingerprint]
    private let mtuBytes: Int
    private let offeredProfiles: [SRTPProfile]

    private var session: DTLSSession
    /// What the sessions before this one left to send; see ``startOver(at:because:)``.
    private var leftover: [[UInt8]] = []
    private var phase = Phase.idle
    private var hasSentFlight = false
    private var giveUpAt: Instant?
    private var refusal: (at: Instant, failure: DTLSFailure)?
    private var retransmitAt: Instant?
    private var retransmitInterval = DTLSConnection.retransmitIntervalMin
    private var refusedHellos = 0
    private var earlyRecords = 0
    private var closedAt: Instant?
    private var recordCredit = RecordCredit(
        max: DTLSConnection.establishedRecordsMax,
        interval: DTLSConnection.establishedRecordInterval
    )

    /// Records dropped: because no honest peer sends them, because there were too many after the handshake, or because
    /// they did not decrypt.
    public private(set) var recordsDropped = 0

    /// - Parameters:
    ///   - remoteFingerprints: the digests that signaling announced; the peer's certificate must have one of them.
    ///   - mtuBytes: the most bytes of DTLS in one datagram, brought into ``mtuRange``.
    /// - Throws: ``DTLSError/noFingerprint`` without a digest to verify the peer by, or ``DTLSError/setup``.
    public convenience init(
        certificate: DTLSCertificate,
        role: DTLSRole,
        remoteFingerprints: [Fingerprint],
        mtuBytes: Int = 1200
    ) throws(DTLSError) {
        try self.init(
            certificate: certificate,
            role: role,
            remoteFingerprints: remoteFingerprints,
            mtuBytes: mtuBytes,
            profiles: Self.profiles
        )
    }

    /// As the public initialiser, with profiles of the caller's choice.
    package init(
        certificate: DTLSCertificate,
        role: DTLSRole,
        remoteFingerprints: [Fingerprint],
        mtuBytes: Int = 1200,
        profiles: [SRTPProfile]
    ) throws(DTLSError) {
        guard !remoteFingerprints.isEmpty else { throw .noFingerprint }
        self.certificate = certificate
        self.role = role
        self.remoteFingerprints = remoteFingerprints
        self.mtuBytes = min(max(mtuBytes, Self.mtuRange.lowerBound), Self.mtuRange.upperBound)
        offeredProfiles = profiles
        session = try DTLSSession(
            certificate: certificate,
            role: role,
            remoteFingerprints: remoteFingerprints,
            mtuBytes: self.mtuBytes,
            profiles: profiles
        )
    }

    /// Whether the keys are out and the connection is not closed.
    public var isEstablished: Bool { phase == .established }

    /// When to call ``handleTimeout(at:)`` next; `nil` while there is nothing to wait for.
    public var nextDeadline: Instant? {
        earliest(earliest(giveUpAt, refusal?.at), earliest(retransmitAt, closedAt))
    }

    /// Starts the handshake's clock; a client's ClientHello is then ready to send. Does nothing the second time.
    public func start(at now: Instant) {
        guard phase == .idle else { return }
        phase = .handshaking
        giveUpAt = now + Self.handshakeTimeout
        if role == .client {
            _ = session.handshake()
            noteFlight(at: now)
        }
    }

    /// Takes one datagram that demultiplexing found to be DTLS (first byte 20…63, RFC 7983).
    ///
    /// A server starts with its first datagram at the latest. Whatever is in a datagram, nothing unauthenticated ends
    /// a connection that is established.
    public func receive(_ datagram: RawSpan, at now: Instant) -> DTLSEvent? {
        if role == .server { start(at: now) }
        var event: DTLSEvent?
        var offset = 0
        for _ in 0..<Self.recordsPerDatagramMax {
            guard phase == .handshaking || phase == .established,
                let record = RecordHeader(datagram, at: offset)
            else { break }
            offset = record.range.upperBound
            guard let next = process(record, of: datagram, at: now) else { continue }
            if case .closed = next, event != nil {
                // Established and closed by one datagram: the second event follows at once.
                closedAt = now
            } else {
                event = next
            }
        }
        if offset < datagram.byteCount { recordsDropped &+= 1 }
        return event
    }

    /// Does what is due: sends a flight again or gives up.
    public func handleTimeout(at now: Instant) -> DTLSEvent? {
        if let closedAt, now >= closedAt {
            self.closedAt = nil
            return .closed
        }
        guard phase == .handshaking else { return nil }
        if let refusal, now >= refusal.at { return fail(refusal.failure) }
        if let giveUpAt, now >= giveUpAt { return fail(.timedOut) }
        guard let retransmitAt, now >= retransmitAt else { return nil }
        let next = min(retransmitInterval * 2, Self.retransmitIntervalMax)
        guard let hasSent = session.retransmit(next: next) else { return fail(.timedOut) }
        if hasSent {
            retransmitInterval = next
            self.retransmitAt = now + next
        } else {
            self.retransmitAt = session.awaitsAnswer ? now + Self.recheckInterval : nil
        }
        return nil
    }

    /// Hands every datagram that waits to be sent to `body`, in order. Each span is valid during its call only.
    public func drainOutput(_ body: (RawSpan) -> Void) {
        let first = leftover
        leftover = []
        for datagram in first { body(unsafe datagram.span.bytes) }
        session.channel.drain(body)
    }

    /// Ends the connection; when it was established, close_notify is ready to send. Nothing is received after this.
    public func close() {
        if phase == .established { session.shutdown() }
        end()
    }

    private func process(_ record: RecordHeader, of datagram: RawSpan, at now: Instant) -> DTLSEvent? {
        let verdict = RecordFilter.judge(
            record,
            in: datagram,
            role: role,
            stage: stage,
            overheadBytes: record.epoch == 0 ? nil : session.recordOverheadBytes
        )
        switch verdict {
        case .drop:
            recordsDropped &+= 1
            return nil
        case .unprotectedFatalAlert:
            if refusal == nil { refusal = (now + Self.refusalGrace, .handshake) }
            return nil
        case .accept: break
        }
        let bytes = datagram.extracting(record.range)
        if phase == .established { return readEstablished(bytes, at: now) }
        if record.epoch > 0, !session.readsProtected {
            guard earlyRecords < Self.earlyRecordsMax else {
                recordsDropped &+= 1
                return nil
            }
            earlyRecords += 1
        }
        let waiting = session.channel.outputCount
        let step = session.handshake(bytes)
        switch step {
        case .established: return establish()
        case .failed, .closed:
            let failure = session.channel.refusal ?? .handshake
            return role == .server && !hasSentFlight ? startOver(at: now, because: failure) : fail(failure)
        case .waiting:
            if session.channel.outputCount > waiting { noteFlight(at: now) }
            if !session.awaitsAnswer { retransmitAt = nil }
            return nil
        }
    }

    private var stage: RecordFilter.Stage {
        if phase == .established { return .established }
        return role == .server && !hasSentFlight ? .awaitingHello : .handshaking
    }

    private func readEstablished(_ record: RawSpan, at now: Instant) -> DTLSEvent? {
        guard recordCredit.take(at: now) else {
            recordsDropped &+= 1
            return nil
        }
        let waiting = session.channel.outputCount
        switch session.read(record) {
        case .waiting, .established:
            // The library ignores what does not decrypt; the last flight, seen again, it answers.
            if session.channel.outputCount == waiting { recordsDropped &+= 1 }
            return nil
        case .closed:
            session.shutdown()
            end()
            return .closed
        // Unauthenticated records never get here, so this is a fatal alert of the peer, or its own breach.
        case .failed:
            end()
            return .closed
        }
    }

    private func establish() -> DTLSEvent {
        guard let keys = session.exportKeys(role: role) else { return fail(.noCommonProfile) }
        end()
        phase = .established
        return .connected(keys)
    }

    /// A flight went out that answers what came in: its retransmission starts from the shortest interval.
    private func noteFlight(at now: Instant) {
        hasSentFlight = true
        refusal = nil
        retransmitInterval = Self.retransmitIntervalMin
        retransmitAt = session.awaitsAnswer ? now + retransmitInterval : nil
    }

    /// Until we have answered a ClientHello there is nothing to lose: another one may be better than the one that was
    /// refused, which anyone could have sent.
    private func startOver(at now: Instant, because failure: DTLSFailure) -> DTLSEvent? {
        refusedHellos += 1
        guard refusedHellos <= Self.refusedHellosMax,
            let session = try? DTLSSession(
                certificate: certificate,
                role: role,
                remoteFingerprints: remoteFingerprints,
                mtuBytes: mtuBytes,
                profiles: offeredProfiles
            )
        else { return fail(failure) }
        self.session.channel.drain { leftover.append($0.array()) }
        self.session = session
        if refusal == nil { refusal = (now + Self.refusalGrace, failure) }
        return nil
    }

    private func fail(_ failure: DTLSFailure) -> DTLSEvent {
        end()
        return .failed(failure)
    }

    private func end() {
        phase = .ended
        giveUpAt = nil
        refusal = nil
        retransmitAt = nil
        closedAt = nil
    }
}

/// Records that may be looked at: a burst, and then one in each interval.
struct RecordCredit {
    private let max: Int
    private let interval: Interval
    private var left: Int
    private var refilledAt: Instant?

    init(max: Int, interval: Interval) {
        self.max = max
        self.interval = interval
        left = max
    }

    /// Takes one, if there is one left.
    mutating func take(at now: Instant) -> Bool {
        let since = refilledAt ?? now
        let gained = Swift.max(0, (now - since).nanoseconds / interval.nanoseconds)
        if left + Int(clamping: Swift.min(gained, Int64(max))) >= max {
            left = max
            refilledAt = now
        } else {
            left += Int(gained)
            refilledAt = since + Interval(nanoseconds: gained * interval.nanoseconds)
        }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
