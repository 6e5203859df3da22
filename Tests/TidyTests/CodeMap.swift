/// The article that says what is where.
enum CodeMap {
    static let path = "Sources/nagare/Nagare.docc/CodeMap.md"

    /// One row of its tables, with its names in backticks.
    struct Row {
        let text: String
        /// Files and folders, from the repository's top.
        let paths: [String]
        /// `Type` or `Type.method`.
        let symbols: [String]
    }

    static func rows(of article: String) -> [Row] {
        article.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains("`") }.map { line in
            let names = line.matches(of: /`([^`]+)`/).map { String($0.1) }
            let folders = ["Sources", "Tests", "Benchmarks", "ops"]
            let paths = names.filter { name in folders.contains { name == $0 || name.hasPrefix($0 + "/") } }
            let symbols = names.filter { $0.first?.isUppercase == true && !paths.contains($0) }
            return Row(text: String(line), paths: paths, symbols: symbols)
        }
    }

    /// Whether one of the files declares the type, or extends it and declares the method.
    static func exists(_ symbol: String, in files: [SourceFile]) -> Bool {
        let parts = symbol.split(separator: ".")
        let keywords = "(class|struct|enum|actor|protocol|extension)"
        guard let type = parts.first, let declaration = try? Pattern("\\b\(keywords) \(type)\\b") else { return false }
        let declaring = files.filter { $0.contains(declaration) }
        guard parts.count > 1 else { return !declaring.isEmpty }
        guard let method = try? Pattern("\\bfunc \(parts[1])\\b") else { return false }
        return declaring.contains { $0.contains(method) }
    }
}
