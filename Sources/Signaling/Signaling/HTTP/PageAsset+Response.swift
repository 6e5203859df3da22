import ChannelTypes
import HTTPTypes
import Hummingbird
import NIOCore
import Pages
import Web

extension PageAsset {
    /// One shared buffer for all connections, so that slow clients hold no copies.
    private static let buffers = Dictionary(uniqueKeysWithValues: allCases.map { ($0, ByteBuffer(bytes: $0.bytes)) })

    /// Restricts the page to its own files and this server, and forbids frames. In a cluster it may connect to the other
    /// nodes, which serve their channels.
    private static func policy(_ nodes: [NodeAddress]) -> String {
        let others = nodes.prefix(nodesMax).map { " \($0.webSocketURL)" }.joined()
        return """
            default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'\(others); \
            worker-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
            """
    }

    /// The most nodes in the policy, so that it stays within what clients and proxies accept of a header. A page that may not
    /// connect to a node stays at the one that sent it there.
    private static let nodesMax = 64

    /// - Parameter nodes: the other nodes of the cluster.
    func response(isHead: Bool, nodes: [NodeAddress] = []) -> Response {
        let buffer = Self.buffers[self] ?? ByteBuffer()
        let headers: HTTPFields = [
            .contentType: contentType,
            .contentLength: String(buffer.readableBytes),
            .contentSecurityPolicy: Self.policy(nodes),
            .xContentTypeOptions: "nosniff",
            .referrerPolicy: "no-referrer",
            // The page is small and changes with the server's version only.
            .cacheControl: "no-cache",
        ]
        let body = isHead ? ResponseBody() : ResponseBody(byteBuffer: buffer)
        return Response(status: .ok, headers: headers, body: body)
    }
}
