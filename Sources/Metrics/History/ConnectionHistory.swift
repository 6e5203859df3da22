package import Base
package import ChannelTypes
internal import Foundation
package import JSON
package import MediaTypes
package import Room
import Synchronization
import Wire

/// What became of each connection of this node: how its media was over time, what happened to it, and why it ended. It answers
/// why a call was bad.
///
/// Connections that last are in memory. Ended ones are kept for some hours in a ``HistoryStore``.
package final class ConnectionHistory: Sendable {
    /// Why the file of ended connections cannot be used.
    package struct OpenFailure: Error, Hashable, Sendable {
        /// For people.
        package let message: String
    }

    /// What to list.
    package struct Query: Sendable {
        /// `nil` for all channels.
        package var channel: ChannelName?
        /// `nil` for all users.
        package var user: String?
        /// `nil` for all.
        package var outcome: ConnectionOutcome?
        /// ``Page/next`` of the previous page; `nil` for the first one.
        package var after: String?
        package var limit: Int

        package init(limit: Int) { self.limit = limit }
    }

    /// A page of connections, the latest first.
    package struct Page: Sendable {
        package let connections: [JSONValue]
        /// `nil` on the last page.
        package let next: String?
    }

    package struct Counts: Hashable, Sendable {
        /// Connections that last.
        package var live: Int
        /// Ended connections that were stored since the start.
        package var stored: UInt64
        /// Ended connections that could not be stored.
        package var lost: UInt64

        package init(live: Int, stored: UInt64, lost: UInt64) {
            self.live = live
            self.stored = stored
            self.lost = lost
        }
    }

    private struct Live {
        var record: ConnectionRecord
        let startedAt: Instant
        var nextSampleAt: Instant
        var nextSaveAt: Instant
        /// At the last sample.
        var counts = StreamCounts()
        var playback: ClientPlayback?
        var quality = LinkQuality.unknown
    }

    /// At most this share of the connections is sampled at once.
    private static let shareMax = 4
    /// How often a connection that lasts is written to the file.
    private static let saveInterval = Interval.seconds(60)
    /// The same for one without samples.
    private static let firstSaveInterval = Interval.seconds(10)
    /// The most of them that are written at once.
    private static let savedMax = 200
    /// The reason of connections that lasted when the node crashed or was killed.
    static let lostNodeReason = "NODE-CRASHED"
    /// The reason of connections that ended while the file could not be written.
    static let lostEntryReason = "END-NOT-STORED"

    private let live = Mutex<[ParticipantID: Live]>([:])
    private let store: HistoryStore
    private let node: String
    /// How long ended connections are kept.
    package let hours: Int

    /// - Parameters:
    ///   - node: The node's name.
    ///   - directory: Where the file is kept; `nil` to keep ended connections in memory, which holds fewer.
    ///   - hours: How long ended connections are kept.
    ///   - now: The time, in milliseconds since 1970 UTC; `nil` for the machine's clock.
    ///   - onFailure: Called when ended connections begin to be lost, with the reason.
    /// - Throws: ``OpenFailure`` when there can be no file. A damaged one is replaced.
    package init(
        node: String,
        directory: String?,
        hours: Int = 24,
        now: (@Sendable () -> Int64)? = nil,
        onFailure: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(OpenFailure) {
        self.node = node
        self.hours = hours
        let age = Int64(hours) &* 3_600_000
        let now = now ?? { Int64(Date().timeIntervalSince1970 * 1_000) }
        guard let directory else {
            do {
                store = try HistoryStore(file: nil, age: age, now: now, onFailure: onFailure)
            } catch {
                throw OpenFailure(message: "There is no memory for ended connections: \(error).")
            }
            return
        }
        let file = HistoryFile(node: node, directory: directory)
        do throws(DatabaseError) {
            store = try HistoryStore(file: file, age: age, now: now, onFailure: onFailure)
        } catch {
            throw OpenFailure(
                message:
                    "\(file.path) cannot be used for ended connections: \(error). Check that the directory exists, "
                    + "and that the node may write to it."
            )
        }
    }

    /// Removes the file of a node that keeps no ended connections.
    /// - Throws: ``OpenFailure`` when there is one that cannot be removed.
    package static func remove(node: String, directory: String) throws(OpenFailure) {
        let file = HistoryFile(node: node, directory: directory)
        do {
            try file.remove()
        } catch {
            throw OpenFailure(
                message: "\(file.path) has ended connections and cannot be removed: \(error.localizedDescription)"
            )
        }
    }

    /// The sessions that ended with an earlier run of the node, which could not say so, and when each was last seen in
    /// nanoseconds since 1970 UTC; empty from the second call on, and without a file. A session's begin is that of its first
    /// connection that was saved.
    package func takeVanishedSessions() async -> [(session: ChannelSession, seenAt: Int64)] {
        await store.takeLeftSessions().compactMap { left in
            guard let id = ChannelSessionID(left.id), let channel = ChannelName(left.channel) else { return nil }
            let session = ChannelSession(id: id, channel: channel, createdAt: left.createdAt &* 1_000_000)
            return (session, left.seenAt &* 1_000_000)
        }
    }

    package var counts: Counts {
        let stored = store.counts
        return Counts(live: live.withLock(\.count), stored: stored.stored, lost: stored.lost)
    }

    // MARK: Recording

    /// Handles a report of the rooms without blocking.
    /// - Returns: How the media of a connection was, when the report is of its end and it had samples.
    @discardableResult
    package func take(_ report: RoomReport, at now: Instant) -> JSONValue? {
        switch report {
        case .connectionCreated(let report):
            var record = ConnectionRecord(report.connection)
            record.add(.init(at: report.unixNanoseconds, kind: .connected, detail: nil))
            live.withLock { live in
                live[report.connection.member.id] = Live(
                    record: record,
                    startedAt: now,
                    nextSampleAt: now + .seconds(QualityTimeline.firstInterval),
                    nextSaveAt: now
                )
            }
        case .setupAdvanced(let report): change(report) { _ in }
        case .qualityChanged(let report):
            change(report) { $0.quality = report.connection.quality }
        case .roleChanged(let report, _):
            change(report) { live in
                let role = report.connection.channelRole.rawValue
                live.record.add(.init(at: report.unixNanoseconds, kind: .roleChanged, detail: role))
            }
        case .connectionInterrupted(let report):
            change(report) { $0.record.add(.init(at: report.unixNanoseconds, kind: .interrupted)) }
        case .connectionResumed(let report):
            change(report) { $0.record.add(.init(at: report.unixNanoseconds, kind: .resumed)) }
        case .connectionDestroyed(let report, let reason):
            let ended = live.withLock { $0.removeValue(forKey: report.connection.member.id) }?.record
            end(ended ?? ConnectionRecord(report.connection), report, reason, .ended)
            return ended.flatMap { $0.timeline.samples.isEmpty ? nil : .object($0.media) }
        case .connectionFailed(let report, let reason):
            end(ConnectionRecord(report.connection), report, reason, .failed)
        case .sessionCreated, .sessionDestroyed, .connectionUpdated, .publishingBegan, .flowChanged,
            .firstFrameReceived:
            break
        }
        return nil
    }

    private func change(_ report: ConnectionReport, _ body: (inout Live) -> Void) {
        live.withLock { live in
            guard var entry = live[report.connection.member.id] else { return }
            entry.record.connection = report.connection
            body(&entry)
            live[report.connection.member.id] = entry
        }
    }

    private func end(
        _ ended: ConnectionRecord,
        _ report: ConnectionReport,
        _ reason: EndReason,
        _ kind: ConnectionRecord.Event.Kind
    ) {
        var record = ended
        record.connection = report.connection
        record.duration = report.duration
        record.endedAt = report.unixNanoseconds
        record.reason = reason.name
        record.add(.init(at: report.unixNanoseconds, kind: kind, detail: reason.name))
        let (finished, node) = (record, node)
        store.insert(HistoryStore.Entry(finished, endedAt: report.unixNanoseconds, node: node))
    }

    /// The connections whose statistics are to be sampled now: a part of those that are due when many are.
    package func due(at now: Instant) -> [ParticipantID] {
        live.withLock { live in
            let due = live.filter { $0.value.nextSampleAt <= now }
            let most = live.count / Self.shareMax + 16
            guard due.count > most else { return Array(due.keys) }
            return due.sorted { $0.value.nextSampleAt < $1.value.nextSampleAt }.prefix(most).map(\.key)
        }
    }

    /// Adds a sample to a connection's timeline. An unknown connection is ignored.
    /// - Parameters:
    ///   - statistics: of its media now.
    ///   - playback: what the client reported last; `nil` when it reports nothing.
    package func sampled(
        _ id: ParticipantID,
        _ statistics: PeerStatistics,
        playback: ClientPlayback?,
        unixNanoseconds: Int64,
        at now: Instant
    ) {
        live.withLock { live in
            guard var entry = live[id] else { return }
            let counts = StreamCounts(statistics)
            let growth = counts.growth(since: entry.counts)
            entry.counts = counts
            entry.record.totals.add(growth)
            let elapsed = now - entry.startedAt
            var sample = QualitySample(
                statistics,
                seconds: UInt32(clamping: elapsed.nanoseconds / 1_000_000_000),
                growth: growth,
                quality: entry.quality
            )
            if let playback {
                let before = entry.playback ?? ClientPlayback()
                sample.freezes = UInt16(clamping: playback.freezes &- min(before.freezes, playback.freezes))
                sample.frozen = UInt32(clamping: playback.frozen &- min(before.frozen, playback.frozen))
                entry.playback = playback
            }
            entry.record.timeline.append(sample)
            entry.record.duration = .nanoseconds(elapsed.nanoseconds)
            if let path = statistics.path, path != entry.record.path {
                if entry.record.path != nil {
                    entry.record.add(.init(at: unixNanoseconds, kind: .pathChanged, detail: path.description))
                }
                entry.record.path = path
            }
            entry.nextSampleAt = now + .seconds(entry.record.timeline.interval)
            live[id] = entry
        }
    }

    /// Writes connections that last to the file, a part of them where many are due, so that a crash of the node leaves something
    /// of each. Call it once a second.
    package func save(unixNanoseconds: Int64, at now: Instant) async {
        guard store.isFile else { return }
        await settle()
        let due = live.withLock { live -> [ConnectionRecord] in
            let due = live.filter { $0.value.nextSaveAt <= now }
            // Those that wait longest, when many are due.
            let first = due.sorted { $0.value.nextSaveAt < $1.value.nextSaveAt }.prefix(Self.savedMax)
            return first.map(\.key).compactMap { id in
                let record = live[id]?.record
                // The first samples follow soon.
                let isNew = record?.timeline.samples.isEmpty == true
                live[id]?.nextSaveAt = now + (isNew ? Self.firstSaveInterval : Self.saveInterval)
                return record
            }
        }
        guard !due.isEmpty else { return }
        let node = node
        await store.save { due.map { HistoryStore.Entry($0, endedAt: unixNanoseconds, node: node) } }
    }

    /// Deletes ended connections that are too old. Call it once a minute.
    package func expire() async { await store.expire() }

    /// Ends what the file has of connections whose end could not be stored.
    private func settle() async {
        // A connection whose entry is lost later may still be among those that last.
        guard let lost = await store.unsettled else { return }
        await store.settle(lost, live: live.withLock { $0.keys.map(\.value) })
    }

    /// Returns when all ended connections are stored. Call it at the end.
    package func flush() async {
        await store.flush()
        if store.isFile { await settle() }
    }

    // MARK: Reading

    /// Connections, the latest first.
    package func page(_ query: Query) async -> Page {
        let after = query.after.flatMap(HistoryStore.Position.init(text:))
        var found = live(query).filter { entry in after.map { entry.position < $0 } ?? true }
        if query.outcome != .live {
            var stored = HistoryStore.Query(channel: query.channel?.value, user: query.user, after: after)
            stored.outcome = query.outcome?.rawValue
            stored.limit = query.limit + 1
            found += await store.list(stored).compactMap { position, summary in
                (try? JSONValue(parsing: summary)).map { (position: position, summary: $0) }
            }
        }
        found.sort { $0.position > $1.position }
        let page = found.prefix(query.limit)
        return Page(
            connections: page.map(\.summary),
            next: found.count > query.limit ? page.last?.position.text : nil
        )
    }

    private func live(_ query: Query) -> [(position: HistoryStore.Position, summary: JSONValue)] {
        guard query.outcome == nil || query.outcome == .live else { return [] }
        let records = live.withLock { live in
            live.values.map(\.record).filter { record in
                (query.channel.map { record.connection.channel == $0 } ?? true)
                    && (query.user.map { record.connection.member.clientID == $0 } ?? true)
            }
        }
        return records.map { record in
            let position = HistoryStore.Position(
                createdAt: record.connection.createdAt / 1_000_000,
                id: record.connection.member.id.value
            )
            return (position, .object(record.summary(node: node)))
        }
    }

    /// One connection with its events and samples; `nil` for an unknown one.
    package func connection(_ id: String) async -> JSONValue? {
        if let participant = ParticipantID(id), let record = live.withLock({ $0[participant]?.record }) {
            return .object(record.summary(node: node).merging(record.detail) { $1 })
        }
        guard let entry = await store.entry(id), case .object(let summary)? = try? JSONValue(parsing: entry.summary),
            case .object(let detail)? = try? JSONValue(parsing: entry.detail)
        else { return nil }
        return .object(summary.merging(detail) { $1 })
    }
}

extension HistoryStore.Entry {
    /// - Parameter endedAt: in nanoseconds since 1970 UTC.
    fileprivate init(_ record: ConnectionRecord, endedAt: Int64, node: String) {
        id = record.connection.member.id.value
        channel = record.connection.channel.value
        user = record.connection.member.clientID
        createdAt = record.connection.createdAt / 1_000_000
        self.endedAt = endedAt / 1_000_000
        outcome = record.outcome.rawValue
        summary = JSONValue.object(record.summary(node: node)).text
        detail = JSONValue.object(record.detail).text
    }
}

extension HistoryStore.Position: Comparable {
    static func < (one: Self, other: Self) -> Bool { (one.createdAt, one.id) < (other.createdAt, other.id) }

    /// The position as it stands in URLs.
    var text: String { "\(createdAt)-\(id)" }

    /// `nil` for anything else than a ``text``.
    init?(text: String) {
        let parts = text.split(separator: "-", maxSplits: 1)
        guard parts.count == 2, let createdAt = Int64(parts[0]) else { return nil }
        self.init(createdAt: createdAt, id: String(parts[1]))
    }
}
