import Glibc
import Wire

/// Whether a socket gives the kernel several datagrams as one message (UDP GSO), by what the kernel said to it so far.
///
/// A kernel refuses one message because of the way that it takes: the device cannot compute checksums, the path is
/// encrypted by IPsec, a datagram is longer than the path's MTU. Its datagrams are sent one by one then, which is always
/// right and costs one call more. When it refuses message after message, none of them accepted in between, it is the
/// kernel as such or the only way there is, and the socket stops trying. It tries again after a while: the way of one
/// peer must not cost all others their speed for ever.
struct SegmentationOffload {
    /// Refusals in a row that end the trying.
    static let refusalsMax = 8
    /// How long the socket then sends datagrams one by one.
    static let pause = Interval.seconds(60)

    private enum State {
        case off
        case on(refusals: Int)
        case paused(until: Instant)
    }
    private var state: State

    init(isOn: Bool) { state = isOn ? .on(refusals: 0) : .off }

    var isOn: Bool { if case .on = state { true } else { false } }
    var isPaused: Bool { if case .paused = state { true } else { false } }

    /// Whether `error` is about a message's segmentation, and not about what is sent or where to.
    static func isRefusal(_ error: Int32) -> Bool {
        error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP
    }

    /// The kernel took a message of several datagrams.
    @inline(__always)
    mutating func accepted() {
        if case .on(let refusals) = state, refusals > 0 { state = .on(refusals: 0) }
    }

    /// The kernel refused such a message.
    /// - Returns: whether the socket stops trying because of it.
    mutating func refused(_ error: Int32, at now: Instant) -> Bool {
        // A datagram too long for its path, which its receiver's side decides, says nothing about the kernel.
        guard case .on(let refusals) = state, error != EMSGSIZE else { return false }
        if refusals + 1 < Self.refusalsMax {
            state = .on(refusals: refusals + 1)
            return false
        }
        state = .paused(until: now + Self.pause)
        return true
    }

    /// Begins to try again when it is time; the first refusal ends it again.
    mutating func resume(at now: Instant) {
        if case .paused(let end) = state, now >= end { state = .on(refusals: Self.refusalsMax - 1) }
    }
}
