import Configuration
import Synchronization

/// One source of settings: the command line, the environment or the file. Layers are asked in that order.
struct ConfigurationLayer: Sendable {
    /// What a layer says about one setting, and how it is called there, for the sentence when it is wrong.
    struct Entry: Equatable, Sendable {
        let values: [String]
        /// `--loops`, `NAGARE_LOOPS` or `loops in nagare.yaml`.
        let origin: String
        /// The only value of a setting that is no list.
        var value: String { values.first ?? "" }
    }

    private let snapshot: any ConfigSnapshot
    private let key: @Sendable (Setting) -> AbsoluteConfigKey
    private let origin: @Sendable (Setting) -> String

    /// What the layer says about `setting`; `nil` when it says nothing.
    func entry(for setting: Setting) throws(StartupError) -> Entry? {
        let key = key(setting)
        let origin = origin(setting)
        if setting.isList, case .stringArray(let values)? = content(key, .stringArray) {
            return Entry(values: values, origin: origin)
        }
        // A list of one may be written without the list's punctuation.
        if case .string(let value)? = content(key, .string) { return Entry(values: [value], origin: origin) }
        if case .stringArray? = content(key, .stringArray) {
            throw .usage("\(origin) takes one value, not a list.")
        }
        return nil
    }

    /// The library throws when the value has another shape than the one asked for, which is no answer to this question.
    private func content(_ key: AbsoluteConfigKey, _ type: ConfigType) -> ConfigContent? {
        (try? snapshot.value(forKey: key, type: type))?.value?.content
    }
}

extension ConfigurationLayer {
    /// The flags given, each with its values.
    static func commandLine(_ flags: [Setting: [String]]) -> Self {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (setting, texts) in flags {
            let content: ConfigContent = setting.isList ? .stringArray(texts) : .string(texts.last ?? "")
            values[AbsoluteConfigKey([setting.rawValue])] = ConfigValue(content, isSecret: setting.isSecret)
        }
        return Self(
            snapshot: InMemoryProvider(name: "command line", values: values).snapshot(),
            key: { AbsoluteConfigKey([$0.rawValue]) },
            origin: { $0.flag }
        )
    }

    /// The variables that start with `NAGARE_`. An empty one counts as not set, as deployment templates leave them.
    static func environment(_ variables: [String: String]) -> Self {
        let ours = variables.filter { $0.key.hasPrefix(Setting.environmentPrefix) && !$0.value.isEmpty }
        let provider = EnvironmentVariablesProvider(
            environmentVariables: ours,
            secretsSpecifier: .specific(Set(Setting.allCases.filter(\.isSecret).map(\.environmentVariable)))
        )
        return Self(
            snapshot: provider.snapshot(),
            key: { AbsoluteConfigKey(["nagare", $0.rawValue]) },
            origin: { $0.environmentVariable }
        )
    }

    /// The configuration file. `path` only serves to name it.
    ///
    /// A key that is no setting is refused rather than ignored: a mistyped `token` would leave the node open to anyone.
    static func file(path: String, contents: [UInt8]) throws(StartupError) -> Self {
        // The library has no list of keys; it asks about each key that it meets whether its value is a secret.
        let keys = Mutex<[String]>([])
        let options = YAMLSnapshot.ParsingOptions(
            secretsSpecifier: .dynamic { key, _ in
                keys.withLock { $0.append(key) }
                return Setting(rawValue: key)?.isSecret ?? false
            }
        )
        // An empty file, or one of comments only, says nothing; the parser wants a mapping.
        let isBlank = contents.split(separator: UInt8(ascii: "\n")).allSatisfy { line in
            let text = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") }
            return text.isEmpty || text.first == UInt8(ascii: "#")
        }
        let snapshot: any ConfigSnapshot
        do {
            if isBlank {
                snapshot = InMemoryProvider(name: path, values: [:]).snapshot()
            } else {
                snapshot = try YAMLSnapshot(
                    data: unsafe contents.span.bytes,
                    providerName: path,
                    parsingOptions: options
                )
            }
        } catch {
            throw .usage("\(path) is not a valid configuration file: \(Self.oneLine("\(error)")).")
        }
        let unknown = keys.withLock { $0.filter { Setting(rawValue: $0) == nil } }.sorted()
        if let key = unknown.first {
            let suggestion = suggestion(for: key, among: Setting.allCases.map(\.rawValue))
            throw .usage("\(path) has the unknown key \"\(key)\"\(suggestion).")
        }
        return Self(
            snapshot: snapshot,
            key: { AbsoluteConfigKey([$0.rawValue]) },
            origin: { "\($0.rawValue) in \(path)" }
        )
    }

    /// The parser's explanation without its drawing of the place.
    private static func oneLine(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? text
        return line.last == "." || line.last == ":" ? String(line.dropLast()) : line
    }
}

/// ` (do you mean "token"?)` when one of the known names is a slip of the finger away.
func suggestion(for name: String, among known: [String]) -> String {
    let nearest = known.map { (name: $0, distance: editDistance(name, $0)) }.min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= 2 else { return "" }
    return " (do you mean \"\(nearest.name)\"?)"
}

/// Levenshtein's distance. Only short names are compared.
private func editDistance(_ left: String, _ right: String) -> Int {
    let right = Array(right.utf8)
    var row = Array(0...right.count)
    for (index, byte) in left.utf8.prefix(64).enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in right.indices {
            let substitution = diagonal + (byte == right[column] ? 0 : 1)
            diagonal = row[column + 1]
            row[column + 1] = min(substitution, diagonal + 1, row[column] + 1)
        }
    }
    return row[right.count]
}
