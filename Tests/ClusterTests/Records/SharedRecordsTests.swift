import ChannelTypes
import TestSupport
import Testing

@testable import Cluster

@Suite struct SharedRecordsTests {
    private static let a = NodeID(rawValue: "a")!
    private static let b = NodeID(rawValue: "b")!
    private static let second: Int64 = 1_000
    private static let key = RecordKey(kind: "block", name: "eve")

    private static func all(_ records: SharedRecords, at now: Int64 = 0) -> [SharedRecords.Record] {
        records.page(after: nil, countMax: .max, at: now).records
    }

    @Test func `the newer of two values wins, and of equally old ones that of the higher node`() {
        for (first, other, winner) in [(1, 2, "b"), (2, 1, "a"), (1, 1, "b")] as [(Int64, Int64, String)] {
            var (one, two) = (SharedRecords(), SharedRecords())
            _ = one.set(Self.key, "a", until: nil, by: Self.a, at: first)
            _ = two.set(Self.key, "b", until: nil, by: Self.b, at: other)
            let (ofOne, ofTwo) = (Self.all(one), Self.all(two))
            let (changedOne, changedTwo) = (one.merge(ofTwo, at: 2), two.merge(ofOne, at: 2))
            #expect(changedOne == (winner == "b" ? [Self.key] : []) && changedTwo == (winner == "a" ? [Self.key] : []))
            #expect(one[Self.key]?.value == winner && two[Self.key]?.value == winner)
            #expect(one.digest(at: 0) == two.digest(at: 0))
        }
    }

    @Test func `a later decision wins at a node whose clock is behind`() {
        var (ahead, behind) = (SharedRecords(), SharedRecords())
        _ = ahead.set(Self.key, "long", until: nil, by: Self.b, at: 100 * Self.second)
        _ = behind.merge(Self.all(ahead), at: 10 * Self.second)
        _ = behind.set(Self.key, nil, until: nil, by: Self.a, at: 11 * Self.second)
        let changed = ahead.merge(Self.all(behind), at: 101 * Self.second)
        #expect(changed == [Self.key] && ahead[Self.key]?.value == nil)
    }

    @Test func `what was removed does not return for a day`() {
        var (node, away) = (SharedRecords(), SharedRecords())
        _ = node.set(Self.key, "1", until: nil, by: Self.a, at: 0)
        _ = away.merge(Self.all(node), at: 0)
        _ = node.set(Self.key, nil, until: nil, by: Self.a, at: Self.second)
        let (back, gone) = (node.merge(Self.all(away), at: 2_000), away.merge(Self.all(node), at: 2_000))
        #expect(back.isEmpty && node[Self.key]?.value == nil && gone == [Self.key])
        #expect(Self.all(node, at: 86_000).count == 1 && Self.all(node, at: 86_402).isEmpty)
    }

    @Test func `a value that was shortened while a node was away is over there, too`() {
        var (node, away) = (SharedRecords(), SharedRecords())
        _ = node.set(Self.key, "for ever", until: nil, by: Self.a, at: 0)
        _ = away.merge(Self.all(node), at: 0)
        _ = node.set(Self.key, "5 s", until: 6, by: Self.a, at: Self.second)
        let told = node.newer(than: [Self.key: away[Self.key]!.version], at: 600)
        #expect(away.merge(told, at: 600 * Self.second) == [Self.key])
        #expect(away.digest(at: 600) == node.digest(at: 600) && Self.all(away, at: 600).isEmpty)
        #expect(node.newer(than: [:], at: 600).isEmpty, "nobody needs to hear of it")
    }

