import Base
import Glibc
import Wire

/// Decides whether a socket uses UDP GSO, from the errors that the kernel returned so far.
///
/// The kernel refuses a GSO message because of its destination (the path MTU is less than a datagram, or the address is
/// unreachable) or because of the outgoing device (no checksum offload, IPsec). Its datagrams are then sent one by one,
/// which always works and costs one more call. After that GSO is paused toward this destination, so that one peer's
/// path does not split the calls for all peers.
///
/// GSO is paused for the whole socket only after repeated errors that a destination cannot cause, and only if no GSO
/// message was accepted for a minute. It is tried again after the pause.
struct SegmentationOffload {
    /// Refused destinations in a row after which the socket pauses GSO.
    static let refusalsMax = 8
    /// The pause of GSO, for a destination or the socket.
    static let pause = Interval.seconds(60)
    /// For this long after an accepted GSO message, refusals do not count against the socket.
    static let acceptanceValidity = Interval.seconds(60)
    /// The most paused destinations; toward further ones GSO is tried with each message.
    static let destinationsMax = 256

    private enum State {
        case off
        case on(refusals: Int)
        case paused(until: Instant)
    }
    private var state: State
    /// When a GSO message was last known to be accepted.
    private var acceptedAt: Instant?
    /// The destinations toward which GSO is paused, with the end of each pause.
    private var destinations: [TransportAddress: Instant] = [:]

    init(isOn: Bool) { state = isOn ? .on(refusals: 0) : .off }

    var isOn: Bool { if case .on = state { true } else { false } }
    var isPaused: Bool { if case .paused = state { true } else { false } }

    /// Whether `error` may be caused by segmentation.
    static func isRefusal(_ error: Int32) -> Bool {
        error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP
    }

    /// Whether GSO is used toward `remote`.
    @inline(__always)
    func isOn(for remote: TransportAddress) -> Bool { isOn && (destinations.isEmpty || destinations[remote] == nil) }

    /// Records that the kernel accepted a GSO message.
    @inline(__always)
    mutating func accepted() {
        if case .on(let refusals) = state, refusals > 0 { state = .on(refusals: 0) }
        hasAccepted = true
    }
    /// Whether a GSO message was accepted since the last refusal. Its time is not recorded.
    private var hasAccepted = false

    enum Verdict: Equatable {
        /// The destination was paused already, or there are too many paused destinations.
        case nothing
        /// GSO toward the destination is paused.
        case destinationPaused
        /// GSO is paused for the socket.
        case socketPaused
    }

    /// Records that the kernel refused a GSO message.
    mutating func refused(_ error: Int32, to remote: TransportAddress, at now: Instant) -> Verdict {
        guard case .on(let refusals) = state else { return .nothing }
        if hasAccepted {
            hasAccepted = false
            acceptedAt = now
        }
        guard pause(remote, at: now) else { return .nothing }
        let wasAcceptedRecently = acceptedAt.map { now - $0 < Self.acceptanceValidity } ?? false
        if error == EIO || error == EOPNOTSUPP, !wasAcceptedRecently {
            if refusals + 1 >= Self.refusalsMax {
                destinations.removeAll()
                state = .paused(until: now + Self.pause)
                return .socketPaused
            }
            state = .on(refusals: refusals + 1)
        }
        return .destinationPaused
    }

    private mutating func pause(_ remote: TransportAddress, at now: Instant) -> Bool {
        guard destinations[remote] == nil else { return false }
        if destinations.count >= Self.destinationsMax { resumeDestinations(at: now) }
        guard destinations.count < Self.destinationsMax else { return false }
        destinations[remote] = now + Self.pause
        return true
    }

    /// Ends the pauses of destinations that have expired.
    mutating func resumeDestinations(at now: Instant) {
        guard !destinations.isEmpty else { return }
        destinations = destinations.filter { now < $0.value }
    }

    var hasPausedDestinations: Bool { !destinations.isEmpty }

    /// Ends the socket's pause if it has expired. One more refusal pauses it again.
    mutating func resume(at now: Instant) {
        if case .paused(let end) = state, now >= end { state = .on(refusals: Self.refusalsMax - 1) }
    }
}
