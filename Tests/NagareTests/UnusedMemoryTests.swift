import Testing

@testable import nagare

@Suite struct UnusedMemoryTests {
    /// Which of the samples, in MiB, cause a release.
    private func releases(_ samples: [Int]) -> [Int] {
        var unused = UnusedMemory()
        var released: [Int] = []
        for (index, free) in samples.enumerated() where unused.sampled(free << 20) { released.append(index) }
        return released
    }

    @Test func `memory that was free for a whole period is released once`() {
        #expect(releases([60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60]) == [3])
        #expect(releases([7, 7, 7, 7]) == [], "too little")
    }

    @Test func `memory that is in use now and then is kept`() {
        #expect(releases([60, 60, 5, 60, 60, 5, 60, 60, 60, 60, 60, 5]) == [])
    }

    @Test func `a second burst is released, too, and no less than what it left`() {
        #expect(releases([60, 60, 60, 60, 2, 2, 2, 2, 60, 60, 60, 60]) == [3, 11])
        #expect(releases([60, 60, 60, 60, 55, 60, 60, 60, 60, 60, 60, 60]) == [3], "only 5 MiB were in use again")
        #expect(releases([60, 60, 60, 60, 100, 100, 100, 100]) == [3, 7], "40 MiB more than the system has")
    }
}
