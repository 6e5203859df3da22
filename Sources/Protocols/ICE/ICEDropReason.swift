/// Why an agent dropped a STUN message. A dropped message gets no response, so that nobody can make the agent send to
/// an address from which no valid password came.
public enum ICEDropReason: Error, Hashable, Sendable, CaseIterable {
    /// The method is not Binding.
    case unsupportedMethod
    /// FINGERPRINT is missing or wrong; every check must carry it (RFC 8445 §7.1).
    case fingerprint
    /// The request has no USERNAME.
    case missingUsername
    /// USERNAME belongs to neither the current nor the previous credentials.
    case wrongUsername
    /// MESSAGE-INTEGRITY is missing.
    case missingIntegrity
    /// MESSAGE-INTEGRITY does not match the message and the password.
    case wrongIntegrity
    /// The request was seen before, on another path or too long ago for a retransmission.
    case replayed
    /// The response matches no outstanding transaction.
    case unknownTransaction
    /// The response came over another path than its request (RFC 8445 §7.2.5.2.1).
    case wrongPath
    /// The response has an unknown comprehension-required attribute (RFC 8489 §6.3.3).
    case unknownAttribute
    /// The success response has no XOR-MAPPED-ADDRESS.
    case missingAddress
    /// The agent has failed or its consent has expired. Only an ICE restart starts it again.
    case ended
}
