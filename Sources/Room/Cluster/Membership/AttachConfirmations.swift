import Base
import ChannelTypes

/// The rooms that the store has answered for, each of which is attached a second time.
///
/// A store that went on without its last writes is found out by its heartbeats, unless a room was attached after the last of
/// them. The second attaching comes after heartbeats that followed the first, so one of the two is there.
struct AttachConfirmations: Hashable, Sendable {
    /// From the first attaching to the second: longer than a heartbeat may take with its pause.
    static let interval = Interval.seconds(5)

    private struct Entry: Hashable, Sendable {
        let at: Instant
        let room: ChannelName
    }

    /// When each room that was attached is due, until it ends.
    private var dueAt: [ChannelName: Instant] = [:]
    /// Those that are to come, by their times. Channels that ended are among them.
    private var entries: [Entry] = []
    private var queue = AttachQueue()

    var nextDeadline: Instant? { earliest(entries.first?.at, queue.nextDeadline) }

    mutating func attached(_ room: ChannelName, at now: Instant) {
        guard dueAt[room] == nil else { return }
        dueAt[room] = now + Self.interval
        entries.append(Entry(at: now + Self.interval, room: room))
    }

    mutating func remove(_ room: ChannelName) {
        dueAt[room] = nil
        queue.remove(room)
    }

    /// The rooms to attach now, spread over some seconds.
    mutating func next(
        at now: Instant,
        max count: Int,
        using generator: inout some RandomNumberGenerator
    ) -> [ChannelName] {
        let due = entries.prefix { $0.at <= now }
        if !due.isEmpty {
            queue.add(due.filter { dueAt[$0.room] == $0.at }.map(\.room), using: &generator, at: now)
            entries.removeFirst(due.count)
        }
        return queue.next(at: now, max: count)
    }
}
