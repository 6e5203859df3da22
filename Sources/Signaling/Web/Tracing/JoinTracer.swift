import Base
package import ChannelTypes
package import Room
import Synchronization
package import Telemetry

/// Makes a trace of each join, and ends it by the reports of the rooms.
package final class JoinTracer: Sendable {
    /// How long a connected member may take to its first frame before the trace ends without it. A viewer may wait for a
    /// publisher forever.
    private static let frameTimeout = Interval.seconds(10)
    /// From when on a join that no report ended is given up: longer than any set-up may take.
    private static let joinTimeout = Interval.seconds(180)
    /// The most joins under way.
    private static let pendingMax = 10_000
    /// About as many spans as a trace has, for those that are not recorded.
    private static let spansOfTrace = 9

    private struct Pending {
        let trace: JoinTrace
        var deadline: Instant
        var isConnected = false
    }

    let tracer: Tracer
    let clock: RoomClock
    private let pending = Mutex<[ParticipantID: Pending]>([:])

    /// - Parameter clock: that of the rooms.
    package init(_ tracer: Tracer, clock: RoomClock = .system) {
        self.tracer = tracer
        self.clock = clock
    }

    /// Begins the trace of a request.
    /// - Returns: `nil` for one that is not sampled.
    package func begin(
        _ request: JoinTrace.Request,
        _ signaling: ClientAgent.Signaling,
        to channel: ChannelName,
        role: Role,
        after parent: TraceContext?
    ) -> JoinTrace? {
        guard let context = tracer.begin(after: parent) else { return nil }
        return JoinTrace(
            context,
            of: self,
            parent: parent?.span,
            request: request,
            attributes: [
                "nagare.channel": .string(channel.value), "nagare.protocol": .string(signaling.rawValue),
                "nagare.role": .string(role.rawValue),
            ],
            at: clock.now()
        )
    }

    func add(_ trace: JoinTrace, of participant: ParticipantID) {
        let deadline = clock.now().instant + Self.joinTimeout
        let isTaken = pending.withLock { pending in
            // A member that takes its place again begins another trace.
            guard pending.count < Self.pendingMax || pending[participant] != nil else { return false }
            pending.updateValue(Pending(trace: trace, deadline: deadline), forKey: participant)?.trace.end()
            return true
        }
        if !isTaken { tracer.dropped(Self.spansOfTrace) }
    }

    /// Handles a report of the rooms without blocking.
    package func take(_ report: RoomReport) {
        switch report {
        case .connectionCreated(let report), .setupAdvanced(let report): advanced(report)
        case .connectionResumed(let report): remove(report)?.end()
        case .connectionDestroyed(let report, _):
            guard let trace = remove(report) else { return }
            _ = trace.advanced(report.connection)
            trace.end()
        case .connectionFailed(let report, let reason):
            guard let trace = remove(report) else { return }
            _ = trace.advanced(report.connection)
            trace.failed(reason.name, kind: reason.name)
        case .sessionCreated, .sessionDestroyed, .connectionUpdated, .qualityChanged, .roleChanged: break
        case .connectionInterrupted, .publishingBegan, .flowChanged, .firstFrameReceived: break
        }
    }

    private func advanced(_ report: ConnectionReport) {
        let id = report.connection.member.id
        let now = clock.now().instant
        let complete = pending.withLock { pending -> JoinTrace? in
            guard var entry = pending[id] else { return nil }
            if entry.trace.advanced(report.connection) { return pending.removeValue(forKey: id)?.trace }
            if !entry.isConnected {
                entry.isConnected = true
                entry.deadline = now + Self.frameTimeout
                pending[id] = entry
            }
            return nil
        }
        complete?.end()
    }

    private func remove(_ report: ConnectionReport) -> JoinTrace? {
        pending.withLock { $0.removeValue(forKey: report.connection.member.id)?.trace }
    }

    /// Ends the traces whose time is over. Call it about once a second.
    package func sweep() {
        let now = clock.now().instant
        let over = pending.withLock { pending -> [Pending] in
            let over = pending.filter { $0.value.deadline <= now }
            for id in over.keys { pending[id] = nil }
            return Array(over.values)
        }
        for entry in over {
            // Ignored for a member that is connected.
            entry.trace.failed("No media came up in time.", kind: "timeout")
            entry.trace.end()
        }
    }
}