    @Test func `marks of removed values make room before a value is refused`() {
        var records = SharedRecords()
        for index in 0..<SharedRecords.countMax {
            let value = index % 2 == 0 ? "" : nil
            let key = RecordKey(kind: "block", name: "\(index)")
            _ = records.set(key, value, until: nil, by: Self.a, at: Int64(index))
        }
        let taken = records.set(Self.key, "", until: nil, by: Self.a, at: 30_000)
        #expect(taken != nil && records.count < SharedRecords.countMax)
        #expect(
            records[RecordKey(kind: "block", name: "1")] == nil && records[RecordKey(kind: "block", name: "0")] != nil
        )
    }

    @Test func `all values together have a limit in bytes`() {
        var records = SharedRecords()
        let value = String(repeating: "x", count: SharedRecords.valueBytesMax)
        var count = 0
        while count < 1_000 {
            let key = RecordKey(kind: "k", name: "\(count)")
            guard records.set(key, value, until: nil, by: Self.a, at: 0) != nil else { break }
            count += 1
        }
        #expect(count == SharedRecords.bytesMax / SharedRecords.valueBytesMax - 1)
        let page = records.page(after: nil, countMax: 500, bytesMax: 1 << 20, at: 0)
        #expect(page.records.count == 15 && page.hasMore)
    }

    @Test func `values that are over make room, and others are refused beyond the limit`() {
        var records = SharedRecords()
        for index in 0..<SharedRecords.countMax {
            let key = RecordKey(kind: "block", name: "\(index)")
            _ = records.set(key, "", until: index == 0 ? 10 : nil, by: Self.a, at: 0)
        }
        #expect(records.count == SharedRecords.countMax)
        let refused = records.set(Self.key, "", until: nil, by: Self.a, at: 9 * Self.second)
        let taken = records.set(Self.key, "", until: nil, by: Self.a, at: 10 * Self.second)
        #expect(refused == nil && taken != nil && records.count == SharedRecords.countMax)
    }

    @Test func `records of another node are checked`() {
        let record = SharedRecords.Record(key: Self.key, value: "1", version: .init(milliseconds: 0, node: "b"))
        var hostile = [record, record, record, record]
        hostile[0].key.name = String(repeating: "x", count: SharedRecords.keyBytesMax)
        hostile[1].value = String(repeating: "x", count: SharedRecords.valueBytesMax + 1)
        hostile[2].version.node = "no name"
        // It would win over every decision of the next years.
        hostile[3].version.milliseconds = .max
        var records = SharedRecords()
        let refused = records.merge(hostile, at: 0)
        #expect(refused.isEmpty && records.count == 0)
        let taken = records.merge([record], at: .max)
        let last = records.set(Self.key, nil, until: nil, by: Self.a, at: .max)
        #expect(taken == [Self.key] && last?.version.milliseconds == .max)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `nodes that told each other all have the same values`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let names = ["a", "b", "c"].compactMap(NodeID.init)
        var nodes = names.map { _ in SharedRecords() }
        for now in 0..<60 as Range<Int64> {
            let index = Int.random(in: 0..<3, using: &random)
            let key = RecordKey(kind: "k", name: "\(Int.random(in: 0..<4, using: &random))")
            // Clocks differ by some seconds.
            let value = Bool.random(using: &random) ? "\(now)" : nil
            _ = nodes[index].set(key, value, until: nil, by: names[index], at: now * 100 + Int64(index) * 300)
            if Bool.random(using: &random) {
                let other = Int.random(in: 0..<3, using: &random)
                _ = nodes[other].merge(Self.all(nodes[index]).shuffled(using: &random), at: now * 100)
            }
        }
        for index in 0..<3 {
            for other in nodes { _ = nodes[index].merge(Self.all(other).shuffled(using: &random), at: 10_000) }
        }
        // The first had not heard of what the others learned from each other.
        for other in nodes { _ = nodes[0].merge(Self.all(other), at: 10_000) }
        let values = nodes.map { Self.all($0).map(\.value) }
        #expect(values[0] == values[1] && values[1] == values[2])
        #expect(Set(nodes.map { $0.digest(at: 0) }).count == 1)
    }

    @Test func `pages hold every record once`() {
        var records = SharedRecords()
        for index in 0..<23 {
            _ = records.set(RecordKey(kind: "\(index % 2)", name: "\(index)"), "", until: nil, by: Self.a, at: 0)
        }
        var (found, after) = ([RecordKey](), RecordKey?.none)
        repeat {
            let page = records.page(after: after, countMax: 5, at: 0)
            found += page.records.map(\.key)
            after = page.hasMore ? page.records.last?.key : nil
        } while after != nil
        #expect(found.count == 23 && Set(found).count == 23 && found == found.sorted())
    }
}
