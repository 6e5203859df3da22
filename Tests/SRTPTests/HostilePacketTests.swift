import Base
import SRTP
import Testing
import Wire

struct HostilePacketTests {
    @Test(arguments: Flavor.all)
    func `a change of any byte is refused, and the unchanged packet is accepted afterwards`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        _ = try pair.far.plainRTP(try pair.near.protectedRTP(rtp(1)))
        let media = try pair.near.protectedRTP(rtp(2))
        for position in media.indices {
            for flip in [UInt8(1), 0x10, 0x80] {
                var forged = media
                forged[position] ^= flip
                #expect(throws: SRTPError.self, "byte \(position)") { try pair.far.plainRTP(forged) }
            }
        }
        #expect(try pair.far.plainRTP(media) == rtp(2))
        let report = try pair.near.protectedRTCP(rtcp())
        for position in report.indices {
            for flip in [UInt8(1), 0x10, 0x80] {
                var forged = report
                forged[position] ^= flip
                #expect(throws: SRTPError.self, "byte \(position)") { try pair.far.plainRTCP(forged) }
            }
        }
        #expect(try pair.far.plainRTCP(report) == rtcp())
        #expect(pair.far.sourceCount == 1)
    }

    @Test(arguments: Flavor.all)
    func `a packet cut short anywhere is refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let media = try pair.near.protectedRTP(rtp(2))
        let report = try pair.near.protectedRTCP(rtcp())
        for length in 0..<media.count {
            #expect(throws: SRTPError.self) { try pair.far.plainRTP(Array(media.prefix(length))) }
        }
        for length in 0..<report.count {
            #expect(throws: SRTPError.self) { try pair.far.plainRTCP(Array(report.prefix(length))) }
        }
    }

    @Test(arguments: Flavor.all)
    func `lengths in the header that exceed the packet are malformed`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        // 15 contributing sources, an extension without its length, one longer than the packet, version 1.
        let cases: [[UInt8]] = [
            [0x8F, 96] + [UInt8](repeating: 0, count: 38),
            [0x9F, 96] + [UInt8](repeating: 0, count: 72),
            [0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            [0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xBE, 0xDE, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 60),
            [0x40, 96] + [UInt8](repeating: 0, count: 60),
            [],
        ]
        for packet in cases {
            #expect(throws: SRTPError.malformed) { try pair.far.plainRTP(packet) }
        }
        for packet in cases.dropFirst(2) {
            #expect(throws: SRTPError.malformed) { try pair.near.protectedRTP(packet) }
        }
        for packet: [UInt8] in [[], [0x80, 201, 0, 1, 0, 0, 0], [0x40, 201] + [UInt8](repeating: 0, count: 60)] {
            #expect(throws: SRTPError.malformed) { try pair.near.protectedRTCP(packet) }
            #expect(throws: SRTPError.malformed) { try pair.far.plainRTCP(packet) }
        }
    }

    @Test(arguments: SRTPBackend.available)
    func `a length beyond the buffer, a negative one, and a buffer without room are errors`(
        backend: SRTPBackend
    ) throws {
        let pair = try Pair(Flavor(backend: backend, profile: .aeadAES128GCM))
        for length in [-1, 53, 100_000, Int.max] {
            #expect(throws: SRTPError.malformed) {
                try inPlace(rtp(1), room: 0) { (span, _) throws(SRTPError) in
                    try pair.near.protectRTP(&span, length: length)
                }
            }
            #expect(throws: SRTPError.malformed) {
                try inPlace(rtp(1), room: 0) { (span, _) throws(SRTPError) in
                    try pair.near.unprotectRTCP(&span, length: length)
                }
            }
        }
        #expect(throws: SRTPError.noRoom) {
            try inPlace(rtp(1), room: 15) { (span, length) throws(SRTPError) in
                try pair.near.protectRTP(&span, length: length)
            }
        }
        #expect(throws: SRTPError.noRoom) {
            try inPlace(rtcp(), room: 19) { (span, length) throws(SRTPError) in
                try pair.near.protectRTCP(&span, length: length)
            }
        }
    }

    @Test(arguments: Flavor.all)
    func `packets of random bytes are refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        var state: UInt64 = 42
        for _ in 0..<3_000 {
            let length = Int(state >> 33) % 200
            let packet = (0..<length).map { index -> UInt8 in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let byte = UInt8(truncatingIfNeeded: state >> 40)
                return index == 0 ? 0x80 | byte & 0x3F : byte
            }
            state = state &* 6_364_136_223_846_793_005 &+ 1
            #expect(throws: SRTPError.self) { try pair.far.plainRTP(packet) }
            #expect(throws: SRTPError.self) { try pair.far.plainRTCP(packet) }
        }
        #expect(pair.far.sourceCount == 0)
    }

    @Test(arguments: Flavor.all)
    func `a forged packet of a new source changes nothing`(flavor: Flavor) throws {
        let pair = try Pair(flavor, sourcesMax: 4)
        for ssrc in 0..<1_000 {
            var forged = try pair.near.protectedRTP(rtp(40_000, ssrc: UInt32(ssrc)))
            forged[forged.count - 1] ^= 1
            #expect(throws: SRTPError.authentication) { try pair.far.plainRTP(forged) }
        }
        #expect(pair.far.sourceCount == 0)
        // The forged high number must not have changed the roll-over counter.
        let other = try Pair(flavor)
        for number in [UInt16(7), 8] {
            let packet = try other.near.protectedRTP(rtp(number, ssrc: 5))
            #expect(try pair.far.plainRTP(packet) == rtp(number, ssrc: 5))
        }
    }

    @Test(arguments: Flavor.all)
    func `one source too many is refused, and the known ones continue`(flavor: Flavor) throws {
        let pair = try Pair(flavor, sourcesMax: 3)
        for ssrc in [UInt32(1), 2] {
            _ = try pair.far.plainRTP(try pair.near.protectedRTP(rtp(1, ssrc: ssrc)))
        }
        _ = try pair.far.plainRTCP(try pair.near.protectedRTCP(rtcp(ssrc: 3)))
        #expect(throws: SRTPError.tooManySources) {
            try pair.far.plainRTP(try pair.near.protectedRTP(rtp(1, ssrc: 4)))
        }
        #expect(throws: SRTPError.tooManySources) {
            try pair.far.plainRTCP(try pair.near.protectedRTCP(rtcp(ssrc: 5)))
        }
        for ssrc in [UInt32(1), 2, 3] {
            #expect(try pair.far.plainRTP(try pair.near.protectedRTP(rtp(2, ssrc: ssrc))) == rtp(2, ssrc: ssrc))
        }
        pair.far.removeStream(SSRC(rawValue: 2))
        #expect(pair.far.sourceCount == 2)
        #expect(try pair.far.plainRTP(try pair.near.protectedRTP(rtp(9, ssrc: 4))) == rtp(9, ssrc: 4))
        pair.far.removeStream(SSRC(rawValue: 77))
        #expect(pair.far.sourceCount == 3)
    }

    @Test(arguments: Flavor.all)
    func `an SRTCP packet without the E flag is refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        var report = try pair.near.protectedRTCP(rtcp())
        let flag = flavor.profile == .aes128CMHMACSHA1 ? report.count - 14 : report.count - 4
        #expect(report[flag] == 0x80)
        report[flag] = 0
        #expect(throws: SRTPError.authentication) { try pair.far.plainRTCP(report) }
    }

    @Test(arguments: Flavor.all)
    func `a packet that was protected with other keys is refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let media = try pair.near.protectedRTP(rtp(1))
        #expect(throws: SRTPError.authentication) { try pair.near.plainRTP(media) }
    }

    @Test func `contexts are created and used on several threads`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<16 {
                group.addTask { @concurrent in
                    let pair = try Pair(Flavor.all[index % Flavor.all.count])
                    for number in 0..<200 {
                        let packet = rtp(UInt16(number))
                        #expect(try pair.far.plainRTP(try pair.near.protectedRTP(packet)) == packet)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
