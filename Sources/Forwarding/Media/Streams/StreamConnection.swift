import Base
import MediaTypes
import TLS
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
    private(set) var path: NetworkPath
    let acceptedAt: Instant
    /// `nil` until the first bytes tell it.
    private(set) var framing: StreamFraming?
    /// The first bytes, while they do not tell the framing: fewer than ``StreamFraming/openingBytesMax``.
    private var opening: [UInt8] = []
    var deframer = StreamDeframer(.rfc4571)
    var queue = StreamSendQueue(.rfc4571)
    var isAuthenticated = false
    private var messagesBeforeAllocation: UInt64 = 0
    var heardAt: Instant
    /// TURN over TLS; `nil` without.
    let tls: TLSStream?
    /// The other loop that it belongs to, and the messages for that loop.
    var departure: (loop: LoopIndex, messages: [[UInt8]])?
    /// What TLS made to be written, from `sealedOffset` on not yet written.
    private var sealed: [UInt8] = []
    private var sealedOffset = 0
    /// What the queue prepared is in `sealed`.
    private var isQueueSealed = false
    /// Since when a write is incomplete.
    private(set) var blockedAt: Instant?
    var isBlocked: Bool { blockedAt != nil }
    /// It is among those with packets that were queued since the last flush.
    var isPending = false

    /// - Parameter tls: for TURN over TLS: what comes and goes is encrypted, and the framing is TURN's.
    init(_ path: NetworkPath, tls: TLSStream? = nil, at now: Instant) {
        self.path = path
        self.tls = tls
        acceptedAt = now
        heardAt = now
        if tls != nil { setFraming(.turn) }
    }

    /// Becomes a connection of another loop.
    /// - Returns: the messages for that loop.
    mutating func move(to path: NetworkPath) -> [[UInt8]] {
        self.path = path
        isPending = false
        // The first write tells whether it still is.
        blockedAt = nil
        defer { departure = nil }
        return departure?.messages ?? []
    }

    private mutating func setFraming(_ framing: StreamFraming) {
        self.framing = framing
        deframer = StreamDeframer(framing)
        queue = StreamSendQueue(framing)
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
        setFraming(framing)
        return (all, framing)
    }

    // MARK: - Writes

    /// Prepares what is written next. All that a turn has queued is one record of TLS, as far as it fits.
    /// - Returns: whether there is something to write.
    mutating func prepareWrite(at now: Instant) -> Bool {
        guard let tls else { return queue.prepareWrite(at: now) }
        guard sealed.isEmpty else { return true }
        if tls.status == .open, queue.prepareWrite(at: now) {
            isQueueSealed = tls.send(unsafe queue.unwritten.span.bytes)
        }
        sealed = tls.takeOutput()
        return !sealed.isEmpty
    }

    /// The bytes to write, valid after ``prepareWrite(at:)``.
    var unwritten: ArraySlice<UInt8> { tls == nil ? queue.unwritten : sealed[sealedOffset...] }

    /// Notes that the first `count` bytes of ``unwritten`` were written.
    mutating func finishWrite(_ count: Int, at now: Instant) {
        let isComplete = count == unwritten.count
        if tls == nil {
            queue.finishWrite(count)
        } else {
            sealedOffset += count
            // Nothing of a record is of use without its end, so none of the queue's bytes are written before it.
            if isQueueSealed { queue.finishWrite(isComplete ? queue.unwritten.count : 0) }
            if isComplete {
                sealed = []
                sealedOffset = 0
                isQueueSealed = false
            }
        }
        if isComplete { blockedAt = nil } else if blockedAt == nil { blockedAt = now }
    }

    // MARK: - Authentication

    /// Messages of a client without an allocation, the last one in vain: a client sends two, or three when its nonce is too
    /// old.
    private static let messagesBeforeAllocationMax: UInt64 = 17

    /// The messages that are taken before an allocation; with 0 the connection ends.
    var messagesLeft: UInt64 {
        if isAuthenticated || framing == .rfc4571 { return .max }
        return Self.messagesBeforeAllocationMax - min(messagesBeforeAllocation, Self.messagesBeforeAllocationMax)
    }

    mutating func countMessages(_ count: UInt64) { messagesBeforeAllocation &+= count }
}
