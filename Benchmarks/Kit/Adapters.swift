internal import DTLS
internal import Forwarding
internal import MediaTypes
internal import SRTP
internal import Wire

// Adapters to interfaces of the product that change often.

extension SRTPBackend {
    /// The encryption library of the C floor for this backend. libsrtp2 has no floor of its own and is compared with OpenSSL.
    var floorEngine: Int32 {
        switch self {
        case .libsrtp2, .openssl: 0
        case .ipsecMB: 1
        }
    }
}

/// A client's end of SRTP.
func makeTransform(_ keys: SRTPKeyingMaterial, _ engine: SRTPEngine) throws -> any SRTPTransform {
    try engine.makeTransform(keys)
}

func makeForwarder(_ certificate: DTLSCertificate, _ backend: SRTPBackend, seed: UInt64) -> Forwarder {
    var generator = SeededGenerator(seed: seed)
    var configuration = ForwarderConfiguration(
        certificate: certificate,
        unixNanosecondsAtZero: 1_700_000_000_000_000_000
    ) { generator.next() }
    configuration.srtpBackend = backend
    // Viewers here report nothing, and all of them are to get everything.
    configuration.sendRate.isEstimating = false
    return Forwarder(configuration)
}
