@testable import nagare

/// The pages of the settings and the limits, from their declarations.
enum SettingsReference {
    static var page: String {
        var lines: [String] = []
        for group in SettingDeclaration.Group.allCases {
            lines += ["", "## \(group.title)"]
            if let introduction = group.introduction { lines += [""] + Markdown.paragraph(introduction) }
            for setting in group.settings { lines += [""] + entry(setting) }
        }
        return Markdown.page(
            "Settings",
            "Every setting of `nagare serve`, with its flag, environment variable, default and meaning.",
            [
                """
                A setting has one name in three places: `log-level` in the configuration file is `--log-level` on the \
                command line and `NAGARE_LOG_LEVEL` in the environment. The command line overrides the environment, \
                and the environment overrides the file, which `--\(Setting.fileFlag) FILE` or \
                `\(Setting.fileVariable)` names. A setting with several values is a list in the file, a repeated flag, \
                and a list with commas in the environment. An unknown key is an error.
                """,
                """
                `nagare settings` prints a file with all settings, commented out. <doc:RunningANode> explains which \
                ones a node needs, and <doc:DrainingAndStopping> what a reload does.
                """,
            ],
            lines
        )
    }

    private static func entry(_ setting: Setting) -> [String] {
        let declaration = setting.declaration
        let placeholder = declaration.placeholder
        let value = placeholder.contains("|") ? placeholder : placeholder.uppercased()
        var facts = "`\(setting.flag)\(value.isEmpty ? "" : " ")\(value)`, `\(setting.environmentVariable)`."
        if setting.isList { facts += " Repeatable." }
        if setting.isSecret { facts += " Other users of the machine can read flags: prefer the variable or the file." }
        switch declaration.defaultValue {
        case .none: break
        case .value(let value): facts += " The default is `\(value)`."
        case .described(let words): facts += " The default: \(words)."
        }
        if setting.isReloadable { facts += " A reload puts a change in force." }
        let text = [declaration.help, declaration.notes].compactMap(\.self).joined(separator: " ")
        let paragraphs = Markdown.paragraph(Markdown.escaped(text)) + [""] + Markdown.paragraph(facts)
        let values = declaration.examples
        guard !values.isEmpty else { return ["### \(setting.rawValue)", ""] + paragraphs }
        let example =
            setting.isList
            ? ["\(setting.rawValue):"] + values.map { "  - \($0)" } : values.map { "\(setting.rawValue): \($0)" }
        return ["### \(setting.rawValue)", ""] + paragraphs + ["", "```yaml"] + example + ["```"]
    }

    static var limits: String {
        var lines = ["", "| Limit | Default | From | To | Bounds |", "| --- | ---: | ---: | ---: | --- |"]
        for limit in Limit.all {
            let range = "\(limit.range.lowerBound) | \(limit.range.upperBound)"
            lines.append("| `\(limit.name)` | \(limit.defaultValue) | \(range) | \(limit.meaning) |")
        }
        lines.append("")
        lines += Markdown.paragraph(
            """
            A client has at most 128 data channels, and a message at most 262,144 bytes. Data that is incomplete or not \
            acknowledged takes at most 1 MiB of memory for each client; 60 s without progress, or packets that cost more \
            than 4,000,000 steps of work a second, end its channels.
            """
        )
        lines.append("")
        lines += Markdown.paragraph(
            """
            A compressed message may have 16 KiB of content, and a hundred times its length. To its signaling over \
            data channels a client may send 100 messages and 1 MiB of content a second, and 1,000 messages and 4 MiB \
            at once. A client that sends more, or anything on `notify` or `push`, is ended.
            """
        )
        lines.append("")
        lines += Markdown.paragraph(
            """
            What a client sends to others beyond `messages-per-second`, `message-bytes-per-second` and the limits of \
            deliveries waits for up to two seconds, a tenth of a second where messages may be lost, and slows the \
            client down; what would wait longer is dropped, and a message that takes more than ten seconds of its \
            sender's deliveries, too. What the node compresses for receivers counts as content. A media loop queues \
            messages for at most 512 receivers in one turn, and sends 512 packets with data, so that media goes \
            between them.
            """
        )
        lines += ["", "### The bit rate of publishers", ""]
        lines += Markdown.paragraph(
            """
            `publish-kbps`, or `publish_bit_rate` of a grant, bounds all that one participant sends, audio and video \
            together. Up to 15 % more passes, and a burst of a second or half a megabyte, whichever is more. Beyond \
            that the node drops whole layers of video, the highest first, each for two seconds or longer and until its \
            next key frame, and audio last.
            """
        )
        return Markdown.page(
            "Limits",
            "What bounds the clients of a node, and how to change it.",
            [
                """
                `--limit NAME=VALUE` sets a limit. The configuration file takes a list: `limit: [channels=1000]`. \
                `nagare limits` prints the limits of a program. The node refuses what exceeds a limit, gives the \
                reason, and counts it in <doc:Metrics>.
                """,
                """
                Limits of an address count an IPv6 client by its /64 prefix. Name a reverse proxy with \
                `--trusted-proxy`; otherwise all its clients count as one address.
                """,
            ],
            lines
        )
    }
}
