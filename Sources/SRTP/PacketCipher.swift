internal import CIPSecMB
internal import COpenSSL
import Wire

/// The session keys of one direction of SRTP or of SRTCP, expanded once, and what they do to a packet.
///
/// It is plain memory, so that nothing is retained to use it; whoever makes one calls ``destroy()`` once.
@safe
struct PacketCipher: BitwiseCopyable {
    enum Stream { case rtp, rtcp }
    enum Direction { case sealing, opening }

    private enum Mode { case gcm, counterMode }

    private let mode: Mode
    /// intel-ipsec-mb's manager, when the cipher is its.
    private let multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    /// The manager's key, or OpenSSL's context with the key set: a packet sets the initialization vector alone.
    private let context: OpaquePointer
    /// The key that authenticates in counter mode; GCM has none.
    private let authentication: UnsafeMutablePointer<nagare_HMAC_SHA1_key>?
    /// The session salt as two big-endian numbers, padded with zeros on the right.
    private let saltHigh: UInt64
    private let saltLow: UInt64

    /// Bytes of the tag in counter mode (RFC 3711 §5.2).
    static let shortTagBytes = 10
    private static let digestBytes = 20

    /// Whether an SRTCP packet ends with its index (RFC 7714 §9.2) and not with its tag (RFC 3711 §3.4).
    var isTrailerLast: Bool { mode == .gcm }

