package import Base
import Glibc

/// A moment on two clocks: the monotonic one for durations, the system's real time for timestamps.
package struct RoomTime: Hashable, Sendable, Codable {
    package var instant: Instant
    /// Nanoseconds since 1970 UTC. The real-time clock may jump.
    package var unixNanoseconds: Int64

    package init(instant: Instant, unixNanoseconds: Int64) {
        self.instant = instant
        self.unixNanoseconds = unixNanoseconds
    }

    /// Whole seconds of the monotonic clock.
    package var second: Int64 { instant.nanoseconds / 1_000_000_000 }
}

/// The clock of rooms; tests pass their own.
package struct RoomClock: Sendable {
    package let now: @Sendable () -> RoomTime
    package init(_ now: @escaping @Sendable () -> RoomTime) { self.now = now }

    /// The time in nanoseconds since 1970 UTC.
    package var unixNanoseconds: Int64 { now().unixNanoseconds }

    /// The machine's clocks.
    package static let system = RoomClock {
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
