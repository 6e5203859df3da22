public import Wire

/// One peer's media as it is now, for operators and pages.
public struct PeerStatistics: Sendable {
    /// A stream that the peer sends us.
    public struct Received: Sendable {
        public var mid: MID
        public var kind: MediaKind
        public var rid: RID?
        public var ssrc: SSRC
        public var codec: CodecName?
        /// Over the last second.
        public var bitsPerSecond: Int
        public var packets: Int64
        /// RTP packets whole, retransmissions included.
        public var bytes: UInt64
        public var packetsLost: Int64
        public var jitter: Interval
        /// Key frames that were asked for.
        public var keyFrameRequests: UInt64
        public var isFlowing: Bool

        public init(
            mid: MID,
            kind: MediaKind,
            rid: RID? = nil,
            ssrc: SSRC,
            codec: CodecName? = nil,
            bitsPerSecond: Int = 0,
            packets: Int64 = 0,
            bytes: UInt64 = 0,
            packetsLost: Int64 = 0,
            jitter: Interval = .zero,
            keyFrameRequests: UInt64 = 0,
            isFlowing: Bool = false
        ) {
            self.mid = mid
            self.kind = kind
            self.rid = rid
            self.ssrc = ssrc
            self.codec = codec
            self.bitsPerSecond = bitsPerSecond
            self.packets = packets
            self.bytes = bytes
            self.packetsLost = packetsLost
            self.jitter = jitter
            self.keyFrameRequests = keyFrameRequests
            self.isFlowing = isFlowing
        }
    }
    /// A slot that we send the peer.
    public struct Sent: Sendable {
        public var mid: MID
        public var kind: MediaKind
        public var ssrc: SSRC
        /// The track that plays into it.
        public var source: TrackID?
        /// The simulcast layer of the source that plays, or did before a pause; `nil` without layers.
        public var rid: RID?
        /// On the wire, over the last second.
        public var bitsPerSecond: Int
        public var packets: UInt32
        public var bytes: UInt64
        public var retransmissions: UInt64
        /// What the peer's last report says was lost, 0…1; `nil` before the first.
        public var fractionLost: Double?
        /// Packets that never reached the peer, by its last report; negative when some came twice. `nil` before the first.
        public var packetsLost: Int?
        /// At the peer, by its last report; `nil` before the first.
        public var jitter: Interval?
        /// Key frames that the peer asked for.
        public var keyFrameRequests: UInt64

        public init(
            mid: MID,
            kind: MediaKind,
            ssrc: SSRC,
            source: TrackID? = nil,
            rid: RID? = nil,
            bitsPerSecond: Int = 0,
            packets: UInt32 = 0,
            bytes: UInt64 = 0,
            retransmissions: UInt64 = 0,
            fractionLost: Double? = nil,
            packetsLost: Int? = nil,
            jitter: Interval? = nil,
            keyFrameRequests: UInt64 = 0
        ) {
            self.mid = mid
            self.kind = kind
            self.ssrc = ssrc
            self.source = source
            self.rid = rid
            self.bitsPerSecond = bitsPerSecond
            self.packets = packets
            self.bytes = bytes
            self.retransmissions = retransmissions
            self.fractionLost = fractionLost
            self.packetsLost = packetsLost
            self.jitter = jitter
            self.keyFrameRequests = keyFrameRequests
        }
    }

    public var isConnected: Bool
    public var path: NetworkPath?
    public var roundTrip: Interval?
    public var received: [Received]
    public var sent: [Sent]

    public init(
        isConnected: Bool,
        path: NetworkPath? = nil,
        roundTrip: Interval? = nil,
        received: [Received] = [],
        sent: [Sent] = []
    ) {
        self.isConnected = isConnected
        self.path = path
        self.roundTrip = roundTrip
        self.received = received
        self.sent = sent
    }
}
