import Access
import JSON
import Room

extension SoraConnection {
    /// Performs a request of the client on the rooms.
    /// - Returns: the result as the text of a JSON object.
    func result(of method: ChannelRequest.Method) async -> Result<String, RequestFailure> {
        guard let id = participant else { return .failure(RequestFailure(.notJoined, "The client has left.")) }
        let rooms = context.rooms
        do {
            switch method {
            case .setRole(let role):
                try await rooms.changeRole(of: id, to: role, by: .member)
                return .success(#"{"role":"\#(role.rawValue)"}"#)
            case .setMuted(let isMuted, let kind):
                try await rooms.setMuted(isMuted, kind: kind, of: id, by: .member)
                return .success("{}")
            case .subscribe(let isSubscribed, let selection):
                try await rooms.subscribe(isSubscribed, to: selection, receiver: id)
                return .success("{}")
            case .statistics:
                guard let statistics = await rooms.statistics(of: id) else { throw RoomError.participantUnknown }
                return .success(statistics.sendingDocument.text)
            case .refreshToken(let token): return try await refreshAccess(of: id, with: token)
            case .requestLayer(let rid, let sender):
                return .success(try await requestLayer(rid, sender: sender, receiver: id))
            case .requestSpotlightLayers(let focus, let unfocus, let sender):
                return .success(
                    try await requestSpotlightLayers(focus: focus, unfocus: unfocus, sender: sender, receiver: id)
                )
            case .resetSpotlightLayers(let sender):
                return .success(try await resetSpotlightLayers(sender: sender, receiver: id))
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

    /// Extends the participant's permission with a new token.
    private func refreshAccess(
        of id: ParticipantID,
        with token: JSONValue
    ) async throws(RoomError) -> Result<String, RequestFailure> {
        guard let connection = await context.rooms.connection(of: id) else { throw .participantUnknown }
        let decision = await context.authorizer.refresh(
            RefreshRequest(connection, metadata: ["access_token": token])
        )
        switch decision {
        case .allowed(let grants):
            let expiry = grants.permissions.expiry
            try await context.rooms.refreshAccess(of: id, until: expiry)
            var result = JSONObjectWriter()
            result.add("expires_at", ifPresent: expiry.map { String($0.unixSeconds) })
            return .success(result.text)
        case .denied(let reason):
            return .failure(RequestFailure(.tokenInvalid, reason ?? "The new token is not valid for this connection."))
        case .failed:
            return .failure(RequestFailure(.internalError, "The server could not decide on the new token; try again."))
        }
    }
}
