/// The share of packets lost that receiver reports tell (RFC 3550 §6.4.1), over twenty packets at least.
struct ReportedLoss: Sendable {
    private static let packetsMin = 20

    /// 0…1.
    private(set) var ratio = 0.0
    private var expected = 0
    private var lost = 0

    /// Takes what a report says of the packets since the one before.
    /// - Returns: whether `ratio` is of now.
    mutating func add(lost: Int, expected: Int) -> Bool {
        // A peer may report any numbers, and duplicates make the loss negative.
        let expected = min(max(expected, 0), 1 << 24)
        self.expected += expected
        self.lost += min(max(lost, 0), expected)
        guard self.expected >= Self.packetsMin else { return false }
        ratio = Double(self.lost) / Double(self.expected)
        (self.expected, self.lost) = (0, 0)
        return true
    }
}
