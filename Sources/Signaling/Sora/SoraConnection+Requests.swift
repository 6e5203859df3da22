import Access
import ChannelTypes
import JSON
import Logging
import Room
import Web

extension SoraConnection {
    /// Performs a request of the client on the rooms.
    /// - Returns: the result as the text of a JSON object.
    func result(of method: ChannelRequest.Method) async -> Result<String, RequestFailure> {
        guard let id = participant else { return .failure(RequestFailure(.notJoined, "The client has left.")) }
        do {
            switch method {
            case .perform(let command, let result):
                do throws(RoomError) {
                    let reply = try await context.directory.perform(command, by: id)
                    if command.permission.contains(.moderators), !reply.participants.isEmpty {
                        logModeration(command, by: id)
                    }
                } catch {
                    throw RequestFailure(error, to: command)
                }
                return .success(result)
            case .statistics:
                guard let statistics = await context.directory.statistics(of: id) else {
                    throw RoomError.participantUnknown
                }
                return .success(statistics.sendingDocument.text)
            case .listMembers:
                return .success(SoraServerMessage.members(try await context.directory.joinedChannel(asToldTo: id)))
            case .refreshToken(let token): return try await refreshAccess(of: id, with: token)
            case .putMetadata(let change, let pushes):
                return .success(try await putMetadata(change, pushes: pushes, of: id))
            }
        } catch let failure as RequestFailure {
            return .failure(failure)
        } catch let error as RoomError {
            return .failure(RequestFailure(error))
        } catch {
            return .failure(RequestFailure(.internalError, "The node failed to perform the request; try again."))
        }
    }

    /// Who did it is nowhere else.
    private func logModeration(_ command: ChannelCommand, by moderator: ParticipantID) {
        context.logger.info(
            "a moderator changed others",
            metadata: [
                "command": "\("\(command)".printable)", "participant": "\(moderator)",
                "channel": "\(channelName.map { "\($0)" } ?? "")",
            ]
        )
    }

    /// Extends the participant's permission with a new token.
    private func refreshAccess(
        of id: ParticipantID,
        with token: JSONValue
    ) async throws(RoomError) -> Result<String, RequestFailure> {
        guard let connection = await context.directory.connection(of: id) else { throw .participantUnknown }
        let decision = await context.authorizer.refresh(
            RefreshRequest(connection, metadata: ["access_token": token])
        )
        switch decision {
        case .allowed(let grants):
            try await context.directory.extendAccess(of: connection, by: grants.permissions)
            var result = JSONObjectWriter()
            result.add("expires_at", ifPresent: grants.permissions.expiry.map { String($0.unixSeconds) })
            return .success(result.text)
        case .denied(let reason):
            return .failure(RequestFailure(.tokenInvalid, reason ?? "The new token is not valid for this connection."))
        case .failed:
            return .failure(RequestFailure(.internalError, "The server could not decide on the new token; try again."))
        }
    }

    /// Changes what notifications say of this client, and tells all connected clients of the channel if `pushes`.
    ///
    /// Requests of one client are performed one after the other, so nothing changes between reading and writing.
    private func putMetadata(_ change: MetadataChange, pushes: Bool, of id: ParticipantID) async throws -> String {
        guard let connection = await context.directory.connection(of: id) else {
            throw RequestFailure(.notJoined, "The client is not connected.")
        }
        let metadata = try change.applied(to: connection.member.metadataJSON)
        let push = pushes ? SoraServerMessage.metadataPush(change, of: id) : nil
        try await context.directory.perform(.setMetadata(json: metadata.text, of: id, push: push), by: id)
        return metadata.text
    }
}

extension RequestFailure {
    /// The failure of a command that the rooms refused.
    fileprivate init(_ error: RoomError, to command: ChannelCommand) {
        switch (error, command) {
        case (.participantUnknown, .requestLayer), (.participantUnknown, .requestSpotlightLayers):
            self.init(
                .parametersInvalid,
                "The connection is no live sender of the channel, or the client receives nothing."
            )
        case (.participantUnknown, .setRole(_, of: .user)), (.participantUnknown, .mute),
            (.participantUnknown, .end):
            self.init(.userUnknown, "Nobody of this \"user_id\" is in the channel.")
        case (.spotlightUnused, _): self.init(.spotlightUnused, "The client joined without spotlight.")
        default: self.init(error)
        }
    }
}
