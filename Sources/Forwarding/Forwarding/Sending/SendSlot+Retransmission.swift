import Base
import CongestionControl
import MediaTypes
import Wire

/// Answers to NACKs.
extension SendSlot {
    /// Has the receiver show the video late enough for retransmissions over a path that loses them, too.
    func delayPlayout(roundTrip: Interval, at now: Instant) {
        // A packet that leaves again as it is must not change meanwhile.
        guard sendsRTX, unsafe state.pointee.extensions.playoutDelay != 0 else { return }
        playoutDelay.want(roundTrip: roundTrip, at: now)
        playoutDelayChanged()
    }

    /// Has the receiver decide again by itself, some time after such losses. To be called about once a second.
    func relievePlayout(at now: Instant) {
        playoutDelay.tick(at: now)
        playoutDelayChanged()
    }

    private func playoutDelayChanged() {
        unsafe state.pointee.tellsPlayoutDelay = playoutDelay.isTold
        if playoutDelay.isDue { unsafe state.pointee.sourcePayloadType = .max }
    }

    /// What became of a packet that was asked for again.
    enum RetransmissionOutcome {
        case sent
        /// It waits to leave, as the peer's ``SendPolicy`` says.
        case deferred
        /// It is not kept any more, too old, or asked for too often.
        case missed
    }

    /// Answers a NACK for one packet from the source's history. No reference is counted on the usual way.
    func retransmit(_ number: SequenceNumber, _ turn: SendTurn, into batch: DatagramBatch) -> RetransmissionOutcome {
        guard let (segment, sourceSequence) = unsafe state.pointee.rewriter.origin(of: number),
            !isReplaced(segment), let stream = sourceStream(segment.stream), retransmitter.allow(number, at: turn.now)
        else { return .missed }
        return stream.with { stream in
            stream.history.withPacket(sourceSequence) { packet, description -> RetransmissionOutcome in
                if parameters.kind == .video {
                    guard unsafe state.pointee.egress.pointee.retransmissions.mayLeave(at: turn.now) else {
                        return .missed
                    }
                    unsafe state.pointee.egress.pointee.retransmissions.take(packet.byteCount)
                }
                if unsafe !state.pointee.egress.pointee.leavesAtOnce(at: turn.now) {
                    let reference = PacketReference(
                        slot: parameters.ssrc,
                        stream: segment.stream,
                        sequence: sourceSequence,
                        bytes: packet.byteCount,
                        retransmits: number
                    )
                    guard peer.mayLeave(reference, isAudio: parameters.kind == .audio, at: turn.now) else {
                        return .deferred
                    }
                }
                return resend(packet, description, of: stream, segment, turn, into: batch) ? .sent : .missed
            } ?? .missed
        }
    }

    /// Whether another stream of video plays by now, or is to, whose key frame makes the packets before it needless. While nothing
    /// waits they are sent all the same. A picture that the path does not carry is not repaired.
    private func isReplaced(_ segment: RTPRewriter.Segment) -> Bool {
        guard parameters.kind == .video else { return false }
        if unsafe state.pointee.playing == 0, hasAllocation {
            return unsafe state.pointee.wanted == 0 || hasWaiting
        }
        return segment.stream != rewriter.currentStream && hasWaiting
    }

    // Looked at only where it matters: most packets are of the stream that plays.
    private var hasWaiting: Bool { !peer.transport.egress.waiting.isEmpty }

    /// A stream of the source that plays or of one that played before.
    private func sourceStream(_ id: StreamID) -> Unretained<ReceivedStream>? {
        if let stream = source?.unretainedStream(where: { $0.id == id }) { return stream }
        return peer.core.streams[id].map(Unretained.init)
    }

    /// Sends a packet of the source again.
    /// - Returns: whether it was sent.
    func resend(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        _ segment: RTPRewriter.Segment,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Bool {
        guard turn.now - description.receivedAt <= Retransmitter.ageMax, !isReplaced(segment) else { return false }
        guard unsafe state.pointee.filter != nil else {
            return sendAgain(packet, description, of: stream, segment, turn, into: batch)
        }
        guard let sent = asFirstSent(description) else { return false }
        return sendAgain(packet, sent, of: stream, segment, turn, into: batch)
    }

    @inline(__always)
    private func sendAgain(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        _ segment: RTPRewriter.Segment,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) -> Bool {
        let mapping = stream.owner.with { track -> PayloadMapping? in
            // The payload types of a source that played before are its own.
            track === source
                ? self.mapping(of: description.payloadType, in: track)
                : PayloadMapping(description.payloadType, of: track.parameters, to: parameters)
        }
        guard let mapping else { return false }
        let isSent = unsafe stream.withPending(packet, description) { pending in
            unsafe send(pending, segment, mapping, kind: .retransmission, turn, into: batch) != nil
        }
        guard isSent == true else { return false }
        retransmitter.noteSent()
        return true
    }
}
