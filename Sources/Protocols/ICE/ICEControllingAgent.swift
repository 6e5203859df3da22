public import Base
public import Wire

/// The full, controlling ICE agent of a client whose server is ICE-lite (RFC 8445 §6). It checks every pair, nominates
/// the first one that succeeds (§8.1.1) and then maintains consent on it (RFC 7675).
///
/// Checks are paced and retransmitted until the setup timeout; a late response still counts. The role never changes: a
/// lite peer cannot be controlling, and a full peer that claims the controlling role gets a 487.
public struct ICEControllingAgent: Sendable {
    /// The most pairs in the checklist; further ones are ignored.
    public static let pathsMax = 16
    /// Ta, the interval between the first checks of two pairs (RFC 8445 §14.2).
    static let pacing = Interval.milliseconds(50)
    /// The priority of a peer-reflexive candidate of component 1 with the highest local preference (RFC 8445 §5.1.2.1).
    static let peerReflexivePriority: UInt32 = 110 << 24 | 65535 << 8 | 255

    private let tieBreaker: UInt64
    private var current: ICEGeneration
    private var phase: ICEPhase
    private var pairs: [ICECandidatePair] = []
    private var consent = ICEConsentChecks()
    private var recentRequests = ICERecentRequests()
    private var generator: SplitMix64
    public private(set) var counters = ICECounters()
    /// Our address as the peer last saw it (XOR-MAPPED-ADDRESS); `nil` before the first response.
    public private(set) var mappedAddress: TransportAddress?

    /// - Parameters:
    ///   - candidates: the peer's addresses, each with the local socket to use; the first ``pathsMax`` count.
    ///   - generator: seeds the agent's own generator of transaction identifiers and jitter.
    public init(
        local: ICECredentials,
        remote: ICECredentials,
        candidates: [NetworkPath],
        at now: Instant,
        tieBreaker: UInt64,
        using generator: inout some RandomNumberGenerator
    ) {
        self.tieBreaker = tieBreaker
        self.generator = SplitMix64(seed: generator.next())
        current = ICEGeneration(local: local, remote: remote)
        phase = .connecting(deadline: now + ICEPhase.setupTimeout)
        for path in candidates { addCandidate(path, at: now) }
    }

    /// The selected pair; `nil` before the first nomination and after consent has expired.
    public var selectedPath: NetworkPath? { phase.selectedPath }
    /// Whether the agent has failed or its consent has expired.
    public var hasEnded: Bool { phase.hasEnded }
    /// When to call ``handleTimeout(at:into:)`` next; `nil` after the end.
    public var nextDeadline: Instant? {
        guard !phase.hasEnded else { return nil }
        return pairs.reduce(earliest(phase.nextDeadline, consent.deadline)) { earliest($0, $1.deadline) }
    }

    /// Whether a check on `path` succeeded.
    public func isKnown(_ path: NetworkPath) -> Bool {
        phase.selectedPath == path || pairs.contains { $0.path == path && $0.hasAnswered }
    }

    // MARK: - Control

    /// Adds a pair to the checklist. A pair that is in it already, and one beyond ``pathsMax``, is ignored.
    public mutating func addCandidate(_ path: NetworkPath, at now: Instant) {
        guard pairs.count < Self.pathsMax, !pairs.contains(where: { $0.path == path }) else { return }
        let ahead = pairs.count { if case .waiting = $0.state { true } else { false } }
        pairs.append(ICECandidatePair(path: path, at: now + Self.pacing * ahead))
    }

    /// Nominates `path`, which is added if necessary: the next timeout sends a check with USE-CANDIDATE on it, and the
    /// response selects it. Until then, and when no response comes, the selected pair does not change.
    public mutating func nominate(_ path: NetworkPath, at now: Instant) {
        addCandidate(path, at: now)
        guard let index = pairs.firstIndex(where: { $0.path == path }) else { return }
        for other in pairs.indices { pairs[other].isNominating = false }
        pairs[index].isNominating = true
        pairs[index].state = .waiting(now)
    }

    /// Restarts ICE: checks every pair again with new credentials (RFC 8445 §9). The selected pair stays, with consent
    /// under the old credentials, until a check with the new ones completes a nomination. Does nothing when the
    /// credentials are the current ones.
    public mutating func restart(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        guard local != current.local || remote != current.remote else { return }
        phase.restart(from: current, at: now)
        current = ICEGeneration(local: local, remote: remote)
        if phase.selectedPath == nil { consent.stop() }
        for index in pairs.indices {
            pairs[index] = ICECandidatePair(path: pairs[index].path, at: now + Self.pacing * index)
        }
    }

