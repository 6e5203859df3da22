public import DTLS
public import MediaTypes
public import SRTP

/// What a forwarding core needs from outside: identity, entropy and the date.
public struct ForwarderConfiguration {
    /// Shown to every peer; its fingerprint stands in the SDP.
    public var certificate: DTLSCertificate
    /// Random 64-bit numbers: SSRC-like identifiers and first sequence numbers.
    public var random: () -> UInt64
    /// Nanoseconds since 1970 at `Instant(nanoseconds: 0)`: the wall clock of sender reports.
    public var unixNanosecondsAtZero: Int64
    /// Peers on one core; more are refused.
    public var peersMax: Int
    /// The SRTP profiles that are offered and accepted, best first.
    public var srtpProfiles = DTLSConnection.profiles
    /// What encrypts and decrypts; must be an available one.
    public var srtpBackend = SRTPBackend.preferred
    /// Bytes that the history of one received video stream may grow to. 0 keeps no packets, for a core that only
    /// receives: it forwards and retransmits nothing then.
    public var historyBytesMax = 2 * 1024 * 1024
    /// How much peers may be sent.
    public var sendRate = SendRateSettings()
    /// Report simulcast layers that nobody wants, for their publishers to pause.
    public var pausesUnusedLayers = true

    /// The same entropy in the form that the standard library asks for.
    struct Generator: RandomNumberGenerator {
        let random: () -> UInt64
        mutating func next() -> UInt64 { random() }
    }
    var generator: Generator { Generator(random: random) }

    public init(
        certificate: DTLSCertificate,
        unixNanosecondsAtZero: Int64,
        peersMax: Int = 10_000,
        random: @escaping () -> UInt64
    ) {
        self.certificate = certificate
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
        self.peersMax = peersMax
        self.random = random
    }
}
