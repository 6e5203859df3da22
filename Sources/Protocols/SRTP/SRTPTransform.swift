public import Wire

/// Why a packet was neither protected nor accepted.
public enum SRTPError: Error, Hashable, Sendable {
    /// The authentication tag is wrong: the packet was modified, or protected with other keys.
    case authentication
    /// A packet with this index was accepted before (RFC 3711 §3.3.2).
    case replayed
    /// The packet's index is behind the replay window.
    case tooOld
    /// The source is new, and the most sources that are allowed are known already.
    case tooManySources
    /// The bytes are not an RTP or RTCP packet, or too short for the tag.
    case malformed
    /// The buffer has no room for the tag or the SRTCP index.
    case noRoom
    /// The keys have protected as many packets as they may (RFC 3711 §9.2).
    case keysExpired
    /// A library failed for another reason.
    case failed
}

/// The limits of every SRTP backend.
public enum SRTPLimits {
    /// The most bytes that protection adds to a packet: a 16-byte tag and, in SRTCP, the 4-byte index (RFC 7714 §9).
    public static let overheadBytesMax = 20
    /// The size of the RTP replay window in packets. RFC 3711 §3.3.2 requires at least 64; this covers retransmissions
    /// within one second of a high-bitrate video stream.
    public static let replayWindowPackets = 1024
    /// The most sources that one transform sends. They are ours, so this limits no peer; it bounds the effect of a bug.
    public static let sendingSourcesMax = 4096
}

/// The SRTP and SRTCP cryptographic contexts shared with one peer, in both directions (RFC 3711 §3.2).
///
/// Created by ``SRTPEngine/makeTransform(_:sourcesMax:allowsRepeatTransmission:)``. Each call processes in place the
/// packet at the start of `packet`. A received packet that does not authenticate changes no state. After an error the
/// bytes of the packet are unspecified. An instance belongs to one thread at a time.
public protocol SRTPTransform: AnyObject {
    /// Encrypts and authenticates an RTP packet.
    ///
    /// The same sequence number may be protected again if the packet is the same.
    /// - Parameter length: the packet's length; the span has ``SRTPLimits/overheadBytesMax`` more bytes.
    /// - Returns: the protected packet's length.
    func protectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Encrypts and authenticates a compound or reduced-size RTCP packet; see ``protectRTP(_:length:)``.
    func protectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Authenticates and decrypts an SRTP packet of `length` bytes, and returns the RTP packet's length.
    func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Authenticates and decrypts an SRTCP packet of `length` bytes, and returns the RTCP packet's length.
    func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int
    /// Removes the state of a source that the peer sends, which frees its place.
    ///
    /// Only for a source that is not accepted again with these keys, because its roll-over counter and its replay list
    /// are lost.
    func removeStream(_ ssrc: SSRC)
    /// Sources that have authenticated at least one packet, RTP and RTCP together.
    var sourceCount: Int { get }
    /// The handle of the sending direction for the hot path. It shares the streams with ``protectRTP(_:length:)``.
    var sender: SRTPSender { get }
    /// The handle of the receiving direction for the hot path; `nil` with ``SRTPBackend/libsrtp2``.
    var receiver: SRTPReceiver? { get }
}
