package import ChannelTypes
import Room

// Which node has a room.

extension AyameCalls {
    /// The node that a client joins a room at: the one that has it, as far as it can be found.
    ///
    /// A node more or less in the cluster moves the first candidate of few rooms, and never all three of one.
    func home(of room: ChannelName, _ cluster: any OtherNodes) async -> Home {
        if let known = knownHome(of: room) { return known }
        let candidates = await cluster.candidates(for: room)
        let answers = await ask(candidates.all, about: room, cluster)
        // Another client may have begun or found the room meanwhile.
        if let known = knownHome(of: room) { return known }
        let best =
            candidates.all.first { answers[$0]?.room != nil }
            ?? candidates.open.first { $0 == cluster.nodeID || answers[$0] != nil }
        guard let best, best != cluster.nodeID else { return .here }
        return .at(best)
    }

    /// The node that a room is known to be at; `nil` for a room that is not known here.
    func knownHome(of room: ChannelName) -> Home? {
        if rooms.listing(of: room) != nil { return .here }
        return state.elsewhere[room]?.first.flatMap { state.registrations[$0] }.map { .at($0.home) }
    }

    /// The answers of the nodes that answered. A node of a version without rooms over nodes does not.
    private func ask(
        _ nodes: [NodeID],
        about room: ChannelName,
        _ cluster: any OtherNodes
    ) async -> [NodeID: AyameNodeAnswer] {
        let question = NodeRequest(kind: .callRoom, body: AyameNodeQuestion.find(room).encoded)
        return await withTaskGroup(of: (NodeID, AyameNodeAnswer?).self) { group in
            for node in nodes where node != cluster.nodeID {
                group.addTask {
                    let bytes = try? await cluster.ask(question, of: node)
                    return (node, bytes.flatMap { AyameNodeAnswer($0, about: room) })
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// Finds a room at any node; `nil` when nobody is in it.
    package func listing(of room: ChannelName) async -> AyameRooms.Listing? {
        if let listing = rooms.listing(of: room) { return listing }
        guard let cluster else { return nil }
        var nodes = await cluster.candidates(for: room).all
        if case .at(let home) = knownHome(of: room), !nodes.contains(home) { nodes.append(home) }
        let answers = await ask(nodes, about: room, cluster)
        return nodes.lazy.compactMap { answers[$0]?.room }.first
    }

    /// Tells the nodes that may have a room of a decision about it.
    func tellHome(_ question: AyameNodeQuestion, _ cluster: any OtherNodes) async {
        let nodes = await cluster.candidates(for: question.room).all
        let request = NodeRequest(kind: .callRoom, body: question.encoded)
        await withTaskGroup(of: Void.self) { group in
            for node in nodes where node != cluster.nodeID {
                group.addTask { _ = try? await cluster.ask(request, of: node) }
            }
        }
    }

    /// Answers the question of another node.
    /// - Returns: `nil` for bytes that are no question.
    package func answer(_ question: [UInt8]) -> [UInt8]? {
        switch AyameNodeQuestion(question) {
        case nil: return nil
        case .find(let room): return AyameNodeAnswer(room: rooms.listing(of: room)).encoded
        case .kick(let user, let room): _ = endHere(by: .kicked(user, from: room))
        case .terminate(let room): _ = endHere(by: .terminated(room))
        }
        return []
    }
}
