import ChannelTypes
internal import Foundation
internal import Room

/// The file with a node's ``SavedView``.
struct ViewFile: Sendable {
    private let url: URL

    init(directory: String, cluster: ClusterName, node: NodeID) {
        url = URL(filePath: directory, directoryHint: .isDirectory)
            .appending(path: "cluster-\(cluster)-\(node).json", directoryHint: .notDirectory)
    }

    /// `nil` without a file that can be read and understood.
    func load() -> SavedView? {
        guard let handle = try? FileHandle(forReadingFrom: url) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: SavedView.bytesMax) else { return nil }
        return SavedView(encoded: String(decoding: data, as: UTF8.self))
    }

    /// Replaces the file in one step.
    /// - Throws: the system's error.
    func save(_ view: SavedView) throws {
        try Data(view.encoded.utf8).write(to: url, options: .atomic)
    }
}
