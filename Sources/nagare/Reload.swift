import Foundation
import Logging
import Media
import Signaling

/// Reads the node's files again while it runs. So far these are the certificate and its key.
///
/// A reload puts everything in force or, when a file is unusable, nothing.
actor Reload {
    private let certificate: NodeCertificate?
    private let loops: [MediaLoop]
    private let logger: Logger
    /// The reload that began last.
    private var last: Task<Result<ReloadReport, ReloadFailure>, Never>?

    /// - Parameter loops: the TURN servers over TLS.
    init(_ certificate: NodeCertificate?, loops: [MediaLoop], logger: Logger) {
        self.certificate = certificate
        self.loops = loops
        self.logger = logger
    }

    /// Reloads and logs the result. Reloads take place one after the other, so that what was read last is in force.
    @discardableResult
    func perform() async throws(ReloadFailure) -> ReloadReport {
        let previous = last
        let task = Task { () -> Result<ReloadReport, ReloadFailure> in
            _ = await previous?.value
            return await renew()
        }
        last = task
        return try await task.value.get()
    }

    private func renew() async -> Result<ReloadReport, ReloadFailure> {
        guard let certificate else {
            logger.info("nothing to reload: the node has no certificate")
            return .success(ReloadReport())
        }
        do throws(StartupError) {
            if let renewed = try certificate.renew() {
                for loop in loops { await loop.renewTURNCertificate(renewed) }
            }
        } catch {
            let sentence =
                "\(error.sentence) The certificate in use stays: correct the files and reload again, with SIGHUP or POST /v1/reload."
            logger.error("\(sentence)")
            return .failure(ReloadFailure(sentence: sentence))
        }
        let facts = certificate.https.facts
        let expiry = Date(timeIntervalSince1970: Double(facts.expiresAt)).formatted(.iso8601)
        logger.info("reloaded the certificate", metadata: ["serial": "\(facts.serial)", "expires": "\(expiry)"])
        return .success(ReloadReport(certificate: facts))
    }
}
