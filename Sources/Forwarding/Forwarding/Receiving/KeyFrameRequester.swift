package import Base

/// Decides when a publisher is asked for a key frame: soon after it is wanted, rarely enough not to flood its
/// encoder, and again while none comes.
package struct KeyFrameRequester: Sendable {
    /// Two requests closer than this would cost the publisher two key frames for one need.
    package static let spacing = Interval.milliseconds(500)
    /// The spacing after an answered request, which serves a viewer that joins just after it. Browsers ignore requests
    /// within 300 ms of a key frame (libwebrtc's minimum interval between key frames).
    package static let answeredSpacing = Interval.milliseconds(350)
    /// Unanswered requests before it stops until the next `want`.
    package static let attemptsMax = 20

    /// Requests in a row from viewers that play the stream already. One key frame recovers the pictures of all of them.
    static let repairsBurst = 4
    static let repairInterval = Interval.seconds(2)

    private enum State: Sendable {
        case idle(lastSent: Instant?)
        case wanted(at: Instant, attempts: Int)
    }
    private var state = State.idle(lastSent: nil)
    private var repairs = TokenBucket(1, per: Self.repairInterval, burst: Self.repairsBurst)
    /// When a repair that waits for its budget is due.
    private var repairDueAt: Instant?

    package init() {}

    /// When `takeRequest` is due; `nil` while no key frame is wanted.
    package var nextDeadline: Instant? {
        switch state {
        case .idle: repairDueAt
        case .wanted(let at, _): at
        }
    }

    /// A request is in flight or due.
    var isWanted: Bool { if case .wanted = state { true } else { false } }

    /// Somebody has no picture yet.
    package mutating func want(at now: Instant) {
        switch state {
        case .idle(let lastSent):
            let earliestAllowed = lastSent.map { $0 + Self.spacing } ?? now
            state = .wanted(at: max(now, earliestAllowed), attempts: 0)
        case .wanted(let at, let attempts) where attempts >= Self.attemptsMax:
            state = .wanted(at: max(at, now), attempts: 0)
        case .wanted: break
        }
    }

    /// A viewer that plays the stream asks for another picture. Beyond the budget of all such requests this one waits.
    /// - Returns: whether it need not wait.
    package mutating func wantRepair(at now: Instant) -> Bool {
        // The request in flight covers this one.
        guard !isWanted else { return true }
        guard repairDueAt == nil else { return false }
        guard repairs.take(at: now) else {
            repairDueAt = repairs.nextTake(at: now)
            return false
        }
        want(at: now)
        return true
    }

    /// A key frame began to arrive.
    package mutating func receivedKeyFrame(at now: Instant) {
        repairDueAt = nil
        // The next request was due one spacing after the last one, or at once when none was sent within it.
        guard case .wanted(let at, _) = state else { return }
        state = .idle(lastSent: at - Self.spacing - (Self.spacing - Self.answeredSpacing))
    }

    /// Whether to send a request now.
    package mutating func takeRequest(at now: Instant) -> Bool {
        if case .idle = state, let due = repairDueAt, due <= now, repairs.take(at: now) {
            repairDueAt = nil
            want(at: now)
        }
        guard case .wanted(let at, let attempts) = state, at <= now else { return false }
        guard attempts < Self.attemptsMax else {
            state = .idle(lastSent: now)
            return false
        }
        state = .wanted(at: now + Self.spacing, attempts: attempts + 1)
        return true
    }
}
