import Hummingbird
import NIOCore
import Testing

@testable import Web

/// Bodies whose length the client does not declare.
@Suite struct RequestBodyTests {
    /// Reads a body of `count` chunks of ten bytes: up to 30 bytes are returned, up to 50 are read to the end.
    /// - Returns: the result, and how many chunks were not read.
    private func read(chunks count: Int) async throws -> (body: LimitedBody, unread: Int) {
        let (chunks, source) = AsyncStream.makeStream(of: ByteBuffer.self)
        for _ in 0..<count { source.yield(ByteBuffer(repeating: 0x61, count: 10)) }
        source.finish()
        let body = try await RequestBody(asyncSequence: chunks).read(upTo: 30, draining: 50, within: .seconds(3_600))
        var unread = 0
        for await _ in chunks { unread += 1 }
        return (body, unread)
    }

    @Test(arguments: [0, 1, 3])
    func `a body up to the limit is returned whole`(count: Int) async throws {
        let (body, unread) = try await read(chunks: count)
        let length: Int? = if case .whole(let bytes) = body { bytes.readableBytes } else { nil }
        #expect(length == 10 * count && unread == 0)
    }

    @Test(arguments: [4, 5])
    func `a body that is too long is read to its end and not returned`(count: Int) async throws {
        let (body, unread) = try await read(chunks: count)
        let isTooLong = if case .tooLong = body { true } else { false }
        #expect(isTooLong && unread == 0)
    }

    @Test func `a body that is too long to skip is read no further`() async throws {
        let (body, unread) = try await read(chunks: 1_000)
        let isUnreadable = if case .unreadable = body { true } else { false }
        #expect(isUnreadable && unread == 994)
    }
}
