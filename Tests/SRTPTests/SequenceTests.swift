import Base
import SRTP
import TestSupport
import Testing

struct SequenceTests {
    @Test(arguments: Flavor.all, 0..<2)
    func `every packet that arrives is accepted despite loss and reordering across several wraps`(
        flavor: Flavor,
        seed: UInt64
    ) throws {
        let pair = try Pair(flavor)
        var generator = SeededGenerator(seed: seed)
        for (sender, receiver) in [(pair.near, pair.far), (pair.far, pair.near)] {
            var waiting: [(due: Int, plain: [UInt8], packet: [UInt8])] = []
            var arrived = 0
            // With steps of up to 97 the 16-bit number wraps more than three times.
            var number = 60_000
            for step in 0..<5_000 {
                number += Int.random(in: 1...97, using: &generator)
                let plain = rtp(UInt16(truncatingIfNeeded: number), payload: 20)
                let packet = try sender.protectedRTP(plain)
                let fate = Int.random(in: 0..<10, using: &generator)
                if fate > 0 { waiting.append((fate > 7 ? step + 8 : step, plain, packet)) }
                for item in waiting where item.due <= step {
                    #expect(try receiver.plainRTP(item.packet) == item.plain)
                    arrived += 1
                }
                waiting.removeAll { $0.due <= step }
            }
            #expect(arrived > 4_000)
        }
    }

    @Test(arguments: Flavor.all)
    func `a late packet from before the wrap is accepted once`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let numbers = (0..<40).map { UInt16(truncatingIfNeeded: 65_516 + $0) }
        let packets = try numbers.map { try pair.near.protectedRTP(rtp($0)) }
        let late = [5, 18, 19]
        for (index, packet) in packets.enumerated() where !late.contains(index) {
            #expect(try pair.far.plainRTP(packet) == rtp(numbers[index]))
        }
        for index in late {
            #expect(try pair.far.plainRTP(packets[index]) == rtp(numbers[index]))
            #expect(throws: SRTPError.replayed) { try pair.far.plainRTP(packets[index]) }
        }
        // They did not decrease the roll-over counter.
        let next = rtp(UInt16(truncatingIfNeeded: 65_516 + 40))
        #expect(try pair.far.plainRTP(try pair.near.protectedRTP(next)) == next)
    }

    @Test(arguments: Flavor.all)
    func `the replay window covers a thousand packets`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let packets = try (1000...2_100).map { try pair.near.protectedRTP(rtp(UInt16($0))) }
        let last = packets.count - 1
        _ = try pair.far.plainRTP(packets[0])
        _ = try pair.far.plainRTP(packets[last])
        #expect(try pair.far.plainRTP(packets[last - 1_000]) == rtp(1_100))
        #expect(throws: SRTPError.replayed) { try pair.far.plainRTP(packets[last - 1_000]) }
        #expect(throws: SRTPError.replayed) { try pair.far.plainRTP(packets[last]) }
        #expect(throws: SRTPError.tooOld) { try pair.far.plainRTP(packets[10]) }
    }

    @Test(arguments: Flavor.all)
    func `the same packet can be protected again, with the same result`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let first = try pair.near.protectedRTP(rtp(100))
        for number in 101...400 { _ = try pair.near.protectedRTP(rtp(UInt16(number))) }
        #expect(try pair.near.protectedRTP(rtp(100)) == first)
        #expect(try pair.near.protectedRTP(rtp(400)) == (try pair.near.protectedRTP(rtp(400))))
        // The sender's index did not decrease.
        let next = try pair.near.protectedRTP(rtp(401))
        #expect(next == pair.reference.protectRTP(rtp(401), headerLength: 12, rollOver: 0))
    }

    @Test(arguments: Flavor.all)
    func `a retransmission from before the wrap uses the old roll-over counter`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        for number in 65_500...65_600 {
            _ = try pair.near.protectedRTP(rtp(UInt16(truncatingIfNeeded: number)))
        }
        let again = try pair.near.protectedRTP(rtp(65_530))
        #expect(again == pair.reference.protectRTP(rtp(65_530), headerLength: 12, rollOver: 0))
        let next = try pair.near.protectedRTP(rtp(65))
        #expect(next == pair.reference.protectRTP(rtp(65), headerLength: 12, rollOver: 1))
    }

    @Test(arguments: Flavor.all)
    func `a retransmission from behind the window is refused`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        for number in 1...2_000 { _ = try pair.near.protectedRTP(rtp(UInt16(number))) }
        #expect(throws: SRTPError.tooOld) { try pair.near.protectedRTP(rtp(500)) }
        #expect(try pair.far.plainRTP(try pair.near.protectedRTP(rtp(2_001))) == rtp(2_001))
    }

    @Test(arguments: Flavor.all)
    func `SRTCP has its own index and is accepted out of order, but only once`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        let packets = try (0..<60).map { try pair.near.protectedRTCP(rtcp(mark: UInt8($0))) }
        for index in [3, 1, 2, 0, 50, 20] {
            #expect(try pair.far.plainRTCP(packets[index]) == rtcp(mark: UInt8(index)))
            #expect(throws: SRTPError.replayed) { try pair.far.plainRTCP(packets[index]) }
        }
        // The same content twice gives two different packets.
        #expect(try pair.near.protectedRTCP(rtcp()) != (try pair.near.protectedRTCP(rtcp())))
    }

    @Test(arguments: Flavor.all)
    func `each source has its own index`(flavor: Flavor) throws {
        let pair = try Pair(flavor)
        for number in [UInt16(65_534), 65_535, 0, 1] {
            for ssrc in [UInt32(1), 2, 3] {
                let packet = rtp(number &+ UInt16(ssrc), ssrc: ssrc)
                #expect(try pair.far.plainRTP(try pair.near.protectedRTP(packet)) == packet)
            }
        }
        #expect(pair.far.sourceCount == 3)
    }
}
