import MediaTypes
import Room
import Wire

/// The present quality of a client's network, which a client with the channel extension is sent again and again.
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

    /// The text of the message that is due. The next one is due after ``interval``.
    mutating func send(at now: Instant) -> String {
        dueAt = now + Self.interval
        let timestamp = unixNanoseconds &+ (now - instant).nanoseconds
        return SoraServerMessage.notify(Notification(.networkQuality(quality), timestamp: timestamp))
    }
}
