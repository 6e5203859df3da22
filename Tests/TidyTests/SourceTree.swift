import Foundation

/// One Swift file of this repository.
struct SourceFile: Sendable {
    /// From the repository's top: `Sources/Wire/Bytes.swift`.
    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The folder under `Sources` or `Tests`.
    var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

    /// The lines that hold code, without their comments, numbered from 1.
    var code: [(number: Int, text: String)] {
        lines.enumerated().compactMap { index, line in
            let text = Self.withoutComment(line)
            return text.allSatisfy(\.isWhitespace) ? nil : (index + 1, text)
        }
    }

    /// Cuts at `//` outside a string literal of one line. The sources have no block comments.
    private static func withoutComment(_ line: String) -> String {
        var isInString = false
        var previous: Character?
        for index in line.indices {
            let character = line[index]
            if character == "\"", previous != "\\" { isInString.toggle() }
            if character == "/", previous == "/", !isInString { return String(line[..<line.index(before: index)]) }
            previous = character
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
