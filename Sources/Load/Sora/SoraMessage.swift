internal import Foundation

/// What a client says to the server, as JSON.
enum SoraRequest {
    /// What a client does in its channel.
    enum Role: String, Sendable { case sendonly, recvonly, sendrecv }

    struct Connect: Encodable {
        struct Video: Encodable {
            /// What synthetic video looks like.
            var codecType = "VP8"
        }
        struct Metadata: Encodable {
            var accessToken: String
        }
        /// Whether there is video, and for those who send it of which codec.
        enum VideoWish: Encodable {
            case isWanted(Bool)
            case of(Video)

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .isWanted(let isWanted): try container.encode(isWanted)
                case .of(let video): try container.encode(video)
                }
            }
        }
        var type = "connect"
        var role: String
        var channelID: String
        var soraClient = "Nagare load"
        var environment = "Linux"
        var audio: Bool
        var video: VideoWish
        var metadata: Metadata?
        var redirect: Bool?
    }
    struct Description: Encodable {
        var type: String
        var sdp: String
    }
    struct Pong: Encodable {
        var type = "pong"
        /// Reports, of which a load generator has none.
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

/// What the server says, as far as a load generator looks at it.
struct SoraMessage: Decodable, Sendable, Equatable {
    struct Lines: Decodable, Sendable, Equatable {
        var audio: String?
        var video: String?
    }
    var type: String
    var sdp: String?
    /// In an offer: the lines that the client sends in.
    var mid: Lines?
    /// In a ping: whether reports are wanted.
    var stats: Bool?
    /// In a redirection: where to go.
    var location: String?

    /// `nil` when the text is no message.
    init?(_ text: String) {
        guard let message = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else { return nil }
        self = message
    }
}
