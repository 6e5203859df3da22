import Wire

/// An implementation of SRTP and SRTCP on the ciphers of OpenSSL or intel-ipsec-mb.
@safe
final class NativeTransform: SRTPTransform {
    private let sending: UnsafeMutablePointer<SendingContext>
    private let receiving: UnsafeMutablePointer<ReceivingContext>
    /// Kept alive because unfinished packets use its memory.
    private let engine: SRTPEngine

    init(_ keys: SRTPKeyingMaterial, sourcesMax: Int, allowsRepeatTransmission: Bool, engine: SRTPEngine)
        throws(SRTPError)
    {
        let local = MasterKey(keys.profile, keys.local)
        let remote = MasterKey(keys.profile, keys.remote)
        let multiBuffer = unsafe engine.multiBuffer
        let ciphers = unsafe [
            PacketCipher(local, .rtp, .sealing, multiBuffer), PacketCipher(local, .rtcp, .sealing, multiBuffer),
            PacketCipher(remote, .rtp, .opening, multiBuffer), PacketCipher(remote, .rtcp, .opening, multiBuffer),
        ].compactMap { $0 }
        guard ciphers.count == 4 else {
            for cipher in ciphers { cipher.destroy() }
            throw .failed
        }
        let tagLength = keys.profile.tagLength
        unsafe sending = .allocate(capacity: 1)
        unsafe sending.initialize(
            to: SendingContext(
                .native(rtp: ciphers[0], rtcp: ciphers[1]),
                tagLength: tagLength,
                allowsRepeatTransmission: allowsRepeatTransmission
            )
        )
        unsafe receiving = .allocate(capacity: 1)
        unsafe receiving.initialize(
            to: ReceivingContext(rtp: ciphers[2], rtcp: ciphers[3], tagLength: tagLength, sourcesMax: sourcesMax)
        )
        self.engine = engine
    }

    deinit {
        // Unfinished packets of this transform need its keys.
        engine.flush()
        unsafe sending.deinitialize(count: 1)
        unsafe sending.deallocate()
        unsafe receiving.deinitialize(count: 1)
        unsafe receiving.deallocate()
    }

    var receiver: SRTPReceiver? { unsafe SRTPReceiver(receiving) }
    var sourceCount: Int { unsafe receiving.pointee.sources.count }
    var sender: SRTPSender { unsafe SRTPSender(sending) }

    func protectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let protected = try unsafe sending.pointee.protectRTP(&packet, length: length)
        engine.flush()
        return protected
    }
    func protectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe sending.pointee.protectRTCP(&packet, length: length)
    }
    func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe receiving.pointee.unprotectRTP(&packet, length: length)
    }
    func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        try unsafe receiving.pointee.unprotectRTCP(&packet, length: length)
    }
    func removeStream(_ ssrc: SSRC) { unsafe receiving.pointee.removeStream(ssrc.rawValue) }
}
