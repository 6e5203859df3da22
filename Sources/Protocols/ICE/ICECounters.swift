/// The counters of one agent. Dropped messages are thrown as ``ICEDropReason`` and not counted here.
public struct ICECounters: Hashable, Sendable {
    /// Authenticated requests that were retransmissions.
    public internal(set) var retransmissions = 0
    /// Binding indications, which keep NAT bindings open and need no answer (RFC 8445 §11).
    public internal(set) var indications = 0
    /// Requests answered with 487.
    public internal(set) var roleConflicts = 0
    /// Requests answered with 420.
    public internal(set) var unknownAttributes = 0
    /// Validated pairs evicted because there were more than eight.
    public internal(set) var pathsEvicted = 0
    /// Nominations of unverified pairs; media stays on the selected pair.
    public internal(set) var unverifiedNominations = 0
    /// Checks that a lite agent sent to verify a pair.
    public internal(set) var checksSent = 0
    /// Responses to them; each verified a pair.
    public internal(set) var checksAnswered = 0
    /// Checks that a lite agent sent on the selected pair, for consent.
    public internal(set) var consentChecksSent = 0
    /// Responses over the selected pair; each renewed consent.
    public internal(set) var consentChecksAnswered = 0
    /// Error responses received.
    public internal(set) var errorResponses = 0

    public init() {}
}