    /// `nil` when the library fails.
    init?(
        _ master: MasterKey,
        _ stream: Stream,
        _ direction: Direction,
        _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    ) {
        let profile = master.profile
        let isRTP = stream == .rtp
        unsafe self.multiBuffer = multiBuffer
        mode = profile == .aes128CMHMACSHA1 ? .counterMode : .gcm
        let salt = unsafe master.withSessionKey(isRTP ? .rtpSalt : .rtcpSalt, count: profile.saltLength) { salt in
            var padded = InlineArray<2, UInt64>(repeating: 0)
            unsafe withUnsafeMutableBytes(of: &padded) {
                unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: salt, count: profile.saltLength))
            }
            return padded
        }
        let context = unsafe master.withSessionKey(isRTP ? .rtpEncryption : .rtcpEncryption, count: profile.keyLength) {
            unsafe Self.makeContext(profile, key: $0, direction, multiBuffer)
        }
        guard let salt, let context = unsafe context else { return nil }
        saltHigh = UInt64(bigEndian: salt[0])
        saltLow = UInt64(bigEndian: salt[1])
        unsafe self.context = context
        guard mode == .counterMode else {
            unsafe authentication = nil
            return
        }
        let label = isRTP ? MasterKey.Label.rtpAuthentication : .rtcpAuthentication
        let prepared = unsafe master.withSessionKey(label, count: Self.digestBytes) { key in
            var prepared = nagare_HMAC_SHA1_key()
            return unsafe nagare_HMAC_SHA1_prepare(&prepared, key, Self.digestBytes) == 1 ? prepared : nil
        }
        guard let prepared else {
            unsafe Self.free(context, multiBuffer)
            return nil
        }
        let authentication = UnsafeMutablePointer<nagare_HMAC_SHA1_key>.allocate(capacity: 1)
        unsafe authentication.initialize(to: prepared)
        unsafe self.authentication = authentication
    }

    func destroy() {
        unsafe Self.free(context, multiBuffer)
        guard let authentication = unsafe authentication else { return }
        unsafe OPENSSL_cleanse(authentication, MemoryLayout<nagare_HMAC_SHA1_key>.size)
        unsafe authentication.deallocate()
    }

    /// Encrypts an RTP packet, whose header stands at `packet`, from `payload` to behind the header, and appends the tag.
    /// Returns whether it succeeded.
    @unsafe
    func sealRTP(
        _ packet: UnsafeMutableRawPointer,
        headerLength: Int,
        payload: UnsafeRawPointer,
        payloadLength: Int,
        ssrc: UInt32,
        index: UInt64
    ) -> Bool {
        let body = unsafe packet + headerLength
        let end = unsafe body + payloadLength
        switch mode {
        case .gcm:
            return unsafe seal(packet, headerLength, payload, body, payloadLength, ssrc: ssrc, index: index, tag: end)
        case .counterMode:
            guard unsafe crypt(payload, body, payloadLength, ssrc: ssrc, index: index) else { return false }
            // The roll-over counter is authenticated behind the packet, and makes room for the tag (RFC 3711 §4.2).
            unsafe Self.store(UInt32(truncatingIfNeeded: index >> 16), at: end)
            let count = headerLength + payloadLength + 4
            if let multiBuffer = unsafe multiBuffer, let key = unsafe authentication {
                unsafe multiBuffer.pointee.append(packet, count, key: key, tag: end)
            } else {
                unsafe authenticate(packet, count, tag: end)
            }
            return true
        }
    }

    /// Decrypts an RTP packet of `headerLength` + `payloadLength` bytes and a tag in place. Returns whether the tag fits;
    /// when it does not, the bytes behind the header may have changed.
    @unsafe
    func openRTP(
        _ packet: UnsafeMutableRawPointer,
        headerLength: Int,
        payloadLength: Int,
        ssrc: UInt32,
        index: UInt64
    ) -> Bool {
        let body = unsafe packet + headerLength
        let end = unsafe body + payloadLength
        switch mode {
        case .gcm:
            return unsafe open(packet, headerLength, body, payloadLength, ssrc: ssrc, index: index, tag: end)
        case .counterMode:
            let tag = unsafe end.loadUnaligned(as: ShortTag.self)
            unsafe Self.store(UInt32(truncatingIfNeeded: index >> 16), at: end)
            return unsafe isAuthentic(packet, headerLength + payloadLength + 4, tag)
                && crypt(body, body, payloadLength, ssrc: ssrc, index: index)
        }
    }

    /// Encrypts an RTCP packet of `length` bytes in place and appends the index and the tag, in the profile's order.
    @unsafe
    func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = PacketShape.rtcpHeaderBytes
        let body = unsafe packet + header
        let end = unsafe packet + length
        let trailer = PacketShape.encryptedFlag | index
        switch mode {
        case .gcm:
            unsafe Self.store(trailer, at: end + Self.longTagBytes)
            var associated = unsafe Self.associatedData(packet, trailer)
            return unsafe withUnsafeBytes(of: &associated) { bytes in
                guard let start = bytes.baseAddress else { return false }
                return unsafe seal(
                    start,
                    bytes.count,
                    body,
                    body,
                    length - header,
                    ssrc: ssrc,
                    index: UInt64(index),
                    tag: end
                )
            }
        case .counterMode:
            guard unsafe crypt(body, body, length - header, ssrc: ssrc, index: UInt64(index)) else { return false }
            unsafe Self.store(trailer, at: end)
            unsafe authenticate(packet, length + 4, tag: end + 4)
            return true
        }
    }

    /// Decrypts an RTCP packet of `length` bytes, index and tag not counted, in place; see ``openRTP(_:headerLength:payloadLength:ssrc:index:)``.
    @unsafe
    func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = PacketShape.rtcpHeaderBytes
        let body = unsafe packet + header
        let end = unsafe packet + length
        switch mode {
        case .gcm:
            var associated = unsafe Self.associatedData(packet, PacketShape.encryptedFlag | index)
            return unsafe withUnsafeBytes(of: &associated) { bytes in
                guard let start = bytes.baseAddress else { return false }
                return unsafe open(
                    start,
                    bytes.count,
                    body,
                    length - header,
                    ssrc: ssrc,
                    index: UInt64(index),
                    tag: end
                )
            }
        case .counterMode:
            let tag = unsafe (end + 4).loadUnaligned(as: ShortTag.self)
            return unsafe isAuthentic(packet, length + 4, tag)
                && crypt(body, body, length - header, ssrc: ssrc, index: UInt64(index))
        }
    }

    // MARK: - The primitives

    private static let longTagBytes = 16
    /// Ten bytes, as a value that is copied before the packet changes.
    private typealias ShortTag = InlineArray<10, UInt8>

    /// The 96-bit nonce of GCM (RFC 7714 §8.1, §9.1), or the counter block of counter mode (RFC 3711 §4.1.1).
    private func initializationVector(ssrc: UInt32, index: UInt64) -> InlineArray<2, UInt64> {
        switch mode {
        case .gcm:
            [
                (saltHigh ^ (UInt64(ssrc) << 16 | index >> 32)).bigEndian,
                (saltLow ^ index << 32).bigEndian,
            ]
        case .counterMode: [(saltHigh ^ UInt64(ssrc)).bigEndian, (saltLow ^ index << 16).bigEndian]
        }
    }

    private func seal(
        _ associated: UnsafeRawPointer,
        _ associatedLength: Int,
        _ plain: UnsafeRawPointer,
        _ cipher: UnsafeMutableRawPointer,
        _ length: Int,
        ssrc: UInt32,
        index: UInt64,
        tag: UnsafeMutableRawPointer
    ) -> Bool {
        var vector = initializationVector(ssrc: ssrc, index: index)
        return unsafe withUnsafeBytes(of: &vector) { nonce in
            if let multiBuffer = unsafe multiBuffer {
                unsafe nagare_imb_gcm_seal(
                    multiBuffer.pointee.manager,
                    context,
                    nonce.baseAddress,
                    associated,
                    associatedLength,
                    plain,
                    cipher,
                    length,
                    tag
                )
                return true
            }
            return unsafe nagare_GCM_seal(
                context,
                nonce.baseAddress,
                associated,
                Int32(truncatingIfNeeded: associatedLength),
                plain,
                cipher,
                Int32(truncatingIfNeeded: length),
                tag
            ) == 1
        }
    }

    private func open(
        _ associated: UnsafeRawPointer,
        _ associatedLength: Int,
        _ bytes: UnsafeMutableRawPointer,
        _ length: Int,
        ssrc: UInt32,
        index: UInt64,
        tag: UnsafeRawPointer
    ) -> Bool {
        var vector = initializationVector(ssrc: ssrc, index: index)
        return unsafe withUnsafeBytes(of: &vector) { nonce in
            if let multiBuffer = unsafe multiBuffer {
                return unsafe nagare_imb_gcm_open(
                    multiBuffer.pointee.manager,
                    context,
                    nonce.baseAddress,
                    associated,
                    associatedLength,
                    bytes,
                    bytes,
                    length,
                    tag
                )
            }
            return unsafe nagare_GCM_open(
                context,
                nonce.baseAddress,
                associated,
                Int32(truncatingIfNeeded: associatedLength),
                bytes,
                bytes,
                Int32(truncatingIfNeeded: length),
                tag
            ) == 1
        }
    }

    private func crypt(
        _ input: UnsafeRawPointer,
        _ output: UnsafeMutableRawPointer,
        _ length: Int,
        ssrc: UInt32,
        index: UInt64
    ) -> Bool {
        var vector = initializationVector(ssrc: ssrc, index: index)
        return unsafe withUnsafeBytes(of: &vector) { counter in
            if let multiBuffer = unsafe multiBuffer {
                unsafe nagare_imb_ctr(
                    multiBuffer.pointee.manager,
                    context,
                    counter.baseAddress,
                    input,
                    output,
                    length
                )
                return true
            }
            return unsafe nagare_CTR_crypt(
                context,
                counter.baseAddress,
                input,
                output,
                Int32(truncatingIfNeeded: length)
            ) == 1
        }
    }

    /// Writes the ten bytes of tag over `length` bytes at `packet`.
    private func authenticate(_ packet: UnsafeRawPointer, _ length: Int, tag: UnsafeMutableRawPointer) {
        var digest = InlineArray<20, UInt8>(repeating: 0)
        unsafe withUnsafeMutableBytes(of: &digest) { bytes in
            unsafe nagare_HMAC_SHA1(authentication, packet, length, bytes.baseAddress)
            if let start = bytes.baseAddress { unsafe tag.copyMemory(from: start, byteCount: Self.shortTagBytes) }
        }
    }

    private func isAuthentic(_ packet: UnsafeRawPointer, _ length: Int, _ tag: ShortTag) -> Bool {
        var digest = InlineArray<20, UInt8>(repeating: 0)
        var tag = tag
        return unsafe withUnsafeMutableBytes(of: &digest) { bytes in
            unsafe nagare_HMAC_SHA1(authentication, packet, length, bytes.baseAddress)
            return unsafe withUnsafeBytes(of: &tag) {
                unsafe CRYPTO_memcmp(bytes.baseAddress, $0.baseAddress, Self.shortTagBytes) == 0
            }
        }
    }

    /// What GCM authenticates of an SRTCP packet besides the ciphertext: header and trailer, which do not stand together
    /// (RFC 7714 §9.2).
    private static func associatedData(_ packet: UnsafeRawPointer, _ trailer: UInt32) -> InlineArray<3, UInt32> {
        unsafe [
            packet.loadUnaligned(as: UInt32.self),
            packet.loadUnaligned(fromByteOffset: 4, as: UInt32.self),
            trailer.bigEndian,
        ]
    }

    private static func store(_ value: UInt32, at place: UnsafeMutableRawPointer) {
        unsafe place.storeBytes(of: value.bigEndian, as: UInt32.self)
    }

    private static func makeContext(
        _ profile: SRTPProfile,
        key: UnsafePointer<UInt8>,
        _ direction: Direction,
        _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    ) -> OpaquePointer? {
        if let manager = unsafe multiBuffer?.pointee.manager {
            return unsafe profile == .aes128CMHMACSHA1
                ? nagare_imb_create_ctr_key(manager, key, profile.keyLength)
                : nagare_imb_create_gcm_key(manager, key, profile.keyLength)
        }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        let cipher =
            switch profile {
            case .aes128CMHMACSHA1: unsafe EVP_aes_128_ctr()
            case .aeadAES128GCM: unsafe EVP_aes_128_gcm()
            case .aeadAES256GCM: unsafe EVP_aes_256_gcm()
            }
        // Counter mode runs the same way both ways.
        let isEncrypting: Int32 = direction == .sealing || profile == .aes128CMHMACSHA1 ? 1 : 0
        if unsafe EVP_CipherInit_ex(context, cipher, nil, key, nil, isEncrypting) == 1 { return unsafe context }
        unsafe EVP_CIPHER_CTX_free(context)
        return nil
    }

    private static func free(_ context: OpaquePointer, _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?) {
        if unsafe multiBuffer != nil {
            unsafe nagare_imb_destroy_key(context)
        } else {
            unsafe EVP_CIPHER_CTX_free(context)
        }
    }
}
