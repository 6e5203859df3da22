import ICE
public import MediaTypes

/// Why a datagram or packet was dropped. Each is counted; none is logged on its own.
public enum DropReason: Int, Sendable, CaseIterable {
    /// Not STUN, DTLS, RTP or RTCP by its first byte (RFC 7983 §7).
    case unknownProtocol
    case malformedSTUN, unknownUsername, stunUnauthenticated, stunUnexpected
    /// DTLS or SRTP from an address pair that ICE has not validated.
    case unvalidatedAddress
    case malformedDTLS
    /// Too many datagrams of handshakes wait, of the peer or of all.
    case handshakeQueueFull
    /// Media before the handshake completed.
    case notSecured
    case malformedRTP, malformedRTCP
    case srtpAuthentication, srtpReplay, srtpSourceLimit, srtpOther
    /// No MID, RID, announced SSRC or payload type says which track the stream is of.
    case unknownStream
    case streamLimit
    case unknownPayloadType
    case duplicate, tooOld
    /// Probing padding, which ends here by design.
    case padding
    /// The subscriber did not negotiate the source's format.
    case formatUnsupported
    /// The publisher sends more than it may.
    case publishRateVideo, publishRateAudio
    /// The loop is overloaded, and the packet is of a video layer that is shed.
    case loopOverload
    /// Too many packets to the peer wait to leave.
    case sendQueueFull
    /// The packet waited to leave until it was not kept any more.
    case expiredInSendQueue
    /// A packet of data channels that is broken or of no association.
    case malformedSCTP
    /// A datagram of a link between nodes that is broken, or has a broken message.
    case malformedRelay
    /// Of no link that there is, or not from the address of the link's other end.
    case relayUnknownLink, relayAddress
    case relayAuthentication, relayReplay

    /// The `reason` label in the metrics.
    public var label: String {
        var text = ""
        for character in String(describing: self) {
            if character.isUppercase, let last = text.last, !last.isUppercase, last != "_" { text += "_" }
            text.append(character)
        }
        return Self.acronyms.reduce(text) { $0.replacing($1.0, with: $1.1) }.lowercased()
    }
    private static let acronyms = [("RTCP", "rtcp"), ("RTP", "rtp"), ("STUN", "stun"), ("DTLS", "dtls")]
}

/// Why a viewer's request for a key frame was not passed on at once.
public enum KeyFrameThrottle: Int, Sendable, CaseIterable {
    /// The viewer asked a moment ago.
    case repeated
    /// The viewer asks all the time.
    case viewerBudget
    /// The layer's viewers together ask all the time; the request waits until one is allowed again.
    case layerBudget

    /// The `reason` label in the metrics.
    public var label: String {
        switch self {
        case .repeated: "repeated"
        case .viewerBudget: "viewer_budget"
        case .layerBudget: "layer_budget"
        }
    }
}

