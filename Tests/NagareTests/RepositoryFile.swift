import Foundation

/// Files of this repository, found from where this file was compiled.
enum RepositoryFile {
    /// - Parameter path: from the repository's top.
    static func url(_ path: String) -> URL {
        URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(path)
    }

    /// - Parameter path: from the repository's top.
    static func contents(_ path: String) throws -> String {
        try String(contentsOf: url(path), encoding: .utf8)
    }
}
