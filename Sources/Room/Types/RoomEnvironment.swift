import MediaTypes
import Wire

/// Where rooms take the time and random bits from, so that a simulation can hand in its own.
///
/// Everything that rooms do is a function of the calls that they get, of the clock and of these bits.
public struct RoomEnvironment: Sendable {
    public var clock: RoomClock
    private let random: @Sendable () -> UInt64

    /// - Parameter random: returns 64 random bits on any thread. Sessions and ICE credentials are made of them, so outside of
    ///   tests they have to be cryptographically secure.
    public init(clock: RoomClock = .system, random: @escaping @Sendable () -> UInt64) {
        self.clock = clock
        self.random = random
    }

    /// The machine's clocks and random generator.
    public static let system = RoomEnvironment {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    /// Makes the identifiers, credentials and versions that rooms give out.
    private struct Generator: RandomNumberGenerator {
        let random: @Sendable () -> UInt64
        mutating func next() -> UInt64 { random() }
    }

    private func make<Value>(_ make: (inout Generator) -> Value) -> Value {
        var generator = Generator(random: random)
        return make(&generator)
    }

    func participantID() -> ParticipantID { make { ParticipantID(using: &$0) } }
    func channelSessionID() -> ChannelSessionID { make { ChannelSessionID(using: &$0) } }
    func sessionID() -> SessionID { make { SessionID(using: &$0) } }
    func iceCredentials() -> ICECredentials { make { ICECredentials(using: &$0) } }
    func iceVersion() -> ICEVersion { make { ICEVersion(using: &$0) } }
}
