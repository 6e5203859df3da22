import ChannelTypes
import Cluster
import MediaTypes
import Testing

extension StoreCase {
    func enlisting(_ store: some TestedStore) async throws {
        func next(_ name: String) async throws -> UInt32 {
            try await store.enlist(RegisterNode(node: Given.node(name), candidate: Given.generation(1))).rawValue
        }
        let first = try await next("a")
        #expect(first == 16, "no node beat yet")
        _ = try await store.beat(Given.beat(Given.instance("a", first), Given.record("x")))
        if self == .incarnationsSkipWhileNodesMayBeUnheard {
            #expect(try await next("b") == 32)
            try await store.advance(milliseconds: 1_000)
            #expect(try await next("c") == 48)
        } else if self == .incarnationsRise {
            for _ in 0..<13 {
                try await store.advance(milliseconds: 1_000)
                _ = try await store.beat(Given.beat(Given.instance("a", first)))
            }
            #expect(try await next("b") == 17)
            #expect(try await next("a") == 18)
            // A node that the store did not number raises the count.
            _ = try await store.beat(Given.beat(Given.instance("c", 40), Given.record("x")))
            #expect(try await next("b") == 41)
        } else {
            try await store.advance(milliseconds: 3_500)
            #expect(try await next("b") == 32)
        }
    }

    func telling(_ store: some TestedStore) async throws {
        let (a, b) = (try Given.instance("a", 7), try Given.instance("b", 8))
        let first = try await store.beat(Given.beat(a, Given.record("x")))
        #expect(first.isKnown && !first.isFenced && first.absent.isEmpty)
        #expect(first.changes == [.init(instance: a, record: Given.record("x"))])
        let second = try await store.beat(Given.beat(b, Given.record("y"), after: first))
        #expect(second.changes == [.init(instance: b, record: Given.record("y"))])
        #expect(second.generation == first.generation && second.cursor == second.revision)
        switch self {
        case .onlyChangesAreTold:
            #expect(try await store.beat(Given.beat(a, nil, after: second)).changes.isEmpty)
            #expect(try await store.beat(Given.beat(a, Given.record("x"), after: second)).changes.isEmpty)
            let drained = Given.record("x", .draining)
            let third = try await store.beat(Given.beat(a, drained, after: second))
            #expect(third.changes == [.init(instance: a, record: drained)])
            #expect(try await store.beat(Given.beat(b, nil, after: first)).changes.map(\.instance) == [b, a])
        case .changesComeInParts:
            for number in 0..<100 {
                _ = try await store.beat(Given.beat(Given.instance("n\(number)", 9), Given.record("z")))
            }
            let part = try await store.beat(Given.beat(a, nil, after: first))
            #expect(part.changes.count == 64 && part.cursor < part.revision)
            let rest = try await store.beat(Given.beat(a, nil, after: part))
            #expect(rest.changes.count == 37 && rest.cursor == rest.revision)
            #expect(Set((part.changes + rest.changes).map(\.instance)).count == 101)
        case .aLowerIncarnationIsFenced:
            let old = try await store.beat(Given.beat(Given.instance("a", 6), Given.record("old"), after: second))
            #expect(old.isFenced && !old.isKnown && old.changes.isEmpty)
            let late = try await store.beat(Given.beat(a, nil, after: second))
            #expect(!late.isFenced && late.isKnown && late.changes.isEmpty)
        case .aHigherIncarnationReplaces:
            let new = try Given.instance("a", 9)
            _ = try await store.beat(Given.beat(new, Given.record("new")))
            #expect(try await store.beat(Given.beat(a, nil, after: second)).isFenced)
            let seen = try await store.beat(Given.beat(b, nil, after: second))
            #expect(seen.changes == [.init(instance: new, record: Given.record("new"))])
        case .anUnknownNodeIsAskedForItsRecord:
            let answer = try await store.beat(Given.beat(Given.instance("c", 9), nil, after: second))
            #expect(!answer.isKnown && answer.changes.isEmpty)
            let told = try await store.beat(Given.beat(Given.instance("c", 9), Given.record("z"), after: answer))
            #expect(told.isKnown && told.changes.count == 1)
        default: break
        }
    }

