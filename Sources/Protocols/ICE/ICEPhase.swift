import Base
import Wire

/// The state of an agent with its deadlines; common to both roles.
enum ICEPhase: Sendable {
    /// No pair is selected: at the start, during a restart after consent for the old pair expired, or after the peer left
    /// our checks unanswered.
    case connecting(deadline: Instant)
    case connected(NetworkPath, consentDeadline: Instant)
    /// The pair that the previous credentials nominated stays selected until the new ones nominate one.
    case restarting(previous: ICEGeneration, NetworkPath, consentDeadline: Instant, setupDeadline: Instant)
    /// Failed, or consent expired.
    case ended

    /// Consent expires this long after the last authenticated message (RFC 7675 §5.1).
    static let consentTimeout = Interval.seconds(30)
    /// The time for a nomination after the start, or after the last authenticated check; about as long as browsers try.
    static let setupTimeout = Interval.seconds(30)

    var selectedPath: NetworkPath? {
        switch self {
        case .connecting, .ended: nil
        case .connected(let path, _), .restarting(_, let path, _, _): path
        }
    }

    /// When the last authenticated message arrived on the selected pair.
    var lastHeardAt: Instant? {
        switch self {
        case .connecting, .ended: nil
        case .connected(_, let deadline), .restarting(_, _, let deadline, _):
            Instant(nanoseconds: deadline.nanoseconds - Self.consentTimeout.nanoseconds)
        }
    }

    /// The previous credentials while they are still accepted.
    var previous: ICEGeneration? {
        if case .restarting(let previous, _, _, _) = self { previous } else { nil }
    }

    var hasEnded: Bool {
        if case .ended = self { true } else { false }
    }

    /// Whether no pair was nominated with the current credentials yet.
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

    /// Applies a deadline that has passed.
    /// - Parameters:
    ///   - awaitsVerification: whether another pair is nominated but not verified yet.
    ///   - answeredUntil: when consent by the peer's answers expires; `nil` when none are required.
    mutating func expire(
        at now: Instant,
        awaitsVerification: Bool = false,
        answeredUntil: Instant? = nil
    ) -> ICEEvent? {
        switch self {
        case .connecting(let deadline) where now >= deadline:
            self = .ended
            return .failed
        case .connected(_, let heardUntil):
            guard let deadline = earliest(heardUntil, answeredUntil), now >= deadline else { return nil }
            if awaitsVerification {
                // Sending stops; the nominated pair has the setup timeout to be verified.
                self = .connecting(deadline: deadline + Self.setupTimeout)
                return expire(at: now)
            }
            if deadline < heardUntil {
                // Sending stops. The peer was heard since, and can still answer while consent by its checks lasts.
                self = .connecting(deadline: heardUntil)
                return expire(at: now)
            }
            self = .ended
            return .consentExpired
        case .restarting(_, _, let heardUntil, let setupDeadline):
            guard let deadline = earliest(heardUntil, answeredUntil), now >= deadline else { return nil }
            // Consent for the old pair is gone, but the restart has time left.
            guard now >= setupDeadline else {
                self = .connecting(deadline: setupDeadline)
                return nil
            }
            self = .ended
            return .consentExpired
        case .connecting, .ended: return nil
        }
    }

    /// Unselects the pair. Another one must be selected before the old one's consent would have expired.
    mutating func unselect() {
        switch self {
        case .connected(_, let deadline), .restarting(_, _, let deadline, _): self = .connecting(deadline: deadline)
        case .connecting, .ended: break
        }
    }

    /// - Parameter current: the credentials before the restart.
    mutating func restart(from current: ICEGeneration, at now: Instant) {
        let setupDeadline = now + Self.setupTimeout
        switch self {
        case .ended:
            self = .connecting(deadline: setupDeadline)
        // A peer can restart at no cost, so a restart does not extend the setup timeout.
        case .connecting: break
        case .connected(let path, let deadline):
            self = .restarting(previous: current, path, consentDeadline: deadline, setupDeadline: setupDeadline)
        case .restarting(let previous, let path, let deadline, _):
            self = .restarting(previous: previous, path, consentDeadline: deadline, setupDeadline: setupDeadline)
        }
    }

    /// Records an authenticated message on `path`.
    /// - Parameter extendsSetup: whether checks extend the setup timeout.
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

    /// Selects `path`, which was verified.
    /// - Parameters:
    ///   - completesRestart: whether it was nominated with the current credentials.
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

    /// Selects `path`, which was nominated with the current credentials.
    mutating func select(_ path: NetworkPath, at now: Instant) -> ICEEvent? {
        if case .ended = self { return nil }
        let isNews = awaitsNomination || selectedPath != path
        self = .connected(path, consentDeadline: now + Self.consentTimeout)
        return isNews ? .pathSelected(path) : nil
    }
}
