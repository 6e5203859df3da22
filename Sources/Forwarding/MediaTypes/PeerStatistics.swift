public import Base
public import Wire

/// One peer's media as it is now, for the admin API.
public struct PeerStatistics: Sendable {
    /// A stream that the peer sends.
    public struct Received: Sendable {
        public var mid: MID
        public var kind: MediaKind
        public var rid: RID?
        public var ssrc: SSRC
        public var codec: CodecName?
        /// Over the last second.
        public var bitsPerSecond: Int
        public var packets: Int64
        /// Bytes of RTP packets with headers, retransmissions included.
        public var bytes: UInt64
        public var packetsLost: Int64
        public var jitter: Interval
        /// Key frame requests sent to the peer.
        public var keyFrameRequests: UInt64
        public var isFlowing: Bool
        /// The peer says that it shares a screen in the track.
        public var isScreen: Bool

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
            isFlowing: Bool = false,
            isScreen: Bool = false
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
            self.isScreen = isScreen
        }
    }
    /// A slot that the peer receives.
    public struct Sent: Sendable {
        public var mid: MID
        public var kind: MediaKind
        public var ssrc: SSRC
        /// The track that it plays.
        public var source: TrackID?
        /// The present simulcast layer of the source, or the last one before a pause; `nil` without layers.
        public var rid: RID?
        /// On the wire, over the last second.
        public var bitsPerSecond: Int
        public var packets: UInt32
        public var bytes: UInt64
        public var retransmissions: UInt64
        /// The share of lost packets in the peer's last report, 0…1; `nil` before the first.
        public var fractionLost: Double?
        /// The cumulative number of lost packets in the peer's last report, negative with duplicates (RFC 3550 §6.4.1);
        /// `nil` before the first.
        public var packetsLost: Int?
        /// The interarrival jitter in the peer's last report; `nil` before the first.
        public var jitter: Interval?
        /// Key frame requests of the peer.
        public var keyFrameRequests: UInt64
        /// The layers that the receiver wants of the source, if its network carries them; `nil` for none.
        public var wanted: LayerDescription?
        /// The layers that the receiver is to be sent; `nil` for none.
        public var target: LayerDescription?
        /// The layers that leave at present; `nil` for none.
        public var current: LayerDescription?

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
            keyFrameRequests: UInt64 = 0,
            wanted: LayerDescription? = nil,
            target: LayerDescription? = nil,
            current: LayerDescription? = nil
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
            self.wanted = wanted
            self.target = target
            self.current = current
        }
    }

    public var isConnected: Bool
    public var path: NetworkPath?
    public var roundTrip: Interval?
    public var received: [Received]
    public var sent: [Sent]
    /// How much the peer is sent, and why.
    public var sending: SendingStatistics

    public init(
        isConnected: Bool,
        path: NetworkPath? = nil,
        roundTrip: Interval? = nil,
        received: [Received] = [],
        sent: [Sent] = [],
        sending: SendingStatistics = SendingStatistics()
    ) {
        self.isConnected = isConnected
        self.path = path
        self.roundTrip = roundTrip
        self.received = received
        self.sent = sent
        self.sending = sending
    }
}
