import Base
import ChannelTypes
internal import Room

/// Compares a view with the store's complete list, because the store tells of changes and not of nodes that it forgot: those
/// absent for long, and all that did not return after it lost its data or was away for long.
///
/// The list comes like changes, by heartbeats that begin at the first one. It is asked for when the grace is over: until then
/// nodes that are alive may be missing.
struct ViewAudit: Hashable, Sendable {
    /// After the end of the grace, if there is one. A node that the store does not know tells its record within two
    /// heartbeats.
    static let delay = Interval.seconds(3)
    /// The longest grace that an answer is trusted to have.
    static let graceMax = Interval.seconds(60)

    private var due: Instant?
    private var list: ClusterView?

    /// The store is another one, or was away.
    mutating func schedule(for answer: HeartbeatAnswer, at now: Instant) {
        let graceMS = answer.graceMS.subtractingReportingOverflow(answer.timeMS)
        let rest = graceMS.overflow ? StoreTimes.graceMS : max(graceMS.partialValue, 0)
        let grace = Interval(nanoseconds: min(rest, Int64(Self.graceMax.milliseconds)) * 1_000_000)
        list = nil
        due = now + grace + Self.delay
    }

    /// A list is needed as soon as possible.
    mutating func schedule(at now: Instant) {
        guard list == nil else { return }
        due = earliest(due, now)
    }

    /// A list is needed as soon as possible. One that is under way does not count.
    mutating func restart(at now: Instant) {
        list = nil
        due = earliest(due, now)
    }

    /// Whether the heartbeat that is sent now asks for the list from its start.
    mutating func begin(at now: Instant) -> Bool {
        guard let due, now >= due else { return false }
        self.due = nil
        list = ClusterView()
        return true
    }

    /// A part of the list, or a change meanwhile.
    /// - Parameter isAccepted: whether the record is one of a node of the cluster.
    mutating func take(_ change: HeartbeatAnswer.Change, isAccepted: Bool) {
        guard list != nil else { return }
        _ = isAccepted ? list?.take(change) : list?.ignore(change)
    }

    /// A record that was not accepted was replaced meanwhile.
    mutating func stopIgnoring(_ node: NodeID) { _ = list?.stopIgnoring(node) }

    /// The list is complete. `nil` when none was asked for.
    mutating func finish() -> ClusterView? {
        defer { list = nil }
        return list
    }
}
