import COpenSSL
import TestSupport
import Testing
import Wire

@testable import SRTP

/// Compares the backends with each other.
struct BackendTests {
    @Test(arguments: SRTPProfile.allCases)
    func `all backends send the same bytes and accept the same packets`(profile: SRTPProfile) throws {
        let difference = try BackendDifference(profile, seed: UInt64(profile.rawValue))
        difference.run(BackendDifference.packets)
        #expect(difference.difference == "")
        // Otherwise the comparison would prove little.
        #expect(difference.accepted > difference.sent * 3 / 4)
        #expect(difference.replaced < difference.sent / 100)
    }

    @Test(
        arguments: SRTPBackend.available.flatMap { near in
            SRTPBackend.available.filter { $0 != near }.map { (near, $0) }
        },
        SRTPProfile.allCases
    )
    func `what one backend protects, another accepts`(
        backends: (near: SRTPBackend, far: SRTPBackend),
        profile: SRTPProfile
    ) throws {
        let pair = try Pair(near: backends.near, far: backends.far, profile)
        for number in 0..<100 {
            let media = rtp(UInt16(truncatingIfNeeded: 65_500 + number), payload: number * 13)
            #expect(try pair.far.plainRTP(try pair.near.protectedRTP(media)) == media)
            let report = rtcp(mark: UInt8(number))
            #expect(try pair.far.plainRTCP(try pair.near.protectedRTCP(report)) == report)
        }
    }

    @Test func `the fastest backend comes first, and libsrtp2 is always available`() throws {
        let available = SRTPBackend.available
        #expect(available.first == SRTPBackend.preferred)
        #expect(available.suffix(2) == [.openssl, .libsrtp2])
        #expect(try SRTPEngine().backend == SRTPBackend.preferred)
        for backend in SRTPBackend.allCases where !available.contains(backend) {
            #expect(throws: SRTPError.failed) { try SRTPEngine(backend) }
        }
    }

    @Test(arguments: Flavor.all)
    func `a refused packet leaves no error in OpenSSL's queue`(flavor: Flavor) throws {
        // DTLS runs on the same thread and would report the error as its own.
        let pair = try Pair(flavor)
        var forged = try pair.near.protectedRTP(rtp(1))
        forged[20] ^= 1
        ERR_clear_error()
        #expect(throws: SRTPError.authentication) { try pair.far.plainRTP(forged) }
        #expect(throws: SRTPError.self) { try pair.far.plainRTCP(try pair.far.protectedRTCP(rtcp())) }
        #expect(ERR_peek_error() == 0)
    }

    /// libsrtp2 keeps its indices to itself.
    @Test(arguments: Flavor.all.filter { $0.backend != .libsrtp2 })
    func `the last SRTCP index of a key is used, and the next packet is refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let stream = try #require(pair.near.sender.stream(SSRC(rawValue: 0xCAFE_BABE)))
        unsafe stream.state.pointee.rtcpIndex = 0x7FFF_FFFE
        let last = try pair.near.protectedRTCP(rtcp())
        #expect(last == pair.reference.protectRTCP(rtcp(), index: 0x7FFF_FFFF))
        #expect(try pair.far.plainRTCP(last) == rtcp())
        #expect(throws: SRTPError.keysExpired) { try pair.near.protectedRTCP(rtcp()) }
        #expect(throws: SRTPError.replayed) { try pair.far.plainRTCP(last) }
        #expect(try pair.near.protectedRTCP(rtcp(ssrc: 1)) == pair.reference.protectRTCP(rtcp(ssrc: 1), index: 1))
    }

    @Test(arguments: Flavor.all)
    func `each source keeps its own state while others are added and removed`(flavor: Flavor) throws {
        let pair = try Pair(flavor, sourcesMax: 200)
        // Multiples of a power of two, the worst case for a hash table with that number of slots.
        let sources = (0..<200).map { UInt32($0) << 24 | UInt32($0) << 5 }
        let packets = try sources.map { try pair.near.protectedRTP(rtp(7, ssrc: $0, payload: 5)) }
        for packet in packets { _ = try pair.far.plainRTP(packet) }
        #expect(pair.far.sourceCount == 200)
        for source in sources where source & 32 != 0 { pair.far.removeStream(SSRC(rawValue: source)) }
        #expect(pair.far.sourceCount == 100)
        for (source, packet) in zip(sources, packets) {
            if source & 32 == 0 {
                #expect(throws: SRTPError.replayed) { try pair.far.plainRTP(packet) }
            } else {
                #expect(try pair.far.plainRTP(packet) == rtp(7, ssrc: source, payload: 5))
            }
        }
        #expect(pair.far.sourceCount == 200)
    }

    @Test(arguments: Flavor.all)
    func `removing a received source does not affect the sent source with the same SSRC`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        for number in [UInt16(65_000), 65_535, 3] { _ = try pair.near.protectedRTP(rtp(number)) }
        _ = try pair.near.protectedRTCP(rtcp())
        pair.near.removeStream(SSRC(rawValue: 0xCAFE_BABE))
        #expect(
            try pair.near.protectedRTP(rtp(4)) == pair.reference.protectRTP(rtp(4), headerLength: 12, rollOver: 1)
        )
        #expect(try pair.near.protectedRTCP(rtcp()) == pair.reference.protectRTCP(rtcp(), index: 2))
    }

    @Test func `the replay window distinguishes seen from unseen in any order of indices`() {
        var window = ReplayWindow<2>()
        var seen: Set<UInt64> = []
        var newest: UInt64 = 0
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            let step = generator.below(12) == 0 ? generator.below(300) : generator.below(9) - 4
            let index = UInt64(max(0, Int(newest) + step - generator.below(3) * 40))
            let expected: ReplayVerdict =
                index + 128 <= newest ? .tooOld : seen.contains(index) ? .replayed : .unseen
            #expect(window.check(index) == expected)
            guard expected == .unseen else { continue }
            window.insert(index)
            seen.insert(index)
            newest = max(newest, index)
            #expect(window.newest == newest)
        }
    }

    @Test(arguments: [
        (UInt64(0), UInt16(0xFFFF), UInt64(0xFFFF)), (0x8000, 0xFFFF, 0xFFFF), (0xFFFF, 0, 0x1_0000),
        (0xFFFF, 0x7FFE, 0x1_7FFE), (0xFFFF, 0x7FFF, 0x7FFF), (0x1_0000, 0xFFFF, 0xFFFF), (0x1_0000, 0x8000, 0x1_8000),
        (0x1_0000, 0x8001, 0x8001), (0x1_7FFF, 0xFFFF, 0x1_FFFF), (0x1_8000, 0, 0x1_0000),
        (0xFFFF_FFFF_FFFF, 0, 0x1_0000_0000_0000), (0xFFFF_FFFF_FFFF, 0xFFFE, 0xFFFF_FFFF_FFFE),
    ])
    func `a sequence number means the index nearest to the newest`(newest: UInt64, sequence: UInt16, index: UInt64) {
        #expect(PacketIndex.estimate(sequence, newest: newest) == index)
    }
}
