import Hummingbird
package import NIOCore

/// The result of reading a request's body within limits.
package enum LimitedBody: Sendable {
    case whole(ByteBuffer)
    /// The body is too long. It was read to its end, so that the client reads the response.
    case tooLong
    /// The body is too long to skip. The connection must be closed.
    case unreadable
    /// The body took too long to arrive. The connection must be closed.
    case late
}

extension RequestBody {
    /// Reads the body.
    /// - Parameters:
    ///   - bytesMax: The maximum length of a returned body.
    ///   - drainBytesMax: The maximum length of a body that is read to its end.
    ///   - timeout: The time limit for the whole body.
    /// - Throws: The connection's error.
    package func read(upTo bytesMax: Int, draining drainBytesMax: Int, within timeout: Duration) async throws
        -> LimitedBody
    {
        try await withDeadline(after: timeout, late: .late) {
            try await collect(upTo: bytesMax, draining: drainBytesMax)
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
