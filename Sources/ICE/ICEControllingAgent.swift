public import Wire

/// The client's side of ICE toward a lite server (RFC 8445 §6): checks every pair, nominates the first that answers
/// (§8.1.1), then asks for consent on it (RFC 7675).
///
/// Checks are paced and retransmitted until the setup time is up; a pair that answers late still counts. The role never
/// changes: a lite peer cannot be controlling, and a full peer that claims to be gets a 487.
public struct ICEControllingAgent: Sendable {
    /// Pairs that are checked; more are ignored.
    public static let pathsMax = 16
    /// Between the first checks of two pairs (RFC 8445 §14.2).
    static let pacing = Interval.milliseconds(50)
    /// RFC 8445 §5.1.2.1 for a peer-reflexive candidate, the only one component and the best local preference.
    static let peerReflexivePriority: UInt32 = 110 << 24 | 65535 << 8 | 255

    private let tieBreaker: UInt64
    private var current: ICEGeneration
    private var phase: ICEPhase
    private var checks: [ICECheck] = []
    private var consent = ICEConsentChecks()
    private var recent = ICERecentRequests()
    private var generator: ICEGenerator
    public private(set) var counters = ICECounters()
    /// Our own address as the other side saw it last.
    public private(set) var mappedAddress: TransportAddress?

    /// - Parameters:
    ///   - candidates: the other side's addresses, each with the socket to reach it by; the first 16 count.
    ///   - generator: read once, for transaction identifiers and jitter.
    public init(
        local: ICECredentials,
        remote: ICECredentials,
        candidates: [NetworkPath],
        at now: Instant,
        tieBreaker: UInt64,
        using generator: inout some RandomNumberGenerator
    ) {
        self.tieBreaker = tieBreaker
        self.generator = ICEGenerator(seed: generator.next())
        current = ICEGeneration(local: local, remote: remote)
        phase = .connecting(deadline: now + ICEPhase.setupTimeout)
        for path in candidates { addCandidate(path, at: now) }
    }

    /// Where to send; `nil` until a pair is nominated, and after consent has expired.
    public var selectedPath: NetworkPath? { phase.selectedPath }
    /// Whether the agent has failed or its consent has expired.
    public var hasEnded: Bool { phase.hasEnded }
    /// When to call `handleTimeout` next.
    public var nextDeadline: Instant? {
        guard !phase.hasEnded else { return nil }
        return checks.reduce(earliest(phase.nextDeadline, consent.deadline)) { earliest($0, $1.deadline) }
    }

    /// Whether a check on `path` was answered.
    public func isKnown(_ path: NetworkPath) -> Bool {
        phase.selectedPath == path || checks.contains { $0.path == path && $0.hasAnswered }
    }

    // MARK: - What the caller asks

    /// Adds a pair to check; one that is there already, or a seventeenth, is ignored.
    public mutating func addCandidate(_ path: NetworkPath, at now: Instant) {
        guard checks.count < Self.pathsMax, !checks.contains(where: { $0.path == path }) else { return }
        let ahead = checks.count { if case .waiting = $0.state { true } else { false } }
        checks.append(ICECheck(path: path, at: now + Self.pacing * ahead))
    }

    /// Moves to `path`, which is added if need be: the next timeout sends a check with USE-CANDIDATE on it, and its
    /// answer selects it. Until then, and if no answer comes, the selected pair stays.
    public mutating func nominate(_ path: NetworkPath, at now: Instant) {
        addCandidate(path, at: now)
        guard let index = checks.firstIndex(where: { $0.path == path }) else { return }
        for other in checks.indices { checks[other].isNominating = false }
        checks[index].isNominating = true
        checks[index].state = .waiting(now)
    }

