/// The rate at which packets left within the last half second, and its recent peak, in bits a second: no report may claim that
/// more arrived.
struct SentRate: ~Copyable, Sendable {
    struct Bin: BitwiseCopyable {
        var slot: Int64
        var bytes = 0
    }

    private static let binLength: Int64 = 50_000
    private static let bins: Int64 = 10
    private static let spanMin: Int64 = 100_000
    /// The peak fades by a fifteenth of itself a second.
    private static let peakSeconds = 15.0

    private var recent = Ring(capacity: 16, filler: Bin(slot: 0))
    private var bytes = 0
    /// When the first packet left, or the first one after a pause as long as the span.
    private(set) var startedAt: Int64?
    private var updatedAt: Int64?
    /// The highest rate of the last seconds, fading.
    private(set) var peak = 0.0

    func prefetch() { recent.prefetch() }

    /// Takes packets that left at one instant, as those of a turn do.
    /// - Parameter last: bytes of the last one of them.
    mutating func add(_ count: Int, last: Int, at now: Int64) {
        bytes += count
        if now == updatedAt { recent[recent.count - 1].bytes += count } else { advance(to: now, count) }
        // After a pause as long as the span it is the start again.
        let startedAt = recent.count > 1 || bytes > count ? startedAt ?? now : now
        self.startedAt = startedAt
        let span = min(max(now &- startedAt, Self.spanMin), Self.binLength * Self.bins)
        // At the start the span ends with the last packet.
        let isStart = now &- startedAt < Self.binLength * Self.bins
        let inSpan = isStart ? bytes - last : bytes
        let rate = Double(inSpan) * 8e6 / Double(span)
        peak = max(peak, rate, Double(bytes) * 8e6 / Double(Self.binLength * Self.bins))
    }

    private mutating func advance(to now: Int64, _ count: Int) {
        let slot = now / Self.binLength
        if let last = recent.last, last.slot == slot {
            recent[recent.count - 1].bytes += count
        } else {
            if recent.count == 16 { removeFirst() }
            recent.append(Bin(slot: slot, bytes: count))
        }
        fade(at: now)
        while !recent.isEmpty, slot &- recent[0].slot >= Self.bins { removeFirst() }
    }

    private mutating func fade(at now: Int64) {
        if let updatedAt {
            peak *= max(1 - Double(max(now &- updatedAt, 0)) / (Self.peakSeconds * 1e6), 0)
        }
        updatedAt = now
    }

    private mutating func removeFirst() {
        bytes -= recent[0].bytes
        recent.removeFirst()
    }
}
