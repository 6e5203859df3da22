/// A rate above which the path loses packets although it has no queue: that of a policer or of a very short buffer.
struct LossCap: Sendable {
    private static let holdMin: Int64 = 2_000_000
    private static let holdMax: Int64 = 16_000_000
    /// The cap rises by 2 % a second, and faster by that with each second without loss.
    private static let growth = 0.02
    /// A cap that is this close to the one before confirms it.
    private static let confirmation = 0.85...1.15

    /// Bits a second; `nil` for no cap.
    private(set) var rate: Double?
    private var failedRate = 0.0
    private var failedAt: Int64 = 0
    private var hold = LossCap.holdMin

    /// A test found that packets sent at `rate` are not lost, but more are.
    /// - Parameter holds: whether the cap stays for a while.
    mutating func set(_ rate: Double, holds: Bool, at now: Int64) {
        let isSame = failedRate > 0 && Self.confirmation.contains(rate / failedRate)
        hold = !holds ? 0 : isSame ? min(hold * 2, Self.holdMax) : Self.holdMin
        failedRate = rate
        failedAt = now
        self.rate = rate
    }

    mutating func clear() { rate = nil }

    /// Raises the cap after a while, and lifts it once it limits nothing.
    mutating func update(target: Double, demand: Double, elapsed: Double, at now: Int64) {
        guard let rate, now &- failedAt > hold else { return }
        let seconds = Double(now &- failedAt &- hold) / 1e6
        let raised = rate * (1 + Self.growth * (1 + seconds) * elapsed)
        self.rate = raised > 2 * target || raised > demand ? nil : raised
    }
}
