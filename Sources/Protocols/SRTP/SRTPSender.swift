public import Wire

/// A handle of a transform's sending direction for the hot path, without reference counting and dynamic dispatch. Valid
/// as long as its transform lives.
@safe
public struct SRTPSender: BitwiseCopyable {
    private let context: UnsafeMutablePointer<SendingContext>
    /// Bytes that ``protectRTP(_:_:headerLength:payload:payloadLength:index:)`` adds.
    public let tagLength: Int

    init(_ context: UnsafeMutablePointer<SendingContext>) {
        unsafe self.context = context
        tagLength = unsafe context.pointee.tagLength
    }

    /// The stream of a source, created if necessary; `nil` when there are ``SRTPLimits/sendingSourcesMax`` already.
    /// Valid as long as the transform lives, or until ``removeStream(_:)``.
    public func stream(_ ssrc: SSRC) -> SRTPOutboundStream? {
        guard let state = unsafe context.pointee.stream(ssrc.rawValue) else { return nil }
        return unsafe SRTPOutboundStream(state: state)
    }

    /// Removes a source that was sent. Its ``SRTPOutboundStream`` becomes invalid.
    ///
    /// Only for a source that is never sent again with these keys, RTCP included: its packet index is lost, so sending
    /// it again would reuse the key stream.
    public func removeStream(_ ssrc: SSRC) { unsafe context.pointee.removeStream(ssrc.rawValue) }

    /// Encrypts and authenticates one RTP packet out of place.
    ///
    /// The header is at `packet` already: `headerLength` bytes of fixed header, CSRC list and extension. The payload is
    /// read from `payload`, which may be `packet` + `headerLength`. Ciphertext and tag are written after the header.
    /// `packet` needs room for both and ``SRTPLimits/overheadBytesMax`` more bytes.
    ///
    /// A multi-buffer backend may finish the packet only in ``SRTPEngine/flush()``: until then the memory at `packet`
    /// must not move or be read. The returned length is final, and `payload` is not used after the call unless it is
    /// inside the packet.
    /// - Parameters:
    ///   - stream: the stream of the header's SSRC, from ``stream(_:)``.
    ///   - index: the 48-bit packet index (RFC 3711 §3.3.1), roll-over counter and sequence number; its low 16 bits are
    ///     the header's sequence number.
    /// - Returns: the protected packet's length, or -1: the index was used before and repeated transmission is not
    ///   allowed, it is ``SRTPLimits/replayWindowPackets`` or more behind the newest one, it has more than 48 bits (the
    ///   keys have expired, RFC 3711 §9.2), or a library failed.
    @unsafe
    public func protectRTP(
        _ stream: SRTPOutboundStream,
        _ packet: UnsafeMutableRawPointer,
        headerLength: Int,
        payload: UnsafeRawPointer,
        payloadLength: Int,
        index: UInt64
    ) -> Int {
        let result = unsafe context.pointee.protectRTP(
            stream.state,
            packet,
            headerLength: headerLength,
            payload: payload,
            payloadLength: payloadLength,
            index: index
        )
        return max(result, -1)
    }
}

/// A stream that a transform sends, from ``SRTPSender/stream(_:)``. Valid as long as the transform lives and the stream
/// is not removed.
@safe
public struct SRTPOutboundStream: BitwiseCopyable {
    let state: UnsafeMutablePointer<OutboundStream>
}
