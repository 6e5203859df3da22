public import Base
public import Wire

/// The ICE-lite agent of a server (RFC 8445 §2.5). It answers the peer's checks, and the peer nominates the pair.
///
/// Regular and aggressive nomination both work. Only authenticated requests are answered; all others are dropped with a
/// reason.
///
/// A check authenticates the password but not the source address, which can be spoofed. A pair is *verified* when the
/// peer has shown that it receives what is sent there (path validation, as in RFC 9000 §8.2). Once a pair is verified,
/// only a nominated and verified pair replaces it. Until then the selected pair stays as long as it has consent.
///
/// Consent has two halves of 30 s each (RFC 7675 §5.1). The peer's checks on the selected pair show that it is alive. Its
/// answers to our checks show that it is still there: a check, like all that a peer sends by itself, can come from anywhere,
/// with the pair's address as a false source. ``requireConsent(at:)`` requires the second half.
///
/// Deviation: a lite agent sends no checks (RFC 8445 §2.5). This one sends a check in return for each check that
/// nominates an unverified pair, and others at intervals for consent. Their transaction identifiers are secret, so a
/// response to one verifies the pair. Every full agent answers checks (§7.3).
///
/// Deviation: a request that fails authentication gets no 400 or 401 (RFC 8489 §9.1.3), because it would go to an
/// unauthenticated address. A lite agent cannot take the controlling role (RFC 8445 §6.1.1), so a controlled peer
/// always gets a 487, whatever the tie-breakers, and then switches its role (§7.2.5.1).
public struct ICELiteAgent: Sendable {
    private var current: ICEGeneration
    private var generation = 0
    private var phase: ICEPhase
    private var paths = ICEValidatedPaths()
    private var recentRequests = ICERecentRequests()
    /// The pair that was nominated last with the current credentials.
    private var nominatedPath: NetworkPath?
    /// Whether only verified pairs are selected: true once a pair was verified, or after
    /// ``requireVerification(at:into:)``.
    private var requiresVerification = false
    /// Whether the peer has to answer checks of ours.
    private var requiresConsent = false
    /// Consent for the selected pair by the peer's answers; `nil` while none is selected, verified or required.
    private var consent: ICEConsent?
    private var checks: ICEPathChecks
    private let tieBreaker: UInt64
    /// Randomizes the intervals between checks, which are no secret.
    private var jitter: SplitMix64
    public private(set) var counters = ICECounters()

    /// - Parameters:
    ///   - local: what was signaled to the peer; its password authenticates requests.
    ///   - remote: what the peer signaled.
    ///   - tieBreaker: sent in our checks; a lite agent never changes its role, so it compares nothing.
    ///   - pathSecret: a secret random number, from which the transaction identifiers of our checks are derived.
    public init(
        local: ICECredentials,
        remote: ICECredentials,
        at now: Instant,
        tieBreaker: UInt64,
        pathSecret: UInt64
    ) {
        self.tieBreaker = tieBreaker
        jitter = SplitMix64(seed: tieBreaker)
        checks = ICEPathChecks(secret: pathSecret)
        current = ICEGeneration(local: local, remote: remote)
        phase = .connecting(deadline: now + ICEPhase.setupTimeout)
    }

    /// The selected pair; `nil` before a pair is nominated or verified, and after consent has expired.
    public var selectedPath: NetworkPath? { phase.selectedPath }
    /// When the last authenticated message arrived on the selected pair; `nil` without such a pair.
    public var lastHeardAt: Instant? { phase.lastHeardAt }
    /// Whether the agent has failed or its consent has expired.
    public var hasEnded: Bool { phase.hasEnded }
    /// When to call ``handleTimeout(at:into:)`` next; `nil` after the end.
    public var nextDeadline: Instant? {
        guard let consent else { return phase.nextDeadline }
        return earliest(phase.nextDeadline, min(consent.expiresAt, consent.nextCheckAt))
    }
    /// Pairs on which an authenticated check arrived, at most eight.
    public var knownPathCount: Int { paths.count }

    /// The identifiers of our checks that can be answered: for clients in memory that do not read what they are sent.
    package var outstandingChecks: [STUNTransactionID] { checks.outstanding.map(\.id) }

    /// Whether an authenticated check arrived over `path`.
    public func isKnown(_ path: NetworkPath) -> Bool { phase.selectedPath == path || paths.contains(path) }

