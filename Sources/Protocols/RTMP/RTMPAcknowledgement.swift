/// When to acknowledge received bytes (RTMP 1.0 §5.4.3). Some encoders stall without, also those that never set a window.
struct RTMPAcknowledgement: Hashable, Sendable {
    /// The window that we announce and use ourselves, in bytes.
    static let windowBytesMax: UInt32 = 2_500_000
    /// The least that an acknowledgement of 16 bytes is sent for, whatever window the client sets.
    static let windowBytesMin: UInt32 = 1_024

    /// All bytes of the client, those of the handshake included.
    var received: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var window = windowBytesMax

    /// The client expects an acknowledgement at the latest after `bytes`.
    mutating func setWindow(_ bytes: UInt32) { window = min(max(bytes, Self.windowBytesMin), Self.windowBytesMax) }

    /// The number to acknowledge now, modulo 2^32; `nil` when none is due.
    mutating func take() -> UInt32? {
        guard received - acknowledged >= UInt64(window) else { return nil }
        acknowledged = received
        return UInt32(truncatingIfNeeded: received)
    }
}
