internal import Foundation

/// Messages from the client to the server.
enum SoraRequest {
    enum Role: String, Sendable { case sendonly, recvonly, sendrecv }

    struct Connect: Encodable {
        struct Video: Encodable {
            /// The codec of synthetic video.
            var codecType = "VP8"
        }
        struct Metadata: Encodable {
            var accessToken: String
        }
        /// Whether the client sends or receives video, or the options of the video that it sends.
        enum VideoOption: Encodable {
            case isEnabled(Bool)
            case options(Video)

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .isEnabled(let isEnabled): try container.encode(isEnabled)
                case .options(let video): try container.encode(video)
                }
            }
        }
        var type = "connect"
        var role: String
        var channelID: String
        var soraClient = "Nagare load"
        var environment = "Linux"
        var audio: Bool
        var video: VideoOption
        var metadata: Metadata?
        var redirect: Bool?
    }
    struct Description: Encodable {
        var type: String
        var sdp: String
    }
    struct Pong: Encodable {
        var type = "pong"
        /// Always empty: a load generator has no statistics.
        var stats: [String]?
    }
    struct Disconnect: Encodable {
        var type = "disconnect"
        var reason = "NO-ERROR"
    }

    static func text(_ message: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.withoutEscapingSlashes]
        guard let data = try? encoder.encode(message) else { preconditionFailure("text and flags are JSON") }
        return String(decoding: data, as: UTF8.self)
    }
}

/// A message from the server, with the members that a load generator reads.
struct SoraMessage: Decodable, Sendable, Equatable {
    struct Lines: Decodable, Sendable, Equatable {
        var audio: String?
        var video: String?
    }
    var type: String
    var sdp: String?
    /// In an offer: the m-sections that the client sends in.
    var mid: Lines?
    /// In a ping: whether statistics are requested.
    var stats: Bool?
    /// In a redirection: the URL of the other node.
    var location: String?

    /// What a report says of text that is no message.
    static let invalid = "The server sent an invalid message."

    /// `nil` for invalid text.
    init?(_ text: String) {
        guard let message = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else { return nil }
        self = message
    }
}
