import Testing

@testable import nagare

@Suite struct UnusedMemoryTests {
    /// Which of the samples, in MiB, cause a release. One gives everything back that is free.
    private func releases(_ samples: [(free: Int, resident: Int)]) -> [Int] {
        var unused = UnusedMemory()
        var released: [Int] = []
        for (index, sample) in samples.enumerated()
        where unused.sampled(free: sample.free << 20, resident: sample.resident << 20) { released.append(index) }
        return released
    }
    private func samples(_ count: Int, free: Int, resident: Int) -> [(free: Int, resident: Int)] {
        Array(repeating: (free, resident), count: count)
    }
    /// A period whose memory is released.
    private var first: [(free: Int, resident: Int)] { samples(4, free: 60, resident: 100) }

    @Test func `memory that was free for a whole period is released once`() {
        #expect(releases(first + samples(8, free: 60, resident: 40)) == [3])
        #expect(releases(samples(4, free: 7, resident: 100)) == [], "too little")
    }

    @Test func `memory that is in use now and then is kept`() {
        let period = samples(2, free: 60, resident: 100) + samples(1, free: 5, resident: 100)
        #expect(releases(period + period + period + period) == [])
    }

    @Test func `a second burst is released, too, and no less than what it left`() {
        let after = first + samples(1, free: 60, resident: 40)
        let burst = samples(3, free: 2, resident: 98)
        #expect(releases(after + burst + samples(4, free: 60, resident: 98)) == [3, 11])
        #expect(releases(after + samples(7, free: 60, resident: 45)) == [3], "only 5 MiB were in use again")
        #expect(releases(after + samples(7, free: 100, resident: 80)) == [3, 11], "40 MiB more than the system has")
    }

    @Test func `a burst between two samples is released, too`() {
        #expect(releases(first + samples(1, free: 60, resident: 40) + samples(7, free: 60, resident: 95)) == [3, 11])
    }
}
