import Base
internal import CSRTP
import Wire

/// The state of one source that is sent.
struct OutboundStream: SourceState {
    let ssrc: UInt32
    /// The highest index sent, and the recent ones, to refuse repeated transmission.
    var rtp = ReplayWindow<16>()
    /// Whether an RTP packet was sent.
    var hasSent = false
    /// The index of the last SRTCP packet; the first one is 1.
    var rtcpIndex: UInt32 = 0

    init(ssrc: UInt32) { self.ssrc = ssrc }
}

/// The sending direction of a transform; handles point to it.
@safe
struct SendingContext: ~Copyable {
    @safe enum Backend {
        /// libsrtp's context holds the keys.
        case libsrtp(srtp_t)
        case native(rtp: PacketCipher, rtcp: PacketCipher)
    }

    let tagLength: Int
    private let backend: Backend
    private let allowsRepeatTransmission: Bool
    private var streams = SourceTable<OutboundStream>()

    /// The highest index of an SRTCP packet (RFC 3711 §9.2).
    private static let rtcpIndexMax: UInt32 = 0x7FFF_FFFF

    init(_ backend: Backend, tagLength: Int, allowsRepeatTransmission: Bool) {
        self.backend = backend
        self.tagLength = tagLength
        self.allowsRepeatTransmission = allowsRepeatTransmission
    }

    deinit {
        switch backend {
        case .libsrtp(let context): unsafe srtp_dealloc(context)
        case .native(let rtp, let rtcp):
            rtp.destroy()
            rtcp.destroy()
        }
    }

    /// The state of a source, created if necessary; `nil` when there are too many.
    mutating func stream(_ ssrc: UInt32) -> UnsafeMutablePointer<OutboundStream>? {
        if let known = unsafe streams.find(ssrc) { return unsafe known }
        guard streams.count < SRTPLimits.sendingSourcesMax else { return nil }
        return unsafe streams.insert(OutboundStream(ssrc: ssrc))
    }

    /// See ``SRTPSender/removeStream(_:)``.
    mutating func removeStream(_ ssrc: UInt32) {
        guard streams.remove(ssrc) else { return }
        if case .libsrtp(let context) = backend { _ = unsafe srtp_remove_stream(context, ssrc.bigEndian) }
    }

