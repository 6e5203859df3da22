public import Wire

/// Why a packet was neither protected nor accepted.
public enum SRTPError: Error, Hashable, Sendable {
    /// The packet's tag does not match: tampered with, or protected with other keys.
    case authentication
    /// A packet with this index was accepted before (RFC 3711 §3.3.2).
    case replayed
    /// The packet's index is behind the replay window, so it cannot be told from a replay.
    case tooOld
    /// The sender is not known and as many senders as allowed are known already.
    case tooManySources
    /// The bytes are not an RTP or RTCP packet, or too few to carry the tag.
    case malformed
    /// There is no room in the buffer for what protection adds.
    case noRoom
    /// The keys have protected as many packets as they may (RFC 3711 §9.2).
    case keysExpired
    /// The library refused for another reason.
    case failed
}

/// What every SRTP backend has in common.
public enum SRTPSession {
    /// The most that protection adds to a packet: a 16-byte tag and, in SRTCP, the 4-byte index (RFC 7714 §9).
    public static let overheadBytesMax = 20
    /// Packets that replay protection tells apart behind the newest one. RFC 3711 §3.3.2 asks for at least 64; this
    /// covers a second of a fast video stream reordered or retransmitted.
    public static let replayWindowPackets = 1024
    /// The same for SRTCP, which is sent a few times a second at most.
    public static let rtcpReplayWindowPackets = 128
    /// Sources that one transform sends at most. They are ours, so this is no limit on a peer; it bounds a mistake.
    public static let sendingSourcesMax = 4096
}

/// The SRTP and SRTCP cryptographic contexts shared with one peer, both directions (RFC 3711).
///
/// Made by ``SRTPEngine/makeTransform(_:sourcesMax:allowsRepeats:)``. Each call works in place on a packet at the start
/// of `packet`. Until it authenticates, a received packet changes nothing, and after an error the bytes of the packet are
/// unspecified. An instance belongs to one thread at a time.
public protocol SRTPTransform: AnyObject {
    /// Encrypts and authenticates an RTP packet.
    ///
    /// The same sequence number may be sent again as long as the packet is the same.
    /// - Parameter length: the packet's bytes; the span has ``SRTPSession/overheadBytesMax`` more.
    /// - Returns: the protected packet's length.
    func protectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Encrypts and authenticates a compound or reduced-size RTCP packet; see ``protectRTP(_:length:)``.
    func protectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Authenticates and decrypts an SRTP packet of `length` bytes, and returns the RTP packet's length.
    func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Authenticates and decrypts an SRTCP packet of `length` bytes, and returns the RTCP packet's length.
    func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Forgets what is kept for a source that the peer sends. Its place counts as free again.
    ///
    /// Only for a source that will not be sent or accepted again under these keys: its roll-over counter and its
    /// replay list are lost, so a source that is sent again would repeat key stream.
    func removeStream(_ ssrc: SSRC)
    /// Senders that have authenticated at least one packet, RTP and RTCP together.
    var sourceCount: Int { get }
    /// The sending direction as a plain handle for the hot path, valid while the transform lives. It shares its
    /// streams' state with ``protectRTP(_:length:)``.
    var sender: SRTPSender { get }
    /// The receiving direction of RTP as such a handle; `nil` where the backend keeps its state elsewhere.
    var receiver: SRTPReceiver? { get }
}
