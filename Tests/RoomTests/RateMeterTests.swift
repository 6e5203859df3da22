import Testing
import Wire

@testable import Room

@Suite struct RateMeterTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    @Test func `a meter has room until a burst is taken, and again when it is paid for`() {
        var meter = RateMeter(perSecond: 100)
        for _ in 0..<99 { meter.take(at: Self.start) }
        #expect(meter.hasRoom(at: Self.start))
        // What is taken while there is room may exceed the burst.
        meter.take(51, at: Self.start)
        #expect(!meter.hasRoom(at: Self.start))
        #expect(meter.nextRoom(at: Self.start) == Self.start + .milliseconds(500) + .nanoseconds(1))
        #expect(!meter.hasRoom(at: Self.start + .milliseconds(500)))
        #expect(meter.hasRoom(at: Self.start + .milliseconds(501)))
        // Nothing is saved up beyond a burst.
        let later = Self.start + .seconds(100)
        for _ in 0..<100 { meter.take(at: later) }
        #expect(!meter.hasRoom(at: later))
    }

    @Test func `a burst of its own is what may be taken at once`() {
        var meter = RateMeter(perSecond: 1_000, burst: 10)
        for _ in 0..<10 {
            #expect(meter.hasRoom(at: Self.start))
            meter.take(at: Self.start)
        }
        #expect(!meter.hasRoom(at: Self.start))
        #expect(meter.nextRoom(at: Self.start) == Self.start + .nanoseconds(1))
    }

    @Test func `what is taken only as a whole stays within the burst`() {
        var meter = RateMeter(perSecond: 2, burst: 10)
        #expect(meter.takeIfRoom(for: 9, at: Self.start) == true)
        #expect(meter.takeIfRoom(for: 2, at: Self.start) == false)
        #expect(meter.takeIfRoom(at: Self.start) == true)
        #expect(meter.takeIfRoom(at: Self.start + .milliseconds(499)) == false)
        #expect(meter.takeIfRoom(at: Self.start + .milliseconds(500)) == true)
        let later = Self.start + .seconds(100)
        #expect(meter.takeIfRoom(for: 11, at: later) == false)
        #expect(meter.takeIfRoom(for: 10, at: later) == true)
    }

    @Test func `a rate of nothing never has room, and a debt ends after a minute`() {
        var nothing = RateMeter(perSecond: 0)
        #expect(nothing.nextRoom(at: Self.start) == nil)
        #expect(nothing.takeIfRoom(at: Self.start) == false)
        var meter = RateMeter(perSecond: 1)
        meter.take(.max, at: Self.start)
        #expect(meter.nextRoom(at: Self.start) == Self.start + .seconds(60) + .nanoseconds(1))
        meter.take(-1, at: Self.start)
        #expect(meter.nextRoom(at: Self.start) == Self.start + .seconds(60) + .nanoseconds(1))
    }
}
