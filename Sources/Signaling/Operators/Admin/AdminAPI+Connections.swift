import Access
import ChannelTypes
import JSON
import MediaTypes
import Room

// Disconnecting clients, pushing messages to them, requesting layers and key frames, and limiting rates.

extension AdminAPI {
    func disconnectChannel(_ fields: JSONFields) async throws -> JSONValue {
        guard try await end(.all, in: try fields.channel()) else { throw APIFailure.channelUnknown }
        return fields.echo("channel_id")
    }

    func disconnectChannelByRole(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, role) = (try fields.channel(), try fields.role())
        try await requireMembers(of: channel)
        _ = try await end(.role(role), in: channel)
        return fields.echo("channel_id", "role")
    }

    func disconnectClient(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, client) = (try fields.channel(), try fields.requiredString("client_id"))
        try await requireMembers(of: channel)
        guard try await end(.user(client), in: channel) else { throw Self.clientUnknown }
        return fields.echo("channel_id", "client_id")
    }

    func disconnectConnection(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, id) = (try fields.channel(), try fields.connection())
        guard await directory.places(in: channel).contains(where: { $0.member.id == id }) else {
            throw APIFailure.connectionUnknown
        }
        _ = try await end(.participants([id]), in: channel)
        return fields.echo("channel_id", "connection_id")
    }

    /// - Returns: whether there was anyone to disconnect.
    private func end(_ selection: ChannelCommand.Selection, in channel: ChannelName) async throws(RoomError) -> Bool {
        try await !perform(.end(selection, .disconnectedByOperator), in: channel).participants.isEmpty
    }

    func terminateSession(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, session) = (try fields.channel(), try fields.session())
        try await directory.perform(.end(.all, .sessionTerminated), in: channel, by: .operator, session: session)
        return fields.echo("channel_id", "session_id")
    }

    // MARK: Messages

    func pushChannel(_ fields: JSONFields) async throws -> JSONValue {
        try await push(fields, to: .all)
        return fields.echo("channel_id")
    }

    func pushChannelByRole(_ fields: JSONFields) async throws -> JSONValue {
        try await push(fields, to: .role(try fields.role()))
        return fields.echo("channel_id", "role")
    }

    func pushClient(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, client) = (try fields.channel(), try fields.requiredString("client_id"))
        try await push(fields, to: .user(client))
        guard await directory.connections(in: channel).contains(where: { $0.member.clientID == client }) else {
            throw Self.clientUnknown
        }
        return fields.echo("channel_id", "client_id")
    }

    func pushConnection(_ fields: JSONFields) async throws -> JSONValue {
        try await push(fields, to: .participants([try fields.connection()]))
        return fields.echo("channel_id", "connection_id")
    }

    private func push(_ fields: JSONFields, to selection: ChannelCommand.Selection) async throws {
        let channel = try fields.channel()
        guard let data = fields.value("data") else { throw JSONShapeError("\"data\" is missing.") }
        try await perform(.push(json: data.text, to: selection), in: channel)
    }

    // MARK: Layers and key frames

    func requestSimulcastRID(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "receiver_connection_id")
        let rid = try fields.rid("rid")
        let sender = try fields.optionalConnection("sender_connection_id")
        try await perform(.requestLayer(rid.layer, receiver: receiver.member.id, sender: sender), receiver)
        return fields.echo("channel_id", "receiver_connection_id", "rid", "sender_connection_id")
    }

    /// Without `height` as high as there is, or of one sender as of all.
    func requestVideoHeight(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "receiver_connection_id")
        let height = try fields.integer("height", JoinRequest.videoHeights)
        let sender = try fields.optionalConnection("sender_connection_id")
        try await perform(.requestHeight(height, receiver: receiver.member.id, sender: sender), receiver)
        return fields.echo("channel_id", "receiver_connection_id", "height", "sender_connection_id")
    }

    /// Without `receive_bit_rate`, in kbit/s, the limit of the connection's grant applies again.
    func limitConnection(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        let kbps = try fields.integer("receive_bit_rate", 1...Grants.receiveKbpsMax)
        let limit = kbps.map { $0 * 1_000 }
        try await perform(.limitSending(to: connection.member.id, bitsPerSecond: limit), connection)
        return fields.echo("channel_id", "connection_id", "receive_bit_rate")
    }

    /// `expires_at` is in seconds since 1970, later than the expiry of the connection's token.
    func extendConnection(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        guard let second = try fields.integer("expires_at", 0...Int(Int32.max) * 1_000) else {
            throw JSONShapeError("\"expires_at\" is missing: write it in seconds since 1970.")
        }
        var expiry = AccessExpiry(unixSeconds: Int64(second))
        if let present = connection.expiry { expiry.warningSeconds = present.warningSeconds }
        try await perform(.extendAccess(of: connection.member.id, until: expiry), connection)
        return fields.echo("channel_id", "connection_id", "expires_at")
    }

    func requestKeyFrame(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        try await perform(.requestKeyFrames(of: connection.member.id), connection)
        return fields.echo("channel_id", "connection_id")
    }

    // MARK: Lookup

    static let clientUnknown = APIFailure(404, "CLIENT-NOT-FOUND", "There is no such client in this channel.")

    /// The connection with the given ID in the given channel.
    func connection(_ fields: JSONFields, _ name: String = "connection_id") async throws -> Connection {
        let (channel, id) = (try fields.channel(), try fields.connection(name))
        guard let connection = await directory.connection(of: id), connection.channel == channel else {
            throw APIFailure.connectionUnknown
        }
        return connection
    }

    /// Performs a command about a connection.
    func perform(_ command: ChannelCommand, _ connection: Connection) async throws(RoomError) {
        try await perform(command, in: connection.channel)
    }

    @discardableResult
    func perform(_ command: ChannelCommand, in channel: ChannelName) async throws(RoomError) -> ChannelReply {
        try await directory.perform(command, in: channel, by: .operator)
    }

    func requireMembers(of channel: ChannelName) async throws(APIFailure) {
        guard await !directory.places(in: channel).isEmpty else { throw .channelUnknown }
    }
}

extension JSONFields {
    func session() throws -> ChannelSessionID {
        guard let id = ChannelSessionID(try requiredString("session_id")) else { throw RoomError.sessionUnknown }
        return id
    }
}
