import Base
import Testing

@testable import nagare

@Suite struct LoopTurnsTests {
    @Test func `a loop that owes a turn for more than 5 s has stalled until it turns`() {
        let turns = LoopTurns(names: ["media-0", "media-1", "control-0"])
        let start = Instant(nanoseconds: 0)
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

    @Test func `a loop that moves on is late and has not stalled`() {
        let turns = LoopTurns(names: ["control-0", "control-1"])
        let start = Instant(nanoseconds: 0)
        #expect(turns.ask(0, at: start) && turns.ask(1, at: start))
        for second in [4, 8, 12] { turns.moved(0, at: start + .seconds(second)) }
        #expect(turns.late(at: start + .seconds(5)).isEmpty)
        #expect(turns.late(at: start + .seconds(16)) == ["control-0", "control-1"])
        #expect(turns.stalled(at: start + .seconds(16)) == ["control-1"])
        #expect(turns.stalled(at: start + .seconds(18)) == ["control-0", "control-1"])
        turns.turned(0)
        turns.moved(0, at: start + .seconds(19))
        #expect(turns.late(at: start + .seconds(30)) == ["control-1"])
    }
}
