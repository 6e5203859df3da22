import Base
import Testing

@testable import Forwarding

@Suite struct SpeechDetectorTests {
    private struct Bench {
        var detector = SpeechDetector()
        var now = Instant(nanoseconds: 1_000_000_000)
        var changes: [Bool] = []

        /// Packets of one level, one each 20 ms.
        mutating func say(_ level: UInt8, for length: Interval) {
            let end = now + length
            while now < end {
                if let change = detector.received(level, at: now) { changes.append(change) }
                now += .milliseconds(20)
            }
        }

        /// No packets.
        mutating func pause(_ length: Interval) {
            let end = now + length
            while now < end {
                now += .milliseconds(250)
                if let change = detector.timePassed(at: now) { changes.append(change) }
            }
        }
    }

    @Test func `speech begins within a tenth of a second and ends a second after it`() {
        var bench = Bench()
        bench.say(127, for: .seconds(2))
        #expect(bench.changes.isEmpty)
        bench.say(30, for: .milliseconds(100))
        #expect(bench.changes == [true])
        bench.say(30, for: .seconds(5))
        bench.say(90, for: .milliseconds(700))
        #expect(bench.changes == [true])
        bench.say(90, for: .milliseconds(400))
        #expect(bench.changes == [true, false])
    }

    @Test func `pauses between words are none, and quieter words go on`() {
        var bench = Bench()
        for _ in 0..<10 {
            bench.say(30, for: .milliseconds(300))
            bench.say(80, for: .milliseconds(600))
            bench.say(52, for: .milliseconds(100))
        }
        #expect(bench.changes == [true])
    }

    @Test(arguments: [46, 55, 60, 127] as [UInt8])
    func `what is not loud begins nothing`(level: UInt8) {
        var bench = Bench()
        bench.say(level, for: .seconds(10))
        #expect(bench.changes.isEmpty)
    }

    @Test func `knocks are no speech`() {
        var bench = Bench()
        for _ in 0..<20 {
            bench.say(5, for: .milliseconds(40))
            bench.say(100, for: .milliseconds(500))
        }
        #expect(bench.changes.isEmpty)
    }

    @Test func `one who stops sending has ceased to speak`() {
        var bench = Bench()
        bench.say(20, for: .seconds(1))
        bench.pause(.seconds(2))
        #expect(bench.changes == [true, false])
        bench.say(20, for: .seconds(1))
        #expect(bench.changes == [true, false, true])
    }

    @Test func `the voice flag is not asked`() {
        var bench = Bench()
        bench.say(0x80 | 100, for: .seconds(1))
        #expect(bench.changes.isEmpty)
        bench.say(0x80 | 20, for: .seconds(1))
        #expect(bench.changes == [true])
    }

    @Test func `whatever levels come, events are rare and take turns`() {
        var generator = SeededLevels(state: 7)
        var detector = SpeechDetector()
        var now = Instant(nanoseconds: 1_000_000_000)
        let start = now
        var changes: [Bool] = []
        for _ in 0..<100_000 {
            now += .milliseconds(Int(generator.next() % 400))
            if let change = detector.received(UInt8(truncatingIfNeeded: generator.next()), at: now) {
                changes.append(change)
            }
        }
        #expect(Double(changes.count) <= 2 * (now - start).seconds / SpeechDetector.hold.seconds + 2)
        #expect(zip(changes, changes.dropFirst()).allSatisfy { $0 != $1 })
        #expect(changes.first != false)
    }

    private struct SeededLevels {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
    }
}
