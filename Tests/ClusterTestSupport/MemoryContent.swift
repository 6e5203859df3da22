package import ChannelTypes
internal import Cluster
internal import MediaTypes

/// The rules of the store's scripts in Swift: what a store holds, and what each verb does to it.
package struct MemoryContent: Hashable, Sendable {
    struct Node: Hashable, Sendable {
        var incarnation: UInt32
        var record: NodeRecord
        var seenMS: Int64
        var change: Int64
    }
    struct Room: Hashable, Sendable {
        var entry: RoomEntry
        var lastRank = 0
        var endsMS: Int64 = 0
    }

    private var generation: StoreGeneration?
    private var incarnation: Int64 = 0
    private var revision: Int64 = 0
    private var beatMS: Int64 = 0
    private var graceMS: Int64 = 0
    private var nodes: [NodeID: Node] = [:]
    private var rooms: [ChannelName: Room] = [:]

    package init() {}

    /// The rooms that exist.
    package var roomNames: Set<ChannelName> { Set(rooms.keys) }

    /// Whether no node beat in the last seconds, or the clock went back.
    private func isSilent(_ nowMS: Int64) -> Bool {
        nowMS - beatMS > StoreTimes.silentAfterMS || nowMS < beatMS
    }

    mutating func enlist(_ request: RegisterNode, _ nowMS: Int64) -> Result<NodeIncarnation, StoreError> {
        if generation == nil { generation = request.candidate }
        let own = Int64(nodes[request.node]?.incarnation ?? 0)
        let next = max(incarnation, own) + (isSilent(nowMS) || nowMS < graceMS ? 16 : 1)
        guard let number = NodeIncarnation(rawValue: UInt32(clamping: next)), number.isAssigned else {
            return .failure(.refused("EXHAUSTED"))
        }
        incarnation = next
        return .success(number)
    }

    mutating func beat(_ request: Heartbeat, _ nowMS: Int64) -> HeartbeatAnswer {
        let stored = generation ?? request.candidate
        let lacksBeat = request.answeredMS > beatMS + 100 && request.answeredMS <= nowMS
        let isOlder = request.generation == stored && (request.cursor > revision || lacksBeat)
        let current = isOlder ? request.candidate : stored
        generation = current
        let cursor = request.generation == current ? request.cursor : 0
        if isOlder || isSilent(nowMS) { graceMS = nowMS + StoreTimes.graceMS }
        for (id, node) in nodes where node.seenMS > nowMS { nodes[id]?.seenMS = nowMS }
        beatMS = nowMS
        let number = request.instance.incarnation.rawValue
        let owner = nodes[request.instance.node]?.incarnation ?? 0
        var answer = HeartbeatAnswer(
            generation: current,
            revision: 0,
            cursor: 0,
            timeMS: nowMS,
            graceMS: graceMS
        )
        answer.isFenced = owner > number
        answer.isKnown = owner == number
        if !answer.isFenced {
            incarnation = max(incarnation, Int64(number))
            answer.isKnown = note(request, nowMS) || answer.isKnown
        }
        if nowMS >= graceMS {
            let forgotten = nodes.filter { nowMS - $0.value.seenMS > StoreTimes.forgottenAfterMS }
                .sorted { $0.value.seenMS < $1.value.seenMS }.prefix(8)
            for (id, _) in forgotten { nodes[id] = nil }
            answer.absent = Set(nodes.filter { nowMS - $0.value.seenMS > StoreTimes.absentAfterMS }.keys)
        }
        let changed = nodes.filter { $0.value.change > cursor }.sorted { $0.value.change < $1.value.change }
        answer.changes = changed.prefix(StoreTimes.changesMax).compactMap {
            (id, node) -> HeartbeatAnswer.Change? in
            guard let number = NodeIncarnation(rawValue: node.incarnation) else { return nil }
            return HeartbeatAnswer.Change(instance: NodeInstance(node: id, incarnation: number), record: node.record)
        }
        answer.revision = revision
        answer.cursor = revision
        if changed.count >= StoreTimes.changesMax { answer.cursor = changed[StoreTimes.changesMax - 1].value.change }
        return answer
    }

    /// Notes a heartbeat. Returns whether the store has a record now that the request carried.
    private mutating func note(_ request: Heartbeat, _ nowMS: Int64) -> Bool {
        let id = request.instance.node
        let number = request.instance.incarnation.rawValue
        let before = nodes[id]
        let known = before?.incarnation == number ? before?.record : nil
        guard let record = request.record ?? known else { return false }
        var node = Node(incarnation: number, record: record, seenMS: nowMS, change: before?.change ?? 0)
        let isChanged = before?.incarnation != number || before?.record != record
        if isChanged || nowMS - (before?.seenMS ?? 0) > StoreTimes.absentAfterMS {
            revision += 1
            node.change = revision
        }
        nodes[id] = node
        return true
    }

    private mutating func room(_ name: ChannelName, _ nowMS: Int64) -> Room? {
        if let room = rooms[name], room.endsMS <= nowMS { rooms[name] = nil }
        return rooms[name]
    }

    private static func isFenced(_ instance: NodeInstance, _ room: Room?) -> Bool {
        guard let stored = room?.entry.nodes[instance.node] else { return false }
        return stored.incarnation.rawValue > instance.incarnation.rawValue
    }

    private static func join(_ instance: NodeInstance, _ room: inout Room, _ nowMS: Int64) {
        room.endsMS = nowMS + StoreTimes.roomLifeMS
        guard room.entry.nodes[instance.node]?.incarnation != instance.incarnation else { return }
        room.lastRank += 1
        room.entry.nodes[instance.node] = .init(incarnation: instance.incarnation, rank: room.lastRank)
    }

    mutating func attach(_ request: Attach, _ nowMS: Int64) -> RoomEntry {
        let stored = room(request.room, nowMS)
        var room = stored ?? Room(entry: RoomEntry(session: request.session, nodes: [:]))
        if Self.isFenced(request.instance, stored) {
            room.entry.isFenced = true
            return room.entry
        }
        Self.join(request.instance, &room, nowMS)
        rooms[request.room] = room
        return room.entry
    }

    mutating func detach(_ request: Detach, _ nowMS: Int64) -> Bool {
        guard var room = room(request.room, nowMS), let own = room.entry.nodes[request.instance.node],
            own.incarnation.rawValue <= request.instance.incarnation.rawValue
        else { return false }
        room.entry.nodes[request.instance.node] = nil
        rooms[request.room] = room.entry.nodes.isEmpty ? nil : room
        return true
    }

    mutating func sweep(_ request: Sweep, _ nowMS: Int64) -> Int {
        var removed = 0
        for name in request.rooms {
            guard var room = room(name, nowMS) else { continue }
            for (id, gone) in request.gone {
                guard let own = room.entry.nodes[id], own.incarnation.rawValue <= gone.rawValue else { continue }
                room.entry.nodes[id] = nil
                removed += 1
            }
            room.endsMS = nowMS + StoreTimes.roomLifeMS
            rooms[name] = room.entry.nodes.isEmpty ? nil : room
        }
        return removed
    }
}
