import ChannelTypes
import Foundation
package import MediaTypes

// Tracks that cross between nodes: the requests for them go over the control link.

extension ClusterNode: RemoteOrigins {
    package func export(_ request: RemoteExport) async throws -> RemoteExportAnswer {
        let question = NodeRequest(kind: .export, body: Array(try JSONEncoder().encode(request)))
        let answer = try await ask(question, of: request.origin.node)
        return try JSONDecoder().decode(RemoteExportAnswer.self, from: Data(answer))
    }
}

extension NodeRequest {
    /// Answers a request for a track.
    /// - Parameters:
    ///   - node: who asks.
    ///   - export: returns `nil` when the track is not sent.
    package func answered(
        from node: NodeIncarnation,
        by export: (RemoteExport) async -> RemoteExportAnswer?
    ) async -> [UInt8]? {
        guard let request = try? JSONDecoder().decode(RemoteExport.self, from: Data(body)),
            request.receiver.location.node == node, let answer = await export(request)
        else { return nil }
        return (try? JSONEncoder().encode(answer)).map { Array($0) }
    }
}
