public import Wire

/// A change of an agent's selected pair.
public enum ICEEvent: Hashable, Sendable {
    /// A pair was selected: the first one, another one, or the first one after a restart, which may be the same pair.
    case pathSelected(NetworkPath)
    /// No authenticated message arrived on the selected pair for 30 s. Sending must stop (RFC 7675 §5.1).
    case consentExpired
    /// No pair was selected before the setup timeout.
    case failed
}
