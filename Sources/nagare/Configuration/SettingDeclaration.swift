/// Everything about a setting but its key: what the command line's parser and the documentation are made from.
struct SettingDeclaration: Sendable {
    enum Kind: Sendable {
        /// `--dev` and `--no-dev`; `true` and `false` in the environment and the file.
        case flag
        case value
        /// A repeated flag, a comma-separated variable, a YAML sequence.
        case list
    }

    /// What holds without the setting.
    enum Default: Equatable, Sendable {
        /// The node does without.
        case none
        /// As if this had been written.
        case value(String)
        /// Depends on the machine; in words.
        case described(String)
    }

    /// The settings under one heading.
    enum Group: Int, CaseIterable, Sendable {
        case development, http, media, access, sora, admin, operation

        var title: String {
            switch self {
            case .development: "Development"
            case .http: "HTTP and signaling"
            case .media: "Media"
            case .access: "Authentication and webhooks"
            case .sora: "Sora signaling"
            case .admin: "Admin API and metrics"
            case .operation: "Limits, logging and shutdown"
            }
        }

        /// What the example file says before the group's settings.
        var introduction: String? {
            self == .access
                ? "token, jwt-key or auth-webhook-url decides who is admitted: set one. Without any, everybody is."
                : nil
        }

        /// In the order of their declaration.
        var settings: [Setting] { Setting.allCases.filter { $0.declaration.group == self } }
    }

    let group: Group
    let kind: Kind
    /// What stands for the value in help: `host:port`. Empty for a flag.
    let placeholder: String
    let defaultValue: Default
    /// Whether the value is never printed.
    let isSecret: Bool
    /// One sentence.
    let help: String
    /// Further sentences for the example file.
    let notes: String?
    /// What the example file shows, as YAML; several for a list. Empty where it shows the default.
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
