import Base
import ChannelTypes
import MediaTypes
import Synchronization
import TestSupport
import Testing

@testable import Cluster

@Suite(.timeLimit(.minutes(10))) struct RecordExchangeTests {
    /// Nodes that ask each other directly.
    private final class Nodes: Sendable {
        private struct State {
            var exchanges: [NodeID: RecordExchange] = [:]
            var values: [NodeID: [String: String]] = [:]
            var cut: Set<NodeID> = []
            var seconds: Int64 = 0
            var questions = 0
        }
        private let state = Mutex(State())

        /// Adds nodes that take the values of the kind `k`.
        func add(_ names: String...) async -> [RecordExchange] {
            var added: [RecordExchange] = []
            for name in names {
                let node = NodeID(rawValue: name)!
                let clock = RoomClock { [self] in
                    let seconds = state.withLock { $0.seconds }
                    return RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: seconds * 1_000_000_000)
                }
                let exchange = RecordExchange(own: node, clock: clock) { [self] in await ask($0, of: $1, by: node) }
                state.withLock { $0.exchanges[node] = exchange }
                await exchange.use("k") { [self] name, value in
                    state.withLock { $0.values[node, default: [:]][name] = value }
                }
                added.append(exchange)
            }
            return added
        }

        private func ask(_ request: NodeRequest, of node: NodeID, by asker: NodeID) async -> [UInt8]? {
            let exchange = state.withLock { state -> RecordExchange? in
                state.questions += 1
                return state.cut.contains(node) || state.cut.contains(asker) ? nil : state.exchanges[node]
            }
            return await request.kind == .records ? exchange?.answer(request.body) : nil
        }

        func cut(_ name: String, _ isCut: Bool = true) {
            let node = NodeID(rawValue: name)!
            state.withLock { state in
                if isCut { state.cut.insert(node) } else { state.cut.remove(node) }
            }
        }

        var questions: Int { state.withLock { $0.questions } }

        /// A second passes at all nodes.
        func tick() async {
            let exchanges = state.withLock { state in
                state.seconds += 1
                return state.exchanges
            }
            for (node, exchange) in exchanges {
                await exchange.tick(exchanges.keys.filter { $0 != node }.sorted())
            }
        }

        func values(_ name: String) -> [String: String] { state.withLock { $0.values[NodeID(rawValue: name)!] ?? [:] } }

        /// Lets seconds pass until a condition holds.
        func tick(until name: String, _ condition: () -> Bool) async throws {
            try await eventually(name) {
                if condition() { return true }
                await tick()
                return false
            }
        }
    }

    private static func key(_ name: String) -> RecordKey { RecordKey(kind: "k", name: name) }

    @Test func `a change reaches every node at once`() async throws {
        let nodes = Nodes()
        let exchanges = await nodes.add("a", "b", "c")
        await nodes.tick()
        #expect(await exchanges[1].set(Self.key("eve"), "out"))
        try await eventually("all nodes have the value") {
            ["a", "b", "c"].allSatisfy { nodes.values($0) == ["eve": "out"] }
        }
        await exchanges[2].set(Self.key("eve"), nil)
        try await eventually("no node has the value") { ["a", "b", "c"].allSatisfy { nodes.values($0).isEmpty } }
    }

    @Test func `a node that starts later has all values, page for page`() async throws {
        let nodes = Nodes()
        let exchange = await nodes.add("a")[0]
        for index in 0..<1_234 { await exchange.set(Self.key("\(index)"), "\(index)") }
        let late = await nodes.add("b")[0]
        await late.set(Self.key("own"), "1")
        try await nodes.tick(until: "both nodes have all values") {
            nodes.values("b").count == 1_235 && nodes.values("a").count == 1_235
        }
        #expect(nodes.values("a") == nodes.values("b"))
    }

    @Test func `a node that was cut off gets what it missed, and what it removed stays removed`() async throws {
        let nodes = Nodes()
        let exchanges = await nodes.add("a", "b", "c")
        await nodes.tick()
        await exchanges[0].set(Self.key("1"), "old")
        try await eventually("all nodes have the value") {
            ["a", "b", "c"].allSatisfy { nodes.values($0) == ["1": "old"] }
        }
        nodes.cut("c")
        await nodes.tick()
        await exchanges[2].set(Self.key("1"), nil)
        await exchanges[0].set(Self.key("2"), "new")
        try await eventually("b has the new value") { nodes.values("b")["2"] == "new" }
        nodes.cut("c", false)
        try await nodes.tick(until: "all nodes have what is left") {
            ["a", "b", "c"].allSatisfy { nodes.values($0) == ["2": "new"] }
        }
    }

    @Test func `nodes with the same values compare them with one question`() async throws {
        let nodes = Nodes()
        let exchanges = await nodes.add("a", "b")
        await nodes.tick()
        await exchanges[0].set(Self.key("1"), "1")
        try await eventually("b has the value") { nodes.values("b") == ["1": "1"] }
        let before = nodes.questions
        #expect(await exchanges[1].compare(with: NodeID(rawValue: "a")!))
        #expect(nodes.questions - before <= 2, "its own, and perhaps one of the other node at the same time")
    }

    @Test func `a user gets the values that are known before it`() async throws {
        let exchange = RecordExchange(own: NodeID(rawValue: "a")!, clock: .system) { _, _ in nil }
        await exchange.set(RecordKey(kind: "x", name: "1"), "v")
        await exchange.set(RecordKey(kind: "y", name: "2"), "w")
        let found = Mutex<[String: String]>([:])
        await exchange.use("x") { name, value in found.withLock { $0[name] = value } }
        try await eventually("the user has a value") { found.withLock { !$0.isEmpty } }
        #expect(found.withLock { $0 } == ["1": "v"])
    }

    @Test(arguments: ["", "{", "[]", #"{"records":1}"#, #"{"records":[{"key":{}}]}"#, #"{"digest":-1}"#])
    func `a question that is none has no answer`(text: String) async {
        let exchange = RecordExchange(own: NodeID(rawValue: "a")!, clock: .system) { _, _ in nil }
        #expect(await exchange.answer(Array(text.utf8)) == nil)
    }
}
