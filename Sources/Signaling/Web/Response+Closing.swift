import HTTPTypes
package import Hummingbird

extension Response {
    /// The response, after which the server closes the connection.
    package func closingConnection() -> Response {
        struct ConnectionClosed: Error {}
        var response = self
        let body = self.body
        response.headers[.connection] = "close"
        let length = body.contentLength
        response.body = ResponseBody(contentLength: length) { writer in
            let parent = writer
            try await body.write(parent)
            // The HTTP server closes the connection when the body writer throws. The response is complete by then.
            throw ConnectionClosed()
        }
        return response
    }
}
