package import ChannelTypes

/// Whether a node admits joining participants: what an operator, a drain, the cluster and a shutdown say together.
package struct JoinPolicy: Hashable, Sendable {
    /// What an operator set.
    package var mode = NodeMode.normal
    package var drainStage = DrainStage.none
    /// Whether another process has this node's name in the cluster, and takes its place.
    package var isReplaced = false
    /// Whether the node shuts down, which is final.
    private var isStopping = false

    package init() {}

    package mutating func stop() { isStopping = true }

    /// Whether listeners and returning participants are refused, too, because the node drains or shuts down.
    package var isDraining: Bool { isStopping || drainStage == .newcomers }

    /// The mode in force: of the set one and that of a drain the one that admits less.
    package var modeInForce: NodeMode { max(mode, drainMode) }

    /// The mode that admits what a drain admits.
    package var drainMode: NodeMode {
        if isDraining { return .blockNewConnections }
        return drainStage == .none ? .normal : .blockNewSessions
    }

    /// Why a joining participant is refused; `nil` when it is admitted.
    func refusal(opensChannel: Bool) -> RoomError? {
        if isDraining { return .draining }
        if mode == .blockNewConnections { return .connectionsBlocked }
        guard opensChannel else { return nil }
        if drainStage != .none || isReplaced { return .draining }
        return mode == .normal ? nil : .sessionsBlocked
    }
}
