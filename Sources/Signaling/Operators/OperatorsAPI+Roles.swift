import ChannelTypes
import HTTPTypes
import JSON
import Room
import Wire

// Roles and mutes of members.

extension OperatorsAPI {
    static let changedSchema = APISchema.object([
        APIProperty("changed", .integer(0...countMax), required: true, "The number of connections that changed.")
    ])

    static let roleOperation = APIOperation(
        id: "changeRole",
        method: .post,
        path: APIOperation.path("/v1/channels/{channel}/members/{user}/role"),
        summary: "Makes a user of an interactive channel host, or audience until an operator makes it host.",
        body: .object([
            APIProperty(
                "role",
                .choice(ChannelRole.allCases.map(\.rawValue)),
                required: true,
                "A host publishes. The audience only receives; connections of the user that only send end."
            )
        ]),
        isBodyRequired: true,
        answer: changedSchema,
        problems: [.channelUnknown, .memberUnknown, .roleUnavailable]
    ) { try await $0.changeRole($1) }

    static let muteOperation = APIOperation(
        id: "muteMember",
        method: .post,
        path: APIOperation.path("/v1/channels/{channel}/members/{user}/mute"),
        summary: "Stops the forwarding of a user's media, or starts it again. The user cannot undo it.",
        body: .object([
            APIProperty("muted", .boolean, required: true, "Whether it is muted."),
            APIProperty(
                "kind",
                .choice(MediaKind.allCases.map(\.rawValue)),
                "Only this kind of media; without it, both."
            ),
        ]),
        isBodyRequired: true,
        answer: changedSchema,
        problems: [.channelUnknown, .memberUnknown]
    ) { try await $0.muteMember($1) }

    private func changeRole(_ call: APICall) async throws -> JSONValue {
        let channel = try await occupiedChannel(call)
        guard let role: ChannelRole = try call.body.choice("role") else {
            throw Problem(.invalidRequest, "\"role\" is missing.")
        }
        return try await changed(.setRole(role, of: .user(call.user)), in: channel)
    }

    private func muteMember(_ call: APICall) async throws -> JSONValue {
        let channel = try await occupiedChannel(call)
        let kind: MediaKind? = try call.body.choice("kind")
        let isMuted = try call.body.bool("muted") ?? true
        let kinds = kind.map { [$0] } ?? Set(MediaKind.allCases)
        return try await changed(.setMuted(isMuted, kinds: kinds, of: .user(call.user)), in: channel)
    }

    /// Performs a command.
    /// - Returns: how many connections changed.
    func changed(_ command: ChannelCommand, in channel: ChannelName) async throws(RoomError) -> JSONValue {
        ["changed": .integer(try await directory.perform(command, in: channel, by: .operator).participants.count)]
    }

    /// - Throws: ``Problem/channelUnknown`` when nobody is in the channel.
    func occupiedChannel(_ call: APICall) async throws -> ChannelName {
        let channel = try call.channel()
        guard await directory.channelSession(of: channel) != nil else { throw Problem.channelUnknown }
        return channel
    }
}