    func absence(_ store: some TestedStore) async throws {
        let (a, b) = (try Given.instance("a", 7), try Given.instance("b", 8))
        var last = try await store.beat(Given.beat(b, Given.record("y")))
        /// `a` beats each second for so long.
        func beat(seconds: Int, expecting absent: Set<NodeID>? = nil) async throws {
            for _ in 0..<seconds {
                try await store.advance(milliseconds: 1_000)
                last = try await store.beat(Given.beat(a, Given.record("x"), after: last))
            }
            if let absent { #expect(last.absent == absent) }
        }
        try await beat(seconds: 9, expecting: [])
        try await beat(seconds: 5, expecting: [b.node])
        switch self {
        case .absenceEndsWithABeat:
            let back = try await store.beat(Given.beat(b, nil))
            #expect(back.isKnown && back.absent.isEmpty)
            // Who forgot it meanwhile learns of it again.
            try await beat(seconds: 1, expecting: [])
            #expect(last.changes.map(\.instance) == [b])
        case .nobodyIsAbsentInGrace:
            try await store.advance(milliseconds: 60_000)
            last = try await store.beat(Given.beat(a, nil, after: last))
            #expect(last.absent.isEmpty && last.graceMS == last.timeMS + 12_000)
            try await beat(seconds: 9, expecting: [])
            try await beat(seconds: 5, expecting: [b.node])
        case .theForgottenAreGone:
            try await store.advance(milliseconds: 24 * 3_600_000)
            try await beat(seconds: 1, expecting: [])
            try await beat(seconds: 15, expecting: [])
            let all = try await store.beat(Given.beat(a, nil))
            #expect(all.changes.map(\.instance) == [a])
        default: break
        }
    }

    func generations(_ store: some TestedStore) async throws {
        let a = try Given.instance("a", 7)
        var first = try await store.beat(Given.beat(a, Given.record("x"), candidate: 1))
        for _ in 0..<13 {
            try await store.advance(milliseconds: 1_000)
            first = try await store.beat(Given.beat(a, after: first))
        }
        try await store.keep()
        let second = try await store.beat(Given.beat(a, Given.record("y"), after: first, candidate: 2))
        #expect(try second.generation == Given.generation(1) && first.generation == second.generation)
        if self == .aWipeChangesTheGeneration { try await store.wipe() } else { try await store.restore() }
        let third = try await store.beat(Given.beat(a, nil, after: second, candidate: 3))
        #expect(try third.generation == Given.generation(3))
        #expect(third.isKnown == (self == .anOlderCopyChangesTheGeneration))
        #expect(third.changes.map(\.record.region) == (third.isKnown ? ["x"] : []))
        let fourth = try await store.beat(Given.beat(a, Given.record("y"), after: third, candidate: 4))
        #expect(fourth.generation == third.generation && fourth.isKnown)
        #expect(fourth.changes.map(\.record.region) == ["y"])
        // A number that was given before is not given again, and perhaps some were that the store does not know of.
        let next = try await store.enlist(RegisterNode(node: Given.node("b"), candidate: third.generation))
        #expect(next.rawValue == 7 + 16)
    }

    /// No node changed since the copy. Channels did, perhaps.
    func heartbeatsLost(_ store: some TestedStore) async throws {
        let a = try Given.instance("a", 7)
        let first = try await store.beat(Given.beat(a, Given.record("x"), candidate: 1))
        try await store.keep()
        let same = try await store.beat(Given.beat(a, after: first, candidate: 2))
        try await store.restore()
        try await store.advance(milliseconds: 1_000)
        let next = try await store.beat(Given.beat(a, after: same, candidate: 3))
        #expect(next.generation == first.generation, "the clock went on less than clocks may go back")
        try await store.restore()
        try await store.advance(milliseconds: 1_000)
        let last = try await store.beat(Given.beat(a, after: next, candidate: 4))
        #expect(try last.generation == Given.generation(4) && last.revision == first.revision)
    }
}
