import Base
import TestSupport
import Testing
import Wire

@testable import TURN

@Suite struct NetworkRateLimiterTests {
    private let start = Instant(nanoseconds: 1_000_000_000_000)

    private static func limiter(burst: Int = 1, bucketCount: Int = 4_096) -> NetworkRateLimiter {
        var generator = SeededGenerator(seed: 1)
        return NetworkRateLimiter(perSecond: 10, burst: burst, bucketCount: bucketCount, using: &generator)
    }

    @Test func `a source gets its burst, and then one an interval`() {
        var limiter = Self.limiter(burst: 3)
        let source = IPAddress(v4: 0xC000_0201)
        func taken(_ count: Int, after time: Interval) -> [Bool] {
            (0..<count).map { _ in limiter.take(source, at: start + time) }
        }
        #expect(taken(5, after: .zero) == [true, true, true, false, false])
        #expect(taken(1, after: .milliseconds(99)) == [false])
        #expect(taken(2, after: .milliseconds(100)) == [true, false])
        // Idle for a while, it has its burst again and no more.
        #expect(taken(4, after: .seconds(60)) == [true, true, true, false])
    }

    @Test func `all addresses of an IPv6 network are one source, and other networks are others`() {
        var limiter = Self.limiter()
        let network: UInt64 = 0x2001_0DB8_0000_0001
        let taken = (1...50 as ClosedRange<UInt64>).map { limiter.take(IPAddress(high: network, low: $0), at: start) }
        #expect(taken == [true] + Array(repeating: false, count: 49))
        let isOtherTaken = limiter.take(IPAddress(high: network + 1, low: 1), at: start)
        #expect(isOtherTaken)
    }

    @Test func `with one bucket all networks share the rate`() {
        var limiter = Self.limiter(burst: 2, bucketCount: 1)
        let taken = (1...4 as ClosedRange<UInt32>).map { limiter.take(IPAddress(v4: $0 << 8), at: start) }
        #expect(taken == [true, true, false, false])
        let later = limiter.take(IPAddress(v4: 9), at: start + .milliseconds(100))
        #expect(later)
    }
}
