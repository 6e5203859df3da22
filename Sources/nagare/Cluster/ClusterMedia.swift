import Cluster
import Forwarding
import Foundation
import Logging
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

    /// Answers the request of another node.
    /// - Parameter logger: logs why a track that is here is not sent.
    /// - Returns: `nil` when the track is not sent.
    static func answer(
        _ body: [UInt8],
        from node: NodeIncarnation,
        _ loops: MediaLoops,
        logger: Logger
    ) async -> [UInt8]? {
        guard let request = try? JSONDecoder().decode(RemoteExport.self, from: Data(body)),
            request.receiver.location.node == node
        else { return nil }
        do {
            return Array(try JSONEncoder().encode(try await loops.export(request)))
        } catch ForwarderError.unknownTrack {
            // Its publisher has left meanwhile.
            return nil
        } catch {
            logger.warning(
                "a track is not sent to another node",
                metadata: ["track": "\(request.track)", "node": "\(node)", "reason": "\(error)"]
            )
            return nil
        }
    }
}
