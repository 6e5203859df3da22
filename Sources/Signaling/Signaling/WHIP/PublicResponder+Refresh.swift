import Access
import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import Room
import Web

extension Request {
    /// Whether a PATCH of a session presents a new token or URL: it has a JSON body or none.
    var isRefresh: Bool { mediaType == ContentType.json.rawValue || (mediaType == nil && hasNoBody) }
}

extension PublicResponder {
    /// Extends a session's permission with a new token or URL. Its media, ICE and ETag stay as they are.
    ///
    /// The new token is `access_token` of the JSON body, else the signature in the query, else the Bearer token.
    ///
    /// - Throws: 401 or 403 when the new one is not valid, or expires no later than the old one, which then stays.
    func refresh(
        _ session: ChannelDirectory.Resource,
        _ request: Request,
        _ target: RequestTarget,
        from network: ClientNetwork
    ) async throws -> Response {
        let action: AuthorizedAction = session.role.publishes ? .publish(session.channel) : .watch(session.channel)
        var credential = await credential(of: request)
        if let signature = target.queryValue(URLSignature.parameter), let path = session.endpointPath {
            credential = authorizer.verify(signature: signature, ofPath: path, for: action) ?? credential
        }
        let metadata = try await refreshMetadata(request)
        if let metadata, let presented = metadata["access_token"] {
            credential = if let token = presented.string { await authorizer.verify(token) } else { nil }
        }
        // The authorizer's sentence about an object in the body comes with its decision.
        if credential != nil || metadata?["access_token"] == nil {
            try await authorize(action, credential, from: network)
        }
        guard let connection = await directory.connection(of: session.participant) else {
            throw HTTPFailure.sessionUnknown
        }
        let decision = await authorizer.refresh(
            RefreshRequest(connection, credential: credential, metadata: metadata)
        )
        switch decision {
        case .allowed(let grants):
            // A token that names no user owns the session itself, and expires: the new one takes the session over.
            let id = session.participant
            // What does not end, such as the session of a signed URL's viewer, has nothing to extend.
            if connection.expiry != nil || grants.permissions.expiry != nil {
                try await directory.extendAccess(of: connection, by: grants.permissions)
            }
            if let owner = credential?.ownerProof { await directory.replaceOwner(of: id, by: owner) }
            return Response(status: .noContent, headers: [.cacheControl: "no-store"])
        case .denied(let reason):
            throw HTTPFailure(.forbidden, reason ?? "The new token does not permit what this session does.")
        case .failed:
            throw HTTPFailure.overloaded("The server could not decide on the new token; try again.")
        }
    }

    /// The JSON object of the body; `nil` without a body.
    private func refreshMetadata(_ request: Request) async throws -> JSONValue? {
        guard request.mediaType != nil, !request.hasNoBody else { return nil }
        let text = try await text(of: request, as: .json)
        guard let value = try? JSONValue(parsing: text, limits: .unauthenticated), value.object != nil else {
            throw HTTPFailure(.badRequest, "The body has to be a JSON object, such as {\"access_token\": \"…\"}.")
        }
        return value
    }
}
