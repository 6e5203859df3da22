public import Wire

/// RTCP feedback that a codec was negotiated with (RFC 4585, RFC 5104, RFC 8888, transport-wide congestion control, REMB).
public struct FeedbackTypes: OptionSet, Hashable, Sendable, Codable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let nack = Self(rawValue: 1)
    public static let pictureLoss = Self(rawValue: 2)
    public static let fullIntraRequest = Self(rawValue: 4)
    public static let transportCC = Self(rawValue: 8)
    public static let remb = Self(rawValue: 16)
    /// RFC 8888: of the whole transport, so all of its codecs have it or none.
    public static let congestionControlFeedback = Self(rawValue: 32)
}

/// A negotiated payload format of one peer.
public struct CodecParameters: Hashable, Sendable, Codable {
    public var name: CodecName
    public var payloadType: PayloadType
    /// The retransmission payload type that is associated with it by `apt` (RFC 4588 §8.6), if negotiated.
    public var rtxPayloadType: PayloadType?
    /// RTP clock in Hz.
    public var clockRate: Int
    /// Audio channels as in `a=rtpmap`; 1 for video.
    public var channels: Int
    /// The parameters of `a=fmtp` in order, keys in lower case. A value without `=` (RED's `111/111`) has an empty key.
    public var format: [FormatParameter]
    public var feedback: FeedbackTypes

    public init(
        name: CodecName,
        payloadType: PayloadType,
        rtxPayloadType: PayloadType? = nil,
        clockRate: Int? = nil,
        channels: Int? = nil,
        format: [FormatParameter] = [],
        feedback: FeedbackTypes = []
    ) {
        self.name = name
        self.payloadType = payloadType
        self.rtxPayloadType = rtxPayloadType
        self.clockRate = clockRate ?? name.clockRate
        self.channels = channels ?? name.channels
        self.format = format
        self.feedback = feedback
    }

    /// The value of a format parameter; `nil` when it is not there.
    public func formatValue(_ key: String) -> String? { format.first { $0.key == key }?.value }
}

/// One `key=value` of an `a=fmtp` line.
public struct FormatParameter: Hashable, Sendable, Codable {
    public var key: String
    public var value: String
    public init(key: String, value: String) {
        self.key = key
        self.value = value
    }
}

/// A track that a peer sends, in one m-section.
public struct ReceiveTrackParameters: Hashable, Sendable {
    public var mid: MID
    public var kind: MediaKind
    /// In order of preference; the sender may use any of them, at any time.
    public var codecs: [CodecParameters]
    public var extensions: HeaderExtensionMap
    /// Simulcast layers in the order of `a=simulcast`; empty without simulcast.
    public var rids: [RID]
    /// Whether `rids` are in ascending order of layers. Otherwise layers are ranked by their measured bitrates, because
    /// an application may order the rids of an offer as it likes.
    public var layersAscend = false
    /// Whether signaling can ask the peer to pause single layers, and to send them again; `layersAscend` then.
    public var canPauseLayers = false
    /// Primary SSRCs of the SDP, in order; empty where MID and RID identify the streams.
    public var ssrcs: [SSRC]
    /// The RTX SSRC of each primary SSRC (`a=ssrc-group:FID`).
    public var rtxSSRCs: [SSRC: SSRC]

    public init(
        mid: MID,
        kind: MediaKind,
        codecs: [CodecParameters],
        extensions: HeaderExtensionMap = .init(),
        rids: [RID] = [],
        ssrcs: [SSRC] = [],
        rtxSSRCs: [SSRC: SSRC] = [:]
    ) {
        self.mid = mid
        self.kind = kind
        self.codecs = codecs
        self.extensions = extensions
        self.rids = rids
        self.ssrcs = ssrcs
        self.rtxSSRCs = rtxSSRCs
    }
}

/// A slot that a peer receives, in one m-section. It plays one source at a time.
public struct SendTrackParameters: Hashable, Sendable {
    public var mid: MID
    public var kind: MediaKind
    /// The formats that the peer can receive. The source's format selects one of them.
    public var codecs: [CodecParameters]
    public var extensions: HeaderExtensionMap
    public var ssrc: SSRC
    /// Present for video where RTX was negotiated.
    public var rtxSSRC: SSRC?
    /// For clients: the simulcast layer of the slot; `nil` without simulcast.
    public var rid: RID?
    /// RTCP canonical name, equal for slots that the peer synchronizes with each other.
    public var cname: String

    public init(
        mid: MID,
        kind: MediaKind,
        codecs: [CodecParameters],
        extensions: HeaderExtensionMap = .init(),
        ssrc: SSRC,
        rtxSSRC: SSRC? = nil,
        rid: RID? = nil,
        cname: String
    ) {
        self.rid = rid
        self.mid = mid
        self.kind = kind
        self.codecs = codecs
        self.extensions = extensions
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.cname = cname
    }
}

/// The transport parameters of the remote description.
public struct RemoteTransport: Hashable, Sendable {
    public var credentials: ICECredentials
    /// Any of them may match (RFC 8122 §5); never empty.
    public var fingerprints: [Fingerprint]
    /// Our DTLS role, by the offer's and answer's `a=setup`.
    public var localRole: DTLSRole

    public init(credentials: ICECredentials, fingerprints: [Fingerprint], localRole: DTLSRole) {
        self.credentials = credentials
        self.fingerprints = fingerprints
        self.localRole = localRole
    }
}

/// The transport parameters of the local description.
public struct LocalTransport: Hashable, Sendable {
    public var credentials: ICECredentials
    public var fingerprint: Fingerprint
    /// Host candidates of UDP, most preferred first.
    public var candidates: [TransportAddress]
    /// Host candidates of ICE over TCP, which accept connections (RFC 6544 §4.1), most preferred first.
    public var tcpCandidates: [TransportAddress]

    public init(
        credentials: ICECredentials,
        fingerprint: Fingerprint,
        candidates: [TransportAddress],
        tcpCandidates: [TransportAddress] = []
    ) {
        self.credentials = credentials
        self.fingerprint = fingerprint
        self.candidates = candidates
        self.tcpCandidates = tcpCandidates
    }
}
