public import Wire

/// A transform's sending direction as a plain handle: a pointer, no reference, so that using it retains nothing and
/// dispatches through nothing. Valid as long as the transform that it came from lives.
@safe
public struct SRTPSender: BitwiseCopyable {
    private let context: UnsafeMutablePointer<SendingContext>
    /// Bytes that ``protectRTP(_:_:headerLength:payload:payloadLength:index:)`` adds.
    public let tagLength: Int

    init(_ context: UnsafeMutablePointer<SendingContext>) {
        unsafe self.context = context
        tagLength = unsafe context.pointee.tagLength
    }

    /// Resolves a source, once for all its packets; `nil` when there are ``SRTPSession/sendingSourcesMax`` already.
    /// What it returns lives as long as the transform, or until ``forget(_:)``.
    public func stream(_ ssrc: SSRC) -> SRTPOutboundStream? {
        guard let state = unsafe context.pointee.stream(ssrc.rawValue) else { return nil }
        return unsafe SRTPOutboundStream(state: state)
    }

    /// Gives back what is kept for a source that was sent. Its ``SRTPOutboundStream`` is not valid any more.
    ///
    /// Only for a source that is never sent again under these keys, RTCP included: its indices are lost, so one that is
    /// sent again would repeat key stream.
    public func forget(_ ssrc: SSRC) { unsafe context.pointee.forget(ssrc.rawValue) }

    /// Encrypts and authenticates one RTP packet out of place.
    ///
    /// Its header stands at `packet` already: `headerLength` bytes of fixed header, CSRC list and extension. The payload
    /// is read from `payload`, which may be anywhere, also at `packet` + `headerLength`; ciphertext and tag are written
    /// behind the header. At `packet` there must be room for both and ``SRTPSession/overheadBytesMax`` more.
    ///
    /// A multi-buffer backend may finish the packet in ``SRTPEngine/flush()`` only: until then the memory at `packet`
    /// stays where it is and is not read; its length is exact at once, and `payload` is free at once unless it is in
    /// the packet.
    /// - Parameters:
    ///   - stream: the header's SSRC, resolved by this sender.
    ///   - index: the 48-bit packet index (RFC 3711 §3.3.1), roll-over counter and sequence number; its low 16 bits are
    ///     the header's sequence number.
    /// - Returns: the protected packet's length, or -1 when the index was used before and repeats are refused, when it is
    ///   ``SRTPSession/replayWindowPackets`` or more behind the newest one, when it has more than 48 bits (the keys have
    ///   expired, RFC 3711 §9.2), or when the library fails.
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

/// One source that a transform sends, resolved by ``SRTPSender/stream(_:)``. Valid as long as the transform lives
/// and the source is not forgotten.
@safe
public struct SRTPOutboundStream: BitwiseCopyable {
    let state: UnsafeMutablePointer<OutboundStream>
}
