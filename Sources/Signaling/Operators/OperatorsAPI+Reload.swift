import HTTPTypes
import JSON
package import Web

/// What a reload put in force.
package struct ReloadReport: Hashable, Sendable {
    /// The certificate of HTTPS and TURN over TLS; `nil` without one.
    package var certificate: CertificateInfo?
    /// The certificate of the admin listener; `nil` without one.
    package var adminCertificate: CertificateInfo?
    /// The settings that have another value, or a file with other contents, and are in force now: at most one name for each
    /// setting, and one for each limit.
    package var changed: [String] = []
    /// The settings that have another value than the one in force, which only a restart changes.
    package var needsRestart: [String] = []

    package init(certificate: CertificateInfo? = nil, adminCertificate: CertificateInfo? = nil) {
        self.certificate = certificate
        self.adminCertificate = adminCertificate
    }
}

/// Why a reload changed nothing, as a sentence for the operator.
package struct ReloadFailure: Error, Hashable, Sendable {
    package let message: String

    package init(message: String) { self.message = message }
}

/// Reads the settings of the node and their files again.
package typealias ReloadAction = @Sendable () async throws(ReloadFailure) -> ReloadReport

extension OperatorsAPI {
    static let reloadOperation = APIOperation(
        id: "reload",
        method: .post,
        path: APIOperation.path("/v1/reload"),
        summary:
            "Reads the settings and their files again: certificates, tokens, keys, limits, webhooks and the log level. An "
            + "unusable one changes nothing.",
        answer: .object([
            APIProperty(
                "changed",
                .array(.string(1...64), 0...256, isUnique: true),
                required: true,
                "The settings that have changed and are in force now."
            ),
            APIProperty(
                "needs_restart",
                .array(.string(1...64), 0...256, isUnique: true),
                required: true,
                "The settings that have changed and are in force only after a restart."
            ),
            APIProperty(
                "certificate",
                certificateSchema,
                "The certificate of --tls-cert that is in force now; none without TLS."
            ),
            APIProperty(
                "admin_certificate",
                certificateSchema,
                "The certificate of --admin-tls-cert that is in force now; none without TLS of the admin address."
            ),
        ]),
        problems: [.reloadFailed]
    ) { api, _ in try await api.performReload() }

    private static let certificateSchema = APISchema.object([
        APIProperty("serial", .string(1...64), required: true, "Its serial number, hexadecimal."),
        APIProperty(
            "expires_at",
            .integer(.min ... .max),
            required: true,
            "The end of its validity, in seconds since 1970."
        ),
    ])

    private func performReload() async throws(Problem) -> JSONValue {
        do throws(ReloadFailure) {
            let report = try await reload()
            var answer: [String: JSONValue] = [
                "changed": .array(report.changed.map { .string($0) }),
                "needs_restart": .array(report.needsRestart.map { .string($0) }),
            ]
            for (name, facts) in [
                ("certificate", report.certificate), ("admin_certificate", report.adminCertificate),
            ] {
                answer[name] = facts.map { facts in
                    ["serial": .string(facts.serial), "expires_at": .integer(Int64(facts.expiresAt))]
                }
            }
            return .object(answer)
        } catch {
            throw Problem(.reloadFailed, error.message)
        }
    }
}
