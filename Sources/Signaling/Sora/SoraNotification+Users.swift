import ChannelTypes
import MediaTypes
import Room
import Wire

// Notifications of the channel extension.

extension SoraServerMessage {
    static func addUserEvent(_ content: Notification.Content, to message: inout JSONObjectWriter) {
        switch content {
        case .channelJoined(let joined): add(joined, to: &message)
        case .userOnline(let user): add(user, withMetadata: true, to: &message)
        case .userOffline(let user, let departure):
            message.add("user_id", user)
            message.add("reason", departure.rawValue)
        case .tracksChanged(let tracks):
            message.add("user_id", tracks.user)
            add(tracks, to: &message)
            if tracks.hasEnded { message.add("ended", true) }
        case .roleChanged(let role, let initiator):
            message.add("role", role.rawValue)
            message.add("by", initiator.rawValue)
        case .handChanged(let hand):
            add(hand, to: &message)
            message.add("raised", hand.isRaised)
        case .chatHistory(let messages):
            let texts = messages.map { sent in
                var entry = JSONObjectWriter()
                entry.add("user_id", sent.user)
                entry.add("display_name", ifPresent: sent.displayName.map(jsonString))
                entry.add("text", sent.text)
                entry.add("sent_at", Int(sent.unixSeconds))
                return entry.text
            }
            message.add("messages", json: jsonArray(texts))
        case .muted(let kind, let isMuted, let initiator):
            message.add("kind", kind.rawValue)
            message.add("muted", isMuted)
            message.add("by", initiator.rawValue)
        default: break
        }
    }

    /// The result of `listMembers`.
    static func members(_ channel: JoinedChannel) -> String {
        var result = JSONObjectWriter()
        add(channel, withResumeToken: false, to: &result)
        return result.text
    }

    private static func add(_ joined: JoinedChannel, withResumeToken: Bool = true, to message: inout JSONObjectWriter) {
        message.add("user_id", joined.user)
        message.add("connection_id", joined.connection.value)
        message.add("profile", joined.profile.rawValue)
        message.add("role", joined.role.rawValue)
        if withResumeToken { message.add("resume_token", ifPresent: joined.resumeToken.map(jsonString)) }
        message.add("grace", joined.graceSeconds)
        message.add("elapsed", ifPresent: joined.elapsedMilliseconds.map { String($0) })
        var bytes = 0
        let users = joined.users.map { user in
            var entry = JSONObjectWriter()
            add(user.user, withMetadata: false, to: &entry)
            let connections = user.connections.map { connection in
                var entry = JSONObjectWriter()
                add(connection.tracks, to: &entry)
                entry.add("interrupted", connection.isInterrupted)
                entry.add("uplink", connection.quality.uplink.rawValue)
                entry.add("downlink", connection.quality.downlink.rawValue)
                bytes += connection.notifyMetadataJSON?.utf8.count ?? 0
                if bytes <= memberMetadataBytesMax { entry.add("metadata", ifPresent: connection.notifyMetadataJSON) }
                return entry.text
            }
            entry.add("connections", json: jsonArray(connections))
            return entry.text
        }
        message.add("users", json: jsonArray(users))
        if joined.mayModerate { message.add("moderator", true) }
        let hands = joined.hands.map { hand in
            var entry = JSONObjectWriter()
            add(hand, to: &entry)
            return entry.text
        }
        message.add("hands", json: jsonArray(hands))
    }

    private static func add(_ hand: Hand, to message: inout JSONObjectWriter) {
        message.add("user_id", hand.user)
        message.add("display_name", ifPresent: hand.displayName.map(jsonString))
    }

    private static func add(_ user: ChannelUser, withMetadata: Bool, to message: inout JSONObjectWriter) {
        message.add("user_id", user.id)
        message.add("display_name", ifPresent: user.displayName.map(jsonString))
        message.add("role", user.role.rawValue)
        if withMetadata { message.add("metadata", ifPresent: user.notifyMetadataJSON) }
    }

    private static func add(_ tracks: PublishedTracks, to message: inout JSONObjectWriter) {
        message.add("connection_id", tracks.connection.value)
        message.add("source", tracks.source.rawValue)
        message.add("audio", tracks.audio)
        message.add("video", tracks.video)
        message.add("audio_muted", tracks.isAudioMuted)
        message.add("video_muted", tracks.isVideoMuted)
    }
}
