import MediaTypes
import Wire

/// Answers to NACKs.
extension SendSlot {
    /// Answers a NACK for one packet from the source's history.
    func retransmit(_ number: SequenceNumber, at now: Instant, into batch: DatagramBatch) {
        guard let (segment, sourceSequence) = unsafe state.pointee.rewriter.origin(of: number),
            let stream = source?.stream(segment.stream) ?? peer.core.streams[segment.stream],
            retransmitter.allow(number, at: now)
        else {
            peer.core.counters.retransmissionsMissed &+= 1
            return
        }
        let reference = PacketReference(
            slot: parameters.ssrc,
            stream: segment.stream,
            sequence: sourceSequence,
            retransmits: number
        )
        let isSent: Bool? =
            stream.history.withPacket(sourceSequence) { packet, description -> Bool? in
                // Plain memory, so that the usual answer counts no references.
                guard
                    unsafe state.pointee.egress.pointee.leavesAtOnce
                        || peer.mayLeave(reference, bytes: packet.byteCount, at: now)
                else { return nil }
                return resend(packet, description, of: stream, segment, peer.core.makeTurn(at: now), into: batch)
            } ?? false
        if let isSent { noteRetransmission(isSent: isSent) }
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
        guard turn.now - description.receivedAt <= Retransmitter.ageMax else { return false }
        // The payload types of a source that played before are its own.
        let mapping =
            stream.track === source
            ? mapping(of: description.payloadType, in: stream.track)
            : PayloadMapping(description.payloadType, of: stream.track.parameters, to: parameters)
        guard let mapping else { return false }
        return unsafe stream.withPending(packet, description) { pending in
            unsafe send(pending, segment, mapping, retransmission: true, turn, into: batch) != nil
        } ?? false
    }

    func noteRetransmission(isSent: Bool) {
        if isSent {
            retransmitter.noteSent()
            peer.core.counters.retransmissionsSent &+= 1
        } else {
            peer.core.counters.retransmissionsMissed &+= 1
        }
    }
}