    /// See ``SRTPSender/protectRTP(_:_:headerLength:payload:payloadLength:index:)``; a refusal is negative.
    @unsafe
    mutating func protectRTP(
        _ stream: UnsafeMutablePointer<OutboundStream>,
        _ packet: UnsafeMutableRawPointer,
        headerLength: Int,
        payload: UnsafeRawPointer,
        payloadLength: Int,
        index: UInt64
    ) -> Int {
        let length = headerLength &+ payloadLength
        precondition(
            headerLength >= 12 && payloadLength >= 0 && length >= 0 && length <= PacketLayout.packetBytesMax,
            "lengths of a packet"
        )
        assert(
            unsafe UInt16(bigEndian: packet.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
                == UInt16(truncatingIfNeeded: index),
            "the header's sequence number is the index's"
        )
        let newest = unsafe stream.pointee.rtp.newest
        let refusal = unsafe claim(stream, index)
        guard refusal == 0 else { return refusal }
        let isSealed: Bool
        switch backend {
        case .native(let cipher, _):
            isSealed = unsafe cipher.sealRTP(
                packet,
                headerLength: headerLength,
                payload: payload,
                payloadLength: payloadLength,
                ssrc: stream.pointee.ssrc,
                index: index
            )
        case .libsrtp(let context):
            if unsafe payload != UnsafeRawPointer(packet + headerLength) {
                unsafe (packet + headerLength).copyMemory(from: payload, byteCount: payloadLength)
            }
            isSealed = unsafe Self.sealRTP(context, stream, packet, length: length, index: index, newest: newest)
        }
        guard isSealed else { return Refusal.failed }
        unsafe stream.pointee.hasSent = true
        return length + tagLength
    }

    /// Encrypts an RTCP packet of `length` bytes in place. Returns its protected length; a refusal is negative.
    @unsafe
    mutating func protectRTCP(
        _ stream: UnsafeMutablePointer<OutboundStream>,
        _ packet: UnsafeMutableRawPointer,
        length: Int
    ) -> Int {
        let index = unsafe stream.pointee.rtcpIndex
        guard index < Self.rtcpIndexMax else { return Refusal.keysExpired }
        unsafe stream.pointee.rtcpIndex = index + 1
        let isSealed: Bool
        switch backend {
        case .native(_, let cipher):
            isSealed = unsafe cipher.sealRTCP(packet, length: length, ssrc: stream.pointee.ssrc, index: index + 1)
        case .libsrtp(let context):
            var count = Int32(length)
            isSealed = unsafe srtp_protect_rtcp(context, packet, &count) == srtp_err_status_ok
        }
        return isSealed ? length + PacketLayout.rtcpIndexBytes + tagLength : Refusal.failed
    }

    /// Records that a packet with `index` is sent. Returns 0, or a ``Refusal``.
    private func claim(_ stream: UnsafeMutablePointer<OutboundStream>, _ index: UInt64) -> Int {
        guard index < PacketIndex.end else { return Refusal.keysExpired }
        switch unsafe stream.pointee.rtp.check(index) {
        case .unseen: break
        case .replayed: return allowsRepeatTransmission ? 0 : Refusal.replayed
        case .tooOld: return Refusal.tooOld
        }
        unsafe stream.pointee.rtp.insert(index)
        return 0
    }

    /// Why a packet was not protected: negative, unlike a length.
    enum Refusal {
        static let replayed = -1
        static let tooOld = -2
        static let keysExpired = -3
        static let failed = -4
    }
}

extension SendingContext {
    /// libsrtp estimates the index of a packet from the newest index. When that would differ from `index`, the
    /// roll-over counter is set explicitly.
    private static func sealRTP(
        _ context: srtp_t,
        _ stream: UnsafeMutablePointer<OutboundStream>,
        _ packet: UnsafeMutableRawPointer,
        length: Int,
        index: UInt64,
        newest: UInt64
    ) -> Bool {
        var count = Int32(length)
        if PacketIndex.estimate(UInt16(truncatingIfNeeded: index), newest: newest) == index {
            return unsafe srtp_protect(context, packet, &count) == srtp_err_status_ok
        }
        let ssrc = unsafe stream.pointee.ssrc
        // libsrtp adds a stream with its first packet: protect one with sequence number 0 that is not sent.
        if unsafe !stream.pointee.hasSent {
            var unseen = InlineArray<8, UInt32>(repeating: 0)
            unseen[0] = UInt32(0x8000_0000).bigEndian
            unseen[2] = ssrc.bigEndian
            var unseenCount: Int32 = 12
            let status = unsafe withUnsafeMutableBytes(of: &unseen) {
                unsafe srtp_protect(context, $0.baseAddress, &unseenCount)
            }
            guard status == srtp_err_status_ok else { return false }
        }
        guard unsafe srtp_set_stream_roc(context, ssrc, UInt32(truncatingIfNeeded: index >> 16)) == srtp_err_status_ok
        else { return false }
        // A counter that libsrtp did not use would apply to later packets: 0 clears it.
        defer { _ = unsafe srtp_set_stream_roc(context, ssrc, 0) }
        return unsafe srtp_protect(context, packet, &count) == srtp_err_status_ok
    }
}

extension SendingContext {
    /// Protects one packet in place, with an estimated index.
    @_lifetime(packet: copy packet)
    mutating func protectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let layout = try PacketLayout.rtp(packet, length: length, trailer: 0)
        guard packet.byteCount - length >= tagLength else { throw .noRoom }
        guard let stream = unsafe stream(layout.source.rawValue) else { throw .tooManySources }
        let index = unsafe PacketIndex.estimate(layout.sequence, newest: stream.pointee.rtp.newest)
        let result = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return Refusal.failed }
            return unsafe protectRTP(
                stream,
                start,
                headerLength: layout.headerLength,
                payload: start + layout.headerLength,
                payloadLength: length - layout.headerLength,
                index: index
            )
        }
        return try Self.length(result)
    }

    @_lifetime(packet: copy packet)
    mutating func protectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let source = try PacketLayout.rtcpSource(packet, length: length, trailer: 0)
        guard packet.byteCount - length >= tagLength + PacketLayout.rtcpIndexBytes else { throw .noRoom }
        guard let stream = unsafe stream(source.rawValue) else { throw .tooManySources }
        let result = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return Refusal.failed }
            return unsafe protectRTCP(stream, start, length: length)
        }
        return try Self.length(result)
    }

    private static func length(_ result: Int) throws(SRTPError) -> Int {
        switch result {
        case 0...: return result
        case Refusal.replayed: throw .replayed
        case Refusal.tooOld: throw .tooOld
        case Refusal.keysExpired: throw .keysExpired
        default: throw .failed
        }
    }
}
