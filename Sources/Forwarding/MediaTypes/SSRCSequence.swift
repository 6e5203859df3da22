import Base
package import Wire

/// Generates SSRCs that are unique for a peer, without remembering them. With a reused SSRC, SRTP would repeat its
/// keystream.
package struct SSRCSequence: Sendable {
    /// Odd, so that the sequence has a full period.
    package static let step: UInt32 = 0x9E37_79B1
    private var state: UInt32

    package init(using generator: inout some RandomNumberGenerator) {
        state = UInt32.random(in: 0...UInt32.max, using: &generator)
    }

    /// - Parameter taken: the client's own SSRCs.
    package mutating func next(except taken: Set<SSRC>) -> SSRC {
        repeat { state &+= Self.step } while state == 0 || taken.contains(SSRC(rawValue: state))
        return SSRC(rawValue: state)
    }
}
