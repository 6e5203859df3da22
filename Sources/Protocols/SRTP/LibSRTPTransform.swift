import Base
internal import CSRTP
public import Wire

/// The reference backend: libsrtp2.
@safe
public final class LibSRTPTransform: SRTPTransform {
    /// Initializes the library once per process.
    private static let initialised = srtp_init() == srtp_err_status_ok

    private let inbound: srtp_t
    private let sending: UnsafeMutablePointer<SendingContext>
    private let tagLength: Int
    private let sourcesMax: Int
    /// The sources that have authenticated a packet. libsrtp itself would add any number of streams.
    private var sources: Set<SSRC> = []
    /// The source of the previous packet. Packets of one source come in runs, and this check is cheaper than the set.
    private var lastSource: SSRC?

    /// - Parameters:
    ///   - sourcesMax: the most sources that the peer may use at a time, RTP and RTCP together.
    ///   - allowsRepeatTransmission: whether a sequence number may be protected again, for streams that are
    ///     retransmitted without RTX. Without it a second packet of the same number is refused, so that the key stream
    ///     is not reused.
    /// - Throws: ``SRTPError/failed`` when libsrtp refuses the keys or cannot allocate memory.
    public init(_ keys: SRTPKeyingMaterial, sourcesMax: Int = 64, allowsRepeatTransmission: Bool = true)
        throws(SRTPError)
    {
        guard Self.initialised else { throw .failed }
        let inbound = unsafe Self.makeContext(keys.profile, key: keys.remote, direction: ssrc_any_inbound)
        let outbound = unsafe Self.makeContext(
            keys.profile,
            key: keys.local,
            direction: ssrc_any_outbound,
            repeats: allowsRepeatTransmission
        )
        guard let inbound = unsafe inbound, let outbound = unsafe outbound else {
            if let inbound = unsafe inbound { unsafe srtp_dealloc(inbound) }
            if let outbound = unsafe outbound { unsafe srtp_dealloc(outbound) }
            throw .failed
        }
        unsafe self.inbound = inbound
        tagLength = keys.profile.tagLength
        unsafe sending = .allocate(capacity: 1)
        unsafe sending.initialize(
            to: SendingContext(
                .libsrtp(outbound),
                tagLength: tagLength,
                allowsRepeatTransmission: allowsRepeatTransmission
            )
        )
        self.sourcesMax = sourcesMax
    }

    deinit {
        unsafe srtp_dealloc(inbound)
        unsafe sending.deinitialize(count: 1)
        unsafe sending.deallocate()
    }

    public var sourceCount: Int { sources.count }
    public var receiver: SRTPReceiver? { nil }
    public var sender: SRTPSender { unsafe SRTPSender(sending) }

    public func protectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe sending.pointee.protectRTP(&packet, length: length)
    }

    public func protectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe sending.pointee.protectRTCP(&packet, length: length)
    }

    public func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let source = try PacketLayout.rtp(packet, length: length, trailer: tagLength).source
        return try unsafe unprotect(&packet, length, from: source) { bytes, count in
            unsafe srtp_unprotect(inbound, bytes, count)
        }
    }

    public func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let trailer = tagLength + PacketLayout.rtcpIndexBytes
        let source = try PacketLayout.rtcpSource(packet, length: length, trailer: trailer)
        return try unsafe unprotect(&packet, length, from: source) { bytes, count in
            unsafe srtp_unprotect_rtcp(inbound, bytes, count)
        }
    }

    public func removeStream(_ ssrc: SSRC) {
        sources.remove(ssrc)
        if lastSource == ssrc { lastSource = nil }
        // For an unknown source libsrtp returns srtp_err_status_no_ctx, which is ignored. The outbound stream stays:
        // the peer may choose an SSRC that equals one of ours, and that must not reset our packet index.
        _ = unsafe srtp_remove_stream(inbound, ssrc.rawValue.bigEndian)
    }

    /// Whether `source` is known. Throws when it is not and there are `sourcesMax` already.
    private func admit(_ source: SSRC) throws(SRTPError) -> Bool {
        if source == lastSource || sources.contains(source) { return true }
        guard sources.count < sourcesMax else { throw .tooManySources }
        return false
    }

    private func unprotect(
        _ packet: inout MutableRawSpan,
        _ length: Int,
        from source: SSRC,
        _ body: (UnsafeMutableRawPointer, UnsafeMutablePointer<Int32>) -> srtp_err_status_t
    ) throws(SRTPError) -> Int {
        let isKnown = try admit(source)
        var count = Int32(length)  // at most `packetBytesMax`
        let capacity = packet.byteCount
        let status = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return srtp_err_status_bad_param }
            return unsafe body(start, &count)
        }
        guard status == srtp_err_status_ok else { throw SRTPError(status) }
        precondition(count >= 0 && Int(count) <= capacity, "libsrtp stays within the buffer")
        if !isKnown { sources.insert(source) }
        lastSource = source
        return Int(count)
    }

    /// The context of one direction, which adds a stream for each new source; `nil` when libsrtp fails.
    private static func makeContext(
        _ profile: SRTPProfile,
        key: [UInt8],
        direction: srtp_ssrc_type_t,
        repeats: Bool = false
    ) -> srtp_t? {
        var policy = unsafe srtp_policy_t()
        switch profile {
        case .aes128CMHMACSHA1:
            unsafe srtp_crypto_policy_set_rtp_default(&policy.rtp)
            unsafe srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        case .aeadAES128GCM:
            unsafe srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            unsafe srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAES256GCM:
            unsafe srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            unsafe srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        }
        unsafe policy.ssrc.type = direction
        unsafe policy.window_size = UInt(SRTPLimits.replayWindowPackets)
        unsafe policy.allow_repeat_tx = repeats ? 1 : 0
        var key = key
        var context: srtp_t?
        let status = unsafe key.withUnsafeMutableBufferPointer { bytes in
            unsafe policy.key = bytes.baseAddress
            return unsafe srtp_create(&context, &policy)
        }
        return unsafe status == srtp_err_status_ok ? context : nil
    }
}

extension SRTPError {
    fileprivate init(_ status: srtp_err_status_t) {
        self =
            switch status {
            // libsrtp cannot check the tag of an SRTCP packet that claims to be unencrypted.
            case srtp_err_status_auth_fail, srtp_err_status_cant_check: .authentication
            case srtp_err_status_replay_fail: .replayed
            case srtp_err_status_replay_old, srtp_err_status_pkt_idx_old: .tooOld
            case srtp_err_status_bad_param, srtp_err_status_parse_err: .malformed
            case srtp_err_status_key_expired: .keysExpired
            default: .failed
            }
    }
}
