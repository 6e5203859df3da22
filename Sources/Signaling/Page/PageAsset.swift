import HTTPTypes
import Hummingbird
import NIOCore

/// A file of the built-in page.
enum PageAsset: Hashable, Sendable, CaseIterable {
    case page, script, style

    /// `nil` for an unknown file. The empty name is the page itself.
    init?(name: String) {
        switch name {
        case "", "index.html": self = .page
        case "page.js": self = .script
        case "page.css": self = .style
        default: return nil
        }
    }

    private var bytes: [UInt8] {
        switch self {
        case .page: PackageResources.index_html
        case .script: PackageResources.page_js
        case .style: PackageResources.page_css
        }
    }

    /// One shared buffer for all connections, so that slow clients hold no copies.
    private static let buffers = Dictionary(uniqueKeysWithValues: allCases.map { ($0, ByteBuffer(bytes: $0.bytes)) })

    private var contentType: String {
        switch self {
        case .page: "text/html; charset=utf-8"
        case .script: "text/javascript; charset=utf-8"
        case .style: "text/css; charset=utf-8"
        }
    }

    /// Restricts the page to its own files and this server, and forbids frames.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
        worker-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    func response(isHead: Bool) -> Response {
        let buffer = Self.buffers[self] ?? ByteBuffer()
        let headers: HTTPFields = [
            .contentType: contentType,
            .contentLength: String(buffer.readableBytes),
            .contentSecurityPolicy: Self.policy,
            .xContentTypeOptions: "nosniff",
            .referrerPolicy: "no-referrer",
            // The page is small and changes with the server's version only.
            .cacheControl: "no-cache",
        ]
        let body = isHead ? ResponseBody() : ResponseBody(byteBuffer: buffer)
        return Response(status: .ok, headers: headers, body: body)
    }
}

extension HTTPField.Name {
    static let referrerPolicy = Self("Referrer-Policy")!
    static let participant = Self("Nagare-Participant")!
    static let acceptPost = Self("Accept-Post")!
    static let acceptPatch = Self("Accept-Patch")!
}