    /// Handles one STUN message that arrived over `path` and writes the response to `batch`.
    /// - Returns: `pathSelected` when the message changed the selected pair; `consentExpired` or `failed` when it
    ///   arrived after the deadline.
    /// - Throws: the reason why the message was dropped without a response.
    public mutating func handle(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> ICEEvent? {
        if let event = expire(at: now) { return event }
        guard !phase.hasEnded else { throw .ended }
        guard message.method == .binding else { throw .unsupportedMethod }
        switch message.messageClass {
        case .request: break
        case .indication:
            counters.indications &+= 1
            return nil
        case .success: return try handleResponse(message, path: path, at: now)
        case .error: throw .unknownTransaction
        }

        let (isCurrent, isNew) = try ICEResponder.answer(
            message,
            path: path,
            current: current,
            previous: phase.previous,
            isConflict: message.iceControlled != nil,
            recentRequests: &recentRequests,
            counters: &counters,
            into: batch
        )
        guard isNew else { return nil }

        phase.heard(on: path, isCurrent: isCurrent, extendsSetup: !requiresVerification, at: now)
        let validatedBy = isCurrent ? generation : generation - 1
        if paths.use(path, generation: validatedBy, keeping: phase.selectedPath, at: now) {
            counters.pathsEvicted &+= 1
        }
        guard isCurrent else { return nil }
        let event = message.useCandidate ? nominate(path, at: now) : nil
        // Checks after the nomination carry no USE-CANDIDATE, and our check or its response may be lost.
        if requiresVerification, path == nominatedPath, phase.selectedPath != path {
            sendVerifyingCheck(over: path, at: now, into: batch)
        }
        return event
    }

    private mutating func nominate(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        if nominatedPath != path, requiresVerification, phase.selectedPath != path {
            counters.unverifiedNominations &+= 1
        }
        nominatedPath = path
        guard !requiresVerification || phase.selectedPath == path else { return nil }
        let completesRestart = phase.awaitsNomination
        let event = phase.select(path, at: now)
        if completesRestart { paths.removeAll(before: generation) }
        return event
    }

    // MARK: - Our own checks

    /// Sends a check to verify a pair. No timer repeats it: the peer's next check triggers the next one, so that no more
    /// checks are sent than arrive.
    private mutating func sendVerifyingCheck(over path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        let id = checks.verify(path, key: current.remoteKey, at: now)
        sendCheck(id, over: path, by: current, into: batch)
        counters.checksSent &+= 1
    }

    /// Sends the check for consent that is due. During a restart the selected pair is still one of the previous credentials.
    private mutating func sendConsentCheck(at now: Instant, into batch: DatagramBatch) {
        guard let due = consent?.nextCheckAt, now >= due else { return }
        ask(at: now, into: batch)
    }

    /// Sends a check over the selected pair, to learn whether the peer is still there. Does nothing without such a pair.
    public mutating func ask(at now: Instant, into batch: DatagramBatch) {
        guard let path = phase.selectedPath else { return }
        let generation = phase.previous ?? current
        let id = checks.start(over: path, key: generation.remoteKey, at: now)
        sendCheck(id, over: path, by: generation, into: batch)
        consent?.checked(at: now)
        counters.consentChecksSent &+= 1
    }

    private func sendCheck(
        _ id: STUNTransactionID,
        over path: NetworkPath,
        by generation: ICEGeneration,
        into batch: DatagramBatch
    ) {
        var request = STUNMessageBuilder(.request, transactionID: id)
        request.append(.username, generation.outgoingUsername)
        request.append(.iceControlled, tieBreaker)
        request.append(.priority, Self.priority)
        request.appendMessageIntegrity(key: generation.remoteKey)
        request.appendFingerprint()
        batch.append(to: path, copying: unsafe request.bytes.span.bytes)
    }

    /// The PRIORITY of a peer-reflexive candidate (RFC 8445 §7.1.1).
    private static let priority: UInt32 = 110 << 24 | 65_535 << 8 | 255

    /// Renews consent for the selected pair, or verifies another one, when the response is to our check on the same pair.
    ///
    /// It needs no FINGERPRINT and no XOR-MAPPED-ADDRESS, which some clients leave out: they prove nothing here.
    private mutating func handleResponse(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant
    ) throws(ICEDropReason) -> ICEEvent? {
        guard let check = checks.check(message.transactionID, over: path, at: now) else { throw .unknownTransaction }
        guard message.hasIntegrity else { throw .missingIntegrity }
        guard message.hasValidIntegrity(key: check.key) else { throw .wrongIntegrity }
        checks.remove(check.id)
        guard path == phase.selectedPath else {
            counters.checksAnswered &+= 1
            return verify(path, provenAt: check.sentAt, at: now)
        }
        counters.consentChecksAnswered &+= 1
        consent?.answered(checkSentAt: check.sentAt, at: now, using: &jitter)
        return nil
    }

    // MARK: - Verification and consent

    /// Marks `path` as verified, because the DTLS handshake completed over it. Further pairs are verified by our own
    /// checks.
    ///
    /// Selects the pair if it is nominated. Without a nomination any validated pair is selected, because browsers may
    /// nominate some time after media can flow (RFC 8445 §12.1).
    /// - Returns: `pathSelected` when the selected pair changed.
    public mutating func markVerified(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        verify(path, provenAt: now, at: now)
    }

    /// - Parameter provenAt: the peer received what was sent on the pair at this instant or later.
    private mutating func verify(_ path: NetworkPath, provenAt: Instant, at now: Instant) -> ICEEvent? {
        guard !phase.hasEnded else { return nil }
        let isFirst = !requiresVerification
        requiresVerification = true
        guard path != phase.selectedPath else {
            startConsent(provenAt: provenAt, at: now)
            return nil
        }
        let isNominated = path == nominatedPath
        let isEligible = isFirst || isNominated || (nominatedPath == nil && phase.selectedPath == nil)
        guard isEligible, let heardAt = paths.lastHeard(on: path), now < heardAt + ICEPhase.consentTimeout else {
            // What a nomination alone selected before is as unverified as any other pair.
            if isFirst { phase.unselect() }
            return nil
        }
        phase.adopt(path, completesRestart: isNominated, consentDeadline: heardAt + ICEPhase.consentTimeout)
        if isNominated { paths.removeAll(before: generation) }
        startConsent(provenAt: provenAt, at: now)
        return .pathSelected(path)
    }

    /// Begins consent by answers for the selected pair, which was proven.
    private mutating func startConsent(provenAt: Instant, at now: Instant) {
        guard requiresConsent else { return }
        consent = ICEConsent(provenAt: provenAt, at: now, using: &jitter)
    }

    /// Requires that the peer answers checks of ours, from now on and for good: for a peer that is sent more than its own
    /// packets cause. Does nothing the second time.
    ///
    /// Without it no checks for consent are sent, because not every client answers: FFmpeg's WHIP muxer sends checks all the
    /// time, but reads none after its handshake.
    public mutating func requireConsent(at now: Instant) {
        guard !requiresConsent else { return }
        requiresConsent = true
        guard requiresVerification, phase.selectedPath != nil else { return }
        consent = ICEConsent(at: now)
    }

    /// Unselects the pair until one is verified, and checks the nominated pair at once. For a DTLS handshake whose
    /// flights went over several paths, so that its completion verifies none of them.
    public mutating func requireVerification(at now: Instant, into batch: DatagramBatch) {
        guard !phase.hasEnded, !requiresVerification else { return }
        requiresVerification = true
        phase.unselect()
        if let nominatedPath { sendVerifyingCheck(over: nominatedPath, at: now, into: batch) }
    }

    // MARK: - Restart and time

    /// Restarts ICE with new credentials (RFC 8445 §9). The selected pair stays, with consent under either credentials,
    /// until a check with the new ones nominates a pair. It gets no more time to answer by that, but is asked at once. Does
    /// nothing when the credentials are the current ones.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        nominatedPath = phase.selectedPath
        if phase.selectedPath == nil { paths.removeAll() }
        current = ICEGeneration(local: local, remote: remote)
        generation &+= 1
        checks.removeAll()
        consent?.askAgain(at: now)
    }

    /// Sends the check for consent that is due, and ends the agent on the setup or consent timeout. When the old pair's
    /// consent expires during a restart, or the peer answers no checks although it sends its own, only `selectedPath`
    /// becomes `nil` at first.
    public mutating func handleTimeout(at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        if let event = expire(at: now) { return event }
        sendConsentCheck(at: now, into: batch)
        return nil
    }

    private mutating func expire(at now: Instant) -> ICEEvent? {
        let answeredUntil = consent?.expiresAt
        guard let deadline = earliest(phase.nextDeadline, answeredUntil), now >= deadline else { return nil }
        let event = phase.expire(
            at: now,
            awaitsVerification: isNominationPending(at: deadline),
            answeredUntil: answeredUntil
        )
        if phase.selectedPath == nil { consent = nil }
        return event
    }

    /// Whether a pair other than the selected one is nominated and has consent.
    private func isNominationPending(at instant: Instant) -> Bool {
        guard let nominatedPath, nominatedPath != phase.selectedPath,
            let heardAt = paths.lastHeard(on: nominatedPath)
        else { return false }
        return instant < heardAt + ICEPhase.consentTimeout
    }
}
