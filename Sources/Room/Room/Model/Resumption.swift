import ChannelTypes
import MediaTypes

/// What a member has to take its place again with after its connection is lost.
struct Resumption: Sendable, Codable {
    /// What was lost.
    enum Loss: Sendable, Codable {
        case signaling, pongs, transport

        /// The reason of a member whose grace time ends.
        var reason: EndReason {
            switch self {
            case .signaling: .signalingLost
            case .pongs: .pongTimedOut
            case .transport: .transport(.consentExpired)
            }
        }
    }

    /// An interrupted member.
    struct Interruption: Sendable, Codable {
        let loss: Loss
        /// When its grace time ends, in seconds of the monotonic clock.
        let endSecond: Int64
        /// Its deadline in ``ChannelModel/graceDeadlines``.
        var deadlineSecond: Int64
    }

    /// The secret of its token.
    private(set) var secret: String
    /// `nil` while it is connected.
    var interruption: Interruption?

    init(secret: String) { self.secret = secret }

    /// Compares in constant time, against timing attacks.
    func matches(_ secret: some StringProtocol) -> Bool {
        let (given, expected) = (Array(secret.utf8), Array(self.secret.utf8))
        guard given.count == expected.count else { return false }
        return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// A token is valid for one connection.
    mutating func renew(_ secret: String) { self.secret = secret }
}
