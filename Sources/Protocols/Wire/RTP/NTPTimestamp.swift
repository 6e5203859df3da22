public import Base

/// A 64-bit NTP timestamp: seconds since 1900 in the high 32 bits, fractions of 2⁻³² s in the low ones (RFC 3550 §4).
public struct NTPTimestamp: RawRepresentable, Hashable, Sendable {
    /// Seconds in the high 32 bits, the fraction in the low ones.
    public let rawValue: UInt64
    /// Every 64-bit value is valid.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Seconds from 1900 to 1970.
    private static let unixEpochSeconds: UInt64 = 2_208_988_800

    /// From nanoseconds since 1970; the 32-bit seconds wrap in 2036.
    public init(unixNanoseconds: Int64) {
        let seconds = unixNanoseconds.floorDivided(by: 1_000_000_000)
        let rest = UInt64(unixNanoseconds &- seconds &* 1_000_000_000)
        rawValue = (UInt64(bitPattern: seconds) &+ Self.unixEpochSeconds) << 32 | (rest << 32) / 1_000_000_000
    }

    /// The middle 32 bits, as in LSR and LRR, in 2⁻¹⁶ s.
    public var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

    /// The send time of a packet in 2⁻¹⁸ s modulo 64 s, 24 bits
    /// (http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time).
    public var absoluteSendTime: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 14) & 0xFF_FFFF }
}

extension Interval {
    /// From units of 2⁻¹⁶ s, as in DLSR (RFC 3550 §6.4.1).
    public init(compactNTP units: UInt32) {
        self.init(nanoseconds: (Int64(units) &* 1_000_000_000) >> 16)
    }

    /// In units of 2⁻¹⁶ s, clamped to 32 bits (18 hours); 0 for a negative interval.
    public var compactNTP: UInt32 {
        guard nanoseconds > 0 else { return 0 }
        let seconds = nanoseconds / 1_000_000_000
        guard seconds < 0x1_0000 else { return .max }
        return UInt32(seconds) << 16 | UInt32(((nanoseconds % 1_000_000_000) << 16) / 1_000_000_000)
    }
}

extension Int64 {
    /// The quotient rounded toward minus infinity, for a positive divisor.
    package func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
