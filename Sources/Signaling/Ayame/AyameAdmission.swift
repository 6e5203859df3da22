package import Access
import ChannelTypes
import JSON
package import Logging
package import Room
package import Sora
import Web
package import Webhooks
import Wire

/// Decides on clients of the Ayame protocol: first the node's authorizer, as for any other client that sends and receives,
/// then the operator's server for the relay, if there is one.
package struct AyameAdmission: Sendable {
    let directory: ChannelDirectory
    let authorizer: any Authorizer
    let configuration: AyameConfiguration
    let turn: SoraConfiguration.TURN?
    /// `nil` without an operator's server.
    let transport: (any WebhookTransport)?
    let logger: Logger

    package init(
        directory: ChannelDirectory,
        authorizer: any Authorizer,
        configuration: AyameConfiguration,
        turn: SoraConfiguration.TURN?,
        transport: (any WebhookTransport)?,
        logger: Logger
    ) {
        self.directory = directory
        self.authorizer = authorizer
        self.configuration = configuration
        self.turn = turn
        self.transport = transport
        self.logger = logger
    }

    func decide(_ registration: AyameRegistration, from network: ClientNetwork) async -> AyameDecision {
        if await directory.isDraining { return .rejected(reason: AyameRefusal(.draining).reason) }
        let prospect = await directory.joinContext(of: registration.room)
        let credential: Credential? =
            if let key = registration.credentials.signalingKey { await authorizer.verify(key) } else { nil }
        let request = AccessRequest(
            channel: registration.room,
            role: .sendrecv,
            participant: prospect.id,
            session: prospect.session,
            agent: registration.agent,
            network: network,
            clientID: registration.clientID,
            libwebrtc: registration.libwebrtc,
            metadata: registration.credentials.metadata,
            credential: credential,
            counts: prospect.counts,
            members: prospect.members
        )
        let connectionID = prospect.id.value
        var permission = AyamePermission(connectionID: connectionID)
        switch await authorizer.admit(request) {
        case .denied(let reason): return .rejected(reason: reason ?? "The key does not permit to join this room.")
        case .failed: return .rejected(reason: AyameSession.internalError)
        case .allowed(let grants): permission.grants = grants
        }
        do throws(RoomError) {
            try await directory.checkApp(permission.grants.app, of: registration.room)
        } catch {
            return .rejected(reason: AyameRefusal(error).reason)
        }
        permission.acceptance.servers = turn
        permission.isMediaRequired = configuration.media == .server
        permission.media = permission.isMediaRequired ? .server : registration.media ?? .direct
        guard let url = configuration.authenticationURL, let transport else { return .allowed(permission) }
        do {
            let body = registration.webhookBody(registration.credentials, connectionID: connectionID)
            let answer = JSONFields(try await transport.exchange(.object(body), with: url))
            guard let isAllowed = try answer.bool("allowed") else { throw JSONShapeError("\"allowed\" is missing.") }
            guard isAllowed else {
                return .rejected(reason: try answer.requiredString("reason", bytesMax: 1_024))
            }
            if let servers = try answer.array("iceServers", countMax: 64) {
                permission.acceptance.decidedServers = .array(servers)
            }
            permission.acceptance.metadata = answer.value("authzMetadata")
            if let media: CallMedia = try answer.choice("media") {
                permission.media = media
                permission.isMediaRequired = true
            }
            if let expiry = try Self.expiry(answer) {
                permission.grants.permissions.expiry = expiry
                permission.isExpiryOfWebhook = true
            }
            return .allowed(permission)
        } catch {
            logUndecided(registration, error)
            return .rejected(reason: AyameSession.internalError)
        }
    }

    private func logUndecided(_ registration: AyameRegistration, _ error: any Error) {
        let message =
            (error as? WebhookFailure)?.message ?? (error as? JSONShapeError)?.message ?? "\(error)"
        logger.warning(
            "the relay's authentication webhook did not decide",
            metadata: ["room": "\(registration.room)", "reason": "\(message.printable)"]
        )
    }

    /// The latest `expiresAt`, in seconds since 1970: the end of the year 9999.
    private static let expiryMax = 253_402_300_799

    private static func expiry(_ answer: JSONFields) throws(JSONShapeError) -> AccessExpiry? {
        try answer.integer("expiresAt", 0...expiryMax).map { AccessExpiry(unixSeconds: Int64($0)) }
    }

    /// Decides on a permission that is to end later than it does.
    ///
    /// The operator's server decides where it decided on the present end, and the node's authorizer otherwise.
    ///
    /// - Parameters:
    ///   - credentials: new ones from the client; `nil` when the permission ends soon.
    ///   - kinds: What the client sends through the node.
    /// - Returns: the new end, `nil` for none; or why the permission stays as it is.
    func renew(
        _ registration: AyameRegistration,
        _ permission: AyamePermission,
        with credentials: AyameCredentials?,
        sending kinds: Set<MediaKind>
    ) async -> Result<AccessExpiry?, AyameRefusal> {
        guard let present = permission.grants.permissions.expiry else {
            return .failure(AyameRefusal("The permission has no end, so there is nothing to refresh."))
        }
        let renewed: Result<AccessExpiry?, AyameRefusal> =
            permission.isExpiryOfWebhook
            ? await renewedByWebhook(registration, permission, credentials ?? registration.credentials)
            : await renewedByToken(registration, permission, credentials, kinds)
        return renewed.flatMap { expiry in
            guard let expiry, expiry.unixSeconds <= present.unixSeconds else { return .success(expiry) }
            return .failure(AyameRefusal(HTTPFailure(RoomError.expiryNotLater).message))
        }
    }

    private func renewedByWebhook(
        _ registration: AyameRegistration,
        _ permission: AyamePermission,
        _ credentials: AyameCredentials
    ) async -> Result<AccessExpiry?, AyameRefusal> {
        guard let url = configuration.authenticationURL, let transport else {
            return .failure(AyameRefusal(AyameSession.internalError))
        }
        do {
            var body = registration.webhookBody(credentials, connectionID: permission.connectionID)
            body["refresh"] = true
            let answer = JSONFields(try await transport.exchange(.object(body), with: url))
            guard try answer.bool("allowed") == true else {
                let reason = try answer.string("reason", bytesMax: 1_024)
                return .failure(AyameRefusal(reason ?? "The key does not permit to stay."))
            }
            return .success(try Self.expiry(answer))
        } catch {
            logUndecided(registration, error)
            return .failure(AyameRefusal(AyameSession.internalError))
        }
    }

    private func renewedByToken(
        _ registration: AyameRegistration,
        _ permission: AyamePermission,
        _ credentials: AyameCredentials?,
        _ kinds: Set<MediaKind>
    ) async -> Result<AccessExpiry?, AyameRefusal> {
        guard let credentials else { return .failure(AyameRefusal("The client has sent no new token.")) }
        let credential: Credential? =
            if let key = credentials.signalingKey { await authorizer.verify(key) } else { nil }
        var request = RefreshRequest(
            channel: registration.room,
            role: .sendrecv,
            user: permission.grants.clientID.map { UserIdentity($0, .authorized) },
            kinds: kinds,
            credential: credential,
            metadata: credentials.metadata
        )
        request.app = permission.grants.app
        switch await authorizer.refresh(request) {
        case .allowed(let grants): return .success(grants.permissions.expiry)
        case .denied(let reason): return .failure(AyameRefusal(reason ?? "The new key is not valid for this client."))
        case .failed: return .failure(AyameRefusal(AyameSession.internalError))
        }
    }

    /// Tells the operator's server that a registration ended. Nothing waits for its answer.
    func report(disconnected registration: AyameRegistration, connectionID: String) async {
        guard let url = configuration.disconnectURL, let transport else { return }
        let body = registration.identity(connectionID: connectionID)
        do {
            _ = try await transport.post(JSONValue.object(body).bytes, to: url, headers: [])
        } catch {
            logger.warning("the relay's disconnect webhook failed", metadata: ["reason": "\(error.message.printable)"])
        }
    }
}

extension AyameRegistration {
    /// The members that both webhooks get.
    fileprivate func identity(connectionID: String) -> [String: JSONValue] {
        [
            "roomId": .string(room.value), "clientId": .string(clientID ?? connectionID),
            "connectionId": .string(connectionID),
        ]
    }

    fileprivate func webhookBody(_ credentials: AyameCredentials, connectionID: String) -> [String: JSONValue] {
        var members = identity(connectionID: connectionID)
        members["signalingKey"] = credentials.signalingKey.map { .string($0) }
        members["authnMetadata"] = credentials.metadata
        members["ayameClient"] = client.map { .string($0) }
        members["libwebrtc"] = libwebrtc.map { .string($0) }
        members["environment"] = environment.map { .string($0) }
        return members
    }
}
