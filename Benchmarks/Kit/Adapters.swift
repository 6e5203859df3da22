internal import DTLS
internal import Forwarding
package import SRTP
package import Wire

// Everything here that follows a change of the product's interfaces.

/// What encrypts on the node's side.
package enum Backend: String, CaseIterable, Sendable {
    case libsrtp2

    /// The ones that this build and this machine have, best first.
    package static var available: [Backend] { allCases }
    /// What the forwarder uses unless told otherwise.
    package static var preferred: Backend { .libsrtp2 }
    /// What the floor beside it encrypts with.
    var floorEngine: Int32 { 0 }
}

/// A receiver's or publisher's end of SRTP.
package func makeTransform(_ keys: SRTPKeyingMaterial, _ backend: Backend) throws -> any SRTPTransform {
    try LibSRTPTransform(keys)
}

func makeForwarder(_ certificate: DTLSCertificate, _ backend: Backend, seed: UInt64) -> Forwarder {
    var generator = SeededGenerator(seed: seed)
    return Forwarder(
        ForwarderConfiguration(certificate: certificate, unixNanosecondsAtZero: 1_700_000_000_000_000_000) {
            generator.next()
        }
    )
}

extension Forwarder {
    /// Completes the packets that a multi-buffer backend has begun; before the batch is read.
    @inline(__always)
    func completeBatch() {}
}
