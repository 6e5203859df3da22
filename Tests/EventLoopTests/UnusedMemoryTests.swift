import Testing

@testable import EventLoop

@Suite struct UnusedMemoryTests {
    /// In MiB.
    private struct Sample {
        var free: Int
        var allocated: Int
        var resident: Int
    }

    /// Which of the samples cause a release. One gives everything back but what is allocated, and 20 MiB of code and stacks.
    private func releases(_ samples: [Sample]) -> [Int] {
        var unused = UnusedMemory()
        return samples.indices.filter { index in
            let sample = samples[index]
            let isDue = unused.sampled(
                free: sample.free << 20,
                allocated: sample.allocated << 20,
                resident: sample.resident << 20
            )
            if isDue { unused.released(allocated: sample.allocated << 20, resident: (sample.allocated + 20) << 20) }
            return isDue
        }
    }

    private func samples(_ count: Int, free: Int, allocated: Int, resident: Int) -> [Sample] {
        Array(repeating: Sample(free: free, allocated: allocated, resident: resident), count: count)
    }
    /// A period whose memory is released.
    private var first: [Sample] { samples(4, free: 60, allocated: 20, resident: 100) }
    private var released: [Sample] { samples(1, free: 60, allocated: 20, resident: 40) }

    @Test func `memory that was free for a whole period is released once`() {
        #expect(releases(first + released + samples(7, free: 60, allocated: 20, resident: 40)) == [3])
        #expect(releases(samples(4, free: 7, allocated: 20, resident: 100)) == [], "too little")
    }

    @Test func `memory that is in use now and then is kept`() {
        let period =
            samples(2, free: 60, allocated: 20, resident: 100) + samples(1, free: 5, allocated: 75, resident: 100)
        #expect(releases(period + period + period + period) == [])
    }

    @Test func `a second burst is released, too, and no less than what it left`() {
        let after = first + released
        let burst = samples(3, free: 2, allocated: 78, resident: 98)
        #expect(releases(after + burst + samples(4, free: 60, allocated: 20, resident: 98)) == [3, 11])
        let fewer = samples(7, free: 60, allocated: 20, resident: 45)
        #expect(releases(after + fewer) == [3], "only 5 MiB were in use again")
        let more = samples(7, free: 100, allocated: 20, resident: 80)
        #expect(releases(after + more) == [3, 11], "40 MiB more than the system has")
    }

    @Test func `a burst between two samples is released, too`() {
        #expect(releases(first + released + samples(7, free: 60, allocated: 20, resident: 95)) == [3, 11])
    }

    @Test func `a burst that goes on during a release is released after it`() {
        #expect(releases(first + samples(8, free: 60, allocated: 20, resident: 95)) == [3, 7, 11])
    }

    @Test func `memory that is allocated anew is not unused`() {
        #expect(releases(first + released + samples(7, free: 60, allocated: 70, resident: 90)) == [3])
        // What the system has got back by itself meanwhile hides nothing that is unused later.
        let trimmed = samples(3, free: 30, allocated: 20, resident: 28)
        let later = samples(4, free: 50, allocated: 10, resident: 36)
        #expect(releases(first + samples(1, free: 60, allocated: 60, resident: 90) + trimmed + later) == [3, 11])
    }
}
