public import Wire

/// Why an agent did not act on a STUN message. Such a message is never answered, so that nobody can make the agent
/// send to an address that has not proved the password.
public enum ICEDropReason: Error, Hashable, Sendable, CaseIterable {
    /// Another method than Binding.
    case unsupportedMethod
    /// No FINGERPRINT, or a wrong one; every check carries it (RFC 8445 §7.1).
    case fingerprint
    /// A request without USERNAME.
    case missingUsername
    /// A request for other credentials than those in force.
    case wrongUsername
    /// No MESSAGE-INTEGRITY.
    case missingIntegrity
    /// MESSAGE-INTEGRITY made with another password, or of other bytes.
    case wrongIntegrity
    /// A request already seen, from another address or too long ago for a retransmission: a copy that someone sent.
    case replayed
    /// A response to nothing that is under way.
    case unknownTransaction
    /// A response from another address than its request went to (RFC 8445 §7.2.5.2.1).
    case wrongPath
    /// A response with a comprehension-required attribute that is not understood (RFC 8489 §6.3.3).
    case unknownAttribute
    /// A success response without XOR-MAPPED-ADDRESS.
    case missingAddress
    /// The agent has failed or its consent has expired; only a restart revives it.
    case ended
}

/// What happened to an agent's pairs.
public enum ICEEvent: Hashable, Sendable {
    /// A pair was nominated: the first, another than before, or (perhaps the same) the first after a restart.
    case pathSelected(NetworkPath)
    /// Nothing authenticated was heard on the selected pair for 30 s (RFC 7675 §5.1): sending must cease.
    case consentExpired
    /// No pair was nominated in time.
    case failed
}

/// What an agent counted, besides the messages it dropped.
public struct ICECounters: Hashable, Sendable {
    /// Authenticated requests answered with success.
    public internal(set) var requestsAnswered = 0
    /// Of those, repetitions of one answered before; they change nothing.
    public internal(set) var repetitions = 0
    /// Binding indications, which keep NAT bindings open and need no answer (RFC 8445 §11).
    public internal(set) var indications = 0
    /// Requests answered with 487.
    public internal(set) var roleConflicts = 0
    /// Requests answered with 420.
    public internal(set) var unknownAttributes = 0
    /// Validated pairs forgotten because there were too many.
    public internal(set) var pathsForgotten = 0
    /// Nominations of a pair that has not proved itself; media stays on the selected pair.
    public internal(set) var unprovedNominations = 0
    public init() {}

    /// Checks of our own that a lite agent sent to prove a pair, and responses that proved one.
    public internal(set) var checksSent = 0
    public internal(set) var checksAnswered = 0
    /// Error responses received.
    public internal(set) var errorResponses = 0
}
