import Foundation
import Synchronization
import Testing

@testable import History

@Suite struct HistoryStoreTests {
    private static let hour: Int64 = 3_600_000

    private static func entry(
        _ number: Int,
        channel: String = "lobby",
        user: String = "alice",
        outcome: String = "ended",
        endedAt: Int64? = nil,
        detail: String = "{}"
    ) -> HistoryStore.Entry {
        let created = Int64(number) * 1_000
        return HistoryStore.Entry(
            id: "id\(number)",
            channel: channel,
            user: user,
            createdAt: created,
            endedAt: endedAt ?? created + 500,
            outcome: outcome,
            summary: #"{"number":\#(number)}"#,
            detail: detail
        )
    }

    private static func store(path: String? = nil, now: Int64 = 0) throws -> HistoryStore {
        try HistoryStore(
            file: path.map(HistoryFile.init(path:)),
            age: hour,
            now: { now },
            onFailure: { Issue.record("\($0)") }
        )
    }

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.appending(path: "history.sqlite").path)
    }

    @Test func `the latest come first, page by page, with filters`() async throws {
        let store = try Self.store()
        for number in 1...7 {
            store.insert(
                Self.entry(
                    number,
                    channel: number % 2 == 0 ? "even" : "odd",
                    user: number < 4 ? "alice" : "b'o\"b; --",
                    outcome: number == 5 ? "failed" : "ended"
                )
            )
        }
        func ids(_ query: HistoryStore.Query) async -> [String] { await store.list(query).map(\.position.id) }
        #expect(await ids(.init(limit: 3)) == ["id7", "id6", "id5"])
        let after = HistoryStore.Position(createdAt: 5_000, id: "id5")
        #expect(await ids(.init(after: after, limit: 3)) == ["id4", "id3", "id2"])
        #expect(await ids(.init(channel: "even")) == ["id6", "id4", "id2"])
        #expect(await ids(.init(user: "b'o\"b; --")) == ["id7", "id6", "id5", "id4"])
        #expect(await ids(.init(outcome: "failed")) == ["id5"])
        #expect(await ids(.init(channel: "odd", user: "alice")) == ["id3", "id1"])
        #expect(await store.entry("id3")?.summary == #"{"number":3}"#)
        #expect(await store.entry("id8") == nil)
        #expect(store.counts == HistoryStore.Counts(stored: 7, lost: 0))
    }

    @Test func `what is too old is not shown, and deleted without another end`() async throws {
        try await Self.withFolder { path in
            let time = Mutex<Int64>(0)
            let store = try HistoryStore(
                file: HistoryFile(path: path),
                age: Self.hour,
                now: { time.withLock { $0 } },
                onFailure: { Issue.record("\($0)") }
            )
            for number in 1...3 { store.insert(Self.entry(number, endedAt: Int64(number) * 1_000)) }
            await store.flush()
            let reader = try Database(path: path)
            func stored() throws -> [Database.Value] {
                var ids: [Database.Value] = []
                try reader.run("SELECT id FROM connections ORDER BY id") { ids += $0 }
                return ids
            }
            time.withLock { $0 = 1_001 + Self.hour }
            #expect(await store.list(.init()).map(\.position.id) == ["id3", "id2"])
            #expect(await store.entry("id1") == nil)
            #expect(try stored().count == 3)
            await store.expire()
            await store.flush()
            #expect(try stored() == [.text("id2"), .text("id3")])
            _ = try Self.store(path: path, now: 2_001 + Self.hour)
            #expect(try stored() == [.text("id3")])
        }
    }

    @Test func `a file that is damaged in the middle is put aside at the first failure`() async throws {
        try await Self.withFolder { path in
            do {
                let store = try Self.store(path: path)
                let detail = #"{"x":"\#(String(repeating: "x", count: 1_000))"}"#
                for number in 1...200 { store.insert(Self.entry(number, detail: detail)) }
                await store.flush()
            }
            // Leaves the schema on the first page whole.
            let file = try FileHandle(forUpdating: URL(filePath: path))
            let length = try file.seekToEnd()
            try file.seek(toOffset: 4_096)
            try file.write(contentsOf: Data(repeating: 0x41, count: Int(length) - 4_096))
            try file.close()
            let failures = Mutex<[String]>([])
            let store = try HistoryStore(
                file: HistoryFile(path: path),
                age: Self.hour,
                now: { 0 },
                onFailure: { text in failures.withLock { $0.append(text) } }
            )
            for number in 201...203 { store.insert(Self.entry(number)) }
            #expect(await store.list(.init()).map(\.position.id) == ["id203", "id202", "id201"])
            #expect(store.counts == HistoryStore.Counts(stored: 3, lost: 0))
            let told = failures.withLock { $0 }
            #expect(told.count == 1)
            let message = try #require(told.first)
            #expect(message.contains("\(path).damaged") && message.contains("SQLite error 11"))
            #expect(FileManager.default.fileExists(atPath: path + ".damaged"))
            _ = try Self.store(path: path, now: .max)
            #expect(!FileManager.default.fileExists(atPath: path + ".damaged"), "what is damaged is too old as well")
        }
    }

    @Test func `a full store makes room for the latest`() async throws {
        let limits = HistoryStore.Limits(pagesMax: 256)
        let store = try HistoryStore(
            file: nil,
            age: Self.hour,
            limits: limits,
            now: { 0 },
            onFailure: { Issue.record("\($0)") }
        )
        let detail = #"{"x":"\#(String(repeating: "x", count: 30_000))"}"#
        for number in 1...100 { store.insert(Self.entry(number, detail: detail)) }
        let kept = await store.list(.init(limit: 1_000)).map(\.position.id)
        #expect(kept.first == "id100" && (10...34).contains(kept.count))
        #expect(store.counts.lost == 0)
    }

    @Test func `a file keeps its entries, and one of another version begins anew`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "history.sqlite").path
        do {
            let store = try Self.store(path: path)
            store.insert(Self.entry(1))
            await store.flush()
        }
        do {
            let store = try Self.store(path: path)
            #expect(await store.list(.init()).map(\.position.id) == ["id1"])
            let database = try Database(path: path)
            try database.run("PRAGMA user_version = 99")
        }
        let store = try Self.store(path: path)
        #expect(await store.list(.init()).isEmpty)
        store.insert(Self.entry(2))
        #expect(await store.list(.init()).map(\.position.id) == ["id2"])
    }

    @Test func `what lasted when a node crashed has ended when the file is opened again`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "history.sqlite").path
        do {
            let store = try Self.store(path: path)
            let detail = #"{"events":[{"at":1,"event":"connected"}]}"#
            await store.save { (1...2).map { Self.entry($0, outcome: "live", detail: detail) } }
            store.insert(Self.entry(2))
            await store.flush()
            await store.save { (2...3).map { Self.entry($0, outcome: "live", detail: detail) } }
            #expect(await store.list(.init()).map(\.position.id) == ["id2"], "what lasts is in memory")
            #expect(await store.entry("id1") == nil)
            #expect(store.counts == HistoryStore.Counts(stored: 1, lost: 0))
        }
        let store = try Self.store(path: path)
        #expect(await store.list(.init(outcome: "ended")).map(\.position.id) == ["id3", "id2", "id1"])
        let lost = try #require(await store.entry("id1"))
        #expect(lost.summary == #"{"number":1,"outcome":"ended","reason":"NODE-CRASHED","ended_at":1500}"#)
        #expect(lost.detail.hasSuffix(#"{"at":1500,"event":"ended","detail":"NODE-CRASHED"}]}"#))
        #expect(await store.entry("id2")?.summary == #"{"number":2}"#)
    }

    @Test func `a database that fails loses entries and says so once`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "history.sqlite").path
        let failures = Mutex<[String]>([])
        let store = try HistoryStore(
            file: HistoryFile(path: path),
            age: Self.hour,
            now: { 0 },
            onFailure: { text in failures.withLock { $0.append(text) } }
        )
        let other = try Database(path: path)
        try other.run("DROP TABLE connections")
        for number in 1...3 { store.insert(Self.entry(number)) }
        await store.flush()
        #expect(store.counts.lost == 3 && failures.withLock(\.count) == 1)
        #expect(await store.list(.init()).isEmpty)
    }

    @Test func `what waits is bounded`() async throws {
        let limits = HistoryStore.Limits(pendingMax: 0, pagesMax: 256)
        let store = try HistoryStore(
            file: nil,
            age: Self.hour,
            limits: limits,
            now: { 0 },
            onFailure: { Issue.record("\($0)") }
        )
        store.insert(Self.entry(1))
        await store.flush()
        #expect(store.counts == HistoryStore.Counts(stored: 0, lost: 1))
    }

    @Test(arguments: ["", "1", "-", "x-1", "99999999999999999999-a"])
    func `what is no position is none`(text: String) {
        #expect(HistoryStore.Position(text: text) == nil)
    }

    @Test func `a position is its own text`() {
        let position = HistoryStore.Position(createdAt: 12, id: "a-b")
        #expect(HistoryStore.Position(text: position.text) == position)
    }
}