    /// Checks every pair again with new credentials (RFC 8445 §9). The selected pair stays, with consent by the old
    /// ones, until the new ones nominate a pair. Credentials that are in force already change nothing.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        current = ICEGeneration(local: local, remote: remote)
        if phase.selectedPath == nil { consent.stop() }
        for index in checks.indices {
            checks[index] = ICECheck(path: checks[index].path, at: now + Self.pacing * index)
        }
    }

    // MARK: - Time

    /// Sends what is due and ends the agent when its time is up.
    public mutating func handleTimeout(at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        if let event = expire(at: now) { return event }
        guard !phase.hasEnded else { return nil }
        for index in checks.indices {
            guard let deadline = checks[index].deadline, now >= deadline else { continue }
            send(checkAt: index, at: now, into: batch)
        }
        if let path = phase.selectedPath, let id = consent.next(at: now, using: &generator) {
            sendRequest(id, on: path, by: phase.previous ?? current, isNominating: false, into: batch)
        }
        return nil
    }

    private mutating func expire(at now: Instant) -> ICEEvent? {
        let event = phase.expire(at: now)
        if phase.selectedPath == nil { consent.stop() }
        return event
    }

    private mutating func send(checkAt index: Int, at now: Instant, into batch: DatagramBatch) {
        let id: STUNTransactionID
        let attempts: Int
        switch checks[index].state {
        case .inProgress(_, let made, _)
        where checks[index].isNominating && made >= ICECheck.nominationAttemptsMax:
            abandonNomination(at: index, at: now)
            return
        case .inProgress(let same, let made, _): (id, attempts) = (same, made + 1)
        case .waiting, .valid, .idle: (id, attempts) = (STUNTransactionID(using: &generator), 1)
        }
        checks[index].state = .inProgress(id, attempts: attempts, sentAt: now)
        let isNominating = checks[index].isNominating
        sendRequest(id, on: checks[index].path, by: current, isNominating: isNominating, into: batch)
    }

    /// The nominated pair went silent: another valid one takes its place, and while none is selected it is checked on.
    private mutating func abandonNomination(at index: Int, at now: Instant) {
        checks[index].isNominating = false
        checks[index].state = phase.awaitsNomination ? .waiting(now + ICECheck.retransmissionMax) : .idle
        guard phase.awaitsNomination, let other = checks.firstIndex(where: \.isValid) else { return }
        checks[other].isNominating = true
        checks[other].state = .waiting(now + Interval.milliseconds(1))
    }

    private func sendRequest(
        _ id: STUNTransactionID,
        on path: NetworkPath,
        by generation: ICEGeneration,
        isNominating: Bool,
        into batch: DatagramBatch
    ) {
        var request = STUNMessageBuilder(.request, transactionID: id)
        request.append(.username, generation.outgoingUsername)
        request.append(.priority, Self.peerReflexivePriority)
        request.append(.iceControlling, tieBreaker)
        if isNominating { request.append(.useCandidate) }
        request.appendMessageIntegrity(key: generation.remoteKey)
        request.appendFingerprint()
        batch.append(to: path, copying: unsafe request.bytes.span.bytes)
    }

    // MARK: - Messages

    /// Takes one STUN message that arrived over `path`, and writes what follows from it.
    /// - Returns: `pathSelected` when the message completed a nomination; `consentExpired` or `failed` when it came too
    ///   late.
    /// - Throws: why the message was dropped without a response.
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
        case .indication:
            counters.indications &+= 1
            return nil
        case .request:
            try answer(message, path: path, into: batch)
            return nil
        case .success, .error:
            return try received(response: message, path: path, at: now, into: batch)
        }
    }

    /// A full peer checks as well; its requests are answered but tell nothing that our own checks do not.
    private mutating func answer(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        into batch: DatagramBatch
    ) throws(ICEDropReason) {
        let previous = phase.previous
        let isCurrent = try ICEResponder.authenticate(message, current: current, previous: previous)
        let key = isCurrent ? current.localKey : previous?.localKey ?? current.localKey
        let verdict = ICEResponder.judge(message, isConflict: message.iceControlling != nil)
        let novelty = verdict == .success ? recent.note(message.transactionID, on: path) : .first
        guard novelty != .repeatedElsewhere, novelty != .replayed else { throw .replayed }
        ICEResponder.respond(to: message, verdict, path: path, key: key, into: batch)
        counters.count(verdict)
        if novelty == .repeated { counters.repetitions &+= 1 }
    }

    private mutating func received(
        response message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> ICEEvent? {
        let id = message.transactionID
        let index = checks.firstIndex { $0.awaits(id) }
        let sentTo: NetworkPath
        let generation: ICEGeneration
        if let index {
            (sentTo, generation) = (checks[index].path, current)
        } else if consent.awaits(id), let selected = phase.selectedPath {
            (sentTo, generation) = (selected, phase.previous ?? current)
        } else {
            throw .unknownTransaction
        }
        guard path == sentTo else { throw .wrongPath }
        guard message.hasValidFingerprint() else { throw .fingerprint }
        guard message.hasIntegrity else { throw .missingIntegrity }
        guard message.hasValidIntegrity(key: generation.remoteKey) else { throw .wrongIntegrity }
        guard message.unknownAttributeCount == 0 else { throw .unknownAttribute }
        guard message.messageClass == .success else {
            counters.errorResponses &+= 1
            if let index { checkRefused(at: index, at: now) } else { consent.finish(at: now, using: &generator) }
            return nil
        }
        guard let mapped = message.xorMappedAddress else { throw .missingAddress }
        mappedAddress = mapped
        phase.heard(on: path, isCurrent: index != nil || phase.previous == nil, at: now)
        guard let index else {
            consent.finish(at: now, using: &generator)
            return nil
        }
        return checkSucceeded(at: index, at: now, into: batch)
    }

    /// An authenticated error: the pair works, the request does not. It is tried again, at the slowest pace.
    private mutating func checkRefused(at index: Int, at now: Instant) {
        checks[index].isNominating = false
        checks[index].state = phase.awaitsNomination ? .waiting(now + ICECheck.retransmissionMax) : .idle
    }

    private mutating func checkSucceeded(at index: Int, at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        checks[index].state = .valid
        checks[index].hasAnswered = true
        if checks[index].isNominating {
            checks[index].isNominating = false
            for other in checks.indices where !checks[other].isValid && !checks[other].isNominating {
                checks[other].state = .idle
            }
            consent.finish(at: now, using: &generator)
            return phase.select(checks[index].path, at: now)
        }
        if phase.awaitsNomination, !checks.contains(where: \.isNominating) {
            checks[index].isNominating = true
            send(checkAt: index, at: now, into: batch)
        }
        return nil
    }
}
