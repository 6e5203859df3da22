public import MediaTypes
public import Wire

extension Forwarder {
    /// - Returns: `nil` when the peer is not here.
    public func statistics(of id: PeerID, at now: Instant) -> PeerStatistics? {
        guard let peer = peer(id) else { return nil }
        return PeerStatistics(
            isConnected: peer.transport.isConnected,
            path: peer.transport.selectedPath,
            roundTrip: peer.reporting.roundTrip,
            received: peer.streams.map { stream in
                let parameters = stream.track.parameters
                return PeerStatistics.Received(
                    mid: parameters.mid,
                    kind: parameters.kind,
                    rid: stream.rid,
                    ssrc: stream.ssrc,
                    codec: stream.track.announcedCodec,
                    bitsPerSecond: stream.bitrate,
                    packets: stream.statistics.receivedCount,
                    bytes: stream.bytesReceived,
                    packetsLost: stream.statistics.cumulativeLost,
                    jitter: Interval(ticks: stream.statistics.jitterTicks, of: parameters.kind),
                    keyFrameRequests: stream.keyFrameRequests,
                    isFlowing: stream.isFlowing(at: now)
                )
            },
            sent: peer.slots.map { slot in
                PeerStatistics.Sent(
                    mid: slot.id.mid,
                    kind: slot.parameters.kind,
                    ssrc: slot.parameters.ssrc,
                    source: slot.source?.id,
                    rid: slot.playingRID,
                    bitsPerSecond: slot.bitrate,
                    packets: slot.packetsSent,
                    bytes: slot.bytesSent,
                    retransmissions: slot.retransmitted,
                    fractionLost: slot.lastReport.map { Double($0.fractionLost) / 256 },
                    packetsLost: slot.lastReport.map { Int($0.cumulativeLost) },
                    jitter: slot.lastReport.map { Interval(ticks: $0.jitter, of: slot.parameters.kind) },
                    keyFrameRequests: slot.keyFrameRequests
                )
            }
        )
    }
}

extension Interval {
    /// A time in ticks of the RTP clock of a kind of media.
    init(ticks: UInt32, of kind: MediaKind) {
        self.init(nanoseconds: Int64(ticks) * 1_000_000_000 / Int64(kind.clockRate))
    }
}
