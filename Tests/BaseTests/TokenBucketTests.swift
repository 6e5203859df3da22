import Base
import Testing

@Suite struct TokenBucketTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    @Test func `a bucket has room until a burst is taken, and again when it is paid for`() {
        var bucket = TokenBucket(100)
        for _ in 0..<99 { bucket.charge(at: Self.start) }
        #expect(bucket.hasRoom(at: Self.start))
        // What is taken while there is room may exceed the burst.
        bucket.charge(51, at: Self.start)
        #expect(!bucket.hasRoom(at: Self.start))
        #expect(bucket.nextRoom(at: Self.start) == Self.start + .milliseconds(500) + .nanoseconds(1))
        #expect(!bucket.hasRoom(at: Self.start + .milliseconds(500)))
        #expect(bucket.hasRoom(at: Self.start + .milliseconds(501)))
        // Nothing is saved up beyond a burst.
        let later = Self.start + .seconds(100)
        for _ in 0..<100 { bucket.charge(at: later) }
        #expect(!bucket.hasRoom(at: later))
    }

    @Test func `a burst of its own is what may be taken at once`() {
        var bucket = TokenBucket(1_000, burst: 10)
        for _ in 0..<10 {
            #expect(bucket.hasRoom(at: Self.start))
            bucket.charge(at: Self.start)
        }
        #expect(!bucket.hasRoom(at: Self.start))
        #expect(bucket.nextRoom(at: Self.start) == Self.start + .nanoseconds(1))
    }

    @Test func `what is taken only as a whole stays within the burst`() {
        var bucket = TokenBucket(2, burst: 10)
        #expect(bucket.take(9, at: Self.start) == true)
        #expect(bucket.take(2, at: Self.start) == false)
        #expect(bucket.take(at: Self.start) == true)
        #expect(bucket.take(at: Self.start + .milliseconds(499)) == false)
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == true)
        let later = Self.start + .seconds(100)
        #expect(bucket.take(11, at: later) == false)
        #expect(bucket.take(10, at: later) == true)
    }

    @Test func `a rate of nothing never has room, and a debt ends after a minute`() {
        var nothing = TokenBucket(0)
        #expect(nothing.nextRoom(at: Self.start) == nil)
        #expect(nothing.take(at: Self.start) == false)
        var bucket = TokenBucket(1)
        bucket.charge(.max, at: Self.start)
        #expect(bucket.nextRoom(at: Self.start) == Self.start + .seconds(60) + .nanoseconds(1))
        bucket.charge(-1, at: Self.start)
        #expect(bucket.nextRoom(at: Self.start) == Self.start + .seconds(60) + .nanoseconds(1))
    }

    @Test func `a rate below one a second fills again with time, and tells when`() {
        var bucket = TokenBucket(1, per: .seconds(5), burst: 3)
        for _ in 0..<3 { #expect(bucket.take(at: Self.start) == true) }
        #expect(bucket.take(at: Self.start + .milliseconds(4_999)) == false)
        #expect(bucket.nextTake(at: Self.start) == Self.start + .seconds(5))
        #expect(bucket.nextTake(3, at: Self.start) == Self.start + .seconds(15))
        #expect(bucket.nextTake(4, at: Self.start) == nil, "a burst has three")
        #expect(bucket.take(at: Self.start + .seconds(5)) == true)
        #expect(bucket.take(at: Self.start + .seconds(5)) == false)
        let later = Self.start + .seconds(600)
        #expect(bucket.nextTake(at: later) == later)
        for _ in 0..<3 { #expect(bucket.take(at: later) == true) }
        #expect(bucket.take(at: later) == false)
    }

    @Test func `fractions of a token accumulate, and a pause fills at most the burst`() {
        var bucket = TokenBucket(10, burst: 1)
        #expect(bucket.take(at: Self.start) == true)
        #expect(bucket.take(at: Self.start + .milliseconds(99)) == false)
        #expect(bucket.take(at: Self.start + .milliseconds(150)) == true)
        #expect(bucket.take(at: Self.start + .milliseconds(249)) == false)
        #expect(bucket.take(at: Self.start + .milliseconds(250)) == true)
        let later = Self.start + .seconds(360_000)
        #expect(bucket.take(at: later) == true)
        #expect(bucket.take(at: later) == false)
    }

    @Test func `another rate holds from the next call on`() {
        var bucket = TokenBucket(10)
        #expect(bucket.take(10, at: Self.start) == true)
        bucket.rate = TokenRate(100)
        #expect(bucket.take(at: Self.start) == false)
        #expect(bucket.take(50, at: Self.start + .milliseconds(500)) == true)
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == false)
    }

    @Test func `a charge at a lower rate takes longer to be paid for`() {
        var bucket = TokenBucket(100)
        bucket.charge(100, at: Self.start, atMost: TokenRate(10))
        #expect(!bucket.hasRoom(at: Self.start + .seconds(9)))
        #expect(bucket.hasRoom(at: Self.start + .seconds(10)) && !bucket.isFull(at: Self.start + .milliseconds(9_999)))
        #expect(bucket.isFull(at: Self.start + .seconds(10)))
    }

    @Test func `periods and counts of any size are taken without a trap`() {
        var bucket = TokenBucket(1, per: Interval(nanoseconds: .max / 8), burst: .max)
        #expect(bucket.take(at: Self.start) == true)
        bucket.charge(.max, at: Self.start)
        #expect(TokenBucket(-5, burst: -5).nextTake(at: Self.start) == nil)
    }
}
