import Base
import ChannelTypes
internal import Room

/// What all nodes of a cluster agree on, such as the blocks of operators: values by keys, of which the newest one wins.
///
/// Nodes that have told each other all have the same values, whatever the order. A removed value leaves a mark for a day, so
/// that a node that was away does not bring it back.
struct SharedRecords: Sendable {
    /// When a value was set. It is later than the version that it replaces, also where the node's clock is behind.
    struct Version: Comparable, Hashable, Sendable, Codable {
        /// Since 1970 UTC.
        var milliseconds: Int64
        /// The node that set it.
        var node: String

        static func < (left: Self, right: Self) -> Bool {
            (left.milliseconds, left.node) < (right.milliseconds, right.node)
        }
    }

    struct Record: Hashable, Sendable, Codable {
        var key: RecordKey
        /// `nil` for a removed one.
        var value: String?
        var version: Version
        /// When it may be forgotten, in seconds since 1970 UTC; `nil` for never.
        var until: Int64?

        func isOver(at unixSeconds: Int64) -> Bool { until.map { $0 <= unixSeconds } ?? false }
        var bytes: Int { key.bytes + (value?.utf8.count ?? 0) }
    }

    /// The most records, with the marks of removed ones: twice the blocks that a node may have.
    static let countMax = 20_000
    /// The longest key and value in bytes.
    static let keyBytesMax = 2_048
    static let valueBytesMax = 65_536
    /// The most bytes of all keys and values.
    static let bytesMax = 32 << 20
    private static let removedSeconds: Int64 = 86_400
    /// What the clock of another node may be ahead. A version that is later would win for too long.
    private static let skewMilliseconds: Int64 = 86_400_000

    private var records: [RecordKey: Record] = [:]
    private var bytes = 0

    var count: Int { records.count }

    subscript(_ key: RecordKey) -> Record? { records[key] }

    func keys(of kind: String) -> [RecordKey] { records.keys.filter { $0.kind == kind } }

    /// Sets or removes a value at this node.
    /// - Returns: its record; `nil` when the key or value is too long, or there are too many records.
    mutating func set(
        _ key: RecordKey,
        _ value: String?,
        until: Int64?,
        by node: NodeID,
        at unixMilliseconds: Int64
    ) -> Record? {
        let before = records[key]?.version.milliseconds ?? .min
        let version = Version(
            milliseconds: max(unixMilliseconds, before == .max ? .max : before + 1),
            node: node.rawValue
        )
        let seconds = unixMilliseconds / 1_000
        let end = value == nil ? seconds.addingReportingOverflow(Self.removedSeconds).partialValue : until
        let record = Record(key: key, value: value, version: version, until: end)
        return take(record, at: seconds) ? record : nil
    }

    /// Takes what another node has.
    /// - Returns: the keys whose values are others now.
    mutating func merge(_ found: [Record], at unixMilliseconds: Int64) -> [RecordKey] {
        let (latest, isTooLarge) = unixMilliseconds.addingReportingOverflow(Self.skewMilliseconds)
        return found.compactMap { record in
            guard isTooLarge || record.version.milliseconds <= latest,
                record.version > records[record.key]?.version ?? Version(milliseconds: .min, node: "")
            else { return nil }
            let before = records[record.key]
            guard take(record, at: unixMilliseconds / 1_000) else { return nil }
            return before?.value == record.value && before?.until == record.until ? nil : record.key
        }
    }

    private mutating func take(_ record: Record, at unixSeconds: Int64) -> Bool {
        guard record.key.bytes <= Self.keyBytesMax, record.value?.utf8.count ?? 0 <= Self.valueBytesMax,
            NodeID(rawValue: record.version.node) != nil
        else { return false }
        if !hasRoom(for: record) { makeRoom(at: unixSeconds) }
        guard hasRoom(for: record) else { return false }
        bytes += record.bytes - (records[record.key]?.bytes ?? 0)
        records[record.key] = record
        return true
    }

    private func hasRoom(for record: Record) -> Bool {
        let before = records[record.key]
        return records.count < Self.countMax + (before == nil ? 0 : 1)
            && bytes + record.bytes - (before?.bytes ?? 0) <= Self.bytesMax
    }

    /// Forgets what is over, and without any of that a quarter of the marks of removed values, the oldest first.
    private mutating func makeRoom(at unixSeconds: Int64) {
        var forgotten = records.values.filter { $0.isOver(at: unixSeconds) }
        if forgotten.isEmpty {
            let marks = records.values.filter { $0.value == nil }.sorted { $0.version < $1.version }
            forgotten = Array(marks.prefix((marks.count + 3) / 4))
        }
        for record in forgotten {
            records[record.key] = nil
            bytes -= record.bytes
        }
    }

    /// The records after a key, in the order of keys.
    /// - Parameters:
    ///   - countMax: at most so many.
    ///   - bytesMax: with at most so many bytes, but at least one record.
    /// - Returns: whether there are more, too.
    func page(
        after key: RecordKey?,
        countMax: Int,
        bytesMax: Int = .max,
        at unixSeconds: Int64
    ) -> (records: [Record], hasMore: Bool) {
        let rest = records.values.filter { record in
            !record.isOver(at: unixSeconds) && key.map { $0 < record.key } ?? true
        }
        var (page, pageBytes) = ([Record](), 0)
        for record in rest.sorted(by: { $0.key < $1.key }) {
            let isFull = page.count >= countMax || pageBytes > bytesMax - record.bytes
            if !page.isEmpty, isFull { return (page, true) }
            page.append(record)
            pageBytes += record.bytes
        }
        return (page, false)
    }

    /// The records that other records do not have, or have in an older version.
    ///
    /// One that is over is told to those who have an older one: it may have been shortened while they were away.
    func newer(than others: [RecordKey: Version], at unixSeconds: Int64) -> [Record] {
        records.values.filter { record in
            others[record.key].map { $0 < record.version } ?? !record.isOver(at: unixSeconds)
        }
    }

    /// Equal for nodes that have the same records.
    func digest(at unixSeconds: Int64) -> UInt64 {
        records.values.reduce(0) { $1.isOver(at: unixSeconds) ? $0 : $0 ^ Self.digest(of: $1) }
    }

    private static func digest(of record: Record) -> UInt64 {
        var hash = SHA1()
        let version = "\(record.version.milliseconds) \(record.version.node)"
        for part in [record.key.kind, record.key.name, version] {
            unsafe hash.update(Array(part.utf8).span.bytes)
            hash.update(0)
        }
        let digest = hash.finalize()
        return (0..<8).reduce(0) { $0 << 8 | UInt64(digest[$1]) }
    }
}

/// The name of a value that all nodes agree on.
package struct RecordKey: Comparable, Hashable, Sendable, Codable {
    /// Who uses the value.
    package var kind: String
    package var name: String

    package init(kind: String, name: String) {
        self.kind = kind
        self.name = name
    }

    var bytes: Int { kind.utf8.count + name.utf8.count }

    package static func < (left: Self, right: Self) -> Bool { (left.kind, left.name) < (right.kind, right.name) }
}
