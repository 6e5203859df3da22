import Cluster
import Foundation
import Media
import MediaTypes

/// Tracks that cross between nodes: the requests for them go over the control link.
struct ClusterMedia: RemoteOrigins {
    let cluster: ClusterNode

    /// A viewer waits for the answer.
    private static let timeout = Duration.seconds(2)

    func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        let body = Array(try JSONEncoder().encode(request))
        let question = LinkRequest(kind: .export, body: body)
        let answer = try await cluster.ask(question, of: request.origin.node, within: Self.timeout)
        return try JSONDecoder().decode(RemoteExportAnswer.self, from: Data(answer))
    }

    /// Answers the request of another node. `nil` when the track is not here any more.
    static func answer(_ body: [UInt8], from node: NodeIncarnation, _ loops: MediaLoops) async -> [UInt8]? {
        guard let request = try? JSONDecoder().decode(RemoteExport.self, from: Data(body)),
            request.receiver.location.node == node, let answer = try? await loops.export(request),
            let encoded = try? JSONEncoder().encode(answer)
        else { return nil }
        return Array(encoded)
    }
}
