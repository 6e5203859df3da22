import Wire

/// Authenticates Binding requests and writes the responses, for either role.
enum ICEResponder {
    /// The response to an authenticated request.
    enum Verdict: Equatable { case success, roleConflict, unknownAttributes }

    /// Authenticates a request and writes the response. A retransmission is answered again, because the first response
    /// may be lost, but it is not new.
    /// - Parameter isConflict: whether the sender claims the role that the agent has.
    /// - Returns: whether `current` (true) or `previous` (false) signed the request, and whether it is a new valid
    ///   check.
    static func answer(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        current: ICEGeneration,
        previous: ICEGeneration?,
        isConflict: Bool,
        recentRequests: inout ICERecentRequests,
        counters: inout ICECounters,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> (isCurrent: Bool, isNew: Bool) {
        let isCurrent = try authenticate(message, current: current, previous: previous)
        let key = isCurrent ? current.localKey : previous?.localKey ?? current.localKey
        let verdict = Self.verdict(for: message, isConflict: isConflict)
        let classification = verdict == .success ? recentRequests.classify(message.transactionID, on: path) : .new
        guard classification != .fromAnotherPath, classification != .replayed else { throw .replayed }
        respond(to: message, verdict, path: path, key: key, into: batch)
        counters.count(verdict)
        if classification == .retransmission { counters.retransmissions &+= 1 }
        return (isCurrent, verdict == .success && classification == .new)
    }

    /// Whether `current` (true) or `previous` (false) signed the request.
    private static func authenticate(
        _ message: borrowing STUNMessageView,
        current: ICEGeneration,
        previous: ICEGeneration?
    ) throws(ICEDropReason) -> Bool {
        guard message.hasValidFingerprint() else { throw .fingerprint }
        guard message.usernameRange != nil else { throw .missingUsername }
        let isCurrent = message.hasUsername(current.incomingUsername)
        let generation: ICEGeneration
        if isCurrent {
            generation = current
        } else if let previous, message.hasUsername(previous.incomingUsername) {
            generation = previous
        } else {
            throw .wrongUsername
        }
        guard message.hasIntegrity else { throw .missingIntegrity }
        guard message.hasValidIntegrity(key: generation.localKey) else { throw .wrongIntegrity }
        return isCurrent
    }

    private static func verdict(for message: borrowing STUNMessageView, isConflict: Bool) -> Verdict {
        if message.unknownAttributeCount > 0 { return .unknownAttributes }
        return isConflict ? .roleConflict : .success
    }

    /// Writes a response with XOR-MAPPED-ADDRESS or ERROR-CODE, MESSAGE-INTEGRITY with the request's password, and
    /// FINGERPRINT (RFC 8445 §7.3).
    private static func respond(
        to message: borrowing STUNMessageView,
        _ verdict: Verdict,
        path: NetworkPath,
        key: [UInt8],
        into batch: DatagramBatch
    ) {
        var response: STUNMessageBuilder
        switch verdict {
        case .success:
            response = STUNMessageBuilder(.success, transactionID: message.transactionID)
            response.appendXORMappedAddress(path.remote)
        case .roleConflict:
            response = STUNMessageBuilder(.error, transactionID: message.transactionID)
            response.appendErrorCode(487, reason: "Role Conflict")
        case .unknownAttributes:
            response = STUNMessageBuilder(.error, transactionID: message.transactionID)
            response.appendErrorCode(420, reason: "Unknown Attribute")
            response.appendUnknownAttributes(message.unknownAttributes)
        }
        response.appendMessageIntegrity(key: key)
        response.appendFingerprint()
        batch.append(to: path, copying: unsafe response.bytes.span.bytes)
    }
}

extension ICECounters {
    fileprivate mutating func count(_ verdict: ICEResponder.Verdict) {
        switch verdict {
        case .success: break
        case .roleConflict: roleConflicts &+= 1
        case .unknownAttributes: unknownAttributes &+= 1
        }
    }
}
