import Base
import Testing

@testable import RTMP

@Suite struct HandshakeTests {
    private func handshake() -> RTMPHandshake {
        var generator = SplitMix64(seed: 1)
        return RTMPHandshake(using: &generator)
    }

    @Test(arguments: [1, 2, 7, 1_536, 1_537, 1_538, 3_072, 3_073, 4_000])
    func `S0, S1 and S2 answer C1 in any pieces`(pieceBytes: Int) throws {
        let opening = pattern(1_536)
        let bytes = [3] + opening + [UInt8](repeating: 9, count: 1_536) + [0xAA, 0xBB]
        var handshake = handshake()
        var output: [UInt8] = []
        var taken = 0
        while !handshake.isComplete {
            let piece = Array(bytes[taken...].prefix(pieceBytes))
            var offset = 0
            let answer = try handshake.receive(unsafe piece.span.bytes, &offset)
            if !answer.isEmpty { #expect(taken + offset >= 1_537 && output.isEmpty) }
            output += answer
            taken += offset
        }
        #expect(taken == 3_073, "what follows is left")
        #expect(output.count == 3_073 && output[0] == 3)
        #expect(output[1..<9].allSatisfy { $0 == 0 }, "no time, and no version with digests")
        #expect(Set(output[9..<1_537]).count > 200)
        #expect(Array(output[1_537...]) == opening)
    }

    @Test(
        arguments: [
            (6, "The client asks for encrypted RTMP (RTMPE), which is not supported; use rtmps."),
            (0x16, "The client speaks TLS on a port for plain RTMP."),
            (0x47, "The client speaks HTTP, not RTMP."), (0x50, "The client speaks HTTP, not RTMP."),
            (0, "The client asks for version 0 of RTMP; only 3 is supported."),
            (32, "The client asks for version 32 of RTMP; only 3 is supported."),
        ] as [(UInt8, String)]
    )
    func `other versions are refused with a sentence`(version: UInt8, sentence: String) {
        var handshake = handshake()
        var offset = 0
        let bytes: [UInt8] = [version]
        #expect(throws: RTMPError.unknownVersion(version)) {
            _ = try handshake.receive(unsafe bytes.span.bytes, &offset)
        }
        #expect(RTMPError.unknownVersion(version).description == sentence)
    }
}
