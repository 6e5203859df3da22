internal import Base
internal import DTLS
internal import Forwarding
internal import MediaTypes
internal import SRTP
internal import TURN
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

/// - Parameter isEstimating: how much each viewer is sent follows its feedback. Otherwise all of them get everything at once.
func makeForwarder(
    _ certificate: DTLSCertificate,
    _ backend: SRTPBackend,
    isEstimating: Bool,
    seed: UInt64
) -> Forwarder {
    var generator = SplitMix64(seed: seed)
    var configuration = ForwarderConfiguration(
        certificate: certificate,
        unixNanosecondsAtZero: 1_700_000_000_000_000_000
    ) { generator.next() }
    configuration.srtpBackend = backend
    configuration.sendRate.isEstimating = isEstimating
    return Forwarder(configuration)
}

extension Forwarder {
    /// Starts the TURN server of a forwarder with one media address.
    func startTURN(at media: TransportAddress) {
        startTURN(TURNConfiguration(addresses: [media.ip], reservedPorts: [media.port]), mediaAddresses: [media])
    }
}
