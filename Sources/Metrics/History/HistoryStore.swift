import Dispatch
import JSON
import Synchronization

/// The ended connections, on disk or in memory. On disk are also those that last, as they were when they were last saved:
/// when the file is opened again, they have ended without the node's knowledge.
///
/// It is bounded: what is too old, or does not fit, is deleted, the oldest first. All work is done on a queue of its own, because
/// SQLite waits for the disk; what waits there is bounded too. A damaged file is put aside, and a new one begun.
actor HistoryStore {
    /// An ended connection, or one that lasts.
    struct Entry: Sendable {
        let id: String
        let channel: String
        let user: String
        /// In milliseconds since 1970 UTC.
        let createdAt: Int64
        /// For a connection that lasts, the time of the entry.
        let endedAt: Int64
        /// Of a ``ConnectionOutcome``.
        let outcome: String
        /// JSON texts.
        let summary: String
        let detail: String
    }

    /// What to list.
    struct Query: Sendable {
        var channel: String?
        var user: String?
        /// Of a ``ConnectionOutcome``; `nil` for all.
        var outcome: String?
        /// Only what comes after this position.
        var after: Position?
        var limit = 50
    }

    /// A place in the list: the latest connections come first.
    struct Position: Hashable, Sendable {
        /// In milliseconds since 1970 UTC.
        let createdAt: Int64
        let id: String
    }

    /// A session of which an earlier run of the node left connections behind.
    struct LeftSession: Hashable, Sendable {
        let channel: String
        let id: String
        /// The begin of its first known connection, in milliseconds since 1970 UTC.
        let createdAt: Int64
        /// When it was last saved, in milliseconds since 1970 UTC.
        let seenAt: Int64
    }

    struct Counts: Hashable, Sendable {
        var stored: UInt64 = 0
        /// Not stored, because too many waited or the database failed.
        var lost: UInt64 = 0
    }

    struct Limits: Sendable {
        /// The most entries that wait to be written.
        var pendingMax = 4_096
        /// The size of the database, in pages of 4,096 bytes.
        var pagesMax: Int

        /// 32 MiB.
        static let memory = Self(pagesMax: 8_192)
        /// 512 MiB.
        static let disk = Self(pagesMax: 131_072)
    }
    /// One in so many entries is deleted to make room.
    private static let evictedShare = 10
    private static let version = 1
    /// The most ``LeftSession``s that are read.
    private static let leftMax = 10_000
    /// The condition of entries of connections that last.
    private static let isLive = "outcome = '\(ConnectionOutcome.live.rawValue)'"

    /// Runs the store's work on a queue of its own.
    private final class QueueExecutor: SerialExecutor {
        let queue = DispatchQueue(label: "history")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }

        func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
    }
    /// A disk that damages each new file is not to be filled with log lines. In milliseconds.
    private static let putAsideInterval: Int64 = 3_600_000

    /// `nil` to keep everything in memory.
    private let file: HistoryFile?
    /// Whether entries outlive the node.
    nonisolated var isFile: Bool { file != nil }
    private let executor = QueueExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private var database: Database
    /// Entries that wait to be written. It is counted where entries come from, as what is lost is.
    private let pending = Atomic(0)
    private let stored = Atomic<UInt64>(0)
    private let lost = Atomic<UInt64>(0)
    /// Of ``Counts/lost``, those whose saved entries have ended.
    private var settled: UInt64 = 0
    /// Of the failure that was told last.
    private var toldError: String?
    /// Whether a damaged file was closed and could not be replaced.
    private var isFileClosed = false
    private var leftSessions: [LeftSession] = []
    /// When a damaged file was last put aside, in milliseconds since 1970 UTC.
    private var putAsideAt: Int64?
    /// In milliseconds.
    private let age: Int64
    private let limits: Limits
    /// In milliseconds since 1970 UTC.
    private let now: @Sendable () -> Int64
    private let onFailure: @Sendable (String) -> Void

    /// - Parameters:
    ///   - file: `nil` to keep everything in memory.
    ///   - age: of the oldest entry, in milliseconds.
    ///   - limits: those of ``Limits/memory`` or ``Limits/disk`` by default.
    ///   - now: the time, in milliseconds since 1970 UTC.
    ///   - onFailure: called when writing begins to fail, and for a damaged file, with a sentence.
    /// - Throws: when the file cannot be used.
    init(
        file: HistoryFile?,
        age: Int64,
        limits: Limits? = nil,
        now: @escaping @Sendable () -> Int64,
        onFailure: @escaping @Sendable (String) -> Void
    ) throws(DatabaseError) {
        self.file = file
        self.limits = limits ?? (file == nil ? .memory : .disk)
        self.age = age
        self.now = now
        self.onFailure = onFailure
        database = try Self.openOrReplace(file, self.limits, onFailure)
        guard file != nil else { return }
        executor.queue.sync { assumeIsolated { $0.begin() } }
    }

    private func begin() {
        do throws(DatabaseError) {
            // Connections that an earlier run of the node left behind.
            leftSessions = try perform { database throws(DatabaseError) in
                let sessions = try Self.liveSessions(database)
                try Self.endSaved(ConnectionHistory.lostNodeReason, except: [], database)
                return sessions
            }
            try deleteExpired()
        } catch {
            tell(error)
        }
    }

    private static func openOrReplace(
        _ file: HistoryFile?,
        _ limits: Limits,
        _ onFailure: (String) -> Void
    ) throws(DatabaseError) -> Database {
        do throws(DatabaseError) {
            return try open(file, limits)
        } catch {
            guard error.isDamage, let file else { throw error }
            return try replace(file, limits, error, onFailure)
        }
    }

    private static func open(_ file: HistoryFile?, _ limits: Limits) throws(DatabaseError) -> Database {
        file?.make()
        let opened = try Database(path: file?.path ?? ":memory:")
        try prepare(opened, pagesMax: limits.pagesMax)
        return opened
    }

    /// Puts a damaged file aside and opens a new one.
    private static func replace(
        _ file: HistoryFile,
        _ limits: Limits,
        _ error: DatabaseError,
        _ onFailure: (String) -> Void
    ) throws(DatabaseError) -> Database {
        file.putAside()
        onFailure(
            "\(file.path) is damaged (\(error)). It is \(file.damagedPath) from here on, and the history begins anew. Check the "
                + "disk; sqlite3 \(file.damagedPath) .recover may read what is left, and without use for that delete the file."
        )
        return try open(file, limits)
    }

    /// Uses the database. When it is damaged, a new one takes its place.
    private func perform<Value: Sendable>(
        _ body: (borrowing Database) throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> Value {
        if let file, isFileClosed {
            // The disk may have room again.
            database = try Self.open(file, limits)
            isFileClosed = false
        }
        do throws(DatabaseError) {
            return try body(database)
        } catch {
            guard error.isDamage, let file, mayPutAside() else { throw error }
            // Closes the damaged file.
            database = try Database(path: ":memory:")
            isFileClosed = true
            database = try Self.replace(file, limits, error, onFailure)
            isFileClosed = false
            return try body(database)
        }
    }

    private func mayPutAside() -> Bool {
        let now = now()
        if let last = putAsideAt, now >= last, now &- last < Self.putAsideInterval { return false }
        putAsideAt = now
        return true
    }

    /// Tells of a failure, unless it is the one that was told last.
    private func tell(_ failure: DatabaseError) {
        guard toldError != failure.message else { return }
        toldError = failure.message
        onFailure(file.map { "\($0.path): \(failure)" } ?? failure.description)
    }

    /// Deletes what is too old.
    func expire() {
        do throws(DatabaseError) { try deleteExpired() } catch { tell(error) }
    }

    private func deleteExpired() throws(DatabaseError) {
        let limit = now() &- age
        file?.removeDamaged(before: limit)
        try perform { database throws(DatabaseError) in
            try database.run("DELETE FROM connections WHERE ended < ?", [.integer(limit)])
        }
    }

    /// The sessions of which an earlier run of the node left connections behind; empty from the second call on.
    func takeLeftSessions() -> [LeftSession] {
        defer { leftSessions = [] }
        return leftSessions
    }

    private static func liveSessions(_ database: borrowing Database) throws(DatabaseError) -> [LeftSession] {
        var sessions: [LeftSession] = []
        try database.run(
            """
            SELECT channel, json_extract(summary, '$.session_id') AS session, MIN(created), MAX(ended) FROM connections
            WHERE \(isLive) AND session IS NOT NULL GROUP BY channel, session ORDER BY MIN(created) LIMIT \(leftMax)
            """
        ) { row in
            guard row.count == 4, case .text(let channel) = row[0], case .text(let id) = row[1],
                case .integer(let created) = row[2], case .integer(let seen) = row[3]
            else { return }
            sessions.append(LeftSession(channel: channel, id: id, createdAt: created, seenAt: seen))
        }
        return sessions
    }

    /// Ends entries of connections that last, at the times at which they were last saved.
    /// - Parameter live: the connections that go on.
    private static func endSaved(
        _ reason: String,
        except live: [String],
        _ database: borrowing Database
    ) throws(DatabaseError) {
        try database.run(
            """
            UPDATE connections SET outcome = ?1,
                summary = json_set(summary, '$.outcome', ?1, '$.reason', ?2, '$.ended_at', ended),
                detail = json_insert(
                    detail, '$.events[#]', json_object('at', ended, 'event', ?1, 'detail', ?2)
                )
            WHERE \(isLive) AND id NOT IN (SELECT value FROM json_each(?3))
            """,
            [
                .text(ConnectionOutcome.ended.rawValue), .text(reason),
                .text(JSONValue.array(live.map { .string($0) }).text),
            ]
        )
    }

    private static func prepare(_ database: borrowing Database, pagesMax: Int) throws(DatabaseError) {
        try database.run("PRAGMA busy_timeout = 1000")
        try database.run("PRAGMA journal_mode = WAL")
        // A power cut may cost the last entries, never the file.
        try database.run("PRAGMA synchronous = NORMAL")
        try database.run("PRAGMA max_page_count = \(pagesMax)")
        // What is deleted has addresses of clients, so it is overwritten.
        try database.run("PRAGMA secure_delete = ON")
        var found = 0
        try database.run("PRAGMA user_version") { row in
            if case .integer(let version)? = row.first { found = Int(clamping: version) }
        }
        if found != version { try database.run("DROP TABLE IF EXISTS connections") }
        try database.run(
            """
            CREATE TABLE IF NOT EXISTS connections (
                id TEXT PRIMARY KEY, channel TEXT NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL,
                ended INTEGER NOT NULL, outcome TEXT NOT NULL, summary TEXT NOT NULL, detail TEXT NOT NULL
            ) WITHOUT ROWID
            """
        )
        try database.run("CREATE INDEX IF NOT EXISTS by_time ON connections (created, id)")
        try database.run("CREATE INDEX IF NOT EXISTS by_channel ON connections (channel, created, id)")
        try database.run("CREATE INDEX IF NOT EXISTS by_life ON connections (id) WHERE \(isLive)")
        try database.run("CREATE INDEX IF NOT EXISTS by_end ON connections (ended)")
        try database.run("PRAGMA user_version = \(version)")
    }

    nonisolated var counts: Counts {
        Counts(stored: stored.load(ordering: .relaxed), lost: lost.load(ordering: .relaxed))
    }

    /// Writes an entry in the background.
    /// - Parameter entry: evaluated there, because its texts take time.
    nonisolated func insert(_ entry: @autoclosure @escaping @Sendable () -> Entry) {
        guard pending.wrappingAdd(1, ordering: .relaxed).newValue <= limits.pendingMax else {
            pending.wrappingSubtract(1, ordering: .relaxed)
            lost.wrappingAdd(1, ordering: .relaxed)
            return
        }
        executor.queue.async { [self] in
            assumeIsolated { $0.write(entry()) }
            pending.wrappingSubtract(1, ordering: .relaxed)
        }
    }

    private func write(_ entry: Entry) {
        do throws(DatabaseError) {
            try perform { database throws(DatabaseError) in
                try Self.makingRoom(in: database) { database throws(DatabaseError) in
                    try Self.put(entry, database)
                }
            }
            stored.wrappingAdd(1, ordering: .relaxed)
            toldError = nil
        } catch {
            lost.wrappingAdd(1, ordering: .relaxed)
            tell(error)
        }
    }

    /// How many entries were lost, when an entry that was saved of one of their connections may still stand as one that
    /// lasts; `nil` otherwise. The next start would take it for one of a crash.
    var unsettled: UInt64? {
        let lost = counts.lost
        return lost == settled ? nil : lost
    }

    /// Ends the saved entries of connections that last no more, and whose own entry was lost. Where that fails, ``unsettled``
    /// stays.
    /// - Parameters:
    ///   - lost: ``unsettled``, from before the look at the connections that last.
    ///   - live: the IDs of those.
    func settle(_ lost: UInt64, live: [String]) {
        // The failure was told when the entry was lost.
        let isDone: Void? = try? perform { database throws(DatabaseError) in
            try Self.makingRoom(in: database) { database throws(DatabaseError) in
                try Self.endSaved(ConnectionHistory.lostEntryReason, except: live, database)
            }
        }
        if isDone != nil { settled = lost }
    }

    /// Writes connections that last. One that has ended meanwhile stays ended.
    /// - Parameter entries: evaluated on the store's queue, because their texts take time.
    func save(_ entries: @Sendable () -> [Entry]) {
        // What fails here fails for ended connections too, which tell of it.
        try? perform { database throws(DatabaseError) in try Self.saveAll(entries(), database) }
    }

    /// Writes connections that last, as many as there is room for.
    private static func saveAll(_ entries: [Entry], _ database: borrowing Database) throws(DatabaseError) {
        try database.run("BEGIN")
        do throws(DatabaseError) {
            for entry in entries {
                do throws(DatabaseError) {
                    try put(entry, database, isLive: true)
                } catch {
                    guard !error.isDamage else { throw error }
                }
            }
            try database.run("COMMIT")
        } catch {
            _ = try? database.run("ROLLBACK")
            throw error
        }
    }

    /// - Parameter isLive: leaves an entry of the same connection that has ended as it is.
    private static func put(
        _ entry: Entry,
        _ database: borrowing Database,
        isLive: Bool = false
    ) throws(DatabaseError) {
        try database.run(
            """
            INSERT INTO connections VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
                channel = excluded.channel, user = excluded.user, created = excluded.created, ended = excluded.ended,
                outcome = excluded.outcome, summary = excluded.summary, detail = excluded.detail
            \(isLive ? "WHERE \(Self.isLive)" : "")
            """,
            [
                .text(entry.id), .text(entry.channel), .text(entry.user), .integer(entry.createdAt),
                .integer(entry.endedAt), .text(entry.outcome), .text(entry.summary), .text(entry.detail),
            ]
        )
    }

    /// Writes, once more after an eviction when the store is full.
    private static func makingRoom(
        in database: borrowing Database,
        _ write: (borrowing Database) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        do throws(DatabaseError) {
            try write(database)
        } catch  where error.isFull {
            try evict(database)
            try write(database)
        }
    }

    private static func evict(_ database: borrowing Database) throws(DatabaseError) {
        try database.run(
            """
            DELETE FROM connections WHERE id IN (
                SELECT id FROM connections ORDER BY ended LIMIT 1 + (SELECT count(*) FROM connections) / ?
            )
            """,
            [.integer(Int64(evictedShare))]
        )
    }

    /// The summaries of the latest entries, as JSON texts with their positions.
    func list(_ query: Query) -> [(position: Position, summary: String)] {
        let limit = now() &- age
        return read { database throws(DatabaseError) in
            var conditions = ["NOT (\(Self.isLive))", "ended >= ?"]
            var values: [Database.Value] = [.integer(limit)]
            if let channel = query.channel {
                conditions.append("channel = ?")
                values.append(.text(channel))
            }
            if let user = query.user {
                conditions.append("user = ?")
                values.append(.text(user))
            }
            if let outcome = query.outcome {
                conditions.append("outcome = ?")
                values.append(.text(outcome))
            }
            if let after = query.after {
                conditions.append("(created, id) < (?, ?)")
                values += [.integer(after.createdAt), .text(after.id)]
            }
            values.append(.integer(Int64(query.limit)))
            var rows: [(Position, String)] = []
            try database.run(
                """
                SELECT created, id, summary FROM connections WHERE \(conditions.joined(separator: " AND "))
                ORDER BY created DESC, id DESC LIMIT ?
                """,
                values
            ) { row in
                guard row.count == 3, case .integer(let created) = row[0], case .text(let id) = row[1],
                    case .text(let summary) = row[2]
                else { return }
                rows.append((Position(createdAt: created, id: id), summary))
            }
            return rows
        } ?? []
    }

    /// The JSON texts of one entry; `nil` for an unknown one.
    func entry(_ id: String) -> (summary: String, detail: String)? {
        let limit = now() &- age
        let rows = read { database throws(DatabaseError) in
            var found: [(String, String)] = []
            let sql = "SELECT summary, detail FROM connections WHERE id = ? AND NOT (\(Self.isLive)) AND ended >= ?"
            try database.run(sql, [.text(id), .integer(limit)]) { row in
                guard row.count == 2, case .text(let summary) = row[0], case .text(let detail) = row[1] else { return }
                found.append((summary, detail))
            }
            return found
        }
        return rows?.first
    }

    /// - Returns: `nil` when it fails, which is told.
    private func read<Value: Sendable>(
        _ body: (borrowing Database) throws(DatabaseError) -> Value
    ) -> Value? {
        do throws(DatabaseError) {
            return try perform(body)
        } catch {
            tell(error)
            return nil
        }
    }

    /// Returns when all entries that wait are written, because the queue runs in order.
    func flush() {}
}
