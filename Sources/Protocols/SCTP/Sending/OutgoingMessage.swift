public import Base

/// How a message is sent.
public struct SendPolicy: Hashable, Sendable {
    /// When to give up an undelivered message (RFC 3758, RFC 7496); needs the peer's support.
    public enum Limit: Hashable, Sendable {
        /// Never.
        case reliable
        /// After this many retransmissions of one of its fragments.
        case retransmissions(Int)
        /// This long after ``Association/send(_:as:on:policy:at:)``.
        case lifetime(Interval)
    }

    public var isOrdered: Bool
    public var limit: Limit

    public init(isOrdered: Bool = true, limit: Limit = .reliable) {
        self.isOrdered = isOrdered
        self.limit = limit
    }
}

/// A message that waits for its first transmission, in whole or in part.
struct OutgoingMessage: Sendable {
    /// Shared with all associations that send the same message, never changed.
    let payload: [UInt8]
    let payloadProtocol: PayloadProtocol
    let isOrdered: Bool
    let retransmissionsMax: Int?
    let expiresAt: Instant?
    /// Whether it counts as data of the user in ``OutgoingStreams/Stream/bufferedBytes``.
    let isCounted: Bool

    func isExpired(at now: Instant) -> Bool {
        guard let expiresAt else { return false }
        return expiresAt <= now
    }
}

/// One fragment that was sent at least once, or was given up before.
struct SentChunk: Sendable {
    enum State: Hashable, Sendable {
        case inFlight
        /// To be sent again.
        case lost
        /// Acknowledged above the cumulative number.
        case acked
        /// Never sent again; the peer is told to skip it.
        case abandoned
    }

    let payload: [UInt8]
    let range: Range<Int>
    let stream: StreamID
    let flags: DataFlags
    let payloadProtocol: PayloadProtocol
    /// SSN or MID.
    let messageNumber: UInt32
    let fragment: UInt32
    /// The same for all fragments of a message, never repeated.
    let message: UInt64
    let retransmissionsMax: Int?
    let expiresAt: Instant?
    var sentAt: Instant
    var transmissions = 1
    var state = State.inFlight

    /// Header and padding included.
    func byteCount(isInterleaved: Bool) -> Int {
        let header = isInterleaved ? DataChunk.interleavedHeaderBytes : DataChunk.headerBytes
        return header + PacketLayout.padded(range.count)
    }

    /// Whether it is a part of a message that may be given up.
    var isLimitedFragment: Bool {
        (retransmissionsMax != nil || expiresAt != nil) && !flags.isSuperset(of: [.beginning, .end])
    }

    /// Whether it must not be sent again.
    func isGivenUp(at now: Instant) -> Bool {
        if let retransmissionsMax, transmissions > retransmissionsMax { return true }
        if let expiresAt, expiresAt <= now { return true }
        return false
    }
}
