package import Base

/// The bitrate of something that counts its bytes.
package struct BitrateMeter: Sendable {
    /// Bit/s between the last two measurements; 0 before there were two.
    package private(set) var bitrate = 0
    private var last: (bytes: UInt64, at: Instant)?

    package init() {}

    /// - Parameter bytes: all so far.
    package mutating func measure(_ bytes: UInt64, at now: Instant) {
        if let last {
            guard now > last.at else { return }
            bitrate = Int(Double(bytes &- last.bytes) * 8 / (now - last.at).seconds)
        }
        last = (bytes, now)
    }
}
