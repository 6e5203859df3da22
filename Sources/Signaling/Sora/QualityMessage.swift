package import Base
package import MediaTypes
package import Room

/// The present quality of a client's network, which is sent again and again to a client with the channel extension and to a
/// reader of a session's events.
package struct QualityMessage {
    static let interval = Interval.seconds(2)

    private let quality: LinkQuality
    /// A moment on both clocks: the timestamps of later messages follow from it.
    private let unixNanoseconds: Int64
    private let instant: Instant
    package private(set) var dueAt: Instant

    /// - Parameters:
    ///   - unixNanoseconds: `now` by the real-time clock.
    ///   - previous: the message that it replaces, which says when it is due; without one it is due at once.
    package init(_ quality: LinkQuality, unixNanoseconds: Int64, at now: Instant, after previous: Self?) {
        self.quality = quality
        self.unixNanoseconds = unixNanoseconds
        instant = now
        dueAt = previous?.dueAt ?? now
    }

    /// The notification if it is due. The next one is due after ``interval``.
    package mutating func takeDue(at now: Instant) -> Notification? {
        guard now >= dueAt else { return nil }
        dueAt = now + Self.interval
        return Notification(.networkQuality(quality), timestamp: unixNanoseconds &+ (now - instant).nanoseconds)
    }
}
