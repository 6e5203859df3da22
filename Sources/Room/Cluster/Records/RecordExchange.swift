package import ChannelTypes
import Foundation

/// Spreads values over all nodes of a cluster, also over those without a common channel.
///
/// A change is told to every node at once. What a node missed, because it started later or was cut off, it gets by comparing
/// its values with those of another node: at its start, and about every half minute. So a change reaches all nodes that can
/// reach each other, and of two changes of one value all keep the same one.
package actor RecordExchange {
    /// Asks a node; `nil` without an answer.
    package typealias Ask = @Sendable (NodeRequest, NodeID) async -> [UInt8]?
    /// Takes a value that was set, or removed with `nil`, here or at another node. The calls for one kind do not overlap.
    package typealias Apply = @Sendable (_ name: String, _ value: String?) async -> Void

    /// A question about records, or its answer.
    private struct Message: Codable {
        /// What the sender has.
        var records: [SharedRecords.Record]?
        /// Of the sender's records, in a question for those of the receiver.
        var digest: UInt64?
        /// The question is about records after this key.
        var after: RecordKey?
        /// There are more records, after this key.
        var next: RecordKey?
    }

    private static let pageMax = 500
    /// Of keys and values in one message, which JSON makes up to six times longer.
    private static let pageBytesMax = 1 << 20
    private static let bodyBytesMax = 12 << 20
    /// Nodes that are told at the same time.
    private static let toldAtOnce = 16
    private static let comparisonSeconds = 20...40
    private static let retrySeconds = 5

    private let own: NodeID
    private let clock: RoomClock
    private let ask: Ask
    private var records = SharedRecords()
    private var users: [String: Apply] = [:]
    /// Keys whose users have not taken the value.
    private var changed: Set<RecordKey> = []
    private var isApplying = false
    /// Keys whose values the other nodes have not been told.
    private var untold: Set<RecordKey> = []
    private var isTelling = false
    private var nodes: [NodeID] = []
    /// Nodes that did not answer when they were told.
    private var behind: Set<NodeID> = []
    private var isComparing = false
    private var secondsToComparison = 0
    /// Whether the last comparison was with one of ``behind``.
    private var wasBehind = false

    package init(own: NodeID, clock: RoomClock, ask: @escaping Ask) {
        self.own = own
        self.clock = clock
        self.ask = ask
    }

    private var milliseconds: Int64 { clock.unixNanoseconds / 1_000_000 }

    // MARK: - Users

    /// Sets who takes the values of a kind. It gets those that are known already.
    package func use(_ kind: String, _ apply: @escaping Apply) {
        users[kind] = apply
        changed.formUnion(records.keys(of: kind))
        startApplying()
    }

    /// Sets a value at all nodes, or removes it with `nil`. Its user here takes it, too.
    /// - Parameter until: when the value may be forgotten, in seconds since 1970 UTC; `nil` for never.
    /// - Returns: `false` when it is too long, or there are too many values.
    @discardableResult
    package func set(_ key: RecordKey, _ value: String?, until: Int64? = nil) -> Bool {
        guard records.set(key, value, until: until, by: own, at: milliseconds) != nil else { return false }
        changed.insert(key)
        untold.insert(key)
        startApplying()
        startTelling()
        return true
    }

    private func take(_ records: [SharedRecords.Record]) {
        changed.formUnion(self.records.merge(records, at: milliseconds))
        startApplying()
    }

    private func startApplying() {
        guard !isApplying, !changed.isEmpty else { return }
        isApplying = true
        Task { await applyChanges() }
    }

    /// One value after the other, so that the latest one is the last that its user takes.
    private func applyChanges() async {
        while let key = changed.popFirst() { await users[key.kind]?(key.name, records[key]?.value) }
        isApplying = false
    }

    // MARK: - Other nodes

    /// To be called about once a second.
    /// - Parameter nodes: the other nodes of the cluster.
    package func tick(_ nodes: [NodeID]) {
        self.nodes = nodes
        behind.formIntersection(nodes)
        guard !nodes.isEmpty, !isComparing else { return }
        secondsToComparison -= 1
        guard secondsToComparison <= 0 else { return }
        // Nodes that do not answer must not keep this one from the others.
        wasBehind = !wasBehind && !behind.isEmpty
        guard let node = wasBehind ? behind.randomElement() : nodes.randomElement() else { return }
        isComparing = true
        Task {
            let isDone = await compare(with: node)
            isComparing = false
            if isDone {
                behind.remove(node)
                secondsToComparison = behind.isEmpty ? Int.random(in: Self.comparisonSeconds) : 0
            } else {
                secondsToComparison = Self.retrySeconds
            }
        }
    }

    /// Gets what another node has, and tells it what it does not have.
    /// - Returns: whether it answered.
    package func compare(with node: NodeID) async -> Bool {
        let now = milliseconds / 1_000
        var question = Message(digest: records.digest(at: now))
        var found: [RecordKey: SharedRecords.Version] = [:]
        while true {
            guard let answer = await exchange(question, with: node) else { return false }
            guard let records = answer.records else { return true }
            take(records)
            for record in records { found[record.key] = record.version }
            guard let next = answer.next, question.after.map({ $0 < next }) ?? true, !records.isEmpty,
                found.count < SharedRecords.countMax
            else { break }
            question = Message(after: next)
        }
        let missing = records.newer(than: found, at: now)
        for page in Self.pages(missing) {
            guard await exchange(Message(records: page), with: node) != nil else { return false }
        }
        return true
    }

    private static func pages(_ records: [SharedRecords.Record]) -> [[SharedRecords.Record]] {
        var pages: [[SharedRecords.Record]] = []
        var bytes = 0
        for record in records {
            if let last = pages.last, last.count < pageMax, bytes + record.bytes <= pageBytesMax {
                pages[pages.count - 1].append(record)
                bytes += record.bytes
            } else {
                pages.append([record])
                bytes = record.bytes
            }
        }
        return pages
    }

    private nonisolated func exchange(_ message: Message, with node: NodeID) async -> Message? {
        guard let body = try? JSONEncoder().encode(message),
            let answer = await ask(NodeRequest(kind: .records, body: Array(body)), node)
        else { return nil }
        return try? JSONDecoder().decode(Message.self, from: Data(answer))
    }

    /// Answers a question of another node; `nil` for one that is not understood.
    package func answer(_ body: [UInt8]) -> [UInt8]? {
        guard body.count <= Self.bodyBytesMax,
            let question = try? JSONDecoder().decode(Message.self, from: Data(body))
        else { return nil }
        var answer = Message()
        if let records = question.records {
            take(records)
        } else {
            let now = milliseconds / 1_000
            if question.after != nil || question.digest != records.digest(at: now) {
                let page = records.page(
                    after: question.after,
                    countMax: Self.pageMax,
                    bytesMax: Self.pageBytesMax,
                    at: now
                )
                answer.records = page.records
                answer.next = page.hasMore ? page.records.last?.key : nil
            }
        }
        return (try? JSONEncoder().encode(answer)).map { Array($0) }
    }

    // MARK: - Telling

    private func startTelling() {
        guard !isTelling, !untold.isEmpty else { return }
        isTelling = true
        Task { await tellChanges() }
    }

    private func tellChanges() async {
        while !untold.isEmpty {
            let keys = untold.prefix(Self.pageMax)
            untold.subtract(keys)
            let told = nodes
            for page in Self.pages(keys.compactMap { records[$0] }) {
                let silent = await tell(Message(records: page), to: told)
                behind.formUnion(silent)
                if !silent.isEmpty { secondsToComparison = min(secondsToComparison, Self.retrySeconds) }
            }
        }
        isTelling = false
    }

    /// - Returns: the nodes that did not answer.
    private func tell(_ message: Message, to nodes: [NodeID]) async -> [NodeID] {
        await withTaskGroup(of: NodeID?.self) { group in
            var silent: [NodeID] = []
            for (index, node) in nodes.enumerated() {
                if index >= Self.toldAtOnce, let result = await group.next(), let result { silent.append(result) }
                group.addTask { [self] in await exchange(message, with: node) == nil ? node : nil }
            }
            for await case let node? in group { silent.append(node) }
            return silent
        }
    }
}
