import Base

/// The server's side of the plain handshake (RTMP 1.0 §5.2): C0 and C1 in, S0, S1 and S2 out, C2 in.
///
/// S2 repeats C1. C2 is not verified, because some encoders send other bytes. The variant with digests, which a client offers
/// by a version in C1, is not answered: a version of zero in S1 tells the client so.
struct RTMPHandshake: Sendable {
    static let version: UInt8 = 3
    /// C1, C2, S1 and S2 each, in bytes.
    static let blockBytes = 1_536

    private enum Stage: Sendable {
        case version
        /// C1, as far as it came.
        case opening
        /// - Parameter missing: bytes of C2 that have not come yet.
        case answer(missing: Int)
        case complete
    }

    private var stage = Stage.version
    private var opening: [UInt8] = []
    private let random: [UInt8]

    /// - Parameter generator: for the random bytes of S1.
    init(using generator: inout some RandomNumberGenerator) { random = Self.block(using: &generator) }

    var isComplete: Bool {
        if case .complete = stage { true } else { false }
    }

    /// C1 or S1: four bytes of time and four of version, all zero, then random bytes.
    static func block(using generator: inout some RandomNumberGenerator) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: 8)
        block.reserveCapacity(blockBytes)
        while block.count < blockBytes { block.append(bigEndian: generator.next() as UInt64) }
        return block
    }

    /// Takes bytes from `offset`, but none beyond the end of the handshake.
    /// - Returns: what to send; empty when nothing is.
    mutating func receive(_ bytes: RawSpan, _ offset: inout Int) throws(RTMPError) -> [UInt8] {
        var answer: [UInt8] = []
        while offset < bytes.byteCount, !isComplete {
            switch stage {
            case .version:
                let version = bytes.byte(at: offset)
                guard version == Self.version else { throw .unknownVersion(version) }
                offset += 1
                stage = .opening
                opening.reserveCapacity(Self.blockBytes)
            case .opening:
                let count = min(Self.blockBytes - opening.count, bytes.byteCount - offset)
                opening.append(contentsOf: bytes, from: offset, count: count)
                offset += count
                guard opening.count == Self.blockBytes else { break }
                answer = [Self.version] + random + opening
                opening = []
                stage = .answer(missing: Self.blockBytes)
            case .answer(let missing):
                let count = min(missing, bytes.byteCount - offset)
                offset += count
                stage = count == missing ? .complete : .answer(missing: missing - count)
            case .complete: break
            }
        }
        return answer
    }
}

extension [UInt8] {
    /// Appends `count` bytes of a span that has them.
    mutating func append(contentsOf bytes: RawSpan, from offset: Int, count: Int) {
        unsafe bytes.extracting(offset..<offset + count).withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}
