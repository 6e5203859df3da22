package import ChannelTypes
package import JSON

extension AccessDecision {
    /// Parses the answer of an authentication webhook.
    /// - Throws: a sentence that names the first invalid member.
    package init(webhookAnswer members: [String: JSONValue]) throws(JSONShapeError) {
        let fields = JSONFields(members)
        guard let isAllowed = try fields.bool("allowed") else { throw JSONShapeError("\"allowed\" is missing.") }
        if isAllowed {
            self = .allowed(try Grants(members, besides: ["allowed", "reason"]))
        } else {
            self = .denied(reason: try fields.string("reason", bytesMax: 4_096))
        }
    }
}

extension AccessRequest {
    /// The body of the request to an authentication webhook.
    /// - Parameters:
    ///   - timestamp: the time of sending in RFC 3339 format.
    ///   - node: the members that every webhook gets.
    package func webhookBody(timestamp: String, node: [String: JSONValue]) -> JSONValue {
        var members: [String: JSONValue] = [
            "timestamp": .string(timestamp),
            "channel_id": .string(channel.value),
            "session_id": .string(session.value),
            "connection_id": .string(participant.value),
            "client_id": .string(clientID ?? participant.value),
            "bundle_id": .string(bundleID ?? participant.value),
            "role": .string(role.rawValue),
            "simulcast": .bool(isSimulcast),
            "spotlight": .bool(spotlight),
            "multistream": true,
            "channel_connections": .integer(counts.connections),
            "channel_sendrecv_connections": .integer(counts.sendrecv),
            "channel_sendonly_connections": .integer(counts.sendonly),
            "channel_recvonly_connections": .integer(counts.recvonly),
        ]
        members.merge(options) { first, _ in first }
        members.merge(node) { $1 }
        members.merge(agent.members) { $1 }
        members["libwebrtc"] = libwebrtc.map { .string($0) }
        members["metadata"] = metadata
        members["signaling_notify_metadata"] = notifyMetadata
        // WHIP and WHEP have no metadata: the token is sent where Sora's clients have it.
        if metadata == nil, let credential { members["metadata"] = ["access_token": .string(credential.token)] }
        for (kind, media) in [("audio", audio), ("video", video)] {
            members[kind] = .bool(media.isEnabled)
            members["\(kind)_codec_type"] = media.codec.map { .string($0) }
            members["\(kind)_bit_rate"] = media.bitRate.map { .integer($0) }
        }
        return .object(members)
    }
}

extension ClientAgent {
    /// The members that describe the client to webhooks and operators.
    package var members: [String: JSONValue] {
        var members: [String: JSONValue] = ["signaling": .string(signaling.rawValue)]
        members["sora_client"] = name.isEmpty ? nil : .string(name)
        members["environment"] = environment.map { .string($0) }
        return members
    }
}
