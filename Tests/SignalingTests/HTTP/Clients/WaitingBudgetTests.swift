import Base
import ChannelTypes
import NIOCore
import Synchronization
import Testing
import Wire

@testable import Web

@Suite struct WaitingBudgetTests {
    /// Who was cut off, in order.
    private final class Cuts: Sendable {
        private let names = Mutex<[Int]>([])
        func add(_ name: Int) { names.withLock { $0.append(name) } }
        var all: [Int] { names.withLock { $0 } }
    }

    private static func network(_ number: Int) -> ClientNetwork { ClientNetwork(IPAddress("192.0.2.\(number)")!) }
    private static func second(_ number: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(number) }

    @Test func `clients with the oldest data of the largest network are closed first, until the rest fits`() {
        let (cuts, statistics) = (Cuts(), SignalingStatistics())
        let budget = WaitingBudget(bytesMax: 100, refusal: .slowReader, statistics: statistics)
        let ids = [1, 2, 3, 3, 3].enumerated().map { name, network in
            budget.add(from: Self.network(network)) { cuts.add(name) }
        }
        for (index, bytes) in [25, 20, 15, 25, 15].enumerated() {
            budget.change(ids[index], by: bytes, at: Self.second(10 - Int64(index)))
        }
        #expect(cuts.all.isEmpty && budget.waitingBytes == 100)
        budget.change(ids[0], by: 1, at: Self.second(20))
        #expect(cuts.all == [4] && budget.waitingBytes == 86)
        budget.change(ids[1], by: 40, at: Self.second(20))
        #expect(cuts.all == [4, 1] && budget.waitingBytes == 66)
        #expect(statistics.counts.refusals == [.slowReader: 2])
    }

    @Test func `clients with new data stay, and clients that read nothing are closed`() {
        let cuts = Cuts()
        let budget = WaitingBudget(bytesMax: 1_000, refusal: .slowReader, statistics: SignalingStatistics())
        for name in 1...9 {
            let id = budget.add(from: Self.network(name)) { cuts.add(name) }
            budget.change(id, by: 100, at: Self.second(0))
        }
        let reader = budget.add(from: Self.network(20)) { cuts.add(20) }
        for second in 1..<20 {
            budget.change(reader, by: 250, at: Self.second(Int64(second)))
            budget.change(reader, by: -250, at: Self.second(Int64(second)))
        }
        #expect(cuts.all.count == 2 && !cuts.all.contains(20), "only as many as have to")
    }

    @Test func `slow clients are not closed for new data that exceeds the limit by itself`() {
        let cuts = Cuts()
        let budget = WaitingBudget(bytesMax: 100, refusal: .slowReader, statistics: SignalingStatistics())
        let slow = budget.add(from: Self.network(1)) { cuts.add(1) }
        budget.change(slow, by: 10, at: Self.second(0))
        let flood = (0..<10).map { _ in budget.add(from: Self.network(2)) { cuts.add(2) } }
        for id in flood { budget.change(id, by: 90, at: Self.second(5)) }
        // What waits for the closed ones is still there, so nothing more waits for their network.
        #expect(budget.waitingBytes == 10 && cuts.all == Array(repeating: 2, count: 10))
    }

    @Test func `of clients with data of the same time the one that connected first is closed`() {
        for _ in 0..<20 {
            let cuts = Cuts()
            let budget = WaitingBudget(bytesMax: 100, refusal: .slowReader, statistics: SignalingStatistics())
            let ids = (0..<4).map { name in budget.add(from: Self.network(1)) { cuts.add(name) } }
            for (id, bytes) in zip(ids, [30, 30, 30, 11]) { budget.change(id, by: bytes, at: Self.second(0)) }
            #expect(cuts.all == [0])
        }
    }

    @Test func `clients of a shared network count individually`() {
        let cuts = Cuts()
        let budget = WaitingBudget(bytesMax: 100, refusal: .slowReader, statistics: SignalingStatistics())
        let ids = (0..<6).map { name in budget.add(from: name == 5 ? Self.network(1) : .unknown) { cuts.add(name) } }
        for id in ids.prefix(5) { budget.change(id, by: 10, at: Self.second(0)) }
        budget.change(ids[5], by: 40, at: Self.second(0))
        budget.change(ids[0], by: 11, at: Self.second(9))
        #expect(cuts.all == [5])
    }

    @Test func `what waits for closed clients counts until they are gone, for their network`() {
        let cuts = Cuts()
        let budget = WaitingBudget(bytesMax: 800, refusal: .slowReader, statistics: SignalingStatistics())
        let slow = (0..<3).map { name in budget.add(from: Self.network(1)) { cuts.add(name) } }
        let other = budget.add(from: Self.network(2)) { cuts.add(9) }
        for (second, id) in slow.prefix(2).enumerated() {
            #expect(budget.change(id, by: 300, at: Self.second(Int64(second))))
        }
        #expect(budget.change(other, by: 150, at: Self.second(0)))
        // The first is closed for the limit, and nothing more waits for it.
        #expect(budget.change(slow[2], by: 100, at: Self.second(5)))
        #expect(cuts.all == [0] && budget.waitingBytes == 550)
        #expect(!budget.change(slow[0], by: 100, at: Self.second(5)))
        // 300 of it are still there: its network gets no more than an eighth beyond the limit, other networks do.
        #expect(budget.change(other, by: 60, at: Self.second(5)))
        #expect(cuts.all == [0])
        #expect(!budget.change(slow[2], by: 1, at: Self.second(5)))
        #expect(cuts.all == [0, 2] && budget.waitingBytes == 510)
        budget.change(slow[0], by: -300, at: Self.second(6))
        #expect(budget.change(slow[1], by: 200, at: Self.second(6)))
        for id in [slow[0], slow[2]] { budget.remove(id) }
        #expect(budget.change(slow[1], by: 90, at: Self.second(7)))
        #expect(cuts.all == [0, 2] && budget.waitingBytes == 800)
    }

    @Test func `clients that read, leave or were closed free their budget`() {
        let cuts = Cuts()
        let budget = WaitingBudget(bytesMax: 100, refusal: .slowReader, statistics: SignalingStatistics())
        let reader = budget.add(from: Self.network(1)) { cuts.add(0) }
        let slow = budget.add(from: Self.network(2)) { cuts.add(1) }
        for _ in 0..<1_000 {
            budget.change(reader, by: 50)
            budget.change(reader, by: -50)
        }
        budget.change(slow, by: 101)
        budget.change(slow, by: -101)
        budget.change(slow, by: 500)
        #expect(cuts.all == [1] && budget.waitingBytes == 0)
        budget.change(reader, by: 60)
        budget.remove(reader)
        budget.remove(reader)
        #expect(budget.waitingBytes == 0 && cuts.all == [1])
    }
}
