import Glibc
public import Wire

/// A moment on two clocks: the monotonic one for durations, the system's real time for timestamps.
public struct RoomTime: Hashable, Sendable, Codable {
    public var instant: Instant
    /// Nanoseconds since 1970 UTC. The real-time clock may jump.
    public var unixNanoseconds: Int64

    public init(instant: Instant, unixNanoseconds: Int64) {
        self.instant = instant
        self.unixNanoseconds = unixNanoseconds
    }

    /// Whole seconds of the monotonic clock.
    var second: Int64 { instant.nanoseconds / 1_000_000_000 }
}

/// The clock of rooms; tests pass their own.
public struct RoomClock: Sendable {
    public let now: @Sendable () -> RoomTime
    public init(_ now: @escaping @Sendable () -> RoomTime) { self.now = now }

    /// The time in nanoseconds since 1970 UTC.
    public var unixNanoseconds: Int64 { now().unixNanoseconds }

    /// The machine's clocks.
    public static let system = RoomClock {
        RoomTime(
            instant: Instant(nanoseconds: nanoseconds(of: CLOCK_MONOTONIC)),
            unixNanoseconds: nanoseconds(of: CLOCK_REALTIME)
        )
    }

    private static func nanoseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
