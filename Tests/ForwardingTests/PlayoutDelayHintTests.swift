import Base
import Testing
import Wire

@testable import Forwarding

@Suite struct PlayoutDelayHintTests {
    private func told(_ hint: inout PlayoutDelayHint, isNew: Bool = true) -> Int? {
        hint.take(isNew: isNew).map { Int($0.minimumUnits) * 10 }
    }

    @Test func `nothing is told on a path that needs nothing`() {
        var hint = PlayoutDelayHint()
        hint.tick(at: .ms(60_000))
        #expect(told(&hint) == nil && told(&hint, isNew: false) == nil && !hint.isDue)
    }

    @Test func `a delay is told by some new packets and by every retransmission`() {
        var hint = PlayoutDelayHint()
        hint.want(roundTrip: .milliseconds(60), at: .ms(0))
        var count = 0
        while hint.isDue, count < 1_000 {
            #expect(told(&hint) == 180)
            count += 1
        }
        #expect((16...64).contains(count))
        #expect(told(&hint) == nil && told(&hint, isNew: false) == 180)
        hint.want(roundTrip: .milliseconds(70), at: .ms(100))
        #expect(!hint.isDue && told(&hint, isNew: false) == 180, "a small change is none")
        hint.want(roundTrip: .milliseconds(10), at: .ms(200))
        #expect(!hint.isDue && told(&hint, isNew: false) == 180, "it does not fall while packets get lost")
        hint.want(roundTrip: .seconds(3), at: .ms(300))
        #expect(hint.isDue && told(&hint) == 500)
    }

    @Test func `some time after the last loss the receiver decides by itself`() {
        var hint = PlayoutDelayHint()
        hint.want(roundTrip: .milliseconds(60), at: .ms(0))
        while hint.isDue { _ = told(&hint) }
        hint.tick(at: .ms(9_900))
        #expect(!hint.isDue)
        for second in 11..<14 {
            hint.tick(at: .ms(second * 1_000))
            #expect(told(&hint) == 0 && told(&hint, isNew: false) == 0)
        }
        hint.tick(at: .ms(14_000))
        #expect(!hint.isTold && told(&hint) == nil)
        hint.want(roundTrip: .milliseconds(60), at: .ms(20_000))
        #expect(told(&hint) == 180)
    }

    @Test func `losses that come back while it ends are told again`() {
        var hint = PlayoutDelayHint()
        hint.want(roundTrip: .milliseconds(60), at: .ms(0))
        hint.tick(at: .ms(11_000))
        #expect(told(&hint) == 0)
        hint.want(roundTrip: .milliseconds(60), at: .ms(11_500))
        #expect(told(&hint) == 180)
    }
}
