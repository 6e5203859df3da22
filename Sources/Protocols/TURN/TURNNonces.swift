import Base
import Wire

/// Makes and checks nonces without storing them (RFC 8489 §9.2): the time and an HMAC over it and the client's address,
/// so that a nonce is valid for one client and a limited time.
struct TURNNonces: Sendable {
    /// The bytes of a nonce: 4 of time, 8 of HMAC, in Base64.
    static let textBytes = 16
    private static let codeBytes = 8

    private let key: [UInt8]

    init(key: [UInt8]? = nil, using generator: inout some RandomNumberGenerator) {
        self.key = key ?? (0..<SHA1.digestBytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    func make(for client: NetworkPath, at now: Instant) -> String { nonce(for: client, seconds: Self.seconds(now)) }

    /// Whether ``make(for:at:)`` made the nonce for the same client not too long ago.
    func isValid(_ nonce: String, for client: NetworkPath, at now: Instant) -> Bool {
        guard nonce.utf8.count == Self.textBytes, let bytes = Base64.decode(nonce) else { return false }
        let made = bytes.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard Self.seconds(now) &- made <= TURNTimes.nonceSeconds else { return false }
        var difference: UInt8 = 0
        for (left, right) in zip(nonce.utf8, self.nonce(for: client, seconds: made).utf8) { difference |= left ^ right }
        return difference == 0
    }

    private func nonce(for client: NetworkPath, seconds: UInt32) -> String {
        var text: [UInt8] = []
        text.append(bigEndian: seconds)
        var covered = text
        // A stream has another index on each loop; its client's address is verified.
        let local = client.local.kind == .tcp ? LocalEndpoint(.tcp, index: 0) : client.local
        covered.append(bigEndian: local.rawValue)
        covered.append(bigEndian: client.remote.ip.high)
        covered.append(bigEndian: client.remote.ip.low)
        covered.append(bigEndian: client.remote.port)
        var code = HMACSHA1(key: unsafe key.span.bytes)
        code.update(unsafe covered.span.bytes)
        let digest = code.finalize()
        for index in 0..<Self.codeBytes { text.append(digest[index]) }
        return Base64.encode(text)
    }

    /// Whole seconds of the loop's clock; they wrap.
    private static func seconds(_ now: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000_000)
    }
}
