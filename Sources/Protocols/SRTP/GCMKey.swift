internal import CIPSecMB
internal import COpenSSL

/// An expanded AES key, with AES-GCM on it.
///
/// A plain value without reference counting: its owner calls ``destroy()`` once.
@unsafe
struct GCMKey: BitwiseCopyable {
    static let tagBytes = 16

    /// The key of intel-ipsec-mb, or OpenSSL's context with the key set.
    let context: OpaquePointer
    /// The intel-ipsec-mb manager; `nil` for OpenSSL.
    private let multiBuffer: UnsafeMutablePointer<MultiBuffer>?

    init(_ context: OpaquePointer, _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?) {
        unsafe self.context = context
        unsafe self.multiBuffer = multiBuffer
    }

    /// - Parameter count: bytes of the key, 16 or 32.
    /// - Returns: `nil` when the library fails.
    init?(
        _ key: UnsafePointer<UInt8>,
        count: Int,
        _ direction: PacketCipher.Direction,
        _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    ) {
        precondition(count == 16 || count == 32, "an AES key has 128 or 256 bits")
        unsafe self.multiBuffer = multiBuffer
        if let manager = unsafe multiBuffer?.pointee.manager {
            guard let made = unsafe nagare_imb_create_gcm_key(manager, key, count) else { return nil }
            unsafe context = made
            return
        }
        guard let made = unsafe EVP_CIPHER_CTX_new() else { return nil }
        let cipher = unsafe count == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm()
        guard unsafe EVP_CipherInit_ex(made, cipher, nil, key, nil, direction == .sealing ? 1 : 0) == 1 else {
            unsafe EVP_CIPHER_CTX_free(made)
            return nil
        }
        unsafe context = made
    }

    func destroy() {
        if unsafe multiBuffer != nil {
            unsafe nagare_imb_destroy_key(context)
        } else {
            unsafe EVP_CIPHER_CTX_free(context)
        }
    }

    /// Encrypts `length` bytes from `plain` to `cipher`, which are the same place or do not overlap.
    /// - Returns: whether it succeeded.
    @inline(__always)
    func seal(
        _ nonce: UnsafeRawPointer,
        _ associated: UnsafeRawPointer,
        _ associatedLength: Int,
        _ plain: UnsafeRawPointer,
        _ cipher: UnsafeMutableRawPointer,
        _ length: Int,
        tag: UnsafeMutableRawPointer
    ) -> Bool {
        if let multiBuffer = unsafe multiBuffer {
            unsafe nagare_imb_gcm_seal(
                multiBuffer.pointee.manager,
                context,
                nonce,
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
            nonce,
            associated,
            Int32(truncatingIfNeeded: associatedLength),
            plain,
            cipher,
            Int32(truncatingIfNeeded: length),
            tag
        ) == 1
    }

    /// Decrypts `length` bytes in place.
    /// - Returns: whether the tag is right; if not, the bytes are unspecified.
    @inline(__always)
    func open(
        _ nonce: UnsafeRawPointer,
        _ associated: UnsafeRawPointer,
        _ associatedLength: Int,
        _ bytes: UnsafeMutableRawPointer,
        _ length: Int,
        tag: UnsafeRawPointer
    ) -> Bool {
        if let multiBuffer = unsafe multiBuffer {
            return unsafe nagare_imb_gcm_open(
                multiBuffer.pointee.manager,
                context,
                nonce,
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
            nonce,
            associated,
            Int32(truncatingIfNeeded: associatedLength),
            bytes,
            bytes,
            Int32(truncatingIfNeeded: length),
            tag
        ) == 1
    }
}
