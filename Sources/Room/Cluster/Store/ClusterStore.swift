package import ChannelTypes
package import MediaTypes

/// The directory of a cluster: its nodes, and which of them have a room.
///
/// It arbitrates, and nothing else: no packet, member or timer of a running call depends on it. Each verb is one step
/// that may be repeated, and of two numbers the greater wins.
package protocol ClusterStore: Sendable {
    /// Gives a node that starts its incarnation.
    func enlist(_ request: RegisterNode) async throws(StoreError) -> NodeIncarnation
    /// Keeps a node present, and tells it of the others.
    func beat(_ request: Heartbeat) async throws(StoreError) -> HeartbeatAnswer
    /// Adds a node to a room, which begins to exist with it.
    func attach(_ request: Attach) async throws(StoreError) -> RoomEntry
    /// Removes a node from a room, which ends with the last.
    /// - Returns: whether the node was in the room.
    func detach(_ request: Detach) async throws(StoreError) -> Bool
    /// Prolongs the life of a node's rooms, and removes nodes that are gone from them.
    /// - Returns: the number of entries removed.
    func sweep(_ request: Sweep) async throws(StoreError) -> Int
}

/// Why the store did not answer a request. No call depends on it, so none of these is an error for a client.
package enum StoreError: Error, Hashable, Sendable {
    /// Known to be away: nothing was sent.
    case unavailable
    /// No answer within the deadline. The request may take effect nevertheless.
    case timedOut
    /// As many requests are under way as may be.
    case busy
    /// It cannot write or does not know its data, as its error's first word says: `OOM`, `LOADING`, `MASTERDOWN`,
    /// `CLUSTERDOWN`, `READONLY`.
    case down(String)
    /// Another error reply, by its first word.
    case refused(String)
    /// An answer that was not understood.
    case malformed
}

/// The periods of the store's rules, by the store's own clock.
package enum StoreTimes {
    /// A node without a heartbeat for so long is absent: it gets no new rooms.
    package static let absentAfterMS: Int64 = 6_000
    /// Without any node's heartbeat for so long, the store or its network was away.
    package static let silentAfterMS: Int64 = 3_000
    /// Nobody is absent for so long after the store was away or went on with an older copy.
    package static let graceMS: Int64 = 12_000
    /// A node absent for so long is forgotten.
    package static let forgottenAfterMS: Int64 = 24 * 3_600_000
    /// A room that no node prolongs ends after so long.
    package static let roomLifeMS: Int64 = 24 * 3_600_000
    /// The most records in the answer to a heartbeat.
    package static let changesMax = 64
    /// The most nodes that one heartbeat forgets.
    static let forgottenMax = 8
    /// A clock that goes back by less does not make a store an older copy of itself.
    static let clockToleranceMS: Int64 = 100
    /// By how much incarnations go on until the end of the grace after the store was away, because an older copy or an empty store
    /// does not know the last ones.
    static let incarnationStepAfterSilence: Int64 = 16
}

package struct RegisterNode: Hashable, Sendable {
    package var node: NodeID
    /// The store's generation if it has none.
    package var candidate: StoreGeneration

    package init(node: NodeID, candidate: StoreGeneration) {
        self.node = node
        self.candidate = candidate
    }
}

package struct Heartbeat: Hashable, Sendable {
    /// With an incarnation that the store assigned.
    package var instance: NodeInstance
    /// `nil` when it did not change since the last heartbeat.
    package var record: NodeRecord?
    /// The store's generation at the last heartbeat; `nil` before the first.
    package var generation: StoreGeneration?
    /// The last change that the node knows; 0 for all.
    package var cursor: Int64
    /// The store's clock in milliseconds since 1970 at the last heartbeat; 0 before the first. A store that knows of no heartbeat as
    /// late as that runs on an older copy, even if no node changed since.
    package var answeredMS: Int64
    /// The store's generation if it has none, or runs on an older copy than the node has seen.
    package var candidate: StoreGeneration

    package init(
        instance: NodeInstance,
        record: NodeRecord?,
        generation: StoreGeneration?,
        cursor: Int64,
        answeredMS: Int64,
        candidate: StoreGeneration
    ) {
        self.instance = instance
        self.record = record
        self.generation = generation
        self.cursor = cursor
        self.answeredMS = answeredMS
        self.candidate = candidate
    }
}

package struct HeartbeatAnswer: Hashable, Sendable {
    package struct Change: Hashable, Sendable {
        package var instance: NodeInstance
        package var record: NodeRecord
        package var signature: RecordSignature

        /// - Parameter signature: what the store found out about the record. Records that never were in a store need none.
        package init(instance: NodeInstance, record: NodeRecord, signature: RecordSignature = .valid) {
            self.instance = instance
            self.record = record
            self.signature = signature
        }
    }

    package var generation: StoreGeneration
    /// The number of the last change.
    package var revision: Int64
    /// The last change in this answer. More wait while it is less than ``revision``.
    package var cursor: Int64
    /// The store's clock in milliseconds since 1970.
    package var timeMS: Int64
    /// Nobody is absent before this time of the store's clock.
    package var graceMS: Int64
    /// A higher incarnation of the same node exists.
    package var isFenced = false
    /// The store has a record of this incarnation.
    package var isKnown = false
    /// In the order of changes.
    package var changes: [Change] = []
    /// All nodes that are absent.
    package var absent: Set<NodeID> = []

    package init(generation: StoreGeneration, revision: Int64, cursor: Int64, timeMS: Int64, graceMS: Int64) {
        self.generation = generation
        self.revision = revision
        self.cursor = cursor
        self.timeMS = timeMS
        self.graceMS = graceMS
    }
}

package struct Attach: Hashable, Sendable {
    package var room: ChannelName
    package var instance: NodeInstance
    /// The session if the store knows none.
    package var session: RoomSession

    package init(room: ChannelName, instance: NodeInstance, session: RoomSession) {
        self.room = room
        self.instance = instance
        self.session = session
    }
}

package struct Detach: Hashable, Sendable {
    package var room: ChannelName
    package var instance: NodeInstance

    package init(room: ChannelName, instance: NodeInstance) {
        self.room = room
        self.instance = instance
    }
}

package struct Sweep: Hashable, Sendable {
    /// Channels of the node.
    package var rooms: [ChannelName]
    /// The highest incarnation of each node that is gone.
    package var gone: [NodeID: NodeIncarnation]

    package init(rooms: [ChannelName], gone: [NodeID: NodeIncarnation]) {
        self.rooms = rooms
        self.gone = gone
    }
}

/// What the store knows of a room.
package struct RoomEntry: Hashable, Sendable {
    package struct Attachment: Hashable, Sendable {
        package var incarnation: NodeIncarnation
        /// The place in the order of attaching, from 1.
        package var rank: Int

        package init(incarnation: NodeIncarnation, rank: Int) {
            self.incarnation = incarnation
            self.rank = rank
        }
    }

    package var session: RoomSession
    package var nodes: [NodeID: Attachment]
    /// A higher incarnation of the node that asks is in the room, and nothing was changed.
    package var isFenced = false

    package init(session: RoomSession, nodes: [NodeID: Attachment]) {
        self.session = session
        self.nodes = nodes
    }
}
