public import Base
import MediaTypes
public import Wire

/// ICE over TCP (RFC 6544): packets that come and go on connections instead of as datagrams.
extension Forwarder {
    /// Takes one packet of a connection, decrypting in place. As ``receive(_:length:path:at:into:)``, without TURN, which
    /// has a framing of its own.
    /// - Returns: whether a check of a peer has validated the connection's path.
    public func receiveStream(
        _ packet: inout MutableRawSpan,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Bool {
        let length = packet.byteCount
        counters.datagramsReceived &+= 1
        counters.bytesReceived &+= UInt64(length)
        switch PacketProtocol(firstByte: length > 0 ? packet.bytes.byte(at: 0) : .max) {
        case .stun: receivedSTUN(packet.bytes, path: path, at: now, into: batch)
        case .dtls: receivedDTLS(packet.bytes, path: path, at: now, into: batch)
        case .rtp: receivedMedia(&packet, length: length, path: path, at: now, into: batch)
        case .turnChannel, .zrtp, .quic, .relay, nil: counters.drop(.unknownProtocol)
        }
        return isValidated(path)
    }

    /// Whether a check of a peer that is still here has validated a path.
    public func isValidated(_ path: NetworkPath) -> Bool { directory.peer(over: path) != nil }

    /// What a packet of ours is to the queue of the connection that it goes to.
    /// - Parameter packet: a packet as it leaves, its media encrypted, and to a TURN client with the header of its channel or
    ///   indication.
    public func streamKind(of packet: RawSpan, to path: NetworkPath) -> StreamPacketKind {
        if let (id, payload) = turn?.payload(of: packet, to: path) {
            guard let peer = peer(id) else { return .control }
            return streamKind(of: packet.extracting(payload), peer)
        }
        guard let peer = directory.peer(over: path)?.object else { return .control }
        return streamKind(of: packet, peer)
    }

    private func streamKind(of packet: RawSpan, _ peer: Peer) -> StreamPacketKind {
        guard packet.byteCount >= 12, PacketProtocol(firstByte: packet.byte(at: 0)) == .rtp,
            !RTPPacketView.isRTCP(packet)
        else { return .control }
        let ssrc = SSRC(rawValue: packet.bigEndianUInt32(at: 8))
        // What is on none of the slots' own SSRCs is a retransmission or padding.
        guard let slot = peer.slotTable.slot(ssrc) else { return .repair }
        guard slot.parameters.kind == .video else { return .audio }
        let timestamp = RTPTimestamp(rawValue: packet.bigEndianUInt32(at: 4))
        return .video(ssrc, frame: timestamp, startsKeyFrame: slot.keyFrameTimestamp == timestamp)
    }

    /// Asks for a key frame of what plays on an SSRC of the peer that a path leads to, as if the peer had asked: within
    /// the same budget.
    public func requestKeyFrame(of ssrc: SSRC, over path: NetworkPath, at now: Instant) {
        let peer = directory.peer(over: path)?.object ?? turn?.peer(of: path).flatMap { self.peer($0) }
        peer?.slotTable.slot(ssrc)?.requestKeyFrame(at: now)
    }
}

extension SendSlot {
    /// The timestamp, as it is sent, of the newest key frame of the stream that plays; `nil` when there was none.
    fileprivate var keyFrameTimestamp: RTPTimestamp? {
        guard let segment = rewriter.currentSegment,
            let timestamp = source?.stream(segment.stream)?.keyFrameTimestamp
        else { return nil }
        return segment.timestamp(timestamp)
    }
}
