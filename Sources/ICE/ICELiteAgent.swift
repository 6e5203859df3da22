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
/// Deviation: a lite agent sends no checks (RFC 8445 §2.5). This one sends a check in return for each check that
/// nominates an unverified pair. Its transaction identifier is secret, so a response to it verifies the pair. Every
/// full agent answers checks (§7.3).
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
    /// ``requireVerification(into:)``.
    private var requiresVerification = false
    private let tieBreaker: UInt64
    /// The key from which the transaction identifiers of our checks are derived.
    private let pathSecret: UInt64
    public private(set) var counters = ICECounters()

    /// - Parameters:
    ///   - local: what was signaled to the peer; its password authenticates requests.
    ///   - remote: what the peer signaled.
    ///   - tieBreaker: sent in our checks; a lite agent never changes its role, so it compares nothing.
    ///   - pathSecret: a secret random number.
    public init(
        local: ICECredentials,
        remote: ICECredentials,
        at now: Instant,
        tieBreaker: UInt64,
        pathSecret: UInt64
    ) {
        self.tieBreaker = tieBreaker
        self.pathSecret = pathSecret
        current = ICEGeneration(local: local, remote: remote)
        phase = .connecting(deadline: now + ICEPhase.setupTimeout)
    }

    /// The selected pair; `nil` before a pair is nominated or verified, and after consent has expired.
    public var selectedPath: NetworkPath? { phase.selectedPath }
    /// When the last authenticated message arrived on the selected pair; `nil` without such a pair.
    public var lastHeardAt: Instant? { phase.lastHeardAt }
    /// Whether the agent has failed or its consent has expired.
    public var hasEnded: Bool { phase.hasEnded }
    /// When to call ``handleTimeout(at:)`` next; `nil` after the end.
    public var nextDeadline: Instant? { phase.nextDeadline }
    /// Pairs on which an authenticated check arrived, at most eight.
    public var knownPathCount: Int { paths.count }

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
        if let event = handleTimeout(at: now) { return event }
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
            sendCheck(over: path, into: batch)
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

    /// Writes a check of our own. It is not retransmitted: the peer's next check triggers the next one, so that no more
    /// checks are sent than arrive.
    private mutating func sendCheck(over path: NetworkPath, into batch: DatagramBatch) {
        var request = STUNMessageBuilder(.request, transactionID: checkID(of: path))
        request.append(.username, current.outgoingUsername)
        request.append(.iceControlled, tieBreaker)
        request.append(.priority, Self.priority)
        request.appendMessageIntegrity(key: current.remoteKey)
        request.appendFingerprint()
        batch.append(to: path, copying: unsafe request.bytes.span.bytes)
        counters.checksSent &+= 1
    }

    /// The PRIORITY of a peer-reflexive candidate (RFC 8445 §7.1.1).
    private static let priority: UInt32 = 110 << 24 | 65_535 << 8 | 255

    /// The transaction identifier of our check on a pair: 96 bits that only a receiver on that path can learn.
    private func checkID(of path: NetworkPath) -> STUNTransactionID {
        var text: [UInt8] = []
        text.append(bigEndian: path.remote.ip.high)
        text.append(bigEndian: path.remote.ip.low)
        text.append(bigEndian: path.remote.port)
        text.append(bigEndian: path.local.rawValue)
        text.append(bigEndian: UInt64(truncatingIfNeeded: generation))
        var key: [UInt8] = []
        key.append(bigEndian: pathSecret)
        var code = HMACSHA1(key: unsafe key.span.bytes)
        code.update(unsafe text.span.bytes)
        let digest = code.finalize()
        let high = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(digest[$1]) }
        let low = (4..<12).reduce(UInt64(0)) { $0 << 8 | UInt64(digest[$1]) }
        return STUNTransactionID(high: high, low: low)
    }

    /// Verifies the pair when the response is to our check on the same pair.
    private mutating func handleResponse(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant
    ) throws(ICEDropReason) -> ICEEvent? {
        guard requiresVerification, message.transactionID == checkID(of: path) else { throw .unknownTransaction }
        guard message.hasIntegrity else { throw .missingIntegrity }
        guard message.hasValidIntegrity(key: current.remoteKey) else { throw .wrongIntegrity }
        counters.checksAnswered &+= 1
        return markVerified(path, at: now)
    }

    /// Marks `path` as verified, because the DTLS handshake completed over it. Further pairs are verified by our own
    /// checks.
    ///
    /// Selects the pair if it is nominated. Without a nomination any validated pair is selected, because browsers may
    /// nominate some time after media can flow (RFC 8445 §12.1).
    /// - Returns: `pathSelected` when the selected pair changed.
    public mutating func markVerified(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        guard !phase.hasEnded, let heardAt = paths.lastHeard(on: path) else { return nil }
        let isFirst = !requiresVerification
        requiresVerification = true
        guard path != phase.selectedPath else { return nil }
        let isNominated = path == nominatedPath
        guard isFirst || isNominated || (nominatedPath == nil && phase.selectedPath == nil) else { return nil }
        let consentDeadline = heardAt + ICEPhase.consentTimeout
        guard now < consentDeadline else { return nil }
        phase.adopt(path, completesRestart: isNominated, consentDeadline: consentDeadline)
        if isNominated { paths.removeAll(before: generation) }
        return .pathSelected(path)
    }

    /// Unselects the pair until one is verified, and checks the nominated pair at once. For a DTLS handshake whose
    /// flights went over several paths, so that its completion verifies none of them.
    public mutating func requireVerification(into batch: DatagramBatch) {
        guard !phase.hasEnded, !requiresVerification else { return }
        requiresVerification = true
        phase.unselect()
        if let nominatedPath { sendCheck(over: nominatedPath, into: batch) }
    }

    /// Restarts ICE with new credentials (RFC 8445 §9). The selected pair stays, with consent under either credentials,
    /// until a check with the new ones nominates a pair. Does nothing when the credentials are the current ones.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        nominatedPath = phase.selectedPath
        if phase.selectedPath == nil { paths.removeAll() }
        current = ICEGeneration(local: local, remote: remote)
        generation &+= 1
    }

    /// Ends the agent on the setup or consent timeout. When the old pair's consent expires during a restart, only
    /// `selectedPath` becomes `nil`.
    public mutating func handleTimeout(at now: Instant) -> ICEEvent? {
        guard let deadline = phase.nextDeadline, now >= deadline else { return nil }
        return phase.expire(at: now, awaitsVerification: isNominationPending(at: deadline))
    }

    /// Whether a pair other than the selected one is nominated and has consent.
    private func isNominationPending(at instant: Instant) -> Bool {
        guard let nominatedPath, nominatedPath != phase.selectedPath,
            let heardAt = paths.lastHeard(on: nominatedPath)
        else { return false }
        return instant < heardAt + ICEPhase.consentTimeout
    }
}
