import Wire

/// Where an agent stands, and until when: the part of the two roles that is the same.
enum ICEPhase: Sendable {
    /// No pair is nominated yet, or none any more while a restart is under way.
    case connecting(deadline: Instant)
    case connected(NetworkPath, consentDeadline: Instant)
    /// The pair that the previous credentials nominated stays until the new ones nominate one.
    case restarting(previous: ICEGeneration, NetworkPath, consentDeadline: Instant, setupDeadline: Instant)
    /// Failed, or consent expired.
    case ended

    /// Consent expires this long after the last sign of it (RFC 7675 §5.1).
    static let consentTimeout = Interval.seconds(30)
    /// A pair must be nominated this long after the start, or after the last authenticated check. About as long as
    /// browsers try.
    static let setupTimeout = Interval.seconds(30)

    var selectedPath: NetworkPath? {
        switch self {
        case .connecting, .ended: nil
        case .connected(let path, _), .restarting(_, let path, _, _): path
        }
    }

    /// Credentials that hold beside the current ones.
    var previous: ICEGeneration? {
        if case .restarting(let previous, _, _, _) = self { previous } else { nil }
    }

    var hasEnded: Bool {
        if case .ended = self { true } else { false }
    }

    /// Whether a nomination by the current credentials is still to come.
    var awaitsNomination: Bool {
        switch self {
        case .connecting, .restarting: true
        case .connected, .ended: false
        }
    }

    var nextDeadline: Instant? {
        switch self {
        case .connecting(let deadline): deadline
        case .connected(_, let deadline), .restarting(_, _, let deadline, _): deadline
        case .ended: nil
        }
    }

    /// Acts on a deadline that has passed.
    /// - Parameter awaitsProof: whether another pair is nominated that has not proved itself yet.
    mutating func expire(at now: Instant, awaitsProof: Bool = false) -> ICEEvent? {
        switch self {
        case .connecting(let deadline) where now >= deadline:
            self = .ended
            return .failed
        case .connected(_, let deadline) where now >= deadline:
            if awaitsProof {
                // Nothing is sent any more; the nominated pair has the setup time to prove itself.
                self = .connecting(deadline: deadline + Self.setupTimeout)
                return expire(at: now)
            }
            self = .ended
            return .consentExpired
        case .restarting(_, _, let deadline, let setupDeadline) where now >= deadline:
            // The old pair may carry nothing more, but the restart still has its time.
            guard now >= setupDeadline else {
                self = .connecting(deadline: setupDeadline)
                return nil
            }
            self = .ended
            return .consentExpired
        case .connecting, .connected, .restarting, .ended: return nil
        }
    }

    /// Nothing is sent any more until a pair is selected, for which there is the time that consent had left.
    mutating func unselect() {
        switch self {
        case .connected(_, let deadline), .restarting(_, _, let deadline, _): self = .connecting(deadline: deadline)
        case .connecting, .ended: break
        }
    }

    /// - Parameter current: the credentials that were in force until now.
    mutating func restart(from current: ICEGeneration, at now: Instant) {
        let setupDeadline = now + Self.setupTimeout
        switch self {
        case .ended:
            self = .connecting(deadline: setupDeadline)
        // Restarts cost the other side nothing, so they do not extend the time without a pair.
        case .connecting: break
        case .connected(let path, let deadline):
            self = .restarting(previous: current, path, consentDeadline: deadline, setupDeadline: setupDeadline)
        case .restarting(let previous, let path, let deadline, _):
            self = .restarting(previous: previous, path, consentDeadline: deadline, setupDeadline: setupDeadline)
        }
    }

    /// The other side proved on `path` that it holds the password of the current or the previous credentials.
    /// - Parameter extendsSetup: whether checks extend the time in which a pair must be selected.
    mutating func heard(on path: NetworkPath, isCurrent: Bool, extendsSetup: Bool = true, at now: Instant) {
        let consent = now + Self.consentTimeout
        switch self {
        case .connecting where isCurrent && extendsSetup:
            self = .connecting(deadline: now + Self.setupTimeout)
        case .connected(path, _):
            self = .connected(path, consentDeadline: consent)
        case .restarting(let previous, let selected, let deadline, let setupDeadline):
            self = .restarting(
                previous: previous,
                selected,
                consentDeadline: selected == path ? consent : deadline,
                setupDeadline: isCurrent ? now + Self.setupTimeout : setupDeadline
            )
        case .connecting, .connected, .ended: break
        }
    }

    /// The peer proved `path` to be its own.
    /// - Parameters:
    ///   - completesRestart: whether the current credentials nominated it.
    ///   - consentDeadline: when consent for it expires.
    mutating func adopt(_ path: NetworkPath, completesRestart: Bool, consentDeadline: Instant) {
        switch self {
        case .restarting(let previous, _, _, let setupDeadline) where !completesRestart:
            self = .restarting(
                previous: previous,
                path,
                consentDeadline: consentDeadline,
                setupDeadline: setupDeadline
            )
        case .connecting, .connected, .restarting:
            self = .connected(path, consentDeadline: consentDeadline)
        case .ended: break
        }
    }

    /// The current credentials nominated `path`.
    mutating func select(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        if case .ended = self { return nil }
        let isNews = awaitsNomination || selectedPath != path
        self = .connected(path, consentDeadline: now + Self.consentTimeout)
        return isNews ? .pathSelected(path) : nil
    }
}
