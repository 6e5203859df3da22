public import Base
public import MediaTypes
import Wire

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
                    isFlowing: stream.isFlowing(at: now),
                    isScreen: stream.track.isScreen
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
                    keyFrameRequests: slot.keyFrameRequests,
                    wanted: slot.wantedLayers,
                    target: slot.allocatedLayers,
                    current: slot.sentLayers
                )
            },
            sending: peer.sendingStatistics(at: now)
        )
    }
}

extension Forwarder {
    /// What the core carries now.
    public var gauges: ForwarderGauges {
        var gauges = ForwarderGauges()
        for peer in directory.peers {
            gauges.peers += 1
            gauges.connectedPeers += peer.transport.isConnected ? 1 : 0
            gauges.receivedTracks += peer.tracks.count { $0.announcedCodec != nil }
            gauges.slots += peer.slots.count
            gauges.connectedSlots += peer.slots.count { $0.source != nil }
            gauges.historyBytes += peer.streams.reduce(0) { $0 + $1.history.footprintBytes }
            gauges.stateBytes += peer.transport.egress.footprintBytes
        }
        for mirror in relays.mirrors.values {
            gauges.mirroredTracks += 1
            gauges.historyBytes += mirror.track.streams.reduce(0) { $0 + $1.history.footprintBytes }
        }
        gauges.isOverloaded = overload.controller.isOverloaded
        gauges.heldLayers = overload.controller.held.count
        gauges.stateBytes += sending.footprintBytes
        return gauges
    }

    /// Whether no table holds anything of any peer: a leak would show here.
    package var isEmpty: Bool {
        directory.isEmpty && schedule.isEmpty && streams.isEmpty && pending.isEmpty && relays.isEmpty
            && !hasWaitingHandshakes
    }
}

extension Interval {
    /// A time in ticks of the RTP clock of a kind of media.
    init(ticks: UInt32, of kind: MediaKind) {
        self.init(nanoseconds: Int64(ticks) * 1_000_000_000 / Int64(kind.clockRate))
    }
}
