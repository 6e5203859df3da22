package import Base
package import ChannelTypes

/// How a node drains.
package struct DrainRequest: Hashable, Sendable {
    /// Who asked for it.
    package enum Cause: Hashable, Sendable {
        /// An operator, who can take it back. At the deadline the clients are told to leave, and the node stays.
        case operators
        /// What comes before a shutdown, which follows at the deadline or when all clients have left.
        case shutdown
    }

    /// The longest time of a drain.
    package static let secondsMax = 86_400
    /// The time until the deadline unless an operator gives one.
    package static let deadlineDefault = Interval.seconds(600)
    /// How long newcomers are admitted to existing channels unless an operator says so.
    package static let admissionDefault = Interval.seconds(10)

    package var cause: Cause
    /// The time from now until the clients have to leave.
    package var deadline: Interval
    /// The time from now in which newcomers are admitted to channels that have members. It ends at the deadline at the latest.
    package var admission: Interval

    /// - Parameters:
    ///   - deadline: the time until the clients have to leave.
    ///   - admission: the time in which newcomers are admitted to channels that have members.
    package init(
        by cause: Cause,
        deadline: Interval = Self.deadlineDefault,
        admission: Interval = Self.admissionDefault
    ) {
        self.cause = cause
        self.deadline = deadline
        self.admission = admission
    }
}

/// Why a request about the drain changed nothing.
package enum DrainFailure: Error, Hashable, Sendable {
    /// The node shuts down, or drains because it was told to.
    case stopping
}

/// How far the drain of a node is.
package struct DrainReport: Hashable, Sendable {
    /// What a draining node does, in this order.
    package enum Phase: String, CaseIterable, Hashable, Sendable {
        /// It refuses newcomers of channels that nobody is in.
        case newChannels = "new_channels"
        /// It refuses all newcomers.
        case newcomers
        /// The deadline is over: its clients were told to leave.
        case closing
    }

    package var state: NodeState
    /// The clients of the node.
    package var clients: Int
    /// `nil` unless the node drains.
    package var phase: Phase?
    /// Since the drain began.
    package var elapsed = Interval.zero
    /// Until the deadline.
    package var remaining = Interval.zero
    /// Whether a shutdown follows.
    package var isOfShutdown = false

    /// The report of a node that does not drain.
    package init(state: NodeState, clients: Int) {
        self.state = state
        self.clients = clients
    }
}

/// The drain of a node as a state machine: requests, numbers of clients and instants in, actions out. It does no I/O and
/// reads no clock.
struct DrainModel: Sendable {
    enum Output: Hashable {
        /// Whom the rooms refuse from now on.
        case refuse(DrainStage)
        /// Tells all clients to leave.
        case endClients
        /// For the log: the clients that are left, and the time for them.
        case progress(clients: Int, remaining: Interval)
        /// For the log: all clients have left.
        case emptied
    }

    private struct Drain {
        var cause: DrainRequest.Cause
        let startedAt: Instant
        var admitsUntil: Instant
        var deadline: Instant
        var phase = DrainReport.Phase.newChannels
        var reportedAt: Instant?
        var isEmptied = false

        var stage: DrainStage { phase == .newChannels ? .newChannels : .newcomers }
        func remaining(at now: Instant) -> Interval { max(.zero, deadline - now) }
    }

    /// The progress is logged once in this time.
    private static let reportPeriod = Interval.seconds(10)

    private var drain: Drain?
    private(set) var isStopping = false

    /// `nil` unless the node drains.
    var phase: DrainReport.Phase? { drain?.phase }

    /// Starts to drain, or changes the times of the drain that is under way. A drain of a shutdown stays one.
    mutating func start(_ request: DrainRequest, at now: Instant) throws(DrainFailure) -> [Output] {
        guard !isStopping else { throw .stopping }
        if request.cause == .operators, drain?.cause == .shutdown { throw .stopping }
        let deadline = now + request.deadline
        var next = Drain(
            cause: request.cause,
            startedAt: drain?.startedAt ?? now,
            admitsUntil: min(now + request.admission, deadline),
            deadline: deadline
        )
        next.phase = next.admitsUntil > now ? .newChannels : .newcomers
        drain = next
        return [.refuse(next.stage)]
    }

    /// Takes the drain back. Without one it does nothing.
    mutating func cancel() throws(DrainFailure) -> [Output] {
        guard !isStopping, drain?.cause != .shutdown else { throw .stopping }
        guard drain != nil else { return [] }
        drain = nil
        return [.refuse(.none)]
    }

    /// The node shuts down, which is final.
    mutating func stop() { isStopping = true }

    /// Advances the drain. To be called about once a second.
    /// - Parameter clients: the clients of the node.
    mutating func tick(clients: Int, at now: Instant) -> [Output] {
        guard !isStopping, var current = drain else { return [] }
        var outputs: [Output] = []
        if current.phase == .newChannels, now >= current.admitsUntil {
            current.phase = .newcomers
            outputs.append(.refuse(current.stage))
        }
        if clients == 0 {
            if !current.isEmptied { outputs.append(.emptied) }
            current.isEmptied = true
        } else {
            current.isEmptied = false
            if current.reportedAt.map({ now - $0 >= Self.reportPeriod }) ?? true {
                current.reportedAt = now
                outputs.append(.progress(clients: clients, remaining: current.remaining(at: now)))
            }
        }
        // The shutdown itself tells the clients of its drain.
        if current.cause == .operators, now >= current.deadline {
            current.phase = .closing
            if clients > 0 { outputs.append(.endClients) }
        }
        drain = current
        return outputs
    }

    /// - Parameters:
    ///   - clients: the clients of the node.
    ///   - hasStarted: whether all listeners are up.
    func report(clients: Int, hasStarted: Bool, at now: Instant) -> DrainReport {
        var report = DrainReport(state: state(hasStarted: hasStarted), clients: clients)
        guard let drain, !isStopping else { return report }
        report.phase = drain.phase
        report.elapsed = max(.zero, now - drain.startedAt)
        report.remaining = drain.remaining(at: now)
        report.isOfShutdown = drain.cause == .shutdown
        return report
    }

    func state(hasStarted: Bool) -> NodeState {
        if isStopping { return .stopping }
        guard hasStarted else { return .starting }
        return drain == nil ? .ready : .draining
    }
}
