import Base
import TestSupport
import Testing

struct SHA1Tests {
    private func digest(_ message: [UInt8], pieces: Int = .max) -> [UInt8] {
        var hash = SHA1()
        var rest = message[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            hash.update(unsafe piece.span.bytes)
            rest = rest.dropFirst(piece.count)
        }
        let result = hash.finalize()
        return (0..<20).map { result[$0] }
    }

    /// FIPS 180-4's examples.
    @Test(
        arguments: [
            ("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
            ("a", 1_000_000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ])
    func `the published digests come out`(unit: String, count: Int, expected: String) {
        let message = Array(repeatElement(Array(unit.utf8), count: count).joined())
        #expect(digest(message) == hexBytes(expected))
    }

    @Test(arguments: [1, 3, 63, 64, 65])
    func `the digest does not depend on the size of the updates`(piece: Int) {
        for count in 0...200 {
            let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(digest(message, pieces: piece) == digest(message))
        }
    }

    /// RFC 2202 §3.
    @Test(
        arguments: [
            (
                hexBytes(String(repeating: "0b", count: 20)), Array("Hi There".utf8),
                "b617318655057264e28bc0b6fb378c8ef146be00"
            ),
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
            ),
            (
                [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
                "125d7342b9ac11cd91a39af48aa17b4f63f175d3"
            ),
            (
                (1...25).map { UInt8($0) }, [UInt8](repeating: 0xCD, count: 50),
                "4c9007f4026250c6bc8414f9bf50c86c2d7235da"
            ),
            (
                [UInt8](repeating: 0x0C, count: 20), Array("Test With Truncation".utf8),
                "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"
            ),
            (
                [UInt8](repeating: 0xAA, count: 80),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "aa4ae5e15272d00e95705637ce8a3b55ed402112"
            ),
            (
                [UInt8](repeating: 0xAA, count: 80),
                Array("Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".utf8),
                "e8e99d0f45237d786d6bbaa7965c7808bbff1a91"
            ),
        ] as [([UInt8], [UInt8], String)]
    )
    func `the published authentication codes come out`(key: [UInt8], message: [UInt8], expected: String) {
        var code = HMACSHA1(key: unsafe key.span.bytes)
        code.update(unsafe message.span.bytes)
        let result = code.finalize()
        #expect((0..<20).map { result[$0] } == hexBytes(expected))
    }
}

struct CRC32Tests {
    @Test(arguments: [("", 0 as UInt32), ("123456789", 0xCBF4_3926), ("a", 0xE8B7_BE43)])
    func `published checksums are computed`(text: String, expected: UInt32) {
        let bytes = Array(text.utf8)
        let checksum = CRC32.checksum(unsafe bytes.span.bytes)
        #expect(checksum == expected)
    }
}
