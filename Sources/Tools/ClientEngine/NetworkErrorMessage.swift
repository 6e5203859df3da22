internal import Foundation

/// What went wrong with a connection to a server, for people.
package enum NetworkErrorMessage {
    /// A clause without a full stop.
    package static func message(for error: any Error) -> String {
        let text = String(describing: error)
        if text.localizedCaseInsensitiveContains("refused") {
            return "the connection was refused; start the server, or check the URL"
        }
        if text.localizedCaseInsensitiveContains("timeout") { return "the server did not answer in time" }
        if text.localizedCaseInsensitiveContains("unknown host") || text.contains("getaddrinfo") {
            return "the host name is unknown"
        }
        let line = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? "unknown error"
        return line.hasSuffix(".") ? String(line.dropLast()) : line
    }
}
