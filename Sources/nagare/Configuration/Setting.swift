/// One thing that can be configured. Its raw value is its key in the configuration file; the command line's flag and the
/// environment variable follow from it, so the three never differ.
enum Setting: String, CaseIterable, Sendable {
    case dev
    case http
    case media
    case announce
    case admin
    case loops
    case srtpBackend = "srtp-backend"
    case udpGSO = "udp-gso"
    case udpGRO = "udp-gro"
    case tlsCertificate = "tls-cert"
    case tlsKey = "tls-key"
    case token
    case logLevel = "log-level"
    case grace

    /// As on the command line: `--tls-cert`.
    var flag: String { "--\(rawValue)" }

    /// As in the environment: `NAGARE_TLS_CERT`.
    var environmentVariable: String { Self.environmentPrefix + rawValue.uppercased().replacing("-", with: "_") }

    /// Whether several values may be given: a YAML sequence, a comma-separated variable, a repeated flag.
    var isList: Bool { self == .media || self == .announce }

    static let environmentPrefix = "NAGARE_"

    /// The variable that names the configuration file, for `--config`.
    static let fileVariable = "NAGARE_CONFIG"
}
