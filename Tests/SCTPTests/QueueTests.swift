import TestSupport
import Testing

@testable import SCTP

@Suite struct QueueTests {
    @Test(arguments: [UInt64(1), 2, 3], [30, 50, 70])
    func `elements leave in the order in which they came`(seed: UInt64, appendPercent: Int) {
        var generator = SeededGenerator(seed: seed)
        var queue = Queue<[Int]>()
        var model: [[Int]] = []
        for number in 0..<2_000 {
            if Int.random(in: 0..<100, using: &generator) < appendPercent {
                queue.append([number])
                model.append([number])
            } else {
                #expect(queue.removeFirst() == (model.isEmpty ? nil : model.removeFirst()))
            }
            #expect(queue.count == model.count && queue.isEmpty == model.isEmpty && queue.first == model.first)
            if let last = model.last { #expect(queue[model.count - 1] == last) }
        }
        while let element = queue.removeFirst() { #expect(element == model.removeFirst()) }
        #expect(model.isEmpty)
    }
}
