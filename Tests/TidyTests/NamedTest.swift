/// A test that a document names.
struct NamedTest {
    /// From the repository's top.
    let path: String
    /// `test_x` of Python, or the raw identifier of a Swift test.
    let name: String

    /// One row of a document's tables whose last column has tests: a path in backticks, and behind it the names of its
    /// tests in backticks.
    struct Row {
        let text: String
        let columns: Int
        let tests: [NamedTest]
    }

    /// The rows of all tables that have a column “Test” at the end.
    static func rows(of document: String) -> [Row] {
        var rows: [Row] = []
        var isInTable = false
        for line in document.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                isInTable = false
                continue
            }
            if line.hasSuffix("| Test |") {
                isInTable = true
            } else if isInTable, !line.hasPrefix("| ---") {
                let columns = line.split(separator: "|").map(String.init)
                rows.append(Row(text: String(line), columns: columns.count, tests: tests(in: columns.last ?? "")))
            }
        }
        return rows
    }

    private static func tests(in column: String) -> [NamedTest] {
        var path: String?
        var tests: [NamedTest] = []
        for match in column.matches(of: /`([^`]+)`/) {
            let name = String(match.1)
            if name.hasPrefix("Tests/") {
                path = name
            } else if let path {
                tests.append(NamedTest(path: path, name: name))
            }
        }
        return tests
    }

    /// Whether a file's text declares a test of this name.
    static func declares(_ name: String, _ source: String) -> Bool {
        source.contains(name.hasPrefix("test_") ? "def \(name)(" : "func `\(name)`(")
    }
}
