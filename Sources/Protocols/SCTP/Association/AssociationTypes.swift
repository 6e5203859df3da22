import Base

/// What an association offers and how much memory it may take.
public struct AssociationSettings: Hashable, Sendable {
    /// The SCTP port of both ends (RFC 8841 §5: `a=sctp-port`).
    public var port: UInt16 = 5_000
    /// The memory of data in both directions in bytes: what arrived and the owner has not taken, and what the peer has not acknowledged,
    /// which takes half of it at most. The rest is the receive window.
    public var windowBytes = 1 << 20
    /// The most bytes that are sent and not acknowledged, with the memory of each chunk's entry.
    var outstandingBytesMax: Int { windowBytes / 2 }
    /// The longest message in bytes that is accepted; a longer one ends the association.
    public var incomingMessageBytesMax = 262_144
    /// The longest message in bytes that the peer accepts (RFC 8841 §6: `a=max-message-size`).
    public var outgoingMessageBytesMax = 262_144
    /// The most bytes that wait for their first transmission, in all and on one stream.
    public var queuedBytesMax = 1 << 20
    public var queuedBytesPerStreamMax = 512 << 10
    /// What urgent messages may take besides, so that a queue full of others does not refuse them.
    public var urgentBytesMax = 512 << 10
    /// The most streams that send.
    public var streamsMax = 256
    /// Whether fragments of messages may be mixed (RFC 8260).
    public var offersInterleaving = true
    /// Whether the peer may leave checksums out, which DTLS makes redundant (RFC 9653).
    public var offersZeroChecksum = true

    public init() {}
}

/// What happened to an association.
public enum AssociationEvent: Hashable, Sendable {
    /// Messages arrive and leave from now on.
    case established
    case message(IncomingMessage)
    /// The peer reset these outgoing streams of its own; `nil` means all. Their messages before are delivered.
    case incomingReset([StreamID]?)
    /// Our outgoing streams are reset; they may be used again, from the first message number.
    case outgoingReset([StreamID])
    /// The peer refused to reset our streams. They stay unusable.
    case outgoingResetRefused([StreamID])
    /// The association is over; nothing follows.
    case ended(AssociationEnd)
}

/// Why an association is over.
public enum AssociationEnd: Hashable, Sendable {
    /// Both ends shut it down; all messages were delivered.
    case shutDown
    /// We aborted it.
    case aborted
    /// The peer aborted it, for this cause (RFC 9260 §3.3.10); 0 when it gave none.
    case abortedByPeer(cause: UInt16)
    /// The peer lost its state and started again. Its data channels are gone, so there is nothing to continue.
    case restartedByPeer
    /// The peer did not answer the handshake or the shutdown.
    case timedOut
    case violation(ProtocolViolation)
}

/// Why a packet was dropped as a whole.
public enum SCTPDropReason: Error, Hashable, Sendable, CaseIterable {
    /// Shorter than a header and one chunk, or longer than a packet may be.
    case length
    case port
    case checksum
    /// The verification tag is not ours (RFC 9260 §8.5).
    case tag
    /// INIT, INIT ACK or SHUTDOWN COMPLETE with other chunks, or one of them that is malformed.
    case handshake
    /// A cookie that is not ours, too old, or of another association.
    case cookie
    /// The association is over.
    case ended
}

/// Why a message was not queued.
public enum SendError: Error, Hashable, Sendable, CaseIterable {
    /// The association is over or shuts down.
    case ended
    /// A message needs at least one byte.
    case empty
    /// Longer than the peer accepts.
    case tooLong
    /// Too many bytes wait already, in all or on this stream.
    case full
    /// Too many streams are in use, or the peer has no stream of this number.
    case stream
    /// The stream is being reset.
    case closing
}

/// What happened to chunks and packets of one association.
public struct AssociationCounters: Hashable, Sendable {
    public internal(set) var packetsReceived: UInt64 = 0
    public internal(set) var packetsSent: UInt64 = 0
    /// Chunks with data that arrived a second time.
    public internal(set) var duplicates: UInt64 = 0
    /// Chunks with data that were not accepted: no room, too far ahead, or on a stream that is being reset.
    public internal(set) var refusedChunks: UInt64 = 0
    /// Chunks that were broken, unknown or out of place.
    public internal(set) var glitches: UInt64 = 0
    public internal(set) var messagesReceived: UInt64 = 0

    public init() {}
}

/// A packet that ``Association/nextPacket(into:dataBudget:at:)`` wrote.
public struct OutgoingPacket: Hashable, Sendable {
    public let byteCount: Int
    /// Bytes of data chunks, which a limit of the rate counts. 0 in a packet of control, which should not wait behind data.
    public let dataBytes: Int
}

extension SplitMix64 {
    /// A verification tag: never 0.
    mutating func tag() -> UInt32 { UInt32(truncatingIfNeeded: next() >> 32) | 1 }
}
