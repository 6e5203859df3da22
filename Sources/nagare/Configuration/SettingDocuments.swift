/// The documents generated from the settings' declarations. Tests compare them with the files of the repository.
enum SettingDocuments {
    /// The rows of a table in Markdown.
    static var table: [String] {
        var rows = ["| `--\(Setting.fileFlag) FILE` | | \(Setting.fileHelp) \(fileLink) |"]
        for setting in SettingDeclaration.Group.allCases.flatMap(\.settings) {
            let declaration = setting.declaration
            let value = declaration.placeholder.replacing("|", with: "\\|").uppercasedPlaceholder
            let flag = value.isEmpty ? setting.flag : "\(setting.flag) \(value)"
            var meaning = declaration.help
            if setting.isList { meaning += " Repeatable." }
            if setting.isSecret { meaning += " Prefer `\(setting.environmentVariable)` or the file." }
            rows.append("| `\(flag)` |\(defaultCell(declaration)) | \(meaning) |")
        }
        return rows
    }

    private static let fileLink = "[ops/nagare.example.yaml](ops/nagare.example.yaml) shows them all."

    private static func defaultCell(_ declaration: SettingDeclaration) -> String {
        switch declaration.defaultValue {
        case .none: ""
        case .value(let value): declaration.kind == .flag ? "" : " `\(value)`"
        case .described(let words): " \(words)"
        }
    }

    /// `ops/nagare.example.yaml`: every setting, commented out.
    static var exampleFile: String {
        var lines = comment(
            """
            Nagare's configuration: nagare serve --config nagare.yaml
            """
        )
        lines.append("#")
        lines += comment(
            """
            Every key is optional; commented-out keys show the default or an example. Each setting is also a flag, such as \
            --log-level debug, and an environment variable, such as NAGARE_LOG_LEVEL=debug (lists are joined by commas). The \
            command line overrides the environment, and the environment overrides this file. An unknown key is an error.
            """
        )
        for group in SettingDeclaration.Group.allCases {
            lines += ["", "# ---- \(group.title) ----"]
            if let introduction = group.introduction { lines += [""] + comment(introduction) }
            for setting in group.settings { lines += [""] + entry(setting) }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func entry(_ setting: Setting) -> [String] {
        let declaration = setting.declaration
        var text = declaration.help
        if case .described(let words) = declaration.defaultValue { text += " The default: \(words)." }
        if let notes = declaration.notes { text += " \(notes)" }
        var values = declaration.examples
        if values.isEmpty, case .value(let value) = declaration.defaultValue { values = [value] }
        let lines =
            declaration.kind == .list
            ? ["# \(setting.rawValue):"] + values.map { "#   - \($0)" } : values.map { "# \(setting.rawValue): \($0)" }
        return comment(text) + lines
    }

    /// Columns of a comment line.
    private static let columns = 120

    private static func comment(_ text: String) -> [String] {
        var lines: [String] = []
        var line = "#"
        for word in text.split(separator: " ") {
            if line.count + 1 + word.count > columns {
                lines.append(line)
                line = "#"
            }
            line += " \(word)"
        }
        return lines + [line]
    }
}

extension String {
    /// `HOST:PORT` for `host:port`; alternatives such as `on|off` stay in lower case.
    fileprivate var uppercasedPlaceholder: String { contains("|") ? self : uppercased() }
}
