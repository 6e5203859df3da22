import Access
import JSON
import MediaTypes
import Room

// Disconnecting clients, pushing messages to them, requesting layers and key frames, and limiting rates.

extension AdminAPI {
    func disconnectChannel(_ fields: JSONFields) async throws -> JSONValue {
        let ended = await rooms.end(channel: try fields.channel(), reason: .disconnectedByOperator)
        guard !ended.isEmpty else { throw APIFailure.channelUnknown }
        return fields.echo("channel_id")
    }

    func disconnectChannelByRole(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, role) = (try fields.channel(), try fields.role())
        try await requireMembers(of: channel)
        _ = await rooms.end(channel: channel, role: role, reason: .disconnectedByOperator)
        return fields.echo("channel_id", "role")
    }

    func disconnectClient(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, client) = (try fields.channel(), try fields.requiredString("client_id"))
        try await requireMembers(of: channel)
        let ended = await rooms.end(channel: channel, clientID: client, reason: .disconnectedByOperator)
        guard !ended.isEmpty else { throw Self.clientUnknown }
        return fields.echo("channel_id", "client_id")
    }

    func disconnectConnection(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, id) = (try fields.channel(), try fields.connection())
        guard await rooms.places(in: channel).contains(where: { $0.member.id == id }) else {
            throw APIFailure.connectionUnknown
        }
        await rooms.end(id, reason: .disconnectedByOperator)
        return fields.echo("channel_id", "connection_id")
    }

    func terminateSession(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, session) = (try fields.channel(), try fields.session())
        try await rooms.terminate(session: session, of: channel)
        return fields.echo("channel_id", "session_id")
    }

    // MARK: Messages

    func pushChannel(_ fields: JSONFields) async throws -> JSONValue {
        try await rooms.push(try Self.message(fields), to: .channel(try fields.channel(), nil))
        return fields.echo("channel_id")
    }

    func pushChannelByRole(_ fields: JSONFields) async throws -> JSONValue {
        try await rooms.push(try Self.message(fields), to: .channel(try fields.channel(), try fields.role()))
        return fields.echo("channel_id", "role")
    }

    func pushClient(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, client) = (try fields.channel(), try fields.requiredString("client_id"))
        try await rooms.push(try Self.message(fields), to: .client(channel, client))
        guard await rooms.connections(in: channel).contains(where: { $0.member.clientID == client }) else {
            throw Self.clientUnknown
        }
        return fields.echo("channel_id", "client_id")
    }

    func pushConnection(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, id) = (try fields.channel(), try fields.connection())
        try await rooms.push(try Self.message(fields), to: .connection(channel, id))
        return fields.echo("channel_id", "connection_id")
    }

    private static func message(_ fields: JSONFields) throws(JSONShapeError) -> String {
        guard let data = fields.value("data") else { throw JSONShapeError("\"data\" is missing.") }
        return data.text
    }

    // MARK: Layers and key frames

    func requestSimulcastRID(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "receiver_connection_id")
        let rid = try fields.rid("rid")
        let sender = try fields.optionalConnection("sender_connection_id")
        try await rooms.requestLayer(rid.layer, receiver: receiver.member.id, sender: sender)
        return fields.echo("channel_id", "receiver_connection_id", "rid", "sender_connection_id")
    }

    /// Without `height` as high as there is, or of one sender as of all.
    func requestVideoHeight(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "receiver_connection_id")
        let height = try fields.integer("height", JoinRequest.videoHeights)
        let sender = try fields.optionalConnection("sender_connection_id")
        try await rooms.requestHeight(height, receiver: receiver.member.id, sender: sender)
        return fields.echo("channel_id", "receiver_connection_id", "height", "sender_connection_id")
    }

    /// Without `receive_bit_rate`, in kbit/s, the limit of the connection's grant applies again.
    func limitConnection(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        let kbps = try fields.integer("receive_bit_rate", 1...Grants.receiveKbpsMax)
        try await rooms.limitSending(to: connection.member.id, bitsPerSecond: kbps.map { $0 * 1_000 })
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
        try await rooms.refreshAccess(of: connection.member.id, until: expiry)
        return fields.echo("channel_id", "connection_id", "expires_at")
    }

    func requestKeyFrame(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        try await rooms.requestKeyFrame(of: connection.member.id)
        return fields.echo("channel_id", "connection_id")
    }

    // MARK: Lookup

    static let clientUnknown = APIFailure(404, "CLIENT-NOT-FOUND", "There is no such client in this channel.")

    /// The connection with the given ID in the given channel.
    func connection(_ fields: JSONFields, _ name: String = "connection_id") async throws -> Connection {
        let (channel, id) = (try fields.channel(), try fields.connection(name))
        guard let connection = await rooms.connection(of: id), connection.channel == channel else {
            throw APIFailure.connectionUnknown
        }
        return connection
    }

    func requireMembers(of channel: ChannelName) async throws(APIFailure) {
        guard await !rooms.places(in: channel).isEmpty else { throw .channelUnknown }
    }
}

extension JSONFields {
    func session() throws -> ChannelSessionID {
        guard let id = ChannelSessionID(try requiredString("session_id")) else { throw RoomError.sessionUnknown }
        return id
    }
}
