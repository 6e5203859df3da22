import ChannelTypes
import JSON
import Room
import Wire

extension ChannelSnapshot {
    /// The channel's document in the HTTP API. `current` is the publisher that viewers of the channel receive.
    var document: JSONValue {
        var members: [String: JSONValue] = [
            "channel": .string(channel.value),
            "revision": .integer(revision),
            "viewers": .integer(viewerCount),
            "participants": .array(
                participants.map { participant in
                    var members: [String: JSONValue] = [
                        "id": .string(participant.id.value),
                        // Whether its transport is connected, so that it can be watched.
                        "publishing": .bool(participant.isLive),
                        "tracks": .array(participant.publications.map { $0.document(participant.muted) }),
                    ]
                    members["name"] = participant.displayName.map { .string($0) }
                    return .object(members)
                }
            ),
        ]
        members["current"] = current.map { .string($0.value) }
        return .object(members)
    }

    /// The document of a channel without participants, which does not exist.
    static func emptyDocument(_ channel: ChannelName) -> JSONValue {
        ["channel": .string(channel.value), "revision": 0, "viewers": 0, "participants": []]
    }
}

extension Publication {
    /// `codec` is absent until media arrives.
    fileprivate func document(_ muted: Set<MediaKind>) -> JSONValue {
        var members: [String: JSONValue] = [
            "mid": .string(mid.value), "kind": .string(kind.rawValue), "active": .bool(isActive),
            "simulcast": .bool(isSimulcast), "muted": .bool(muted.contains(kind)),
        ]
        members["codec"] = codec.map { .string($0.rawValue) }
        return .object(members)
    }
}
