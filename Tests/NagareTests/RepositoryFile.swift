import Foundation

/// Files of this repository, found from where this file was compiled.
enum RepositoryFile {
    /// - Parameter path: from the repository's top.
    static func contents(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
