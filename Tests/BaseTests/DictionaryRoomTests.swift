import Testing

@testable import Base

struct DictionaryRoomTests {
    @Test func `a table that many have left keeps the room of those who stay`() {
        var table: [Int: Int] = [:]
        for number in 0..<10_000 { table[number] = -number }
        for number in 0..<9_990 { #expect(table.removeValueAndRoom(forKey: number) == -number) }
        #expect(table.capacity < 100)
        #expect(table == Dictionary(uniqueKeysWithValues: (9_990..<10_000).map { ($0, -$0) }))
        #expect(table.removeValueAndRoom(forKey: 5) == nil)
    }

    @Test func `a table is rarely made anew`() {
        var table: [Int: Int] = [:]
        for number in 0..<1_000 { table[number] = number }
        var changes = 0
        for number in 0..<1_000 {
            let before = table.capacity
            table.removeValueAndRoom(forKey: number)
            if table.capacity != before { changes += 1 }
        }
        #expect(changes <= 3)
        // One that comes and goes changes nothing.
        for number in 0..<40 { table[number] = number }
        let capacity = table.capacity
        for _ in 0..<100 {
            table[1_000] = 1
            table.removeValueAndRoom(forKey: 1_000)
            #expect(table.capacity == capacity)
        }
    }
}
