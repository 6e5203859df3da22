internal import Foundation

/// The file of ended connections, with those that SQLite keeps beside it. It has addresses of clients, which other users may
/// not read.
struct HistoryFile: Sendable {
    private static let suffixes = ["", "-wal", "-shm"]

    let path: String
    /// The name of a damaged file. There is at most one.
    var damagedPath: String { path + ".damaged" }

    init(path: String) { self.path = path }

    /// Several nodes of one machine may share a directory.
    init(node: String, directory: String) {
        let name = node.unicodeScalars.prefix(64).map { scalar in
            let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            return isPlain ? Character(scalar) : "-"
        }
        path = URL(filePath: directory, directoryHint: .isDirectory)
            .appending(path: "history-\(String(name)).sqlite", directoryHint: .notDirectory).path(percentEncoded: false)
    }

    /// Makes an empty file unless there is one.
    func make() {
        guard !FileManager.default.fileExists(atPath: path) else { return }
        _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
    }

    /// Gives the file the name of a damaged one, in place of an earlier one. No database may have it open.
    func putAside() {
        for suffix in Self.suffixes {
            try? FileManager.default.removeItem(atPath: damagedPath + suffix)
            try? FileManager.default.moveItem(atPath: path + suffix, toPath: damagedPath + suffix)
            // Without a permission to rename, an empty file is better than a damaged one.
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
    }

    /// Removes the damaged file when nothing was written to it since a time.
    /// - Parameter limit: in milliseconds since 1970 UTC.
    func removeDamaged(before limit: Int64) {
        let attributes = try? FileManager.default.attributesOfItem(atPath: damagedPath)
        guard let changed = attributes?[.modificationDate] as? Date,
            changed.timeIntervalSince1970 * 1_000 < Double(limit)
        else { return }
        for suffix in Self.suffixes { try? FileManager.default.removeItem(atPath: damagedPath + suffix) }
    }

    /// Removes the file and the damaged one. No database may have them open.
    /// - Throws: Foundation's error for a file that cannot be removed.
    func remove() throws {
        for path in [path, damagedPath] {
            for suffix in Self.suffixes where FileManager.default.fileExists(atPath: path + suffix) {
                try FileManager.default.removeItem(atPath: path + suffix)
            }
        }
    }
}
