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
        public var packetsLost: Int64
        public var jitter: Interval
        public var isFlowing: Bool
    }
    /// A slot that we send the peer.
    public struct Sent: Sendable {
        public var mid: MID
        public var kind: MediaKind
        public var ssrc: SSRC
        /// The track that plays into it.
        public var source: TrackID?
        public var packets: UInt32
        public var bytes: UInt64
        public var retransmissions: UInt64
        /// What the peer's last report says was lost, 0…1; `nil` before the first.
        public var fractionLost: Double?
    }

    public var isConnected: Bool
    public var path: NetworkPath?
    public var roundTrip: Interval?
    public var received: [Received]
    public var sent: [Sent]
}

extension Forwarder {
    /// - Returns: `nil` when the peer is not here.
    public func statistics(of id: PeerID, at now: Instant) -> PeerStatistics? {
        guard let peer = peer(id) else { return nil }
        return PeerStatistics(
            isConnected: peer.transport.isConnected,
            path: peer.transport.selectedPath,
            roundTrip: peer.roundTrip,
            received: peer.streams.map { stream in
                let parameters = stream.track.parameters
                let clockRate = Int64(parameters.kind.clockRate)
                let jitter = Int64(stream.statistics.jitterTicks) * 1_000_000_000 / clockRate
                return PeerStatistics.Received(
                    mid: parameters.mid,
                    kind: parameters.kind,
                    rid: stream.rid,
                    ssrc: stream.ssrc,
                    codec: stream.track.announcedCodec,
                    bitsPerSecond: stream.bitrate,
                    packets: stream.statistics.receivedCount,
                    packetsLost: stream.statistics.cumulativeLost,
                    jitter: Interval(nanoseconds: jitter),
                    isFlowing: stream.isFlowing(at: now)
                )
            },
            sent: peer.slots.map { slot in
                PeerStatistics.Sent(
                    mid: slot.id.mid,
                    kind: slot.parameters.kind,
                    ssrc: slot.parameters.ssrc,
                    source: slot.source?.id,
                    packets: slot.packetsSent,
                    bytes: slot.bytesSent,
                    retransmissions: slot.retransmitted,
                    fractionLost: slot.lastReport.map { Double($0.fractionLost) / 256 }
                )
            }
        )
    }
}
