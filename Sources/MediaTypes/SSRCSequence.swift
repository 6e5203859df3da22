package import Wire

/// Chooses SSRCs that never come twice in a session, without remembering them: under one that was sent before, SRTP would
/// repeat key stream.
package struct SSRCSequence: Sendable {
    /// Odd, so that every number comes once before one comes again.
    package static let step: UInt32 = 0x9E37_79B1
    private var state: UInt32

    package init(using generator: inout some RandomNumberGenerator) {
        state = UInt32.random(in: 0...UInt32.max, using: &generator)
    }

    /// - Parameter taken: What the client sends under.
    package mutating func next(except taken: Set<SSRC>) -> SSRC {
        repeat { state &+= Self.step } while state == 0 || taken.contains(SSRC(rawValue: state))
        return SSRC(rawValue: state)
    }
}
