import Access
import Logging
import Signaling
import ToolCommands

/// The secrets by which a node authenticates clients and operators, read from their files.
struct NodeAccess: Sendable {
    /// They verify and sign tokens and URLs. ``ControlServices`` adds the ones at a URL.
    var keys: AccessKeys
    /// The one Bearer token of all clients, if set.
    let token: Token?
    /// The Bearer token of the admin listener's APIs, if set.
    let adminToken: Token?
    /// The one that permits reading only, if set.
    let adminReadToken: Token?
    /// Signs webhooks; `nil` for unsigned ones.
    let webhookSigner: WebhookSigner?

    /// - Throws: when a key or its file is unusable.
    init(_ configuration: NodeConfiguration, logger: Logger) throws(CommandError) {
        var keys = AccessKeys()
        for source in configuration.jwtKeys { keys.jwt.append(try source.key()) }
        keys.jwt += try configuration.keySet?.keys(logger: logger) ?? []
        if let algorithm = JWTKey.algorithmWithTooManyUnnamed(keys.jwt) {
            throw .usage(
                "--jwt-key and --jwks have too many \(algorithm.rawValue) keys without a key ID: a token is tried with "
                    + "\(JWTKey.candidatesMax) keys at most. Give them IDs, as \(algorithm.rawValue.lowercased())/ID:@FILE."
            )
        }
        var apps: [AppKey] = []
        for source in configuration.apps {
            let app = try source.key()
            if app.isShort {
                logger.warning("The key of app \(app.appID) has fewer than \(AppKey.keyBytesRecommended) characters.")
            }
            apps.append(app)
        }
        keys.apps = AppKeys(apps)
        keys.urls = try configuration.urlKeys.keys()
        self.keys = keys
        token = try configuration.token?.read().token
        adminToken = try configuration.adminToken?.read().token
        adminReadToken = try configuration.adminReadToken?.read().token
        if let source = configuration.adminReadToken, adminReadToken == adminToken {
            throw .usage(
                "\(source.origin) is the token of --admin-token: choose another one, which permits reading only."
            )
        }
        webhookSigner = try configuration.webhooks.secret?.read()
    }
}
