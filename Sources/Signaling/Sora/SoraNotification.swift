import Base
import ChannelTypes
import MediaTypes
import Room
import Web
import Wire

extension SoraServerMessage {
    /// The maximum total metadata of present members for a new client, in bytes. Further members come without metadata.
    static let memberMetadataBytesMax = 1024 * 1024

    /// The `notify` message of a notification.
    static func notify(_ notification: Notification) -> String {
        var message = JSONObjectWriter()
        message.add("type", "notify")
        message.add("event_type", eventType(of: notification.content))
        message.add("timestamp", Timestamp.text(unixNanoseconds: notification.timestamp))
        switch notification.content {
        case .created(let member, let minutes, let session, let counts, let others):
            add(member, minutes, session, counts, to: &message)
            if let others { message.add("data", json: list(others)) }
        case .updated(let member, let minutes, let session, let counts),
            .destroyed(let member, let minutes, let session, let counts):
            add(member, minutes, session, counts, to: &message)
        case .spotlightFocused(let member, let isFixed), .spotlightUnfocused(let member, let isFixed):
            message.add("client_id", member.clientID)
            message.add("connection_id", member.id.value)
            message.add("audio", member.sendsAudio)
            message.add("video", member.sendsVideo)
            message.add("fixed", isFixed)
        case .layerSwitched(let change):
            message.add("sender_connection_id", orNull: change.sender?.value)
            message.add("priority", change.isHigher ? "higher" : "lower")
            message.add("trigger", change.trigger == .sender ? "sender" : "receiver")
            message.add("rpc_rids", json: jsonArray((["none"] + change.layers.map(\.value)).map(jsonString)))
            message.add("auto_rids", json: jsonArray(change.permitted.map { jsonString($0.value) }))
            message.add("request_rid", name(of: change.requested))
            message.add("current_rid", change.current?.value ?? "none")
            message.add("previous_rid", change.previous?.value ?? "none")
        case .forwarding(_, let kind, let source, let destination):
            message.add("kind", kind.rawValue)
            message.add("source_connection_id", source.value)
            message.add("destination_connection_id", destination.value)
        case .codecUnsupported(let codec, let source, let destination):
            message.add("kind", codec.kind.rawValue)
            message.add("codec_type", codec.rawValue.uppercased())
            message.add("source_connection_id", source.value)
            message.add("destination_connection_id", destination.value)
            message.add(
                "message",
                "This client cannot play \(codec.rawValue.uppercased()), the codec of the sender's "
                    + "\(codec.kind.rawValue); the sender must publish with a codec that all clients can play."
            )
        case .networkStatus(let level): message.add("unstable_level", level)
        case .networkQuality(let quality):
            message.add("uplink", quality.uplink.rawValue)
            message.add("downlink", quality.downlink.rawValue)
        case .iceStateChanged(let current, let previous):
            message.add("current_state", current.rawValue)
            message.add("previous_state", previous.rawValue)
        case .interrupted(let member), .resumed(let member):
            message.add("user_id", member.clientID)
            message.add("connection_id", member.id.value)
        case .othersQuality(let member, let quality):
            message.add("user_id", member.clientID)
            message.add("connection_id", member.id.value)
            message.add("uplink", quality.uplink.rawValue)
            message.add("downlink", quality.downlink.rawValue)
        case .firstFrame(let member, let elapsed):
            message.add("user_id", member.clientID)
            message.add("connection_id", member.id.value)
            message.add("elapsed", elapsed)
        case .accessExpires(let second): message.add("expires_at", Int(second))
        case .channelJoined, .userOnline, .userOffline, .tracksChanged, .roleChanged, .muted, .handChanged,
            .chatHistory:
            addUserEvent(notification.content, to: &message)
        }
        return message.text
    }

    private static func eventType(of content: Notification.Content) -> String {
        switch content {
        case .created: "connection.created"
        case .updated: "connection.updated"
        case .destroyed: "connection.destroyed"
        case .spotlightFocused: "spotlight.focused"
        case .spotlightUnfocused: "spotlight.unfocused"
        case .layerSwitched: "simulcast.switched"
        case .forwarding(isBlocked: true, _, _, _): "forwarding.blocked"
        case .forwarding(isBlocked: false, _, _, _): "forwarding.allowed"
        case .codecUnsupported: "codec.unsupported"
        case .networkStatus: "network.status"
        case .networkQuality: "network.quality"
        case .othersQuality: "user.network_quality"
        case .iceStateChanged: "ice-connection-state.changed"
        case .interrupted: "user.interrupted"
        case .resumed: "user.resumed"
        case .accessExpires: "token.expiring"
        case .channelJoined: "channel.joined"
        case .userOnline: "user.online"
        case .userOffline: "user.offline"
        case .tracksChanged: "track.changed"
        case .firstFrame: "track.first_frame"
        case .roleChanged: "role.changed"
        case .muted: "muted"
        case .handChanged: "hand.changed"
        case .chatHistory: "chat.history"
        }
    }

    private static func add(
        _ member: Member,
        _ minutes: Int,
        _ session: ChannelSessionID,
        _ counts: ChannelCounts,
        to message: inout JSONObjectWriter
    ) {
        message.add("role", member.role.rawValue)
        message.add("session_id", session.value)
        addIdentifiers(of: member, to: &message)
        message.add("audio", member.sendsAudio)
        message.add("video", member.sendsVideo)
        message.add("minutes", minutes)
        message.add("channel_connections", counts.connections)
        message.add("channel_sendrecv_connections", counts.sendrecv)
        message.add("channel_sendonly_connections", counts.sendonly)
        message.add("channel_recvonly_connections", counts.recvonly)
        message.add("turn_transport_type", member.transport.rawValue)
        addMetadata(of: member, to: &message)
    }

    private static func addIdentifiers(of member: Member, to message: inout JSONObjectWriter) {
        message.add("client_id", member.clientID)
        message.add("bundle_id", member.bundleID)
        message.add("connection_id", member.id.value)
    }

    /// `metadata` is `authn_metadata` until the client replaces it.
    private static func addMetadata(of member: Member, to message: inout JSONObjectWriter) {
        message.add("authn_metadata", ifPresent: member.notifyMetadataJSON)
        message.add("authz_metadata", ifPresent: member.authorizedMetadataJSON)
        message.add("metadata", ifPresent: member.metadataJSON)
    }

    private static func list(_ members: [Member]) -> String {
        var bytes = 0
        return jsonArray(
            members.map { member in
                var entry = JSONObjectWriter()
                addIdentifiers(of: member, to: &entry)
                let texts = [member.notifyMetadataJSON, member.metadataJSON, member.authorizedMetadataJSON]
                bytes += texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
                if bytes <= memberMetadataBytesMax { addMetadata(of: member, to: &entry) }
                return entry.text
            }
        )
    }

    private static func name(of choice: LayerChoice) -> String {
        switch choice {
        case .nothing: "none"
        case .level(let level): "r\(min(max(level, 0), 2))"
        case .richest: "r2"
        }
    }
}
