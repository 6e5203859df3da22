/// A message of the server, with the members that a client reads.
enum ServerMessage: Hashable, Sendable {
    case redirect(to: String)
    case offer(OfferMessage)
    case laterOffer(String, answeredAs: AnswerType)
    case ping(wantsStatistics: Bool)
    case notify(Notification)
    case push(JSONValue)
    case response(Int, Result<JSONValue, NagareError>)
    /// A message that concerns nothing here.
    case ignored
    /// No message of this protocol.
    case unreadable

    enum AnswerType: String, Hashable, Sendable {
        case answer
        case reAnswer = "re-answer"
        case update
    }
}

struct OfferMessage: Hashable, Sendable, Decodable {
    struct MIDs: Hashable, Sendable, Decodable {
        var audio: String?
        var video: String?
    }
    struct Server: Hashable, Sendable, Decodable {
        var urls: [String]
        var username: String?
        var credential: String?
    }
    struct Configuration: Hashable, Sendable, Decodable {
        var iceServers: [Server]?
        var iceTransportPolicy: String?
    }
    struct Encoding: Hashable, Sendable, Decodable {
        var rid: String?
        var active: Bool?
        var scaleResolutionDownBy: Double?
        var maxBitrate: Int?
        var maxFramerate: Double?
    }
    var sdp: String
    var connectionID: String
    var mid: MIDs?
    var config: Configuration?
    var simulcast: Bool?
    var encodings: [Encoding]?

    enum CodingKeys: String, CodingKey {
        case sdp, mid, config, simulcast, encodings
        case connectionID = "connection_id"
    }

    var serverOffer: ServerOffer {
        var mids: [TrackKind: String] = [:]
        mids[.audio] = mid?.audio
        mids[.video] = mid?.video
        let encodings = (simulcast == true ? encodings : nil) ?? []
        return ServerOffer(
            sdp: sdp,
            sendingMIDs: mids,
            encodings: encodings.map {
                VideoEncoding(
                    rid: $0.rid,
                    isActive: $0.active ?? true,
                    scaleResolutionDownBy: $0.scaleResolutionDownBy,
                    maxBitrate: $0.maxBitrate,
                    maxFramerate: $0.maxFramerate
                )
            }
        )
    }

    func setup(_ source: TrackSource) -> MediaConnectionSetup {
        MediaConnectionSetup(
            source: source,
            iceServers: (config?.iceServers ?? []).map {
                ICEServer(urls: $0.urls, username: $0.username, credential: $0.credential)
            },
            isRelayedOnly: config?.iceTransportPolicy == "relay"
        )
    }
}

/// An event of the channel extension, whose members depend on its type.
struct Notification: Hashable, Sendable, Decodable {
    struct Connection: Hashable, Sendable, Decodable {
        var connectionID: String
        var source: String?
        var audio: Bool?
        var video: Bool?
        var isAudioMuted: Bool?
        var isVideoMuted: Bool?
        var interrupted: Bool?
        var uplink: Int?
        var downlink: Int?
        var metadata: JSONValue?

        enum CodingKeys: String, CodingKey {
            case source, audio, video, interrupted, uplink, downlink, metadata
            case connectionID = "connection_id"
            case isAudioMuted = "audio_muted"
            case isVideoMuted = "video_muted"
        }
    }
    struct User: Hashable, Sendable, Decodable {
        var userID: String
        var displayName: String?
        var role: String?
        var metadata: JSONValue?
        var connections: [Connection]?

        enum CodingKeys: String, CodingKey {
            case role, metadata, connections
            case userID = "user_id"
            case displayName = "display_name"
        }
    }
    var type: String
    var userID: String?
    var connectionID: String?
    var displayName: String?
    var profile: String?
    var role: String?
    var by: String?
    var kind: String?
    var muted: Bool?
    var reason: String?
    var resumeToken: String?
    var grace: Int?
    var elapsed: Int?
    var expiresAt: Int?
    var ended: Bool?
    var uplink: Int?
    var downlink: Int?
    var metadata: JSONValue?
    var users: [User]?
    /// The members of a connection, where the event is about one.
    var connection: Connection?

    enum CodingKeys: String, CodingKey {
        case profile, role, by, kind, muted, reason, grace, elapsed, ended, uplink, downlink, metadata, users
        case type = "event_type"
        case userID = "user_id"
        case connectionID = "connection_id"
        case displayName = "display_name"
        case resumeToken = "resume_token"
        case expiresAt = "expires_at"
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        type = try fields.decode(String.self, forKey: .type)
        userID = try fields.decodeIfPresent(String.self, forKey: .userID)
        connectionID = try fields.decodeIfPresent(String.self, forKey: .connectionID)
        displayName = try fields.decodeIfPresent(String.self, forKey: .displayName)
        profile = try fields.decodeIfPresent(String.self, forKey: .profile)
        role = try fields.decodeIfPresent(String.self, forKey: .role)
        by = try fields.decodeIfPresent(String.self, forKey: .by)
        kind = try fields.decodeIfPresent(String.self, forKey: .kind)
        muted = try fields.decodeIfPresent(Bool.self, forKey: .muted)
        reason = try fields.decodeIfPresent(String.self, forKey: .reason)
        resumeToken = try fields.decodeIfPresent(String.self, forKey: .resumeToken)
        grace = try fields.decodeIfPresent(Int.self, forKey: .grace)
        elapsed = try fields.decodeIfPresent(Int.self, forKey: .elapsed)
        expiresAt = try fields.decodeIfPresent(Int.self, forKey: .expiresAt)
        ended = try fields.decodeIfPresent(Bool.self, forKey: .ended)
        uplink = try fields.decodeIfPresent(Int.self, forKey: .uplink)
        downlink = try fields.decodeIfPresent(Int.self, forKey: .downlink)
        metadata = try fields.decodeIfPresent(JSONValue.self, forKey: .metadata)
        users = try fields.decodeIfPresent([User].self, forKey: .users)
        connection = connectionID == nil ? nil : try Connection(from: decoder)
    }
}

/// The members of `channel.joined` and of the answer to `listMembers`.
extension Notification {
    var roleValue: ChannelRole? { role.flatMap { ChannelRole(rawValue: $0) } }
    var kindValue: TrackKind? { kind.flatMap { TrackKind(rawValue: $0) } }
}
