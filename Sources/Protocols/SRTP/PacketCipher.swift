import Base
internal import CIPSecMB
internal import COpenSSL
import Wire

/// The expanded session keys of one direction of SRTP or SRTCP, with the operations on packets.
///
/// A plain value without reference counting: its owner calls ``destroy()`` once.
@safe
struct PacketCipher: BitwiseCopyable {
    enum Stream { case rtp, rtcp }
    enum Direction { case sealing, opening }

    private enum Mode { case gcm, counterMode }

    private let mode: Mode
    /// The intel-ipsec-mb manager; `nil` for OpenSSL.
    private let multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    /// The key of intel-ipsec-mb, or OpenSSL's context with the key set. Each packet sets the initialization vector
    /// only.
    private let context: OpaquePointer
    /// The authentication key in counter mode; `nil` in GCM.
    private let authentication: UnsafeMutablePointer<nagare_HMAC_SHA1_key>?
    /// The session salt as two integers, padded with zeros on the right.
    private let saltHigh: UInt64
    private let saltLow: UInt64

    /// The tag length in counter mode: HMAC-SHA1-80 (RFC 3711 §5.2).
    static let hmacTagBytes = 10
    private static let digestBytes = 20

    /// Whether an SRTCP packet ends with its index (RFC 7714 §9.2) or with its tag (RFC 3711 §3.4).
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

    /// Encrypts `payload` to the bytes after the header at `packet`, and appends the tag. Returns whether it succeeded.
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
            // The roll-over counter is authenticated after the packet and is then overwritten by the tag (RFC 3711
            // §4.2).
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

    /// Authenticates and decrypts, in place, an RTP packet of `headerLength` + `payloadLength` bytes and a tag. Returns
    /// whether the tag is valid; if not, the bytes after the header are unspecified.
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
            let tag = unsafe end.loadUnaligned(as: HMACTag.self)
            unsafe Self.store(UInt32(truncatingIfNeeded: index >> 16), at: end)
            return unsafe isAuthentic(packet, headerLength + payloadLength + 4, tag)
                && crypt(body, body, payloadLength, ssrc: ssrc, index: index)
        }
    }

    /// Encrypts an RTCP packet of `length` bytes in place and appends the index and the tag, in the profile's order.
    @unsafe
    func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = PacketLayout.rtcpHeaderBytes
        let body = unsafe packet + header
        let end = unsafe packet + length
        let trailer = PacketLayout.encryptedFlag | index
        switch mode {
        case .gcm:
            unsafe Self.store(trailer, at: end + Self.gcmTagBytes)
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

    /// Authenticates and decrypts, in place, an RTCP packet of `length` bytes without index and tag; see
    /// ``openRTP(_:headerLength:payloadLength:ssrc:index:)``.
    @unsafe
    func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let header = PacketLayout.rtcpHeaderBytes
        let body = unsafe packet + header
        let end = unsafe packet + length
        switch mode {
        case .gcm:
            var associated = unsafe Self.associatedData(packet, PacketLayout.encryptedFlag | index)
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
            let tag = unsafe (end + 4).loadUnaligned(as: HMACTag.self)
            return unsafe isAuthentic(packet, length + 4, tag)
                && crypt(body, body, length - header, ssrc: ssrc, index: UInt64(index))
        }
    }

    // MARK: - Primitives

    private static let gcmTagBytes = unsafe GCMKey.tagBytes
    /// A copy of the ten tag bytes, made before the packet changes.
    private typealias HMACTag = InlineArray<10, UInt8>

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
            guard let nonce = nonce.baseAddress else { return false }
            return unsafe GCMKey(context, multiBuffer).seal(
                nonce,
                associated,
                associatedLength,
                plain,
                cipher,
                length,
                tag: tag
            )
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
            guard let nonce = nonce.baseAddress else { return false }
            return unsafe GCMKey(context, multiBuffer).open(
                nonce,
                associated,
                associatedLength,
                bytes,
                length,
                tag: tag
            )
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

    /// Writes the HMAC-SHA1-80 tag over `length` bytes at `packet`.
    private func authenticate(_ packet: UnsafeRawPointer, _ length: Int, tag: UnsafeMutableRawPointer) {
        var digest = InlineArray<20, UInt8>(repeating: 0)
        unsafe withUnsafeMutableBytes(of: &digest) { bytes in
            unsafe nagare_HMAC_SHA1(authentication, packet, length, bytes.baseAddress)
            if let start = bytes.baseAddress { unsafe tag.copyMemory(from: start, byteCount: Self.hmacTagBytes) }
        }
    }

    private func isAuthentic(_ packet: UnsafeRawPointer, _ length: Int, _ tag: HMACTag) -> Bool {
        var digest = InlineArray<20, UInt8>(repeating: 0)
        var tag = tag
        return unsafe withUnsafeMutableBytes(of: &digest) { bytes in
            unsafe nagare_HMAC_SHA1(authentication, packet, length, bytes.baseAddress)
            return unsafe withUnsafeBytes(of: &tag) {
                unsafe CRYPTO_memcmp(bytes.baseAddress, $0.baseAddress, Self.hmacTagBytes) == 0
            }
        }
    }

    /// The associated data of an SRTCP packet: header and trailer, which are not contiguous (RFC 7714 §9.2).
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
        guard profile == .aes128CMHMACSHA1 else {
            return unsafe GCMKey(key, count: profile.keyLength, direction, multiBuffer)?.context
        }
        if let manager = unsafe multiBuffer?.pointee.manager {
            return unsafe nagare_imb_create_ctr_key(manager, key, profile.keyLength)
        }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        // In counter mode encryption and decryption are the same operation.
        if unsafe EVP_CipherInit_ex(context, EVP_aes_128_ctr(), nil, key, nil, 1) == 1 { return unsafe context }
        unsafe EVP_CIPHER_CTX_free(context)
        return nil
    }

    private static func free(_ context: OpaquePointer, _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?) {
        unsafe GCMKey(context, multiBuffer).destroy()
    }
}
