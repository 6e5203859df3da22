/// A setting. Its raw value is its key in the configuration file, from which the command line's flag and the environment
/// variable derive. ``declaration`` has everything else.
enum Setting: String, CaseIterable, Sendable {
    case dev
    case http
    case tlsCertificate = "tls-cert"
    case tlsKey = "tls-key"
    case trustedProxy = "trusted-proxy"
    case proxyHeader = "proxy-header"
    case duplicateUser = "duplicate-user"
    case resumeGrace = "resume-grace"
    case channelLifetime = "channel-lifetime"
    case media
    case announce
    case loops
    case controlLoops = "control-loops"
    case srtpBackend = "srtp-backend"
    case udpGSO = "udp-gso"
    case udpGRO = "udp-gro"
    case bandwidthEstimation = "bandwidth-estimation"
    case bandwidthProbing = "bandwidth-probing"
    case sendRateMin = "send-rate-min"
    case sendRateStart = "send-rate-start"
    case sendRateMax = "send-rate-max"
    case pauseUnusedLayers = "pause-unused-layers"
    case iceTCP = "ice-tcp"
    case turn
    case turnTLSPort = "turn-tls-port"
    case turnTLSName = "turn-tls-name"
    case token
    case jwtKey = "jwt-key"
    case jwks
    case jwksCA = "jwks-ca"
    case app
    case appDisabled = "app-disabled"
    case appProfile = "app-profile"
    case appToken = "app-token"
    case urlKey = "url-key"
    case urlValidity = "url-validity"
    case urlExpiry = "url-expiry"
    case authWebhookURL = "auth-webhook-url"
    case eventWebhookURL = "event-webhook-url"
    case sessionWebhookURL = "session-webhook-url"
    case statsWebhookURL = "stats-webhook-url"
    case ayameAuthWebhookURL = "ayame-auth-webhook-url"
    case ayameDisconnectWebhookURL = "ayame-disconnect-webhook-url"
    case relayMedia = "relay-media"
    case webhookTimeout = "webhook-timeout"
    case webhookUser = "webhook-user"
    case webhookPassword = "webhook-password"
    case webhookSecret = "webhook-secret"
    case webhookCA = "webhook-ca"
    case nodeName = "node-name"
    case label
    case turnURL = "turn-url"
    case turnUsername = "turn-username"
    case turnCredential = "turn-credential"
    case videoCodec = "video-codec"
    case spotlightNumber = "spotlight-number"
    case spotlightFocusRID = "spotlight-focus-rid"
    case spotlightUnfocusRID = "spotlight-unfocus-rid"
    case dataChannels = "data-channels"
    case clientBundleID = "client-bundle-id"
    case pingInterval = "ping-interval"
    case admin
    case adminTLSCertificate = "admin-tls-cert"
    case adminTLSKey = "admin-tls-key"
    case adminToken = "admin-token"
    case adminReadToken = "admin-read-token"
    case adminOrigin = "admin-origin"
    case adminHostName = "admin-host-name"
    case metricsChannels = "metrics-channels"
    case clusterStore = "cluster-store"
    case clusterStoreCA = "cluster-store-ca"
    case clusterName = "cluster-name"
    case clusterLink = "cluster-link"
    case clusterAnnounce = "cluster-announce"
    case clusterSecret = "cluster-secret"
    case clusterUnsignedRecords = "cluster-unsigned-records"
    case region
    case zone
    case publicURL = "public-url"
    case stateDirectory = "state-dir"
    case historyHours = "history-hours"
    case otlpEndpoint = "otlp-endpoint"
    case otlpSampleRatio = "otlp-sample-ratio"
    case limit
    case logLevel = "log-level"
    case logFormat = "log-format"
    case grace
    case drainDeadline = "drain-deadline"

    /// The command line's flag: `--tls-cert`.
    var flag: String { "--\(rawValue)" }

    /// The environment variable: `NAGARE_TLS_CERT`.
    var environmentVariable: String { Self.environmentPrefix + rawValue.uppercased().replacing("-", with: "_") }

    /// Whether several values may be given: a YAML sequence, a comma-separated variable, a repeated flag.
    var isList: Bool { declaration.kind == .list }

    /// Whether the value is never printed.
    var isSecret: Bool { declaration.isSecret }

    /// Whether a reload puts a change in force: see ``Reload``. Others need a restart.
    var isReloadable: Bool { Self.reloadable.contains(self) }

    private static let reloadable: Set<Setting> = [
        .tlsCertificate, .tlsKey, .adminTLSCertificate, .adminTLSKey, .token, .jwtKey, .jwks, .app, .appDisabled,
        .appProfile,
        .appToken, .urlKey, .urlValidity, .urlExpiry, .adminToken,
        .adminReadToken, .authWebhookURL, .eventWebhookURL, .sessionWebhookURL, .statsWebhookURL, .webhookTimeout,
        .webhookUser,
        .webhookPassword,
        .webhookSecret, .duplicateUser, .resumeGrace, .channelLifetime, .clusterUnsignedRecords, .limit, .logLevel,
    ]

    /// The text of `--help`.
    var helpText: String {
        var text = declaration.help
        if isList { text += " May be repeated." }
        if isSecret { text += " Other users of the machine can read flags: prefer \(environmentVariable) or the file." }
        switch declaration.defaultValue {
        case .none: return text
        case .value(let value): return declaration.kind == .flag ? text : "\(text) (default: \(value))"
        case .described(let words): return "\(text) (default: \(words))"
        }
    }

    static let environmentPrefix = "NAGARE_"

    /// The flag and the variable that name the configuration file. This is not a setting: a file cannot name another.
    static let fileVariable = "NAGARE_CONFIG"
    static let fileFlag = "config"
    static let fileHelp = "Read settings from this YAML file."
}
