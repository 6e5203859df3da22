public import Wire

/// The server's side of ICE (RFC 8445 §2.5): it sends no checks of its own, answers the other side's, and lets that
/// choose the pair.
///
/// Regular and aggressive nomination both work. Only requests that prove the password are answered; all others are
/// dropped with a reason and cause no datagram.
///
/// A check proves the password and not the address that it comes from: its source can be false, or it can be a copy. So
/// once a pair has proved itself, another one replaces it only when it is nominated and has proved itself too. Until then
/// the selected pair stays as long as there is consent for it.
///
/// Deviation: a lite agent sends no checks (RFC 8445 §2.5). This one answers each check that nominates an unproved pair with
/// one of its own as well. Its transaction identifier is secret, so a response to it shows that the peer receives what is
/// sent there, which nothing that the peer sends by itself can show. Every full agent answers checks (§7.3).
///
/// Deviation: a request that fails authentication gets no 400 or 401 (RFC 8489 §9.1.3), because those would go to
/// addresses that nobody proved to own. A lite agent cannot take the controlling role (RFC 8445 §6.1.1), so a
/// controlled peer always gets a 487, whatever the tie-breakers; it then takes the other role (§7.2.5.1).
public struct ICELiteAgent: Sendable {
    private var current: ICEGeneration
    private var generation = 0
    private var phase: ICEPhase
    private var paths = ICEValidatedPaths()
    private var recent = ICERecentRequests()
    /// The pair that the current credentials nominated last.
    private var nominatedPath: NetworkPath?
    /// Whether a pair has proved itself, or should have, so that every further one has to.
    private var requiresProof = false
    private let tieBreaker: UInt64
    /// What the transaction identifiers of our own checks are made from.
    private let pathSecret: UInt64
    public private(set) var counters = ICECounters()

    /// - Parameters:
    ///   - local: what we told the other side; requests are signed with its password.
    ///   - remote: what the other side told us.
    ///   - tieBreaker: stands in our own checks; a lite agent never yields, so it has nothing to compare.
    ///   - pathSecret: a random number that nobody else knows.
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

    /// Where to send; `nil` until a pair is nominated or has proved itself, and after consent has expired.
    public var selectedPath: NetworkPath? { phase.selectedPath }
    /// Whether the agent has failed or its consent has expired.
    public var hasEnded: Bool { phase.hasEnded }
    /// When to call `handleTimeout` next.
    public var nextDeadline: Instant? { phase.nextDeadline }
    /// How many validated pairs are remembered, at most eight.
    public var knownPathCount: Int { paths.count }

    /// Whether an authenticated check came over `path`.
    public func isKnown(_ path: NetworkPath) -> Bool { phase.selectedPath == path || paths.contains(path) }

