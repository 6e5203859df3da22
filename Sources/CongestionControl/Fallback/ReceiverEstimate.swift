/// What the peer says that it can receive (REMB, draft-alvestrand-rmcat-remb-03).
struct ReceiverEstimate: Sendable {
    /// libwebrtc sends one every second, and at once when the estimate falls by 3 %.
    private static let ageMax: Int64 = 5_000_000

    /// Bits a second; `nil` while there is none.
    private(set) var rate: Double?
    /// When the first packet left after the newest estimate: a peer that is sent nothing has nothing to say.
    private var sentAt: Int64?

    mutating func packetSent(at now: Int64) { if sentAt == nil { sentAt = now } }

    mutating func update(_ rate: Double) {
        self.rate = rate > 0 ? rate : 0
        sentAt = nil
    }

    /// Whether the newest estimate is too old to hold still.
    func isStale(at now: Int64) -> Bool {
        guard rate != nil, let sentAt else { return false }
        return now &- sentAt > Self.ageMax
    }

    mutating func clear() { rate = nil }
}
