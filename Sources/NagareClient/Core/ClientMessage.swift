/// A message to the server.
enum ClientMessage: Hashable, Sendable {
    case connect(ConnectMessage)
    case description(ServerMessage.AnswerType, sdp: String)
    case request(Int, method: String, parameters: JSONValue)
    /// - Parameter statistics: those that the server asked for.
    case pong(statistics: JSONValue?)
    case disconnect

    var json: JSONValue {
        switch self {
        case .connect(let message): message.json
        case .description(let type, let sdp): ["type": .string(type.rawValue), "sdp": .string(sdp)]
        case .request(let number, let method, let parameters):
            ["type": "request", "id": .string(String(number)), "method": .string(method), "params": parameters]
        case .pong(let statistics): statistics.map { ["type": "pong", "stats": $0] } ?? ["type": "pong"]
        case .disconnect: ["type": "disconnect", "reason": "NO-ERROR"]
        }
    }
}

/// What a connection asks for.
struct ConnectMessage: Hashable, Sendable {
    /// Of the Sora signaling.
    enum Direction: String, Hashable, Sendable { case sendonly, recvonly, sendrecv }

    var channel: String
    var user: String
    var accessToken: JSONValue?
    var displayName: String?
    var metadata: [String: JSONValue]
    var direction: Direction
    var audio = true
    var video = true
    var options = VideoOptions()
    var profile: ChannelProfile?
    var role: ChannelRole?
    var source: TrackSource
    var subscribesManually = false
    var resumeToken: String?
    var isRedirected = false

    var json: JSONValue {
        var nagare: [String: JSONValue] = ["source": .string(source.rawValue)]
        nagare["profile"] = profile.map { .string($0.rawValue) }
        nagare["role"] = role.map { .string($0.rawValue) }
        if subscribesManually { nagare["subscribe"] = "manual" }
        nagare["resume"] = resumeToken.map { .string($0) }
        var metadata = metadata
        if let accessToken { metadata["access_token"] = accessToken }
        var message: [String: JSONValue] = [
            "type": "connect", "role": .string(direction.rawValue), "channel_id": .string(channel),
            "client_id": .string(user), "bundle_id": .string(user), "sora_client": "Nagare Swift client 1",
            "environment": "Swift", "audio": .bool(audio), "video": videoJSON, "metadata": .object(metadata),
            "nagare": .object(nagare),
        ]
        if let displayName { message["signaling_notify_metadata"] = ["name": .string(displayName)] }
        if options.isSimulcast { message["simulcast"] = true }
        if isRedirected { message["redirect"] = true }
        return .object(message)
    }

    private var videoJSON: JSONValue {
        guard video, options.codec != nil || options.bitRate != nil else { return .bool(video) }
        var members: [String: JSONValue] = [:]
        members["codec_type"] = options.codec.map { .string($0) }
        members["bit_rate"] = options.bitRate.map { .number(Double($0)) }
        return .object(members)
    }
}
