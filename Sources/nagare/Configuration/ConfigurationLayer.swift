import Configuration
import Synchronization
import ToolCommands

/// One source of settings: the command line, the environment or the file, in order of precedence.
struct ConfigurationLayer: Sendable {
    /// A setting's values in one layer, and its name there for error messages.
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

    /// The layer's entry for `setting`; `nil` when it has none.
    func entry(for setting: Setting) throws(CommandError) -> Entry? {
        let key = key(setting)
        let origin = origin(setting)
        if setting.isList, case .stringArray(let values)? = content(key, .stringArray) {
            return Entry(values: values, origin: origin)
        }
        // A list with one element may be written as a plain value.
        if case .string(let value)? = content(key, .string) { return Entry(values: [value], origin: origin) }
        if case .stringArray? = content(key, .stringArray) {
            throw .usage("\(origin) takes one value, not a list.")
        }
        return nil
    }

    /// `nil` also for a value of another type, for which the library throws.
    private func content(_ key: AbsoluteConfigKey, _ type: ConfigType) -> ConfigContent? {
        (try? snapshot.value(forKey: key, type: type))?.value?.content
    }
}

extension ConfigurationLayer {
    /// The flags that are set, each with its values.
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

    /// The configuration file. `path` appears in error messages only.
    ///
    /// An unknown key is an error: if a mistyped `token` were ignored, anyone could publish.
    static func file(path: String, contents: [UInt8]) throws(CommandError) -> Self {
        // The library does not list a file's keys, but it asks of each whether its value is a secret.
        let keys = Mutex<[String]>([])
        let options = YAMLSnapshot.ParsingOptions(
            secretsSpecifier: .dynamic { key, _ in
                keys.withLock { $0.append(key) }
                return Setting(rawValue: key)?.isSecret ?? false
            }
        )
        // The parser refuses a file that is empty or has only comments.
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

    /// The first line of the parser's error, without its excerpt of the file.
    private static func oneLine(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? text
        return line.last == "." || line.last == ":" ? String(line.dropLast()) : line
    }
}

/// ` (do you mean "token"?)` when a known name differs in at most two characters; otherwise empty.
func suggestion(for name: String, among known: [String]) -> String {
    let nearest = known.map { (name: $0, distance: editDistance(name, $0)) }.min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= 2 else { return "" }
    return " (do you mean \"\(nearest.name)\"?)"
}

/// The Levenshtein distance of the first 64 bytes.
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
