public import Wire

/// The server's side of ICE (RFC 8445 §2.5): it sends no checks of its own, answers the other side's, and lets that
/// choose the pair.
///
/// The pair nominated last is the selected one; regular and aggressive nomination both work. Only requests that prove
/// the password are answered; all others are dropped with a reason and cause no datagram.
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
    public private(set) var counters = ICECounters()

    /// - Parameters:
    ///   - local: what we told the other side; requests are signed with its password.
    ///   - remote: what the other side told us.
    ///   - tieBreaker: taken for the symmetry of the roles; a lite agent never yields, so it has nothing to compare.
    public init(local: ICECredentials, remote: ICECredentials, at now: Instant, tieBreaker: UInt64 = 0) {
        current = ICEGeneration(local: local, remote: remote)
        phase = .connecting(deadline: now + ICEPhase.setupTimeout)
    }

    /// Where to send; `nil` until a pair is nominated, and after consent has expired.
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
        case .success, .error: throw .unknownTransaction
        }

        let previous = phase.previous
        let isCurrent = try ICEResponder.authenticate(message, current: current, previous: previous)
        let key = isCurrent ? current.localKey : previous?.localKey ?? current.localKey
        let isConflict = message.iceControlled != nil
        let verdict = ICEResponder.judge(message, isConflict: isConflict)
        let novelty = verdict == .success ? recent.note(message.transactionID, on: path) : .first
        guard novelty != .repeatedElsewhere else { throw .replayed }
        ICEResponder.respond(to: message, verdict, path: path, key: key, into: batch)
        counters.count(verdict)
        if novelty == .repeated { counters.repetitions &+= 1 }
        // A retransmission was answered again, since the first response may be lost, but it changes nothing.
        guard verdict == .success, novelty == .first else { return nil }

        phase.heard(on: path, isCurrent: isCurrent, at: now)
        let validatedBy = isCurrent ? generation : generation - 1
        if paths.use(path, generation: validatedBy, keeping: phase.selectedPath) {
            counters.pathsForgotten &+= 1
        }
        guard isCurrent, message.useCandidate else { return nil }
        let completesRestart = phase.awaitsNomination
        let event = phase.select(path, at: now)
        if completesRestart { paths.removeAll(before: generation) }
        return event
    }

    /// Puts new credentials in force (RFC 8445 §9). The selected pair stays, with consent by either credentials, until a
    /// check with the new ones nominates a pair. Credentials that are in force already change nothing.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        if phase.selectedPath == nil { paths.removeAll() }
        current = ICEGeneration(local: local, remote: remote)
        generation &+= 1
    }

    /// Ends the agent when its time is up. When the old pair's consent expires during a restart, only `selectedPath`
    /// becomes `nil`.
    public mutating func handleTimeout(at now: Instant) -> ICEEvent? { phase.expire(at: now) }
}
