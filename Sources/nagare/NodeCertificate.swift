import Signaling
import TLS

/// The certificate of the node's TLS listeners: of HTTPS, and of TURN over TLS.
struct NodeCertificate: Sendable {
    let files: TLSFiles
    /// Of the HTTPS listener, which uses it for new connections.
    let https: HTTPSCertificate
    /// Of TURN over TLS, as it was at the start; `nil` without.
    let turn: TLSCertificate?

    /// Reads the files; `nil` without TLS.
    init?(_ configuration: NodeConfiguration) throws(StartupError) {
        guard let files = configuration.tls else { return nil }
        self.files = files
        let (chain, key) = try Self.read(files)
        do throws(ServerStartError) {
            https = try HTTPSCertificate(chain: chain, key: key)
        } catch {
            throw .system(error.sentence)
        }
        turn = configuration.turnTLS == nil ? nil : try Self.turn(files, chain, key)
    }

    /// Reads the files again and replaces the certificate of HTTPS. When a file is unusable nothing changes.
    /// - Returns: the certificate for TURN over TLS; `nil` without.
    func renew() throws(StartupError) -> TLSCertificate? {
        let (chain, key) = try Self.read(files)
        let renewed = turn == nil ? nil : try Self.turn(files, chain, key)
        do throws(ServerStartError) {
            try https.replace(chain: chain, key: key)
        } catch {
            throw .system(error.sentence)
        }
        return renewed
    }

    private static func read(_ files: TLSFiles) throws(StartupError) -> (chain: PEMFile, key: PEMFile) {
        let chain = try SmallFile.contents(files.certificatePath)
        let key = try SmallFile.contents(files.keyPath)
        return (PEMFile(path: files.certificatePath, contents: chain), PEMFile(path: files.keyPath, contents: key))
    }

    private static func turn(
        _ files: TLSFiles,
        _ chain: PEMFile,
        _ key: PEMFile
    ) throws(StartupError) -> TLSCertificate {
        do throws(TLSError) {
            return try TLSCertificate(chain: chain.contents, key: key.contents)
        } catch {
            throw .system(error.sentence(files))
        }
    }
}
