import MediaTypes
import Room
import Wire

/// The present quality of a client's network, which is sent again and again to a client with the channel extension and to a
/// reader of a session's events.
struct QualityMessage {
    static let interval = Interval.seconds(2)

    private let quality: LinkQuality
    /// A moment on both clocks: the timestamps of later messages follow from it.
    private let unixNanoseconds: Int64
    private let instant: Instant
    private(set) var dueAt: Instant

    /// - Parameter unixNanoseconds: `now` by the real-time clock.
    init(_ quality: LinkQuality, unixNanoseconds: Int64, at now: Instant, dueAt: Instant) {
        self.quality = quality
        self.unixNanoseconds = unixNanoseconds
        instant = now
        self.dueAt = dueAt
    }

    /// The notification that is due. The next one is due after ``interval``.
    mutating func send(at now: Instant) -> Notification {
        dueAt = now + Self.interval
        return Notification(.networkQuality(quality), timestamp: unixNanoseconds &+ (now - instant).nanoseconds)
    }
}
