import SRTP
import Testing
import Wire

/// Published test vectors: the reference is compared with the RFCs, then each backend with the reference.
struct VectorTests {
    @Test func `RFC 3711 B.2: AES-CM key stream`() {
        let key = hex("2B7E151628AED2A6ABF7158809CF4F3C")
        let salt = hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD")
        let counter = Reference.counter(salt: salt, ssrc: 0, index: 0)
        let stream = Reference.counterMode(key: key, counter: counter, data: [UInt8](repeating: 0, count: 0xFF03 * 16))
        #expect(
            Array(stream.prefix(48))
                == hex(
                    """
                    E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB
                    41E95B3BB0A2E8DD477901E4FCA894C0
                    """
                )
        )
        #expect(
            Array(stream[(0xFEFF * 16)..<(0xFF02 * 16)])
                == hex(
                    """
                    EC8CDF7398607CB0F2D21675EA9EA1E4 362B7C3C6773516318A077D7FC5073AE
                    6A2CC3787889374FBEB4C81B17BA6C44
                    """
                )
        )
    }

    @Test func `RFC 3711 B.3: key derivation`() {
        let key = hex("E1F97A0D3E018BE0D64FA32C06DE4139")
        let salt = hex("0EC675AD498AFEEBB6960B3AABE6")
        #expect(
            Reference.derive(key: key, salt: salt, label: 0, count: 16) == hex("C61E7A93744F39EE10734AFE3FF7A087")
        )
        #expect(Reference.derive(key: key, salt: salt, label: 2, count: 14) == hex("30CBBC08863D8C85D49DB34A9AE1"))
        #expect(
            Reference.derive(key: key, salt: salt, label: 1, count: 20)
                == hex("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4")
        )
    }

    private static let salt7714 = hex("517569642070726f2071756f")
    private static let header7714 = hex("8040f17b 8041f8d3 5501a0b2")
    private static let payload7714 = Array("Gallia est omnis divisa in partes tres".utf8)

    @Test(arguments: [
        (
            16,
            """
            f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf 8833
            899d7f27 beb16a91 52cf765e e4390cce
            """
        ),
        (
            32,
            """
            32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799 b87b
            7aa3db36 dfffd6b0 f9bb7878 d7a76c13
            """
        ),
    ])
    func `RFC 7714 §16.1.1 and §16.2.1: SRTP AES-GCM`(keyLength: Int, expected: String) {
        let key = (0..<keyLength).map { UInt8($0) }
        let nonce = Reference.nonce(salt: Self.salt7714, ssrc: 0x5501_A0B2, number: 0xF17B)
        #expect(nonce == hex("51753c6580c2726f20718414"))
        let sealed = Reference.seal(key: key, nonce: nonce, Self.header7714, Self.payload7714)
        #expect(sealed == hex(expected))
    }

    @Test func `RFC 7714 §17.1: SRTCP AES-128-GCM`() {
        let header = hex("81c8000d 4d617273")
        let payload = hex(
            """
            4e545031 4e545032 52545020 0000042a 0000e930 4c756e61
            deadbeef deadbeef deadbeef deadbeef deadbeef
            """
        )
        let nonce = Reference.nonce(salt: Self.salt7714, ssrc: 0x4D61_7273, number: 0x5D4)
        let sealed = Reference.seal(
            key: (0..<16).map { UInt8($0) },
            nonce: nonce,
            header + hex("800005d4"),
            payload
        )
        #expect(
            sealed
                == hex(
                    """
                    63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda
                    4ce09b46 86303ded 0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade
                    """
                )
        )
    }

    struct Known: Sendable {
        let profile: SRTPProfile
        let master: String
        let rtp: String
        let rtcp: String
    }

    /// The two packets below after protection, as published by the libsrtp project.
    @Test(arguments: [
        Known(
            profile: .aes128CMHMACSHA1,
            master: "e1f97a0d3e018be0d64fa32c06de4139 0ec675ad498afeebb6960b3aabe6",
            rtp: "800f1234 decafbad cafebabe 4e55dc4c e79978d8 8ca4d215 949d2402 b78d6acc 99ea179b 8dbb",
            rtcp: "81c8000b cafebabe 7128035b e487b9bd bef89041 f977a5a8 80000001 993e08cd 54d6c123 0798"
        ),
        Known(
            profile: .aeadAES128GCM,
            master: "000102030405060708090a0b0c0d0e0f a0a1a2a3a4a5a6a7a8a9aaab",
            rtp: "800f1234 decafbad cafebabe c5002ede 04cfdd2e b91159e0 880aa06e d2976826 f796b201 df3131a1 27e8a392",
            rtcp: "81c8000b cafebabe c98b8b5d f0392a55 852b6c21 ac8e7025 c52c6fbe a2b3b446 ea31123b a88ce61e 80000001"
        ),
    ])
    func `the published packets come out byte for byte, both ways`(known: Known) throws {
        let rtp = hex("800f1234 decafbad cafebabe") + [UInt8](repeating: 0xAB, count: 16)
        let rtcp = hex("81c8000b cafebabe") + [UInt8](repeating: 0xAB, count: 16)
        let master = hex(known.master)
        let reference = Reference(profile: known.profile, master: master)
        #expect(reference.protectRTP(rtp, headerLength: 12, rollOver: 0) == hex(known.rtp))
        #expect(reference.protectRTCP(rtcp, index: 1) == hex(known.rtcp))
        let keys = try #require(SRTPKeyingMaterial(profile: known.profile, local: master, remote: master))
        for backend in SRTPBackend.available {
            let transform = try SRTPEngine(backend).makeTransform(keys)
            #expect(try transform.protectedRTP(rtp) == hex(known.rtp), "\(backend)")
            #expect(try transform.protectedRTCP(rtcp) == hex(known.rtcp), "\(backend)")
            #expect(try transform.plainRTP(hex(known.rtp)) == rtp, "\(backend)")
            #expect(try transform.plainRTCP(hex(known.rtcp)) == rtcp, "\(backend)")
        }
    }

    @Test(arguments: Flavor.all)
    func `every packet is as the RFCs specify`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        for step in 0..<300 {
            let sequence = UInt16(truncatingIfNeeded: 65_300 + step)
            let packet = rtp(sequence, payload: step)
            let rollOver: UInt32 = step < 236 ? 0 : 1
            #expect(
                try pair.near.protectedRTP(packet)
                    == pair.reference.protectRTP(packet, headerLength: 12, rollOver: rollOver)
            )
            let report = rtcp(mark: UInt8(truncatingIfNeeded: step))
            #expect(
                try pair.near.protectedRTCP(report) == pair.reference.protectRTCP(report, index: UInt32(step + 1))
            )
        }
    }

    @Test(arguments: Flavor.all)
    func `contributing sources and header extensions are not encrypted`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let header =
            hex("92e00001 00000002 cafebabe 00000011 00000022 bede0002 10aa2001 02030000")
        let packet = header + [UInt8](repeating: 9, count: 33)
        let protected = try pair.near.protectedRTP(packet)
        #expect(protected == pair.reference.protectRTP(packet, headerLength: header.count, rollOver: 0))
        #expect(Array(protected.prefix(header.count)) == header)
        #expect(try pair.far.plainRTP(protected) == packet)
    }
}
