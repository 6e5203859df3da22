import Base
internal import NIOSSL

/// Protects links with TLS whose key exchange the cluster's secret authenticates (RFC 8422, RFC 5489): who does not have it
/// gets no connection, and no certificate is needed.
///
/// Deviation: TLS 1.2, because BoringSSL has no pre-shared keys in TLS 1.3. The one cipher suite has forward secrecy and is
/// an AEAD (RFC 7905).
package struct LinkSecurity: Sendable {
    /// The fewest characters of a secret. An attacker may guess offline, so it has to be random.
    package static let secretBytesMin = 32
    package static let secretBytesMax = 256
    /// The secrets that are accepted together while one replaces the other.
    package static let secretsMax = 2
    private static let cipherSuite = "ECDHE-PSK-CHACHA20-POLY1305"

    let client: NIOSSLContext
    let server: NIOSSLContext

    /// - Parameter secrets: those that are accepted, the one to dial with first; each of ``secretBytesMin`` to
    ///   ``secretBytesMax`` bytes.
    /// - Returns: `nil` for secrets of another number or length.
    package init?(secrets: [String]) {
        let lengths = Self.secretBytesMin...Self.secretBytesMax
        guard let first = secrets.first, secrets.count <= Self.secretsMax,
            secrets.allSatisfy({ lengths ~= $0.utf8.count })
        else { return nil }
        var client = TLSConfiguration.makePreSharedKeyConfiguration()
        var server = TLSConfiguration.makePreSharedKeyConfiguration()
        let identity = Self.identity(of: first)
        client.pskClientProvider = { (_: PSKClientContext) in
            var key = NIOSSLSecureBytes()
            key.append(first.utf8)
            return PSKClientIdentityResponse(key: key, identity: identity)
        }
        server.pskServerProvider = { (context: PSKServerContext) in
            // Of an unknown secret, so that the handshake fails at the key and not at the name.
            let secret = secrets.first { Self.identity(of: $0) == context.clientIdentity } ?? first
            var key = NIOSSLSecureBytes()
            key.append(secret.utf8)
            return PSKServerIdentityResponse(key: key)
        }
        for (configuration, isServer) in [(client, false), (server, true)] {
            var configuration = configuration
            configuration.minimumTLSVersion = .tlsv12
            configuration.maximumTLSVersion = .tlsv12
            configuration.cipherSuites = Self.cipherSuite
            configuration.pskHint = "nagare"
            if isServer { server = configuration } else { client = configuration }
        }
        guard let clientContext = try? NIOSSLContext(configuration: client),
            let serverContext = try? NIOSSLContext(configuration: server)
        else { return nil }
        self.client = clientContext
        self.server = serverContext
    }

    /// Whether the other side refused a handshake, as a node with other secrets does. A connection that merely ends during one
    /// says nothing: its node may stop, or have too many.
    static func isRefusal(_ error: any Error) -> Bool {
        guard case .handshakeFailed(.sslError(let errors))? = error as? NIOSSLError else { return false }
        return !errors.contains(.eofDuringHandshake)
    }

    /// Tells two secrets apart. Sixteen bits of a digest, of no use to guess the secret.
    static func identity(of secret: String) -> String {
        var hash = SHA1()
        let bytes = Array("nagare link ".utf8) + Array(secret.utf8)
        unsafe hash.update(bytes.span.bytes)
        let digest = hash.finalize()
        let digits = Array("0123456789abcdef")
        return String([digest[0] >> 4, digest[0] & 15, digest[1] >> 4, digest[1] & 15].map { digits[Int($0)] })
    }
}
