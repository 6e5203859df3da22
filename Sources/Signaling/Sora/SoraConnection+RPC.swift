import Access
import JSON
import Room

// Methods of the data channel `rpc`.

extension SoraConnection {
    /// Requests a layer of video for this client.
    func requestLayer(_ rid: RequestedRID, sender: ParticipantID?, receiver: ParticipantID) async throws(RequestFailure)
        -> String
    {
        do throws(RoomError) {
            try await context.rooms.requestLayer(rid.layer, receiver: receiver, sender: sender)
        } catch {
            throw Self.failure(error)
        }
        var result = caller("receiver_connection_id", receiver)
        result.add("rid", rid.rawValue)
        result.add("sender_connection_id", ifPresent: sender.map { jsonString($0.value) })
        return result.text
    }

    /// Requests layers of video of senders in focus and of the others for this client.
    func requestSpotlightLayers(
        focus: RequestedRID,
        unfocus: RequestedRID,
        sender: ParticipantID?,
        receiver: ParticipantID
    ) async throws(RequestFailure) -> String {
        do throws(RoomError) {
            try await context.rooms.requestSpotlightLayers(
                receiver: receiver,
                sender: sender,
                focus: focus.layer,
                unfocus: unfocus.layer
            )
        } catch {
            throw Self.failure(error)
        }
        var result = caller("recv_connection_id", receiver)
        result.add("send_connection_id", ifPresent: sender.map { jsonString($0.value) })
        result.add("spotlight_focus_rid", focus.rawValue)
        result.add("spotlight_unfocus_rid", unfocus.rawValue)
        return result.text
    }

    func resetSpotlightLayers(sender: ParticipantID?, receiver: ParticipantID) async throws(RequestFailure) -> String {
        do throws(RoomError) {
            try await context.rooms.resetSpotlightLayers(receiver: receiver, sender: sender)
        } catch {
            throw Self.failure(error)
        }
        var result = caller("recv_connection_id", receiver)
        result.add("send_connection_id", ifPresent: sender.map { jsonString($0.value) })
        return result.text
    }

    /// Changes what notifications say of this client, and tells all connected clients of the channel if `pushes`.
    ///
    /// Requests of one client are performed one after the other, so nothing changes between reading and writing.
    func putMetadata(_ change: MetadataChange, pushes: Bool, of id: ParticipantID) async throws(RequestFailure)
        -> String
    {
        let rooms = context.rooms
        guard let connection = await rooms.connection(of: id) else {
            throw RequestFailure(.notJoined, "The client is not connected.")
        }
        let metadata = try change.applied(to: connection.member.metadataJSON)
        do throws(RoomError) {
            try await rooms.changeMetadata(metadata.text, of: id, isPushed: pushes)
            if pushes {
                let message = SoraServerMessage.metadataPush(change, of: id)
                try await rooms.push(message, to: .channel(connection.channel, nil))
            }
        } catch {
            throw RequestFailure(error)
        }
        return metadata.text
    }

    /// The members of a result that name the client.
    private func caller(_ name: StaticString, _ id: ParticipantID) -> JSONObjectWriter {
        var result = JSONObjectWriter()
        result.add("channel_id", reservedChannel?.value ?? "")
        result.add(name, id.value)
        return result
    }

    private static func failure(_ error: RoomError) -> RequestFailure {
        switch error {
        case .participantUnknown:
            RequestFailure(
                .parametersInvalid,
                "The connection is no live sender of the channel, or the client receives nothing."
            )
        case .spotlightUnused: RequestFailure(.spotlightUnused, "The client joined without spotlight.")
        default: RequestFailure(error)
        }
    }
}
