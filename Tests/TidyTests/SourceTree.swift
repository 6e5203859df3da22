import Foundation

/// One Swift file of this repository.
struct SourceFile: Sendable {
    /// From the repository's top: `Sources/Protocols/Wire/Bytes.swift`.
    let path: String
    let lines: [String]
    /// The lines that hold code, without their comments, numbered from 1.
    let code: [(number: Int, text: String)]
    /// The same lines as one text, in which a pattern is found faster than in each of them.
    let codeText: String

    init(path: String, text: String) {
        self.path = path
        module =
            Manifest.targets.first { path.hasPrefix($0.folder + "/") }?.name
            ?? path.split(separator: "/").dropFirst().first.map(String.init) ?? ""
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        code = lines.enumerated().compactMap { index, line in
            let text = Self.withoutComment(line)
            return text.utf8.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
                ? nil : (index + 1, text)
        }
        codeText = code.map(\.text).joined(separator: "\n")
    }

    /// The target that compiles it. The tests of this package are no target of the manifest: their folder.
    let module: String

    /// The lines of code with an import.
    var imports: [(number: Int, text: String)] {
        contains(Pattern.importing) ? code.filter { Pattern.importing.matches($0.text) } : []
    }

    func contains(_ pattern: Pattern) -> Bool { pattern.matches(codeText) }

    /// Cuts at `//` outside a string literal of one line. The sources have no block comments.
    private static func withoutComment(_ line: String) -> String {
        let bytes = line.utf8
        var isInString = false
        var previous: UInt8?
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\""), previous != UInt8(ascii: "\\") { isInString.toggle() }
            if byte == UInt8(ascii: "/"), previous == UInt8(ascii: "/"), !isInString {
                return String(line[..<bytes.index(before: index)])
            }
            previous = byte
        }
        return line
    }
}

/// The files of this repository, found from where this file was compiled.
enum SourceTree {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The contents of every file under `folder` whose name has this ending, build products and environments aside.
    static func text(under folder: String, suffix: String) throws -> [String] {
        let top = root.appendingPathComponent(folder).resolvingSymlinksInPath()
        return try FileManager.default.subpathsOfDirectory(atPath: top.path)
            .filter { path in
                path.hasSuffix(suffix) && !path.split(separator: "/").contains { $0.hasPrefix(".") }
            }
            .map { try String(contentsOf: top.appendingPathComponent($0), encoding: .utf8) }
    }

    /// Every Swift file under `folder`, build products and fuzz corpora aside, sorted by path.
    static func swiftFiles(under folder: String) -> [SourceFile] {
        let top = root.appendingPathComponent(folder).resolvingSymlinksInPath()
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: top.path)) ?? []
        return paths.filter { path in
            path.hasSuffix(".swift") && !path.split(separator: "/").contains { $0.hasPrefix(".") }
        }
        .sorted()
        .compactMap { path in
            guard let text = try? String(contentsOf: top.appendingPathComponent(path), encoding: .utf8) else {
                return nil
            }
            return SourceFile(path: "\(folder)/\(path)", text: text)
        }
    }
}
