/// Whose messages were queued on a channel since nothing waited there, roughly: a receiver that cannot take all of them loses
/// those of the sender that sends most.
///
/// Senders are told apart in eight groups by their numbers, so that it takes the same time and memory for any number of them.
struct SenderShares: Sendable {
    /// Beyond this, in bytes, what was queued earlier counts half: as much as may wait for one peer.
    private static let totalMax: UInt32 = 1 << 20

    private var bytes: [8 of UInt32] = .init(repeating: 0)
    private var total: UInt32 = 0

    private func group(of source: UInt64) -> Int { Int(truncatingIfNeeded: source & 7) }

    mutating func add(_ count: Int, of source: UInt64) {
        let count = UInt32(clamping: min(count, Int(Self.totalMax)))
        bytes[group(of: source)] += count
        total += count
        guard total > Self.totalMax else { return }
        total = 0
        for index in bytes.indices {
            bytes[index] /= 2
            total += bytes[index]
        }
    }

    mutating func removeAll() {
        guard total > 0 else { return }
        self = SenderShares()
    }

    /// Whether others sent, too, and the sender more than an equal part.
    func exceedsPart(_ source: UInt64) -> Bool {
        let own = bytes[group(of: source)]
        guard own < total else { return false }
        var senders: UInt64 = 0
        for index in bytes.indices where bytes[index] > 0 { senders += 1 }
        return UInt64(own) * senders > UInt64(total)
    }
}
