import Testing

@testable import nagare

@Suite struct LoopTurnsTests {
    @Test func `a loop that owes a turn for more than 5 s has stalled until it turns`() {
        let turns = LoopTurns(names: ["media-0", "media-1", "control-0"])
        let start = ContinuousClock.now
        #expect((0..<3).allSatisfy { turns.ask($0, at: start) })
        turns.turned(0)
        #expect(!turns.ask(1, at: start + .seconds(3)), "it owes one already")
        #expect(turns.ask(0, at: start + .seconds(3)))
        #expect(turns.stalled(at: start + .seconds(5)).isEmpty)
        #expect(turns.stalled(at: start + .seconds(6)) == ["media-1", "control-0"])
        turns.turned(1)
        #expect(turns.stalled(at: start + .seconds(6)) == ["control-0"])
        #expect(turns.ask(1, at: start + .seconds(6)))
        turns.turned(2)
        #expect(turns.stalled(at: start + .seconds(7)).isEmpty)
    }
}
