import Base
import Testing

@testable import Web

@Suite struct JoinLimiterTests {
    private static let start = Instant(nanoseconds: 3)

    /// How many of so many newcomers are admitted at once.
    private static func admitted(_ limiter: inout JoinLimiter, of count: Int = 5_000, at now: Instant) -> Int {
        (0..<count).count { _ in limiter.take(at: now) }
    }

    /// Joins that take so long each and begin at this rate, until the end of the time.
    /// - Returns: the time.
    private static func load(
        _ limiter: inout JoinLimiter,
        rate: Int,
        underWay: Int,
        seconds: Int,
        from start: Instant
    ) -> Instant {
        var now = start
        for _ in 0..<underWay { limiter.began(at: now) }
        for _ in 0..<rate * seconds {
            now += .nanoseconds(1_000_000_000 / rate)
            limiter.ended(at: now)
            limiter.began(at: now)
        }
        for _ in 0..<underWay { limiter.ended(at: now) }
        return now
    }

    @Test(arguments: [1, 4])
    func `half of the assumed capacity is admitted, first at once and then in the course of time`(loops: Int) {
        var limiter = JoinLimiter(loops: loops, at: Self.start)
        #expect(Self.admitted(&limiter, at: Self.start) == 100 * loops)
        #expect(Self.admitted(&limiter, at: Self.start) == 0)
        #expect(Self.admitted(&limiter, at: Self.start + .milliseconds(500)) == 50 * loops)
        #expect(Self.admitted(&limiter, at: Self.start + .seconds(60)) == 100 * loops)
    }

    @Test func `a clock that stands still or goes back admits nobody more`() {
        var limiter = JoinLimiter(loops: 1, at: Self.start)
        #expect(Self.admitted(&limiter, at: Self.start + .seconds(10)) == 100)
        #expect(Self.admitted(&limiter, at: Self.start) == 0)
        #expect(Self.admitted(&limiter, at: Self.start + .seconds(10)) == 0)
    }

    @Test(arguments: [60, 1_000])
    func `the capacity becomes what a busy node serves`(rate: Int) {
        var limiter = JoinLimiter(loops: 1, at: Self.start)
        let now = Self.load(&limiter, rate: rate, underWay: JoinLimiter.busyPerLoop + 1, seconds: 10, from: Self.start)
        #expect(abs(limiter.capacity - Double(rate)) < Double(rate) / 20, "\(limiter.capacity)")
        #expect(abs(Self.admitted(&limiter, at: now + .seconds(10)) - rate / 2) <= rate / 20 + 1)
    }

    @Test func `few joins at a time say nothing about the capacity`() {
        var limiter = JoinLimiter(loops: 2, at: Self.start)
        _ = Self.load(&limiter, rate: 20, underWay: 2 * JoinLimiter.busyPerLoop - 2, seconds: 10, from: Self.start)
        #expect(limiter.capacity == 400)
    }

    @Test(arguments: [1, 20_000])
    func `a measurement does not lead far away from the assumed capacity`(rate: Int) {
        var limiter = JoinLimiter(loops: 1, at: Self.start)
        _ = Self.load(&limiter, rate: rate, underWay: JoinLimiter.busyPerLoop + 1, seconds: 40, from: Self.start)
        #expect(limiter.capacity == (rate == 1 ? 25 : 1_600))
    }

    @Test func `a capacity that was low recovers while newcomers are refused, up to the assumed one`() {
        var limiter = JoinLimiter(loops: 1, at: Self.start)
        var now = Self.load(&limiter, rate: 40, underWay: JoinLimiter.busyPerLoop + 1, seconds: 10, from: Self.start)
        #expect(limiter.capacity < 45)
        for _ in 0..<30 {
            now += .seconds(1)
            _ = Self.admitted(&limiter, at: now)
        }
        #expect(limiter.capacity == 200)
    }
}
