import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct SSRCMemoryTests {
    @Test func `a session's SSRCs are one stretch, however many come and go`() {
        var generator = SeededGenerator(seed: 11)
        var sequence = SSRCSequence(using: &generator)
        let taken: Set<SSRC> = [SSRC(rawValue: 7)]
        var memory = SSRCMemory()
        var sample: [SSRC] = []
        for count in 0..<200_000 {
            let ssrc = sequence.next(except: taken)
            if count % 1_000 == 0 { sample.append(ssrc) }
            #expect(!memory.contains(ssrc))
            memory.insert(ssrc)
        }
        // One number is skipped where the order comes to 0 or to a number that is taken.
        #expect(memory.stretchCount <= 3)
        for ssrc in sample { #expect(memory.contains(ssrc)) }
        #expect(!memory.contains(sequence.next(except: taken)))
    }

    @Test func `SSRCs in any order are remembered like in a set`() {
        var generator = SeededGenerator(seed: 12)
        var memory = SSRCMemory()
        var set: Set<SSRC> = []
        for _ in 0..<5_000 {
            // A few neighbours in the order of a session, and the ends of it.
            let base: UInt32 = Bool.random(using: &generator) ? 0 : .max - 200
            let place = base &+ UInt32.random(in: 0..<200, using: &generator)
            let ssrc = SSRC(rawValue: 99 &+ place &* SSRCSequence.step)
            #expect(memory.contains(ssrc) == set.contains(ssrc))
            memory.insert(ssrc)
            set.insert(ssrc)
            #expect(memory.contains(ssrc))
        }
        #expect(!memory.contains(SSRC(rawValue: 99 &+ 1_000 &* SSRCSequence.step)))
    }
}
