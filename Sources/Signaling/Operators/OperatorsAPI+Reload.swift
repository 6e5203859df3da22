import HTTPTypes
import JSON

/// What a reload put in force.
public struct ReloadReport: Hashable, Sendable {
    /// The certificate of the TLS listeners; `nil` without one.
    public var certificate: CertificateFacts?

    public init(certificate: CertificateFacts? = nil) { self.certificate = certificate }
}

/// Why a reload changed nothing, as a sentence for the operator.
public struct ReloadFailure: Error, Hashable, Sendable {
    public let sentence: String

    public init(sentence: String) { self.sentence = sentence }
}

/// Reads files of the node again, such as the certificate.
public typealias ReloadAction = @Sendable () async throws(ReloadFailure) -> ReloadReport

extension OperatorsAPI {
    static let reloadOperation = APIOperation(
        id: "reload",
        method: .post,
        path: APIOperation.path("/v1/reload"),
        summary:
            "Reads the files of --tls-cert and --tls-key again, for new connections. Unusable files change nothing.",
        answer: .object([
            APIProperty(
                "certificate",
                .object([
                    APIProperty("serial", .string(1...64), required: true, "Its serial number, hexadecimal."),
                    APIProperty(
                        "expires_at",
                        .integer(.min ... .max),
                        required: true,
                        "The end of its validity, in seconds since 1970."
                    ),
                ]),
                "The certificate that is in force now; none without TLS."
            )
        ]),
        problems: [.reloadFailed]
    ) { api, _ in try await api.performReload() }

    private func performReload() async throws(Problem) -> JSONValue {
        do throws(ReloadFailure) {
            guard let certificate = try await reload().certificate else { return .object([:]) }
            return [
                "certificate": [
                    "serial": .string(certificate.serial), "expires_at": .integer(Int64(certificate.expiresAt)),
                ]
            ]
        } catch {
            throw Problem(.reloadFailed, error.sentence)
        }
    }
}
