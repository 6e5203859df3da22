import Base
internal import COpenSSL
import Wire

/// What the keys of one direction of a link between nodes are derived from.
public struct MediaLinkKeySchedule: Sendable {
    /// Bytes of a secret.
    public static let secretBytes = 32

    private let receiverSecret: [UInt8]
    private let senderSecret: [UInt8]
    private let context: [UInt8]

    /// Both secrets are new for every link, so that the counters of two links never meet under one key.
    /// - Parameters:
    ///   - receiverSecret: the secret of the end that receives.
    ///   - senderSecret: the secret of the end that sends.
    ///   - context: the protocol version and both ends, different for the two directions.
    public init(receiverSecret: [UInt8], senderSecret: [UInt8], context: [UInt8]) {
        precondition(receiverSecret.count == Self.secretBytes, "a secret has 256 bits")
        precondition(senderSecret.count == Self.secretBytes, "a secret has 256 bits")
        self.receiverSecret = receiverSecret
        self.senderSecret = senderSecret
        self.context = context
    }

    /// The keys of a phase, by HKDF-SHA256 (RFC 5869) with one block of output: 16 bytes of key and 12 of salt.
    /// - Returns: `nil` when the library fails.
    func makeKey(
        phase: UInt32,
        _ direction: PacketCipher.Direction,
        _ multiBuffer: UnsafeMutablePointer<MultiBuffer>?
    ) -> MediaLinkKey? {
        var info = Array("nagare relay".utf8) + context
        info.append(bigEndian: phase)
        info.append(1)
        guard var extracted = Self.authenticate(receiverSecret, key: senderSecret),
            var output = Self.authenticate(info, key: extracted)
        else { return nil }
        defer {
            unsafe OPENSSL_cleanse(&extracted, extracted.count)
            unsafe OPENSSL_cleanse(&output, output.count)
        }
        let key = unsafe output.withUnsafeBufferPointer { bytes -> GCMKey? in
            guard let start = bytes.baseAddress else { return nil }
            return unsafe GCMKey(start, count: 16, direction, multiBuffer)
        }
        guard let key = unsafe key else { return nil }
        let salt = unsafe output.span.bytes
        return unsafe MediaLinkKey(
            key: key,
            phase: phase,
            saltHigh: salt.bigEndianUInt32(at: 16),
            saltLow: salt.bigEndianUInt64(at: 20)
        )
    }

    private static func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 32)
        let result = unsafe HMAC(
            EVP_sha256(),
            key,
            Int32(truncatingIfNeeded: key.count),
            bytes,
            bytes.count,
            &digest,
            nil
        )
        return unsafe result == nil ? nil : digest
    }
}

/// The key of one phase of one direction of a link.
///
/// A plain value: its owner calls ``destroy()`` once.
@safe
struct MediaLinkKey: BitwiseCopyable {
    private let key: GCMKey
    let phase: UInt32
    private let saltHigh: UInt32
    private let saltLow: UInt64

    @unsafe
    init(key: GCMKey, phase: UInt32, saltHigh: UInt32, saltLow: UInt64) {
        unsafe self.key = key
        self.phase = phase
        self.saltHigh = saltHigh
        self.saltLow = saltLow
    }

    func destroy() { unsafe key.destroy() }

    /// The salt with the counter XORed in on the right, in network order; 12 bytes count.
    private func nonce(_ counter: UInt64) -> [4 of UInt32] {
        let low = saltLow ^ counter
        return [
            saltHigh.bigEndian, UInt32(truncatingIfNeeded: low >> 32).bigEndian,
            UInt32(truncatingIfNeeded: low).bigEndian, 0,
        ]
    }

    /// Encrypts the contents behind the header in place, and appends the tag.
    /// - Parameter length: bytes of header and contents.
    /// - Returns: whether it succeeded.
    @unsafe
    @inline(__always)
    func seal(_ datagram: UnsafeMutableRawPointer, length: Int, counter: UInt64) -> Bool {
        var nonce = nonce(counter)
        let header = TransferEnvelope.headerBytes
        return unsafe withUnsafeBytes(of: &nonce) {
            guard let nonce = $0.baseAddress else { return false }
            return unsafe key.seal(
                nonce,
                datagram,
                header,
                datagram + header,
                datagram + header,
                length - header,
                tag: datagram + length
            )
        }
    }

    /// Decrypts the contents of a datagram in place.
    /// - Parameter length: bytes of header and contents, without the tag.
    /// - Returns: whether the tag is right.
    @unsafe
    @inline(__always)
    func open(_ datagram: UnsafeMutableRawPointer, length: Int, counter: UInt64) -> Bool {
        var nonce = nonce(counter)
        let header = TransferEnvelope.headerBytes
        return unsafe withUnsafeBytes(of: &nonce) {
            guard let nonce = $0.baseAddress else { return false }
            return unsafe key.open(nonce, datagram, header, datagram + header, length - header, tag: datagram + length)
        }
    }
}
