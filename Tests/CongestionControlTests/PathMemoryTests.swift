import CongestionControl
import Testing

struct PathMemoryTests {
    private static let second: Int64 = 1_000_000

    @Test func `a newcomer starts with half of the lowest estimate at its address`() {
        var memory = PathMemory<String, Int>(capacity: 4)
        #expect(memory.startRate(for: 9, at: "a", now: 0) == nil)
        memory.update(1, at: "a", target: 3_000_000, now: 0)
        memory.update(2, at: "a", target: 1_000_000, now: 0)
        memory.update(3, at: "b", target: 100_000, now: 0)
        #expect(memory.startRate(for: 9, at: "a", now: 0) == 500_000)
        memory.update(2, at: "a", target: 4_000_000, now: 0)
        #expect(memory.startRate(for: 9, at: "a", now: 0) == 1_500_000)
    }

    @Test func `a session that reconnects within a minute starts with most of its own`() {
        var memory = PathMemory<String, Int>(capacity: 4)
        memory.update(1, at: "a", target: 1_000_000, now: 0)
        memory.update(2, at: "a", target: 2_000_000, now: 50 * Self.second)
        #expect(memory.startRate(for: 1, at: "a", now: 60 * Self.second) == 700_000)
        #expect(memory.startRate(for: 1, at: "a", now: 61 * Self.second) == 1_000_000)
        #expect(memory.startRate(for: 1, at: "a", now: 111 * Self.second) == nil)
        #expect(memory.startRate(for: 1, at: "b", now: 60 * Self.second) == nil)
    }

    @Test func `one session at a time probes an address`() {
        var memory = PathMemory<String, Int>(capacity: 4)
        #expect(memory.takeProbeTurn(1, at: "a", now: 0) == true)
        #expect(memory.takeProbeTurn(1, at: "a", now: 1) == true)
        #expect(memory.takeProbeTurn(2, at: "a", now: 2) == false)
        #expect(memory.takeProbeTurn(2, at: "b", now: 2) == true)
        memory.endProbeTurn(2, at: "a")
        #expect(memory.takeProbeTurn(2, at: "a", now: 3) == false)
        memory.endProbeTurn(1, at: "a")
        #expect(memory.takeProbeTurn(2, at: "a", now: 4) == true)
        #expect(memory.takeProbeTurn(1, at: "a", now: 4 + Self.second) == true, "a turn ends by itself")
    }

    @Test func `the number of addresses is bounded, and old ones make room`() {
        var memory = PathMemory<String, Int>(capacity: 4)
        for (index, address) in ["a", "b", "c", "d", "e", "f"].enumerated() {
            memory.update(index, at: address, target: 1_000_000, now: 0)
        }
        #expect(memory.count == 4)
        #expect(memory.startRate(for: 9, at: "f", now: 0) == nil)
        #expect(memory.takeProbeTurn(1, at: "g", now: 0) == true, "without room nobody waits")
        memory.update(9, at: "f", target: 1_000_000, now: 61 * Self.second)
        #expect(memory.startRate(for: 1, at: "f", now: 61 * Self.second) == 500_000)
        #expect(memory.count == 1)
    }

    @Test func `the number of peers at an address is bounded`() {
        var memory = PathMemory<String, Int>(capacity: 4)
        for session in 0..<1_000 as Range<Int64> {
            memory.update(Int(session), at: "a", target: Double(1_000_000 + session), now: session)
        }
        #expect(memory.startRate(for: 999, at: "a", now: 1_000) == 0.7 * 1_000_999)
        #expect(memory.startRate(for: 967, at: "a", now: 1_000) == 0.5 * 1_000_968)
    }
}
