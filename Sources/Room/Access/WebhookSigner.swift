import Signatures

/// Signs the requests of webhooks, so that a server knows that they are the node's and not older ones sent again.
///
/// The signature is an HMAC with SHA-256 (RFC 2104) over the time in seconds since 1970 as decimal digits, a full stop and the
/// body.
package struct WebhookSigner: Sendable, CustomStringConvertible, CustomReflectable {
    /// The header of the signature.
    package static let header = "Nagare-Signature"
    /// The bytes that a secret needs at least. Shorter ones can be guessed from a request.
    package static let secretBytesMin = 32

    private let key: SignatureKey

    /// `nil` for a secret of fewer than ``secretBytesMin`` bytes.
    package init?(secret: String) {
        guard secret.utf8.count >= Self.secretBytesMin else { return nil }
        key = SignatureKey(hmacSecret: Array(secret.utf8))
    }

    /// The value of the header: `t=SECONDS,v1=HEX`.
    /// - Parameter seconds: since 1970.
    package func value(of body: [UInt8], at seconds: Int64) -> String {
        let code = key.signature(over: Array("\(seconds).".utf8) + body) ?? []
        let digits = Array("0123456789abcdef".utf8)
        let text = code.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "t=\(seconds),v1=\(String(decoding: text, as: UTF8.self))"
    }

    package var description: String { "hidden" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
