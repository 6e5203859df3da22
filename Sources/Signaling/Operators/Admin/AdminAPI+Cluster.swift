import ChannelTypes
import JSON
import MediaTypes
import Room
import Web

// Connections of other nodes of a cluster, with their statistics.

extension AdminAPI {
    /// The connections that one question asks for at most.
    private static let askedMax = 100
    /// An answer of another node has the documents of that many connections.
    private static let limits = JSONLimits(bytesMax: 12 << 20, containersMax: 200_000, valuesMax: 2_000_000)

    /// Answers another node's question for connections of this one.
    /// - Parameter question: a JSON array of identifiers of connections.
    /// - Returns: a JSON object of their documents by identifier, without those that are not here; `nil` for another text.
    package func answer(connections question: [UInt8]) async -> [UInt8]? {
        guard let ids = try? JSONValue(parsing: question).array, ids.count <= Self.askedMax else { return nil }
        var documents: [String: JSONValue] = [:]
        for id in ids.compactMap({ $0.string.flatMap { ParticipantID($0) } }) {
            let connection = await directory.connection(of: id)
            guard let connection, connection.node == operators.cluster?.incarnation else { continue }
            documents[id.value] = .object(await describeHere(connection))
        }
        return JSONValue.object(documents).bytes
    }

    /// What other nodes say of their connections, by identifier. Those of a node that does not answer are missing.
    func documentsOfOtherNodes(_ connections: [Connection]) async -> [String: JSONValue] {
        guard let cluster = operators.cluster else { return [:] }
        let others = Dictionary(grouping: connections.filter { $0.node != cluster.incarnation }, by: \.node)
        guard !others.isEmpty else { return [:] }
        return await withTaskGroup(of: [String: JSONValue].self) { group in
            for (node, connections) in others {
                group.addTask { await Self.documents(of: connections, at: node, cluster) }
            }
            return await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
        }
    }

    private static func documents(
        of connections: [Connection],
        at node: NodeIncarnation,
        _ cluster: any OtherNodes
    ) async -> [String: JSONValue] {
        var documents: [String: JSONValue] = [:]
        var rest = connections.map { JSONValue.string($0.member.id.value) }[...]
        while !rest.isEmpty {
            let question = JSONValue.array(Array(rest.prefix(askedMax))).bytes
            rest = rest.dropFirst(askedMax)
            guard let answer = try? await cluster.ask(NodeRequest(kind: .connections, body: question), of: node),
                let found = try? JSONValue(parsing: answer, limits: limits).object
            else { return documents }
            documents.merge(found) { first, _ in first }
        }
        return documents
    }
}
