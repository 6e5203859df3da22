import Base

/// Consent for the selected pair by the peer's answers to checks of our own (RFC 7675 §5.1): how long it lasts, and when
/// the next check is due.
///
/// Deviation: consent counts from the check that was answered, not from its answer. A peer that leaves an address can answer
/// the last checks that it received there, however late, and gets no more than 30 s by that.
struct ICEConsent: Sendable {
    /// Nothing is sent on the pair from this instant on.
    private(set) var expiresAt: Instant
    private(set) var nextCheckAt: Instant

    /// For a pair that was proven some time ago: the peer is asked at once, and has the whole time for an answer.
    init(at now: Instant) {
        expiresAt = now + ICEPhase.consentTimeout
        nextCheckAt = now
    }

    /// For a pair that was just proven.
    init(provenAt: Instant, at now: Instant, using generator: inout SplitMix64) {
        expiresAt = provenAt + ICEPhase.consentTimeout
        nextCheckAt = now + ICEConsentChecks.nextInterval(using: &generator)
    }

    /// Notes that a check left. Without an answer the next one follows soon (see ``ICEConsentChecks``).
    mutating func checked(at now: Instant) { nextCheckAt = now + ICEConsentChecks.retryInterval }

    /// Takes the answer to a check. A later check may have been answered before.
    mutating func answered(checkSentAt: Instant, at now: Instant, using generator: inout SplitMix64) {
        let provenUntil = checkSentAt + ICEPhase.consentTimeout
        expiresAt = max(expiresAt, provenUntil)
        nextCheckAt = now + ICEConsentChecks.nextInterval(using: &generator)
    }

    /// Makes the next check due now, because those that were sent cannot be answered any more.
    mutating func askAgain(at now: Instant) { nextCheckAt = now }
}
