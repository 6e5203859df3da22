import Glibc
import Wire

/// Whether a socket gives the kernel several datagrams as one message (UDP GSO), by what the kernel said to it so far.
///
/// A kernel refuses a message because of its destination (the path's MTU is less than a datagram, the address cannot be
/// sent to) or because of the device that it leaves by (no checksum offload, IPsec). Its datagrams are sent one by one
/// then, which is always right and costs one call more. After that the destination gets single datagrams for a while,
/// so that what one peer's path refuses does not split the calls that carry everybody's.
///
/// The socket as a whole stops only for errors that a destination cannot cause, when they come time after time and no
/// message of several datagrams was accepted for a minute. It tries again after a while.
struct SegmentationOffload {
    /// Destinations in a row, each refused, that end the trying.
    static let refusalsMax = 8
    /// How long the socket, or a destination, then gets datagrams one by one.
    static let pause = Interval.seconds(60)
    /// How long after an accepted message refusals are not the socket's.
    static let trust = Interval.seconds(60)
    /// Destinations that are remembered; of more, each message is tried.
    static let destinationsMax = 256

    private enum State {
        case off
        case on(refusals: Int)
        case paused(until: Instant)
    }
    private var state: State
    /// When a message of several datagrams was last known to be accepted.
    private var acceptedAt: Instant?
    /// Destinations that get single datagrams, and until when.
    private var destinations: [TransportAddress: Instant] = [:]

    init(isOn: Bool) { state = isOn ? .on(refusals: 0) : .off }

    var isOn: Bool { if case .on = state { true } else { false } }
    var isPaused: Bool { if case .paused = state { true } else { false } }

    /// Whether `error` is about a message's segmentation, and not about what is sent or where to.
    static func isRefusal(_ error: Int32) -> Bool {
        error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP
    }

    /// Whether several datagrams to `remote` may be one message.
    @inline(__always)
    func isOn(for remote: TransportAddress) -> Bool { isOn && (destinations.isEmpty || destinations[remote] == nil) }

    /// The kernel took a message of several datagrams.
    @inline(__always)
    mutating func accepted() {
        if case .on(let refusals) = state, refusals > 0 { state = .on(refusals: 0) }
        hasAccepted = true
    }
    /// A message was accepted since the last refusal, at a time that was not looked at.
    private var hasAccepted = false

    enum Verdict: Equatable {
        /// The destination was already known, or there is no room to remember it.
        case nothing
        /// The destination gets single datagrams for a while.
        case destinationPaused
        /// Every destination does.
        case socketPaused
    }

    /// The kernel refused such a message.
    mutating func refused(_ error: Int32, to remote: TransportAddress, at now: Instant) -> Verdict {
        guard case .on(let refusals) = state else { return .nothing }
        if hasAccepted {
            hasAccepted = false
            acceptedAt = now
        }
        guard pause(remote, at: now) else { return .nothing }
        let isTrusted = acceptedAt.map { now - $0 < Self.trust } ?? false
        if error == EIO || error == EOPNOTSUPP, !isTrusted {
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
        if destinations.count >= Self.destinationsMax { forgetDestinations(at: now) }
        guard destinations.count < Self.destinationsMax else { return false }
        destinations[remote] = now + Self.pause
        return true
    }

    /// Lets destinations be tried again whose time is up.
    mutating func forgetDestinations(at now: Instant) {
        guard !destinations.isEmpty else { return }
        destinations = destinations.filter { now < $0.value }
    }

    var hasPausedDestinations: Bool { !destinations.isEmpty }

    /// Begins to try again when it is time; the first refusal ends it again.
    mutating func resume(at now: Instant) {
        if case .paused(let end) = state, now >= end { state = .on(refusals: Self.refusalsMax - 1) }
    }
}
