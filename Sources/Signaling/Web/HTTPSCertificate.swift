import Base
import ChannelTypes
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOSSL
import Room

/// A PEM file that an operator named, and what was read from it.
package struct PEMFile: Sendable {
    /// Where it was read, for errors.
    package var path: String
    package var contents: [UInt8]

    package init(path: String, contents: [UInt8]) {
        self.path = path
        self.contents = contents
    }
}

/// What distinguishes one certificate from its predecessor.
package struct CertificateInfo: Hashable, Sendable {
    /// The serial number in hexadecimal digits (RFC 5280 §4.1.2.2).
    package let serial: String
    /// The end of its validity, in seconds since 1970.
    package let expiresAt: Int

    package init(serial: String, expiresAt: Int) {
        self.serial = serial
        self.expiresAt = expiresAt
    }
}

/// The certificate of a listener with HTTPS, which can be replaced while the listener runs: a new connection uses the newest
/// one, and an open connection goes on with its own.
package final class HTTPSCertificate: Sendable {
    /// A certificate with its key, ready for use.
    package struct Loaded: Sendable {
        fileprivate let context: NIOSSLContext
        package let facts: CertificateInfo
    }

    private let loaded: Replaceable<Loaded>

    /// - Parameters:
    ///   - chain: The server's certificate, and those of its authorities behind it.
    ///   - key: The private key of the first certificate.
    /// - Throws: When a file is unusable; the error names it.
    package init(chain: PEMFile, key: PEMFile) throws(ServerStartError) {
        loaded = Replaceable(try Loaded(chain: chain, key: key))
    }

    /// Replaces the certificate for new connections.
    /// - Throws: When a file is unusable. The old certificate is in force then.
    package func replace(chain: PEMFile, key: PEMFile) throws(ServerStartError) {
        replace(with: try Loaded(chain: chain, key: key))
    }

    /// Replaces the certificate for new connections.
    package func replace(with loaded: Loaded) { self.loaded.current = loaded }

    /// The certificate in force.
    package var facts: CertificateInfo { loaded.current.facts }

    var context: NIOSSLContext { loaded.current.context }
}

extension HTTPSCertificate.Loaded {
    /// - Throws: When a file is unusable; the error names it.
    package init(chain: PEMFile, key: PEMFile) throws(ServerStartError) {
        let certificates: [NIOSSLCertificate]
        let privateKey: NIOSSLPrivateKey
        do {
            certificates = try NIOSSLCertificate.fromPEMBytes(chain.contents)
        } catch {
            throw ServerStartError(message: "The TLS certificate \(chain.path) cannot be read: \(error).")
        }
        guard let first = certificates.first else {
            throw ServerStartError(message: "The TLS certificate \(chain.path) cannot be read: it has no certificate.")
        }
        do {
            privateKey = try NIOSSLPrivateKey(bytes: key.contents, format: .pem)
        } catch {
            throw ServerStartError(message: "The TLS key \(key.path) cannot be read: \(error).")
        }
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates.map { .certificate($0) },
            privateKey: .privateKey(privateKey)
        )
        tls.minimumTLSVersion = .tlsv12
        // Sora's SDKs do not answer close_notify, and their disconnect() waits for the end of the connection.
        tls.shutdownTimeout = .milliseconds(500)
        tls.applicationProtocols = ["http/1.1"]
        do {
            context = try NIOSSLContext(configuration: tls)
            let digits = first.serialNumber.map { byte in
                let text = String(byte, radix: 16)
                return text.utf8.count < 2 ? "0\(text)" : text
            }
            facts = CertificateInfo(serial: digits.joined(), expiresAt: Int(first.notValidAfter))
        } catch {
            throw ServerStartError(
                message: "The TLS certificate \(chain.path) and the key \(key.path) do not belong together: \(error)."
            )
        }
    }
}

/// An HTTP connection over TLS, with the certificate that is in force when the connection begins. Or one of TURN over TLS.
///
/// A handshake takes the node up to a millisecond, and anybody can cause it.
package struct HTTPSChannel<Base: HTTPChannelHandler>: HTTPChannelHandler {
    let base: Base
    let certificate: HTTPSCertificate
    let sharedTURN: SharedTURN?
    /// Whether a handshake may begin on a connection, which counts it. One that may not is closed.
    let admits: @Sendable (any Channel) -> Bool

    package init(
        base: Base,
        certificate: HTTPSCertificate,
        sharedTURN: SharedTURN?,
        admits: @escaping @Sendable (any Channel) -> Bool
    ) {
        self.base = base
        self.certificate = certificate
        self.sharedTURN = sharedTURN
        self.admits = admits
    }

    package var responder: HTTPChannelHandler.Responder { base.responder }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            guard admits(channel) else {
                // A failed initializer would end the listener. Without TLS in the pipeline nothing is computed before the close.
                return channel.eventLoop.execute { channel.close(promise: nil) }
            }
            if let sharedTURN { try pipeline.addHandler(SharedPortHandler(sharedTURN)) }
            try pipeline.addHandler(NIOSSLServerHandler(context: certificate.context))
        }
        .flatMap { base.setup(channel: channel, logger: logger) }
    }

    package func handle(value: Base.Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
