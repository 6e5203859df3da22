package import Base
package import Wire

/// Loss and jitter of one received stream, for receiver reports (RFC 3550 §6.4.1, appendices A.3 and A.8).
package struct ReceiveStatistics: Sendable {
    private let clockRate: Int
    private var first: ExtendedSequenceNumber?
    private var newest: ExtendedSequenceNumber?
    private var received: Int64 = 0
    private var expectedPrior: Int64 = 0
    private var receivedPrior: Int64 = 0
    /// Of the time between the last two calls of ``takeReport()``: the packets that were to arrive, and those that did
    /// not.
    package private(set) var lastInterval = (expected: 0, lost: 0)
    /// Sixteenths of a clock tick, as in appendix A.8.
    private var jitter: Int64 = 0
    private var lastTransit: Int64?

    package init(clockRate: Int) { self.clockRate = max(clockRate, 1) }

    /// Counts a packet of the stream itself. Packets restored from RTX are not counted: the loss happened.
    package mutating func receivedPacket(_ sequence: ExtendedSequenceNumber, _ timestamp: RTPTimestamp, at now: Instant)
    {
        received += 1
        if first == nil { first = sequence }
        guard newest.map({ sequence > $0 }) ?? true else { return }
        newest = sequence
        let arrivalTicks = (now.nanoseconds / 1_000) &* Int64(clockRate) / 1_000_000
        let transit = arrivalTicks &- Int64(timestamp.rawValue)
        if let lastTransit {
            let difference = Int64(Int32(truncatingIfNeeded: transit &- lastTransit)).magnitude
            // A jump of over ten seconds is a restarted source, not jitter.
            if difference < UInt64(clockRate) * 10 { jitter += Int64(difference) - (jitter + 8) >> 4 }
        }
        lastTransit = transit
    }

    /// Interarrival jitter in clock ticks.
    package var jitterTicks: UInt32 { UInt32(clamping: jitter >> 4) }
    /// Packets that never arrived so far; negative when duplicates outnumber them.
    package var cumulativeLost: Int64 { expected - received }
    package var highest: ExtendedSequenceNumber? { newest }
    /// Packets that arrived.
    package var receivedCount: Int64 { received }

    private var expected: Int64 {
        guard let first, let newest else { return 0 }
        return max(newest.rawValue - min(first, newest).rawValue + 1, 0)
    }

    /// The fraction lost since the last call, in 1/256, and the figures for a report block.
    package mutating func takeReport() -> (fractionLost: UInt8, cumulativeLost: Int32, highest: UInt32, jitter: UInt32)?
    {
        guard let newest else { return nil }
        let expectedNow = expected
        let expectedInterval = expectedNow - expectedPrior
        let lostInterval = expectedInterval - (received - receivedPrior)
        expectedPrior = expectedNow
        receivedPrior = received
        lastInterval = (Int(expectedInterval), Int(lostInterval))
        let fraction = expectedInterval > 0 && lostInterval > 0 ? lostInterval * 256 / expectedInterval : 0
        let cumulative = min(max(expectedNow - received, -0x80_0000), 0x7F_FFFF)
        // The first number is placed one cycle up by the unwrapper; on the wire cycles count from zero.
        return (
            UInt8(clamping: min(fraction, 255)), Int32(cumulative),
            UInt32(truncatingIfNeeded: newest.rawValue - 0x1_0000), jitterTicks
        )
    }
}
