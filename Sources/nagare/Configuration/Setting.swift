/// One thing that can be configured. Its raw value is its key in the configuration file; the command line's flag and the
/// environment variable follow from it, so the three never differ.
enum Setting: String, CaseIterable, Sendable {
    case dev
    case http
    case media
    case announce
    case admin
    case loops
    case controlLoops = "control-loops"
    case srtpBackend = "srtp-backend"
    case udpGSO = "udp-gso"
    case udpGRO = "udp-gro"
    case tlsCertificate = "tls-cert"
    case tlsKey = "tls-key"
    case trustedProxy = "trusted-proxy"
    case proxyHeader = "proxy-header"
    case token
    case jwtKey = "jwt-key"
    case authWebhookURL = "auth-webhook-url"
    case eventWebhookURL = "event-webhook-url"
    case sessionWebhookURL = "session-webhook-url"
    case webhookTimeout = "webhook-timeout"
    case webhookUser = "webhook-user"
    case webhookPassword = "webhook-password"
    case webhookCA = "webhook-ca"
    case adminOrigin = "admin-origin"
    case adminHostName = "admin-host-name"
    case turnURL = "turn-url"
    case turnUsername = "turn-username"
    case turnCredential = "turn-credential"
    case videoCodec = "video-codec"
    case spotlightNumber = "spotlight-number"
    case spotlightFocusRID = "spotlight-focus-rid"
    case spotlightUnfocusRID = "spotlight-unfocus-rid"
    case clientBundleID = "client-bundle-id"
    case pingInterval = "ping-interval"
    case nodeName = "node-name"
    case label
    case limit
    case logLevel = "log-level"
    case grace

    /// As on the command line: `--tls-cert`.
    var flag: String { "--\(rawValue)" }

    /// As in the environment: `NAGARE_TLS_CERT`.
    var environmentVariable: String { Self.environmentPrefix + rawValue.uppercased().replacing("-", with: "_") }

    /// Whether several values may be given: a YAML sequence, a comma-separated variable, a repeated flag.
    var isList: Bool {
        switch self {
        case .media, .announce, .jwtKey, .adminOrigin, .adminHostName, .turnURL, .trustedProxy, .limit: true
        default: false
        }
    }

    /// Whether the value is never printed.
    var isSecret: Bool {
        switch self {
        case .token, .jwtKey, .webhookPassword, .turnCredential: true
        default: false
        }
    }

    static let environmentPrefix = "NAGARE_"

    /// The variable that names the configuration file, for `--config`.
    static let fileVariable = "NAGARE_CONFIG"
}
