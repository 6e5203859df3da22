import Testing

@testable import CongestionControl

@Suite struct CapacityHintTests {
    /// Pairs of packets that left together. The second one of each arrives later by one of `gaps`, in microseconds.
    private func hint(bytes: Int = 1_200, gaps: [Int64]) -> (rate: Double?, isAgreed: Bool) {
        var hint = CapacityHint()
        for (index, gap) in gaps.enumerated() {
            let at = Int64(index) * 20_000
            for later in [0, gap] {
                hint.add(PacketResult(sequence: at + later, sentAt: at, arrivedAt: at + later, bytes: bytes))
            }
        }
        hint.update()
        return (hint.rate, hint.isAgreed)
    }

    @Test func `pairs on a path without jitter agree to within the clock's step`() {
        let (rate, isAgreed) = hint(gaps: [3_250, 3_000, 3_250, 3_250, 3_000, 3_250, 9_000, 3_250])
        #expect((2_900_000...3_200_000).contains(rate ?? 0))
        #expect(isAgreed)
    }

    @Test func `pairs on a path with jitter do not agree`() {
        let (rate, isAgreed) = hint(gaps: [500, 3_000, 9_000, 1_500, 6_000, 12_000, 2_000, 4_000])
        #expect(rate != nil)
        #expect(!isAgreed)
    }

    @Test(arguments: [[0, 250, 500, 250, 0, 500], [500, 500, 500, 500, 500, 500], [750, 750, 750, 750, 750, 750]])
    func `pairs on a fast link agree on nothing, because the clock is too coarse`(gaps: [Int64]) {
        let (rate, isAgreed) = hint(bytes: 650, gaps: gaps)
        #expect(rate != nil)
        #expect(!isAgreed)
    }

    @Test func `too few pairs say nothing`() {
        let (rate, isAgreed) = hint(gaps: [3_250, 3_250])
        #expect(rate == nil)
        #expect(!isAgreed)
    }
}
