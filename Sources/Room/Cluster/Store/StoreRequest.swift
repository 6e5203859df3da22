import ChannelTypes
internal import MediaTypes
internal import Room

/// A verb of the store: how it is asked, and what an answer says.
protocol StoreRequest: Sendable {
    associatedtype Answer: Sendable

    func call(_ keys: StoreKeys) -> StoreCall
    /// - Throws: ``StoreError/malformed``.
    func answer(_ reply: RESPValue) throws(StoreError) -> Answer
}

extension RegisterNode: StoreRequest {
    func call(_ keys: StoreKeys) -> StoreCall {
        StoreCall(
            script: .enlist,
            keys: [keys.meta, keys.node],
            arguments: [
                node.rawValue, candidate.rawValue, String(StoreTimes.silentAfterMS),
                String(NodeIncarnation.assignedMax), String(StoreTimes.incarnationStepAfterSilence),
            ]
        )
    }

    func answer(_ reply: RESPValue) throws(StoreError) -> NodeIncarnation {
        let incarnation = reply.number.flatMap(UInt32.init(exactly:)).flatMap(NodeIncarnation.init(rawValue:))
        guard let incarnation, incarnation.isAssigned else { throw .malformed }
        return incarnation
    }
}

/// A heartbeat whose record is signed, and whose answer's records are verified.
struct SignedBeat: StoreRequest {
    let beat: Heartbeat
    let cluster: ClusterName
    let signer: RecordSigner

    func call(_ keys: StoreKeys) -> StoreCall {
        let instance = beat.instance
        let record = beat.record?.encoded().map { signer.sign($0, of: instance, in: cluster) }
        return StoreCall(
            script: .beat,
            keys: [keys.meta, keys.node, keys.seen, keys.changes],
            arguments: [
                instance.node.rawValue, String(instance.incarnation.rawValue), record ?? "",
                beat.generation?.rawValue ?? "", String(beat.cursor), beat.candidate.rawValue,
                String(StoreTimes.absentAfterMS), String(StoreTimes.silentAfterMS), String(StoreTimes.graceMS),
                String(StoreTimes.forgottenAfterMS), String(StoreTimes.changesMax), String(StoreTimes.forgottenMax),
                String(beat.answeredMS), String(StoreTimes.clockToleranceMS),
            ]
        )
    }

    func answer(_ reply: RESPValue) throws(StoreError) -> HeartbeatAnswer {
        guard let fields = reply.array, fields.count >= 9,
            let generation = fields[0].text.flatMap(StoreGeneration.init), let revision = fields[1].number,
            let cursor = fields[2].number, let time = fields[3].number, let grace = fields[4].number,
            let changes = fields[7].array, let absent = fields[8].array,
            revision >= 0, cursor >= 0, changes.count.isMultiple(of: 2)
        else { throw .malformed }
        var answer = HeartbeatAnswer(
            generation: generation,
            revision: revision,
            cursor: cursor,
            timeMS: time,
            graceMS: grace
        )
        answer.isFenced = fields[5].number == 1
        answer.isKnown = fields[6].number == 1
        for index in stride(from: 0, to: changes.count, by: 2) {
            // A record of a version that this one cannot read hides that node only.
            guard let node = changes[index].text.flatMap(NodeID.init), let value = changes[index + 1].text,
                let change = change(of: node, value)
            else { continue }
            answer.changes.append(change)
        }
        answer.absent = Set(absent.compactMap { $0.text.flatMap(NodeID.init) })
        return answer
    }

    /// - Parameter value: the incarnation, a space and the record.
    private func change(of node: NodeID, _ value: String) -> HeartbeatAnswer.Change? {
        guard let space = value.firstIndex(of: " "),
            let incarnation = UInt32(value[..<space]).flatMap(NodeIncarnation.init(rawValue:))
        else { return nil }
        let text = String(value[value.index(after: space)...])
        guard let record = NodeRecord(encoded: text) else { return nil }
        let instance = NodeInstance(node: node, incarnation: incarnation)
        let signature = signer.verify(text, of: instance, in: cluster)
        return HeartbeatAnswer.Change(instance: instance, record: record, signature: signature)
    }
}

extension Attach: StoreRequest {
    func call(_ keys: StoreKeys) -> StoreCall {
        StoreCall(
            script: .attach,
            keys: [keys.room(room)],
            arguments: [
                instance.node.rawValue, String(instance.incarnation.rawValue), session.rawValue,
                String(StoreTimes.roomLifeMS),
            ]
        )
    }

    func answer(_ reply: RESPValue) throws(StoreError) -> RoomEntry { try RoomEntry(reply) }
}

extension RoomEntry {
    init(_ reply: RESPValue) throws(StoreError) {
        guard let fields = reply.array, fields.count >= 2, let flat = fields[1].array, flat.count.isMultiple(of: 2)
        else { throw .malformed }
        var members: [String: String] = [:]
        for index in stride(from: 0, to: flat.count, by: 2) {
            guard let name = flat[index].text, let value = flat[index + 1].text else { throw .malformed }
            members[name] = value
        }
        guard let session = members["s"].flatMap(RoomSession.init) else { throw .malformed }
        var nodes: [NodeID: Attachment] = [:]
        for (name, value) in members where name.hasPrefix("n:") {
            let parts = value.split(separator: ":")
            guard parts.count == 2, let node = NodeID(rawValue: String(name.dropFirst(2))),
                let incarnation = UInt32(parts[0]).flatMap(NodeIncarnation.init), let rank = Int(parts[1])
            else { throw .malformed }
            nodes[node] = Attachment(incarnation: incarnation, rank: rank)
        }
        self.init(session: session, nodes: nodes)
        isFenced = fields[0].number == 1
    }
}

extension Detach: StoreRequest {
    func call(_ keys: StoreKeys) -> StoreCall {
        StoreCall(
            script: .detach,
            keys: [keys.room(room)],
            arguments: [instance.node.rawValue, String(instance.incarnation.rawValue)]
        )
    }

    func answer(_ reply: RESPValue) throws(StoreError) -> Bool {
        guard let number = reply.number else { throw .malformed }
        return number > 0
    }
}

extension Sweep: StoreRequest {
    /// The most rooms of one script, which nothing else in the store interrupts.
    static let roomsMax = 64

    /// All rooms have to have the same hash tag.
    func call(_ keys: StoreKeys) -> StoreCall {
        StoreCall(
            script: .sweep,
            keys: rooms.map(keys.room),
            arguments: [String(StoreTimes.roomLifeMS)]
                + gone.sorted { $0.key < $1.key }.flatMap { [$0.key.rawValue, String($0.value.rawValue)] }
        )
    }

    /// The sweep in parts with one hash tag and at most ``roomsMax`` rooms each.
    func parts(_ keys: StoreKeys) -> [Sweep] {
        Dictionary(grouping: rooms, by: keys.tag).sorted { $0.key < $1.key }.flatMap { group in
            stride(from: 0, to: group.value.count, by: Self.roomsMax).map { start in
                Sweep(rooms: Array(group.value[start..<min(start + Self.roomsMax, group.value.count)]), gone: gone)
            }
        }
    }

    func answer(_ reply: RESPValue) throws(StoreError) -> Int {
        guard let number = reply.number.flatMap({ Int(exactly: $0) }) else { throw .malformed }
        return number
    }
}
