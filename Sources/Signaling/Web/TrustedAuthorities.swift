package import NIOSSL

/// The authorities whose certificates a client of an operator's server accepts.
///
/// They are read before the client is made, because a client that was made has to be shut down.
package struct TrustedAuthorities: Sendable {
    /// Those of the system.
    package static let system = Self(certificates: nil)

    /// `nil` for the system's.
    package let certificates: [NIOSSLCertificate]?

    private init(certificates: [NIOSSLCertificate]?) { self.certificates = certificates }

    /// - Parameters:
    ///   - path: The file of their certificates, PEM; `nil` for those of the system.
    ///   - purpose: What the certificates are for, for the error.
    /// - Throws: When the file is unusable; the error names it.
    package init(path: String?, for purpose: String) throws(ServerStartError) {
        guard let path else {
            self = .system
            return
        }
        let found: [NIOSSLCertificate]
        do {
            found = try NIOSSLCertificate.fromPEMFile(path)
        } catch {
            throw Self.failure(path, purpose, "\(error)")
        }
        guard !found.isEmpty else { throw Self.failure(path, purpose, "there is none") }
        self.init(certificates: found)
    }

    private static func failure(_ path: String, _ purpose: String, _ reason: String) -> ServerStartError {
        ServerStartError(
            message: "The certificates for \(purpose), \(path), cannot be read: \(reason). Name a file of "
                + "certificates in PEM format, each between BEGIN CERTIFICATE and END CERTIFICATE."
        )
    }
}