    /// Takes one STUN message that arrived over `path` and writes the response, if one is due.
    /// - Returns: `pathSelected` when the message nominated another pair than before; `consentExpired` or `failed` when
    ///   the message came too late.
    /// - Throws: why the message was dropped without a response.
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
        case .success: return try receivedResponse(message, path: path, at: now)
        case .error: throw .unknownTransaction
        }

        let previous = phase.previous
        let isCurrent = try ICEResponder.authenticate(message, current: current, previous: previous)
        let key = isCurrent ? current.localKey : previous?.localKey ?? current.localKey
        let isConflict = message.iceControlled != nil
        let verdict = ICEResponder.judge(message, isConflict: isConflict)
        let novelty = verdict == .success ? recent.note(message.transactionID, on: path) : .first
        guard novelty != .repeatedElsewhere, novelty != .replayed else { throw .replayed }
        ICEResponder.respond(to: message, verdict, path: path, key: key, into: batch)
        counters.count(verdict)
        if novelty == .repeated { counters.repetitions &+= 1 }
        // A retransmission was answered again, since the first response may be lost, but it changes nothing.
        guard verdict == .success, novelty == .first else { return nil }

        phase.heard(on: path, isCurrent: isCurrent, extendsSetup: !requiresProof, at: now)
        let validatedBy = isCurrent ? generation : generation - 1
        if paths.use(path, generation: validatedBy, keeping: phase.selectedPath, at: now) {
            counters.pathsForgotten &+= 1
        }
        guard isCurrent, message.useCandidate else { return nil }
        let event = nominate(path, at: now)
        if requiresProof, phase.selectedPath != path { sendCheck(over: path, into: batch) }
        return event
    }

    private mutating func nominate(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        if nominatedPath != path, requiresProof, phase.selectedPath != path { counters.unprovedNominations &+= 1 }
        nominatedPath = path
        guard !requiresProof || phase.selectedPath == path else { return nil }
        let completesRestart = phase.awaitsNomination
        let event = phase.select(path, at: now)
        if completesRestart { paths.removeAll(before: generation) }
        return event
    }

    /// Writes a check of our own. The next check of the peer brings the next one, so a lost one costs little, and no more is
    /// sent than came.
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

    /// That of a peer-reflexive candidate, which a check's PRIORITY is for (RFC 8445 §7.1.1).
    private static let priority: UInt32 = 110 << 24 | 65_535 << 8 | 255

    /// The transaction identifier of our check of a pair: 96 bits that only who receives there can learn.
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

    /// A response proves its pair when it is to our check of that pair.
    private mutating func receivedResponse(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant
    ) throws(ICEDropReason) -> ICEEvent? {
        guard requiresProof, message.transactionID == checkID(of: path) else { throw .unknownTransaction }
        guard message.hasIntegrity else { throw .missingIntegrity }
        guard message.hasValidIntegrity(key: current.remoteKey) else { throw .wrongIntegrity }
        counters.checksAnswered &+= 1
        return proved(path, at: now)
    }

    /// Notes that what is sent over `path` reaches the peer: the DTLS handshake was completed over it. Of further pairs a
    /// response to a check of our own shows it.
    ///
    /// It selects the pair that is nominated. Without a nomination it selects any validated pair, since browsers may
    /// nominate a while after media could flow (RFC 8445 §12.1).
    /// - Returns: `pathSelected` when the selected pair changed.
    public mutating func proved(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        guard !phase.hasEnded, let heardAt = paths.lastHeard(on: path) else { return nil }
        let isFirst = !requiresProof
        requiresProof = true
        guard path != phase.selectedPath else { return nil }
        let isNominated = path == nominatedPath
        guard isFirst || isNominated || (nominatedPath == nil && phase.selectedPath == nil) else { return nil }
        let consentDeadline = heardAt + ICEPhase.consentTimeout
        guard now < consentDeadline else { return nil }
        phase.adopt(path, completesRestart: isNominated, consentDeadline: consentDeadline)
        if isNominated { paths.removeAll(before: generation) }
        return .pathSelected(path)
    }

    /// Notes that the peer is connected, and that our part of the handshake did not only go to where it was completed. No
    /// pair is selected until one proves itself; the nominated one is checked at once.
    public mutating func connectedWithoutProof(into batch: DatagramBatch) {
        guard !phase.hasEnded, !requiresProof else { return }
        requiresProof = true
        phase.unselect()
        if let nominatedPath { sendCheck(over: nominatedPath, into: batch) }
    }

    /// Puts new credentials in force (RFC 8445 §9). The selected pair stays, with consent by either credentials, until a
    /// check with the new ones nominates a pair. Credentials that are in force already change nothing.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        nominatedPath = phase.selectedPath
        if phase.selectedPath == nil { paths.removeAll() }
        current = ICEGeneration(local: local, remote: remote)
        generation &+= 1
    }

    /// Ends the agent when its time is up. When the old pair's consent expires during a restart, only `selectedPath`
    /// becomes `nil`.
    public mutating func handleTimeout(at now: Instant) -> ICEEvent? {
        guard let deadline = phase.nextDeadline, now >= deadline else { return nil }
        return phase.expire(at: now, awaitsProof: isNominationPending(at: deadline))
    }

    /// Whether a pair other than the selected one is nominated and has consent.
    private func isNominationPending(at instant: Instant) -> Bool {
        guard let nominatedPath, nominatedPath != phase.selectedPath,
            let heardAt = paths.lastHeard(on: nominatedPath)
        else { return false }
        return instant < heardAt + ICEPhase.consentTimeout
    }
}
