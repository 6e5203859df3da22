package import Access
import ChannelTypes
import JSON
package import Logging
package import Room
package import Sora
package import Webhooks

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
            if let key = registration.signalingKey { await authorizer.verify(key) } else { nil }
        let request = AccessRequest(
            channel: registration.room,
            role: .sendrecv,
            participant: prospect.id,
            session: prospect.session,
            agent: registration.agent,
            network: network,
            clientID: registration.clientID,
            libwebrtc: registration.libwebrtc,
            metadata: registration.metadata,
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
        permission.acceptance.iceServers = turn?.iceServers
        permission.isMediaRequired = configuration.media == .server
        permission.media = permission.isMediaRequired ? .server : registration.media ?? .direct
        guard let url = configuration.authenticationURL, let transport else { return .allowed(permission) }
        do {
            let body = registration.webhookBody(connectionID: connectionID)
            let answer = JSONFields(try await transport.exchange(.object(body), with: url))
            guard let isAllowed = try answer.bool("allowed") else { throw JSONShapeError("\"allowed\" is missing.") }
            guard isAllowed else {
                return .rejected(reason: try answer.requiredString("reason", bytesMax: 1_024))
            }
            if let servers = try answer.array("iceServers", countMax: 64) {
                permission.acceptance.iceServers = .array(servers)
            }
            permission.acceptance.metadata = answer.value("authzMetadata")
            if let media: CallMedia = try answer.choice("media") {
                permission.media = media
                permission.isMediaRequired = true
            }
            return .allowed(permission)
        } catch {
            let message =
                (error as? WebhookFailure)?.message ?? (error as? JSONShapeError)?.message ?? "\(error)"
            logger.warning(
                "the relay's authentication webhook did not decide",
                metadata: ["room": "\(registration.room)", "reason": "\(message.printable)"]
            )
            return .rejected(reason: AyameSession.internalError)
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

    fileprivate func webhookBody(connectionID: String) -> [String: JSONValue] {
        var members = identity(connectionID: connectionID)
        members["signalingKey"] = signalingKey.map { .string($0) }
        members["authnMetadata"] = metadata
        members["ayameClient"] = client.map { .string($0) }
        members["libwebrtc"] = libwebrtc.map { .string($0) }
        members["environment"] = environment.map { .string($0) }
        return members
    }
}

extension SoraConfiguration.TURN {
    /// As `RTCConfiguration.iceServers` has it.
    fileprivate var iceServers: JSONValue {
        [
            .object([
                "urls": .array(urls.map { .string($0) }), "username": .string(username),
                "credential": .string(credential),
            ])
        ]
    }
}
