import Hummingbird
import NIOCore

/// What came of reading a request's body within limits.
enum LimitedBody: Sendable {
    case whole(ByteBuffer)
    /// Longer than permitted. It was read to its end, so that the client reads the refusal.
    case tooLong
    /// So long that the rest is not read: the connection has to be closed.
    case unreadable
    /// The body took too long to arrive: the connection has to be closed.
    case late
}

extension RequestBody {
    /// Reads the body.
    /// - Parameters:
    ///   - bytesMax: the longest body that is returned.
    ///   - drainBytesMax: the longest body that is read to its end.
    ///   - timeout: how long the body may take to arrive.
    /// - Throws: the connection's error.
    func read(upTo bytesMax: Int, draining drainBytesMax: Int, within timeout: Duration) async throws -> LimitedBody {
        try await withThrowingTaskGroup(of: LimitedBody.self) { group in
            group.addTask { try await collect(upTo: bytesMax, draining: drainBytesMax) }
            group.addTask {
                try await Task.sleep(for: timeout)
                return .late
            }
            defer { group.cancelAll() }
            return try await group.next() ?? .late
        }
    }

    private func collect(upTo bytesMax: Int, draining drainBytesMax: Int) async throws -> LimitedBody {
        var collected = ByteBuffer()
        var total = 0
        for try await chunk in self {
            total += chunk.readableBytes
            guard total <= Swift.max(bytesMax, drainBytesMax) else { return .unreadable }
            if total <= bytesMax { collected.writeImmutableBuffer(chunk) }
        }
        return total <= bytesMax ? .whole(collected) : .tooLong
    }
}
