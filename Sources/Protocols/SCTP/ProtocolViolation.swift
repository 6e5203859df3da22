/// What no working peer sends; it ends the association (RFC 9260 §3.3.10.13).
public enum ProtocolViolation: Error, Hashable, Sendable, CaseIterable {
    /// A SACK acknowledges numbers that were never sent.
    case acknowledgedUnsent
    /// Chunks of a kind that was not agreed: DATA with interleaving, I-DATA without, FORWARD-TSN without partial reliability.
    case wrongDataKind
    /// A chunk of data without a payload.
    case emptyData
    /// Fragments of a message overlap, or contradict each other.
    case brokenFragments
    /// A message is longer than our maximum.
    case messageTooLong
    /// A message identifier is too far ahead.
    case messageNumberTooFar
    /// A FORWARD-TSN goes too far ahead.
    case forwardTooFar
    /// An INIT ACK or a cookie that cannot be.
    case brokenHandshake
    /// More control chunks or broken chunks than any working peer sends.
    case flood
    /// The peer causes more work than its budget allows, see ``Association/workSteps``.
    case excessiveWork
    /// For 60 s the peer acknowledged nothing of what waits for it, or completed nothing of what it began.
    case noProgress
    /// The receive window has been full of parts of messages for ten seconds.
    case windowStuck
}
