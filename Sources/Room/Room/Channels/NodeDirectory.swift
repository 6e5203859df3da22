import Admission
import ChannelTypes
import MediaTypes
import Synchronization

/// The ``NodeModel`` of a node with the actors of its channels.
///
/// It is a lock and not an actor: a channel reserves and releases places in the same step as its own members change, so
/// no call sees one change without the other, and a busy channel delays no other. Nothing blocks while it holds the
/// lock.
final class NodeDirectory: Sendable {
    private struct State {
        var model: NodeModel
        var actors: [ChannelName: Channel] = [:]
        var numberNext: UInt64 = 1
        var pendingSessionIDs = PendingSessionIDs()
        /// The channels that wait for other nodes' departures, and until which second of the monotonic clock.
        var departureWaits: [ChannelName: Int64] = [:]
    }
    private let state: Mutex<State>

    init(limits: RoomLimits, node: NodeIncarnation, locations: [MediaLocation]) {
        state = Mutex(State(model: NodeModel(limits: limits, node: node, locations: locations)))
    }

    /// Reads or changes the model. The caller must not use the directory in `body`.
    func withModel<Value: Sendable, Failure>(
        _ body: (inout NodeModel) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try state.withLock { state throws(Failure) in try body(&state.model) }
    }

    var isEmpty: Bool { state.withLock { $0.model.isEmpty && $0.actors.isEmpty } }

    // MARK: Actors

    /// The actor of a channel; `nil` when the channel does not exist.
    func actor(of channel: ChannelName) -> Channel? { state.withLock { $0.actors[channel] } }

    /// The actor of a channel, created if the channel does not exist.
    /// - Parameter make: creates the actor; its number is not reused. It must not use the directory.
    func actor(of channel: ChannelName, make: (_ number: UInt64, RoomLimits) -> Channel) -> Channel {
        state.withLock { state in
            if let actor = state.actors[channel] { return actor }
            let actor = make(state.numberNext, state.model.limits)
            state.numberNext += 1
            state.actors[channel] = actor
            return actor
        }
    }

    /// The actor of a participant's channel; `nil` for an unknown participant.
    func actor(of id: ParticipantID) -> Channel? {
        state.withLock { state in state.model.channel(of: id).flatMap { state.actors[$0] } }
    }
    func actor(of resource: ResourceID) -> Channel? {
        state.withLock { state in state.model.channel(of: resource).flatMap { state.actors[$0] } }
    }
    func actor(of listener: ListenerID) -> Channel? {
        state.withLock { state in state.model.channel(of: listener).flatMap { state.actors[$0] } }
    }

    /// The actors of all channels, the oldest channel first.
    var actors: [Channel] {
        state.withLock { Array($0.actors.values) }.sorted { $0.number < $1.number }
    }

    /// The actors of the channels that may have a deadline at `second` or before, the oldest channel first.
    func actors(dueAt second: Int64) -> [Channel] {
        state.withLock { state in
            let waits = state.departureWaits.filter { $0.value <= second }.keys
            return Set(state.model.channelsDue(at: second)).union(waits).compactMap { state.actors[$0] }
        }
        .sorted { $0.number < $1.number }
    }

    /// Notes what a channel reports of itself.
    /// - Parameter second: until when it waits for other nodes' departures; `nil` when it does not.
    func summaryChanged(of channel: ChannelName, to summary: ChannelSummary, waitsUntil second: Int64?) {
        state.withLock { state in
            state.model.summaryChanged(of: channel, to: summary)
            if second != nil || !state.departureWaits.isEmpty { state.departureWaits[channel] = second }
        }
    }

    /// Removes the actor of an unused channel.
    func retire(_ actor: Channel) {
        state.withLock { state in
            if state.actors[actor.name] === actor { state.actors[actor.name] = nil }
        }
    }

    // MARK: Session identifiers of channels without a session

    /// The identifier of the next session of a channel that has none.
    func pendingSession(of channel: ChannelName, make: () -> ChannelSessionID) -> ChannelSessionID {
        state.withLock { $0.pendingSessionIDs.session(of: channel, make: make) }
    }
    func forgetPendingSession(of channel: ChannelName) {
        state.withLock { $0.pendingSessionIDs.forget(channel) }
    }
}
