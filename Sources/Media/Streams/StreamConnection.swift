import Wire

/// What the packets of a connection have proved.
enum StreamStanding: Hashable, Sendable {
    /// A check of a session has validated the path, or the client has an allocation.
    case authenticated
    /// A TURN client without an allocation: it may still make one, within the time for authentication.
    case unauthenticated
    /// The connection is closed.
    case refused
}

/// One TCP connection of ``StreamConnections``.
struct StreamConnection {
    let path: NetworkPath
    let acceptedAt: Instant
    /// `nil` until the first bytes tell it.
    private(set) var framing: StreamFraming?
    /// The first bytes, while they do not tell the framing: fewer than ``StreamFraming/openingBytesMax``.
    private var opening: [UInt8] = []
    var deframer = StreamDeframer(.rfc4571)
    var queue = StreamSendQueue(.rfc4571)
    var isAuthenticated = false
    /// Messages before an allocation.
    private var tries: UInt64 = 0
    var heardAt: Instant
    /// Since when a write is incomplete.
    var blockedAt: Instant?
    var isBlocked: Bool { blockedAt != nil }
    /// It is among those with packets that were queued since the last flush.
    var isPending = false

    init(_ path: NetworkPath, at now: Instant) {
        self.path = path
        acceptedAt = now
        heardAt = now
    }

    /// Takes bytes of a connection whose framing is not known yet.
    /// - Returns: all bytes so far once they tell the framing.
    mutating func open(_ bytes: RawSpan) -> (bytes: [UInt8], framing: StreamFraming)? {
        var all = opening
        all += bytes.array()
        guard let framing = StreamFraming(opening: unsafe all.span.bytes) else {
            opening = all
            return nil
        }
        opening = []
        self.framing = framing
        deframer = StreamDeframer(framing)
        queue = StreamSendQueue(framing)
        return (all, framing)
    }

    mutating func countTries(_ count: UInt64) -> UInt64 {
        tries &+= count
        return tries
    }
}
