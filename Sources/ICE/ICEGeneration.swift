import Wire

/// The two sides' credentials from one offer and answer, in the forms that checks need them. A restart makes the next
/// generation (RFC 8445 §9).
struct ICEGeneration: Sendable {
    let local: ICECredentials
    let remote: ICECredentials
    /// USERNAME of requests to us: our fragment first (RFC 8445 §7.2.2).
    let incomingUsername: [UInt8]
    /// USERNAME of requests that we send.
    let outgoingUsername: [UInt8]
    /// The password in requests to us and in our responses.
    let localKey: [UInt8]
    /// The password in our requests and the responses to them.
    let remoteKey: [UInt8]

    init(local: ICECredentials, remote: ICECredentials) {
        self.local = local
        self.remote = remote
        incomingUsername = Array("\(local.usernameFragment):\(remote.usernameFragment)".utf8)
        outgoingUsername = Array("\(remote.usernameFragment):\(local.usernameFragment)".utf8)
        localKey = Array(local.password.utf8)
        remoteKey = Array(remote.password.utf8)
    }
}

/// Authenticates Binding requests and writes the responses, for either role.
enum ICEResponder {
    /// What a check asks for once its sender is known.
    enum Verdict: Equatable { case success, roleConflict, unknownAttributes }

    /// Whether `current` (true) or `previous` (false) signed the request.
    static func authenticate(
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

    /// - Parameter isConflict: whether the sender claims the role that is ours.
    static func judge(_ message: borrowing STUNMessageView, isConflict: Bool) -> Verdict {
        if message.unknownAttributeCount > 0 { return .unknownAttributes }
        return isConflict ? .roleConflict : .success
    }

    /// Writes the response to an authenticated request: with XOR-MAPPED-ADDRESS or an error, MESSAGE-INTEGRITY by the
    /// same password, and FINGERPRINT (RFC 8445 §7.3).
    static func respond(
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
    mutating func count(_ verdict: ICEResponder.Verdict) {
        switch verdict {
        case .success: requestsAnswered &+= 1
        case .roleConflict: roleConflicts &+= 1
        case .unknownAttributes: unknownAttributes &+= 1
        }
    }
}
