import Base
package import MediaTypes
package import Wire

/// The clock and the random bits of rooms; a simulation passes its own.
///
/// Everything that rooms do is a function of their calls, the clock and these bits.
package struct RoomEnvironment: Sendable {
    package var clock: RoomClock
    private let random: @Sendable () -> UInt64

    /// - Parameter random: returns 64 random bits on any thread. Resource identifiers and ICE credentials are made of
    ///   them, so outside of tests they must be cryptographically secure.
    package init(clock: RoomClock = .system, random: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        self.random = random
    }

    /// The machine's clocks and random generator.
    package static let system = RoomEnvironment {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    private struct Generator: RandomNumberGenerator {
        let random: @Sendable () -> UInt64
        mutating func next() -> UInt64 { random() }
    }

    private func make<Value>(_ make: (inout Generator) -> Value) -> Value {
        var generator = Generator(random: random)
        return make(&generator)
    }

    package func participantID() -> ParticipantID { make { ParticipantID(using: &$0) } }
    package func channelSessionID() -> ChannelSessionID { make { ChannelSessionID(using: &$0) } }
    package func resourceID(of node: NodeIncarnation?) -> ResourceID { make { ResourceID(node: node, using: &$0) } }
    package func iceCredentials() -> ICECredentials { make { ICECredentials(using: &$0) } }
    /// 128 random bits for a ``ResumeToken``.
    package func resumeSecret() -> String { make { Crockford.text(high: $0.next(), low: $0.next()) } }
    package func iceVersion() -> ICEVersion { make { ICEVersion(using: &$0) } }
}