    // MARK: - Timeouts

    /// Sends the checks that are due, and ends the agent on the setup or consent timeout.
    public mutating func handleTimeout(at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        if let event = expire(at: now) { return event }
        guard !phase.hasEnded else { return nil }
        for index in pairs.indices {
            guard let deadline = pairs[index].deadline, now >= deadline else { continue }
            sendCheck(at: index, at: now, into: batch)
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

    private mutating func sendCheck(at index: Int, at now: Instant, into batch: DatagramBatch) {
        let id: STUNTransactionID
        let attempts: Int
        switch pairs[index].state {
        case .inProgress(_, let made, _)
        where pairs[index].isNominating && made >= ICECandidatePair.nominationAttemptsMax:
            abandonNomination(at: index, at: now)
            return
        case .inProgress(let same, let made, _): (id, attempts) = (same, made + 1)
        case .waiting, .succeeded, .idle: (id, attempts) = (STUNTransactionID(using: &generator), 1)
        }
        pairs[index].state = .inProgress(id, attempts: attempts, sentAt: now)
        let isNominating = pairs[index].isNominating
        sendRequest(id, on: pairs[index].path, by: current, isNominating: isNominating, into: batch)
    }

    /// Gives up an unanswered nomination and nominates another valid pair. While no pair is selected, the abandoned one
    /// is still checked.
    private mutating func abandonNomination(at index: Int, at now: Instant) {
        pairs[index].isNominating = false
        pairs[index].state = phase.awaitsNomination ? .waiting(now + ICECandidatePair.retransmissionMax) : .idle
        guard phase.awaitsNomination, let other = pairs.firstIndex(where: \.hasSucceeded) else { return }
        pairs[other].isNominating = true
        pairs[other].state = .waiting(now + Interval.milliseconds(1))
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

    /// Handles one STUN message that arrived over `path`, and writes responses and checks to `batch`.
    /// - Returns: `pathSelected` when the message completed a nomination; `consentExpired` or `failed` when it arrived
    ///   after the deadline.
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
        case .indication:
            counters.indications &+= 1
            return nil
        case .request:
            try answer(message, path: path, into: batch)
            return nil
        case .success, .error:
            return try handleResponse(message, path: path, at: now, into: batch)
        }
    }

    /// Answers the check of a full peer. It has no other effect: our own checks decide.
    private mutating func answer(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        into batch: DatagramBatch
    ) throws(ICEDropReason) {
        _ = try ICEResponder.answer(
            message,
            path: path,
            current: current,
            previous: phase.previous,
            isConflict: message.iceControlling != nil,
            recentRequests: &recentRequests,
            counters: &counters,
            into: batch
        )
    }

    private mutating func handleResponse(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> ICEEvent? {
        let id = message.transactionID
        let index = pairs.firstIndex { $0.awaits(id) }
        let sentTo: NetworkPath
        let generation: ICEGeneration
        if let index {
            (sentTo, generation) = (pairs[index].path, current)
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

    /// Handles an authenticated error response: the pair works, but the peer rejected the request. Retries at the
    /// slowest pace.
    private mutating func checkRefused(at index: Int, at now: Instant) {
        pairs[index].isNominating = false
        pairs[index].state = phase.awaitsNomination ? .waiting(now + ICECandidatePair.retransmissionMax) : .idle
    }

    private mutating func checkSucceeded(at index: Int, at now: Instant, into batch: DatagramBatch) -> ICEEvent? {
        pairs[index].state = .succeeded
        pairs[index].hasAnswered = true
        if pairs[index].isNominating {
            pairs[index].isNominating = false
            for other in pairs.indices where !pairs[other].hasSucceeded && !pairs[other].isNominating {
                pairs[other].state = .idle
            }
            consent.finish(at: now, using: &generator)
            return phase.select(pairs[index].path, at: now)
        }
        if phase.awaitsNomination, !pairs.contains(where: \.isNominating) {
            pairs[index].isNominating = true
            sendCheck(at: index, at: now, into: batch)
        }
        return nil
    }
}
