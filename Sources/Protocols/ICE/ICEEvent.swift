public import Wire

/// A change of an agent's selected pair.
public enum ICEEvent: Hashable, Sendable {
    /// A pair was selected: the first one, another one, or the first one after a restart, which may be the same pair.
    case pathSelected(NetworkPath)
    /// The peer was not heard on the selected pair for 30 s, or did not answer in that time. Sending must stop (RFC 7675
    /// §5.1).
    case consentExpired
    /// No pair was selected, or verified again, before the timeout.
    case failed
}
