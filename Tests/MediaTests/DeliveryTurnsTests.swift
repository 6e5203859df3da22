import Testing

@testable import Media

@Suite struct DeliveryTurnsTests {
    private typealias Turns = DeliveryTurns<Int>

    /// Lets callers with as many deliveries go on for one turn.
    /// - Returns: which did.
    private func turn(_ turns: inout Turns, deliveries: Int) -> [Int] {
        var performed: [Int] = []
        var next = turns.turnEnded()
        while let caller = next {
            performed.append(caller)
            next = turns.performed(deliveries, hasWaited: true)
        }
        return performed
    }

    @Test func `a turn takes so many deliveries, and callers beyond go on in their order`() {
        var turns = Turns()
        var performed: [Int] = []
        // Ten callers with 150 deliveries each come in one turn.
        for caller in 0..<10 {
            if turns.isFree(for: 150) {
                performed.append(caller)
                #expect(turns.performed(150, hasWaited: false) == nil)
            } else {
                turns.wait(caller, deliveries: 150)
            }
        }
        #expect(performed == [0, 1, 2], "of 512")
        #expect(turn(&turns, deliveries: 150) == [3, 4, 5])
        #expect(turn(&turns, deliveries: 150) == [6, 7, 8])
        #expect(turn(&turns, deliveries: 150) == [9])
        #expect(turns.isFree(for: 1))
    }

    @Test func `a call with more than a turn takes has one to itself`() {
        var turns = Turns()
        #expect(turns.isFree(for: 10_000))
        #expect(turns.performed(10_000, hasWaited: false) == nil)
        #expect(!turns.isFree(for: 1))
        turns.wait(1, deliveries: 10_000)
        turns.wait(2, deliveries: 1)
        #expect(turns.turnEnded() == 1)
        #expect(turns.performed(10_000, hasWaited: true) == nil)
        #expect(turns.turnEnded() == 2)
        #expect(turns.performed(1, hasWaited: true) == nil)
        #expect(turns.isFree(for: 511) && !turns.isFree(for: 512))
    }

    @Test func `a newcomer waits behind those that wait, also when one of them was told to go on`() {
        var turns = Turns()
        #expect(turns.performed(512, hasWaited: false) == nil)
        turns.wait(1, deliveries: 10)
        turns.wait(2, deliveries: 10)
        #expect(turns.turnEnded() == 1)
        #expect(!turns.isFree(for: 1), "the first has not gone on")
        turns.wait(3, deliveries: 10)
        #expect(turns.turnEnded() == nil, "one at a time")
        #expect(turns.performed(10, hasWaited: true) == 2)
        #expect(turns.performed(10, hasWaited: true) == 3)
        #expect(!turns.isFree(for: 1))
        #expect(turns.performed(10, hasWaited: true) == nil)
        #expect(turns.isFree(for: 1))
    }

    @Test func `callers that wait by the thousand go on in their order, and the end of the loop lets all go`() {
        var turns = Turns()
        #expect(turns.performed(512, hasWaited: false) == nil)
        for caller in 0..<3_000 { turns.wait(caller, deliveries: 100) }
        var performed: [Int] = []
        while performed.count < 2_000 {
            let next = turn(&turns, deliveries: 100)
            #expect(next.count == 5)
            performed += next
        }
        #expect(performed == Array(0..<2_000))
        #expect(turns.releaseAll() == Array(2_000..<3_000))
        #expect(turns.releaseAll().isEmpty)
    }
}
