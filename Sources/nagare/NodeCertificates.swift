import TLS
import ToolCommands
import Web

/// The certificates of the node's TLS listeners: of HTTPS and TURN over TLS, and of the admin address.
struct NodeCertificates: Sendable {
    /// Of the HTTPS listener, which uses it for new connections; `nil` without TLS.
    let https: HTTPSCertificate?
    /// Of TURN over TLS, as it was at the start; `nil` without.
    let turn: TLSCertificate?
    /// Of the admin listener, which uses it for new connections; `nil` without TLS.
    let admin: HTTPSCertificate?

    /// Reads the files.
    init(_ configuration: NodeConfiguration) throws(CommandError) {
        https = try configuration.tls.map { files throws(CommandError) in try Files(files).certificate() }
        admin = try configuration.adminTLS.map { files throws(CommandError) in try Files(files).certificate() }
        guard let files = configuration.tls, configuration.turnTLS != nil else {
            turn = nil
            return
        }
        turn = try Files(files).turn()
    }

    /// Reads the files again and replaces the certificates. When a file is unusable nothing changes.
    /// - Returns: the certificate for TURN over TLS; `nil` without.
    func renew(_ configuration: NodeConfiguration) throws(CommandError) -> TLSCertificate? {
        var renewals: [(HTTPSCertificate, HTTPSCertificate.Loaded)] = []
        var renewedTURN: TLSCertificate?
        if let https, let paths = configuration.tls {
            let files = try Files(paths)
            renewedTURN = turn == nil ? nil : try files.turn()
            renewals.append((https, try files.loaded()))
        }
        if let admin, let paths = configuration.adminTLS { renewals.append((admin, try Files(paths).loaded())) }
        for (certificate, loaded) in renewals { certificate.replace(with: loaded) }
        return renewedTURN
    }

    /// The contents of the files of one certificate.
    private struct Files {
        let paths: TLSFiles
        let chain: PEMFile
        let key: PEMFile

        init(_ paths: TLSFiles) throws(CommandError) {
            self.paths = paths
            chain = PEMFile(path: paths.certificatePath, contents: try SmallFile.contents(paths.certificatePath))
            key = PEMFile(path: paths.keyPath, contents: try SmallFile.contents(paths.keyPath))
        }

        func certificate() throws(CommandError) -> HTTPSCertificate {
            do throws(ServerStartError) {
                return try HTTPSCertificate(chain: chain, key: key)
            } catch {
                throw .system(error.message)
            }
        }

        func loaded() throws(CommandError) -> HTTPSCertificate.Loaded {
            do throws(ServerStartError) {
                return try HTTPSCertificate.Loaded(chain: chain, key: key)
            } catch {
                throw .system(error.message)
            }
        }

        func turn() throws(CommandError) -> TLSCertificate {
            do throws(TLSError) {
                return try TLSCertificate(chain: chain.contents, key: key.contents)
            } catch {
                throw .system(error.message(paths))
            }
        }
    }
}