/// What one loop's forwarding has done since it started; plain numbers that only grow.
public struct ForwarderCounters: Sendable {
    public var datagramsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    public var rtpReceived: UInt64 = 0
    public var rtcpReceived: UInt64 = 0
    /// Media packets sent to subscribers, retransmissions not included.
    public var rtpSent: UInt64 = 0
    public var rtpBytesSent: UInt64 = 0
    public var rtcpSent: UInt64 = 0
    public var retransmissionsSent: UInt64 = 0
    /// Packets that subscribers asked for and that were not kept any more.
    public var retransmissionsMissed: UInt64 = 0
    /// Packets that publishers sent again on our request.
    public var retransmissionsReceived: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var nackedPacketsRequested: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var pliSent: UInt64 = 0
    /// PLI and FIR from subscribers.
    public var keyFrameRequestsReceived: UInt64 = 0
    public var keyFramesReceived: UInt64 = 0
    public var transportFeedbackSent: UInt64 = 0
    public var transportFeedbackReceived: UInt64 = 0
    /// RFC 8888.
    public var congestionControlFeedbackReceived: UInt64 = 0
    public var packetsLostByPublishers: UInt64 = 0
    /// Layers of video that were shed because their publisher sent more than it may; each time counts.
    public var layersShed: UInt64 = 0
    /// Times that the loop was found overloaded.
    public var overloads: UInt64 = 0
    /// Layers of video that were shed because the loop was overloaded; each time counts.
    public var overloadLayersShed: UInt64 = 0
    /// Published packets handed to another loop, once for each, and those that the way there had no room for.
    public var packetsTransferred: UInt64 = 0
    public var packetsNotTransferred: UInt64 = 0
    public var iceConnected: UInt64 = 0
    public var dtlsConnected: UInt64 = 0
    /// Peers that moved to another address pair.
    public var pathChanges: UInt64 = 0
    /// Nominations of an address pair that had not proved to be the peer's; media stayed where it was.
    public var unprovedNominations: UInt64 = 0
    /// Checks of our own to nominated pairs that had not proved themselves, and the answers that did.
    public var pathChecksSent: UInt64 = 0
    public var pathChecksAnswered: UInt64 = 0
    /// Checks of our own that ask peers for consent, and the answers that renewed it.
    public var consentChecksSent: UInt64 = 0
    public var consentChecksAnswered: UInt64 = 0
    /// Datagrams of handshakes that were not sent because too little came from the peer.
    public var handshakeDatagramsHeld: UInt64 = 0
    public var peersAdded: UInt64 = 0
    /// What went over data channels.
    public internal(set) var data = DataCounters()
    /// What peers are sent, and why not more.
    public internal(set) var sending = SendingCounters()
    /// What peers report of it.
    public package(set) var downlink = DownlinkCounters()
    /// How long the set-up of peers took.
    public package(set) var setup = SetupCounters()
    private var closed: [6 of UInt64] = .init(repeating: 0)
    private var drops: [48 of UInt64] = .init(repeating: 0)
    private var throttledKeyFrames: [3 of UInt64] = .init(repeating: 0)

    public init() {}

    public subscript(_ reason: DropReason) -> UInt64 { drops[reason.rawValue] }
    public subscript(_ reason: PeerCloseReason) -> UInt64 { closed[Self.index(reason)] }

    public subscript(_ reason: KeyFrameThrottle) -> UInt64 { throttledKeyFrames[reason.rawValue] }

    mutating func note(_ outcome: SendSlot.RetransmissionOutcome) {
        switch outcome {
        case .sent: retransmissionsSent &+= 1
        case .missed: retransmissionsMissed &+= 1
        case .deferred: break
        }
    }
    mutating func throttleKeyFrame(_ reason: KeyFrameThrottle) { throttledKeyFrames[reason.rawValue] &+= 1 }
    mutating func drop(_ reason: DropReason) { drops[reason.rawValue] &+= 1 }
    mutating func close(_ reason: PeerCloseReason) { closed[Self.index(reason)] &+= 1 }

    private static func index(_ reason: PeerCloseReason) -> Int {
        switch reason {
        case .requested: 0
        case .consentExpired: 1
        case .setupTimedOut: 2
        case .closedByPeer: 3
        case .handshakeFailed: 4
        case .fingerprintMismatch: 5
        }
    }
}

/// What a loop carries at this moment.
public struct ForwarderGauges: Sendable {
    public var peers = 0
    public var connectedPeers = 0
    public var receivedTracks = 0
    public var slots = 0
    /// Slots that a source plays into.
    public var connectedSlots = 0
    /// Tracks of other loops that slots here play.
    public var mirroredTracks = 0
    /// Whether the loop is overloaded, or sheds video to keep up.
    public var isOverloaded = false
    /// Layers of video that are shed for it.
    public var heldLayers = 0
    /// Memory of received packets, for retransmission.
    public var historyBytes = 0
    /// Memory of what packets to subscribers are made with.
    public var stateBytes = 0
    public init() {}
}

extension DropReason {
    /// How a refused STUN message counts.
    init(_ reason: ICEDropReason) {
        self =
            switch reason {
            case .fingerprint, .missingUsername, .wrongUsername, .missingIntegrity, .wrongIntegrity, .replayed:
                .stunUnauthenticated
            case .unsupportedMethod, .unknownTransaction, .wrongPath, .unknownAttribute, .missingAddress, .ended:
                .stunUnexpected
            }
    }
}
