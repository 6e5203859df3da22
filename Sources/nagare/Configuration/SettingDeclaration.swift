/// The declaration of a setting, from which the command line's parser and the documentation derive.
struct SettingDeclaration: Sendable {
    enum Kind: Sendable {
        /// `--dev` and `--no-dev`; `true` and `false` in the environment and the file.
        case flag
        case value
        /// A repeated flag, a comma-separated variable, a YAML sequence.
        case list
    }

    /// The default of a setting.
    enum Default: Equatable, Sendable {
        /// No value.
        case none
        /// This value.
        case value(String)
        /// A description of a default that depends on the machine.
        case described(String)
    }

    /// A group of settings under one heading.
    enum Group: Int, CaseIterable, Sendable {
        case development, http, media, access, sora, admin, operation, cluster

        var title: String {
            switch self {
            case .development: "Development"
            case .http: "HTTP and signaling"
            case .media: "Media"
            case .access: "Authentication and webhooks"
            case .sora: "Sora signaling"
            case .admin: "Admin API and metrics"
            case .operation: "Limits, logging and shutdown"
            case .cluster: "Cluster"
            }
        }

        /// The introduction of the group in the example file.
        var introduction: String? {
            switch self {
            case .access:
                """
                Set token, or auth-webhook-url, or any of jwt-key, app and url-key. Without any, all clients are admitted.
                """
            case .cluster:
                """
                Nodes with the same store and cluster-name share their channels. Each needs a node-name of its own, the same \
                cluster-secret, and a link address that the others reach. Without cluster-store the node is on its own.
                """
            case .development, .http, .media, .sora, .admin, .operation: nil
            }
        }

        /// In the order of their declaration.
        var settings: [Setting] { Setting.allCases.filter { $0.declaration.group == self } }
    }

    let group: Group
    let kind: Kind
    /// The value's placeholder in help, such as `host:port`. Empty for a flag.
    let placeholder: String
    let defaultValue: Default
    /// Whether the value is never printed.
    let isSecret: Bool
    /// One sentence.
    let help: String
    /// Further sentences for the example file.
    let notes: String?
    /// The examples in the example file, as YAML; several for a list. Empty to show the default.
    let examples: [String]

    init(
        _ group: Group,
        _ kind: Kind,
        _ placeholder: String,
        default defaultValue: Default = .none,
        isSecret: Bool = false,
        _ help: String,
        notes: String? = nil,
        examples: [String] = []
    ) {
        self.group = group
        self.kind = kind
        self.placeholder = placeholder
        self.defaultValue = defaultValue
        self.isSecret = isSecret
        self.help = help
        self.notes = notes
        self.examples = examples
    }
}
