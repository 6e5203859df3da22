import Base
import MediaTypes
import SRTP
import Wire

/// How one slot sends packets again: as RTX (RFC 4588) where it was negotiated, else, for video, as the same packet.
struct Retransmitter {
    /// Without RTX a retransmission is the same packet under the same SRTP index, and encrypting anything different
    /// under it would give keys away (RFC 7714 §8.4). Such a slot sends only extensions that never change. One that is
    /// added to a peer whose transport refuses repeated indices has no retransmission at all.
    let retransmitsWithoutRTX: Bool
    let rtxSSRC: SSRC?
    /// The SRTP stream of `rtxSSRC`; `nil` until the peer is connected.
    private(set) var rtxStream: SRTPOutboundStream?
    /// The next packet's number on the RTX stream.
    private(set) var rtxSequence: ExtendedSequenceNumber
    /// Retransmissions sent.
    private(set) var count: UInt64 = 0
    private var limiter = RetransmissionLimiter()

    /// A packet that was received longer ago than this is too late for any receiver that waits for it.
    static let ageMax = Interval.seconds(2)

    /// - Parameters:
    ///   - isAllowedWithoutRTX: the peer's SRTP contexts accept a repeated index.
    ///   - seed: random; decides the first RTX sequence number.
    init(_ parameters: SendTrackParameters, isAllowedWithoutRTX: Bool, seed: UInt64) {
        retransmitsWithoutRTX = parameters.kind == .video && parameters.rtxSSRC == nil && isAllowedWithoutRTX
        rtxSSRC = parameters.rtxSSRC
        rtxSequence = ExtendedSequenceNumber(rawValue: Int64(seed >> 16 & 0x7FFF))
    }

    mutating func connected(_ sender: SRTPSender) { rtxStream = rtxSSRC.flatMap { sender.stream($0) } }

    /// Whether a packet may be sent again now, which counts as sending it.
    mutating func allow(_ number: SequenceNumber, at now: Instant) -> Bool { limiter.allow(number, at: now) }

    /// A retransmission was sent.
    mutating func noteSent() { count &+= 1 }
    /// A packet left on the RTX stream.
    mutating func advance() { rtxSequence = rtxSequence.advanced(by: 1) }
}
