package import Base
package import NIOCore

/// Runs an action at the next deadline of a state machine, on the clock that the connections of the listener use.
package struct DeadlineTimer {
    private var armed: (deadline: Instant, task: Scheduled<Void>)?

    package init() {}

    package static var now: Instant { Instant(.now()) }

    /// Replaces the deadline; `nil` for none.
    /// - Parameter action: runs once, on the event loop. It calls ``fired()`` before the next deadline is set.
    package mutating func set(
        _ deadline: Instant?,
        on eventLoop: any EventLoop,
        _ action: @escaping @Sendable () -> Void
    ) {
        guard deadline != armed?.deadline else { return }
        armed?.task.cancel()
        armed = deadline.map { deadline in
            let wait = max(.zero, deadline - Self.now)
            return (deadline, eventLoop.scheduleTask(in: .nanoseconds(wait.nanoseconds), action))
        }
    }

    /// The action runs.
    package mutating func fired() { armed = nil }

    package mutating func cancel() {
        armed?.task.cancel()
        armed = nil
    }
}

extension Instant {
    /// NIO's clock is the monotonic clock of the machine, as that of the media loops.
    init(_ deadline: NIODeadline) { self.init(nanoseconds: Int64(clamping: deadline.uptimeNanoseconds)) }
}
