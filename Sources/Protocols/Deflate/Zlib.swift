internal import CZlib

/// Why bytes are not a zlib stream that is accepted.
package enum ZlibError: Error, Hashable, Sendable {
    /// Not one whole stream, or damaged.
    case malformed
    /// The content is longer than allowed.
    case tooLong
}

/// Messages as zlib streams (RFC 1950).
package enum Zlib {
    /// The first guess of how much longer the content is than the stream.
    private static let expansion = 4
    /// The pieces that content is made in: a short message is one piece.
    private static let pieceBytesMin = 1_024
    private static let pieceBytesMax = 16_384

    /// Compresses a message of at most some megabytes.
    /// - Returns: an empty array when the library has no memory.
    package static func compress(_ bytes: [UInt8]) -> [UInt8] {
        let capacity = nagare_deflate_bound(bytes.count)
        return unsafe [UInt8](unsafeUninitializedCapacity: capacity) { out, count in
            guard let target = out.baseAddress else { return }
            let length = unsafe bytes.withUnsafeBufferPointer { source in
                unsafe nagare_deflate(source.baseAddress, source.count, target, capacity)
            }
            count = max(length, 0)
        }
    }

    /// The most content, in bytes, that is worth making of a stream of this length: 16 KiB, and a hundred times the stream.
    ///
    /// Descriptions, statistics and other text expand 3 to 30 times. A stream of zeros expands 1,000 times, so that it costs its
    /// receiver far more than its sender.
    package static func contentMax(of streamBytes: Int) -> Int { 16_384 + 100 * streamBytes }

    /// Decompresses a whole stream, once and piece by piece. Memory and time are bounded by `bytesMax`.
    ///
    /// - Parameter inflated: gets the length of each piece when it was made, so that those of a refused stream count, too.
    package static func decompress(
        _ bytes: [UInt8],
        bytesMax: Int,
        inflated: (Int) -> Void = { _ in }
    ) throws(ZlibError) -> [UInt8] {
        let bytesMax = max(bytesMax, 0)
        var pieces: [[UInt8]] = []
        var count = 0
        var failure: ZlibError?
        unsafe bytes.withUnsafeBufferPointer { source in
            guard let stream = unsafe nagare_inflate_begin(source.baseAddress, source.count) else {
                failure = .malformed
                return
            }
            defer { unsafe nagare_inflate_end(stream) }
            while true {
                let guess = min(max(bytes.count &* expansion, pieceBytesMin), pieceBytesMax)
                let room = min(guess, bytesMax - count)
                var state: Int32 = -1
                let piece = unsafe [UInt8](unsafeUninitializedCapacity: max(room, 1)) { out, made in
                    state = unsafe nagare_inflate_next(stream, out.baseAddress, room, &made)
                }
                pieces.append(piece)
                count += piece.count
                inflated(piece.count)
                if state == 1 { return }
                guard state == 0 else {
                    failure = .malformed
                    return
                }
                guard count < bytesMax else {
                    failure = .tooLong
                    return
                }
            }
        }
        if let failure { throw failure }
        if pieces.count == 1 { return pieces[0] }
        var content: [UInt8] = []
        content.reserveCapacity(count)
        for piece in pieces { content += piece }
        return content
    }
}
