import Base
import MediaFormat
import Wire

/// When frames leave that came over a connection which stalls at times.
///
/// A frame is due when it would have come without a stall: at its decode time, behind the least delay of the last seconds. What
/// piled up leaves at twice the speed, and what is more than two seconds late gives way to the newest key frame.
struct SendSchedule {
    struct Entry {
        var track: Int
        var frame: MediaFrame
        /// The frame's time, which goes on over jumps of the publisher's clock.
        var time: Interval
    }

    /// What is later than this is skipped, once there is a key frame to go on with.
    static let latenessMax = Interval.seconds(2)
    /// How long a delay counts.
    private static let windowLength = Interval.seconds(5)
    /// Frames that wait, and their bytes, from which the publisher's connection is not read.
    static let waitingBytesHigh = 4 << 20
    static let waitingFramesHigh = 1_000

    private var queue: [Entry] = []
    private var head = 0
    private(set) var waitingBytes = 0
    private(set) var skippedFrames = 0
    /// The least delays of this window and the last one, in nanoseconds.
    private var delays: (now: Int64, before: Int64)?
    private var windowEnd = Instant(nanoseconds: 0)
    private var last: (sentAt: Instant, time: Interval)?

    /// Frames that wait.
    var count: Int { queue.count - head }

    /// Whether so much waits that no more is to be read.
    private(set) var isBlocked = false

    /// Times begin anew at another delay.
    mutating func discontinue() { (delays, last) = (nil, nil) }

    mutating func append(_ entry: Entry, at now: Instant) {
        note(delay: now.nanoseconds &- entry.time.nanoseconds, at: now)
        queue.append(entry)
        waitingBytes += entry.frame.bytes.count
        measure()
    }

    /// The next frame, when it is due.
    mutating func next(at now: Instant) -> Entry? {
        guard let due else { return nil }
        if now - dueTime(of: queue[head]) > Self.latenessMax { skip(at: now) }
        guard now >= due else { return nil }
        let entry = queue[head]
        remove(1)
        last = (max(now, self.due(of: entry)), entry.time)
        return entry
    }

    /// When the next frame is due; `nil` without one.
    var due: Instant? { head < queue.count ? due(of: queue[head]) : nil }

    /// When an entry leaves: when it is due, and not faster than twice the speed behind the last one.
    private func due(of entry: Entry) -> Instant {
        let due = dueTime(of: entry)
        guard let last else { return due }
        let half = Interval(nanoseconds: max((entry.time - last.time).nanoseconds, 0) / 2)
        return max(due, last.sentAt + half)
    }

    private func dueTime(of entry: Entry) -> Instant {
        let delay = delays.map { min($0.now, $0.before) } ?? 0
        return Instant(nanoseconds: entry.time.nanoseconds &+ delay)
    }

    private mutating func note(delay: Int64, at now: Instant) {
        guard let known = delays else {
            delays = (delay, delay)
            windowEnd = now + Self.windowLength
            return
        }
        if now >= windowEnd {
            delays = (delay, known.now)
            windowEnd = now + Self.windowLength
        } else {
            delays = (min(known.now, delay), known.before)
        }
    }

    /// Leaves out what is in front of the newest key frame; of sound alone what is too late.
    private mutating func skip(at now: Instant) {
        let waiting = queue[head...]
        var end = waiting.lastIndex { $0.frame.kind == .video && $0.frame.isKey } ?? head
        if !waiting.contains(where: { $0.frame.kind == .video }) {
            end = waiting.firstIndex { now - dueTime(of: $0) <= Self.latenessMax } ?? queue.endIndex - 1
        }
        guard end > head else { return }
        skippedFrames &+= end - head
        remove(end - head)
        last = nil
    }

    private mutating func remove(_ frames: Int) {
        for index in head..<(head + frames) {
            waitingBytes -= queue[index].frame.bytes.count
            queue[index].frame.bytes = []
        }
        head += frames
        if head > 64, head * 2 > queue.count {
            queue.removeFirst(head)
            head = 0
        }
        measure()
    }

    private mutating func measure() {
        if waitingBytes > Self.waitingBytesHigh || count > Self.waitingFramesHigh {
            isBlocked = true
        } else if waitingBytes < Self.waitingBytesHigh / 2, count < Self.waitingFramesHigh / 2 {
            isBlocked = false
        }
    }
}
