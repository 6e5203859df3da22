import ToolCommands

/// The settings of a node as they were read at one time.
struct LoadedSettings: Sendable {
    let configuration: NodeConfiguration
    /// The sources that the configuration was made of.
    let reader: SettingReader
}

/// What was set at one time, to tell what has changed since then. It is never printed: settings may be secrets.
struct SettingSnapshot: Sendable {
    private var values: [Setting: [String]] = [:]

    /// Reads the files of certificates and keys, too.
    init(_ reader: SettingReader) throws(CommandError) {
        for setting in Setting.allCases {
            guard let entry = try reader.entry(setting) else { continue }
            values[setting] = entry.values
            for value in entry.values {
                guard let path = Self.file(value, of: setting) else { continue }
                let hash = try SmallFile.contents(path).hashValue
                values[setting]?.append("\(hash)")
            }
        }
    }

    /// The file that a value names; `nil` for one that is no file.
    private static func file(_ value: String, of setting: Setting) -> String? {
        switch setting {
        case .tlsCertificate, .tlsKey, .adminTLSCertificate, .adminTLSKey, .webhookCA, .jwksCA, .clusterStoreCA:
            return value
        case .token, .adminToken, .adminReadToken, .webhookSecret, .clusterSecret:
            return value.hasPrefix("@") ? String(value.dropFirst()) : nil
        case .jwtKey, .app, .urlKey:
            let parts = value.split(separator: ":", maxSplits: 1)
            return parts.count == 2 && parts[1].hasPrefix("@") ? String(parts[1].dropFirst()) : nil
        case .jwks: return value.contains("://") ? nil : value
        default: return nil
        }
    }

    /// The settings with other values or files than before, in the order of their declaration.
    func changes(since earlier: Self) -> [Setting] {
        Setting.allCases.filter { values[$0] != earlier.values[$0] }
    }

    /// Takes the value of one setting.
    mutating func take(_ setting: Setting, from other: Self) { values[setting] = other.values[setting] }
}
