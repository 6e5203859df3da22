import HTTPTypes
import Hummingbird
import NIOCore

/// A file of the operators' page, which the admin listener serves below `/ui/`. The raw value is its name in URLs.
enum OperatorsPage: String, CaseIterable {
    case page = "operators.html"
    case style = "operators.css"
    case script = "operators.js"
    case timeline = "timeline.js"
    case verdict = "verdict.js"

    /// `nil` for an unknown file. The empty name is the page itself.
    init?(name: some StringProtocol) { self.init(rawValue: name.isEmpty ? Self.page.rawValue : String(name)) }

    private var content: (bytes: [UInt8], type: String) {
        switch self {
        case .page: (PackageResources.operators_html, "text/html; charset=utf-8")
        case .style: (PackageResources.operators_css, "text/css; charset=utf-8")
        case .script: (PackageResources.operators_js, "text/javascript; charset=utf-8")
        case .timeline: (PackageResources.timeline_js, "text/javascript; charset=utf-8")
        case .verdict: (PackageResources.verdict_js, "text/javascript; charset=utf-8")
        }
    }

    var response: Response {
        let (bytes, type) = content
        return Response(
            status: .ok,
            headers: [
                .contentType: type,
                // The page has its own files and this listener's API only, and no other page may frame it.
                .contentSecurityPolicy:
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
                    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                .xContentTypeOptions: "nosniff", .referrerPolicy: "no-referrer", .cacheControl: "no-cache",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
        )
    }
}

extension AdminResponder {
    /// `GET /ui/…`. The files are public: all data comes from the API, which checks the token.
    func page(_ name: Substring, _ request: Request) -> Response {
        guard request.method == .get || request.method == .head else {
            return HTTPFailure.methodNotAllowed([.get, .head]).response
        }
        guard let file = OperatorsPage(name: name) else { return HTTPFailure.unknownPath.response }
        let response = file.response
        return request.method == .head ? response.createHeadResponse() : response
    }

    /// Whether a request for `/` comes from a browser's address bar, and not from a client of the API.
    static func isForPage(_ request: Request) -> Bool {
        (request.method == .get || request.method == .head) && prefersHTML(request.headers[values: .accept])
    }
}
