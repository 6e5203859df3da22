import HTTPTypes
import Hummingbird
import NIOCore
import Pages
import Web

extension OperatorsPage {
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
