internal import CSRTP
public import Wire

/// The reference backend, on libsrtp2.
@safe
public final class LibSRTPTransform: SRTPTransform {
    /// The process-wide initialisation of the library; a static is initialised once, whichever thread is first.
    private static let initialised = srtp_init() == srtp_err_status_ok

    private let inbound: srtp_t
    private let sending: UnsafeMutablePointer<SendingContext>
    private let tagLength: Int
    private let sourcesMax: Int
    /// The senders that have authenticated a packet. The library itself would take up any number.
    private var sources: Set<SSRC> = []
    /// The known sender of the packet before; packets of one sender come in runs, and this is cheaper than the set.
    private var lastSource: SSRC?

    /// - Parameters:
    ///   - sourcesMax: how many senders the peer may use at the same time, RTP and RTCP together.
    ///   - allowsRepeats: whether a sequence number may be protected again, for streams that are repeated without RTX.
    ///     Without it a second packet of the same number is refused, which keeps the key stream from being used twice.
    /// - Throws: ``SRTPError/failed`` when the library refuses the keys or cannot allocate.
    public init(_ keys: SRTPKeyingMaterial, sourcesMax: Int = 64, allowsRepeats: Bool = true) throws(SRTPError) {
        guard Self.initialised else { throw .failed }
        let inbound = unsafe Self.makeContext(keys.profile, key: keys.remote, direction: ssrc_any_inbound)
        let outbound = unsafe Self.makeContext(
            keys.profile,
            key: keys.local,
            direction: ssrc_any_outbound,
            repeats: allowsRepeats
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
            to: SendingContext(.library(outbound), tagLength: tagLength, allowsRepeats: allowsRepeats)
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
        let source = try PacketShape.rtp(packet, length: length, trailer: tagLength).source
        let isKnown = try admit(source)
        let plain = try unsafe Self.run(&packet, length) { bytes, count in
            unsafe srtp_unprotect(inbound, bytes, count)
        }
        if !isKnown { sources.insert(source) }
        lastSource = source
        return plain
    }

    public func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let trailer = tagLength + PacketShape.rtcpIndexBytes
        let source = try PacketShape.rtcpSource(packet, length: length, trailer: trailer)
        let isKnown = try admit(source)
        let plain = try unsafe Self.run(&packet, length) { bytes, count in
            unsafe srtp_unprotect_rtcp(inbound, bytes, count)
        }
        if !isKnown { sources.insert(source) }
        lastSource = source
        return plain
    }

    public func removeStream(_ ssrc: SSRC) {
        sources.remove(ssrc)
        if lastSource == ssrc { lastSource = nil }
        // The library answers "no context" for a source that it does not know, which is what is wanted. The outbound
        // context stays: the peer chooses its SSRCs, and one that equals ours must not make our index begin anew.
        _ = unsafe srtp_remove_stream(inbound, ssrc.rawValue.bigEndian)
    }

    /// Whether `source` is known; throws when it is not and there is no place for another.
    private func admit(_ source: SSRC) throws(SRTPError) -> Bool {
        if source == lastSource || sources.contains(source) { return true }
        guard sources.count < sourcesMax else { throw .tooManySources }
        return false
    }

    private static func run(
        _ packet: inout MutableRawSpan,
        _ length: Int,
        _ body: (UnsafeMutableRawPointer, UnsafeMutablePointer<Int32>) -> srtp_err_status_t
    ) throws(SRTPError) -> Int {
        var count = Int32(length)  // at most `packetBytesMax`
        let capacity = packet.byteCount
        let status = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return srtp_err_status_bad_param }
            return unsafe body(start, &count)
        }
        guard status == srtp_err_status_ok else { throw SRTPError(status) }
        precondition(count >= 0 && Int(count) <= capacity, "the library stays within the packet's room")
        return Int(count)
    }

    /// One direction's context, which takes up a stream of its own for each new source; `nil` when refused.
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
        unsafe policy.window_size = UInt(SRTPSession.replayWindowPackets)
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
            // The library could not check the tag of an SRTCP packet that claims to be unencrypted.
            case srtp_err_status_auth_fail, srtp_err_status_cant_check: .authentication
            case srtp_err_status_replay_fail: .replayed
            case srtp_err_status_replay_old, srtp_err_status_pkt_idx_old: .tooOld
            case srtp_err_status_bad_param, srtp_err_status_parse_err: .malformed
            case srtp_err_status_key_expired: .keysExpired
            default: .failed
            }
    }
}
