/// Makes pages of Markdown.
enum Markdown {
    /// Columns of a line.
    private static let columns = 120

    /// Lines of a paragraph.
    static func paragraph(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(whereSeparator: \.isWhitespace) {
            if !line.isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " \(word)"
        }
        return lines + [line]
    }

    /// A page from its title, its abstract, its paragraphs and the rest.
    static func page(_ title: String, _ abstract: String, _ paragraphs: [String], _ rest: [String]) -> String {
        let overview = ["# \(title)", "", abstract, "", "## Overview"] + paragraphs.flatMap { [""] + paragraph($0) }
        return (overview + rest).joined(separator: "\n") + "\n"
    }

    /// The text with Markdown's own characters as they are.
    static func escaped(_ text: String) -> String {
        text.replacing("*", with: "\\*").replacing("<", with: "\\<").replacing("_", with: "\\_")
    }
}
