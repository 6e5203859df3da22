import Base
import CongestionControl
import SRTP
import Wire

/// Forwards a turn's packets destination by destination, so that the packets to one subscriber are contiguous and leave
/// as one message, and so that a subscriber's state and keys are fetched once for all of them.
extension Forwarder {
    /// A track has its first packet of the turn waiting.
    func notePending(_ track: ReceivedTrack) { pending.append(Unretained(track)) }

    /// Forwards everything that is pending.
    @inline(__always)
    func fanOutAll(at now: Instant, into batch: DatagramBatch) {
        guard !pending.isEmpty else { return }
        fanOutPending(at: now, into: batch)
    }

    private func fanOutPending(at now: Instant, into batch: DatagramBatch) {
        let turn = makeTurn(at: now)
        transferPending(at: now)
        var index = 0
        while index < pending.count {
            pending[index].with { sendBacklog(of: $0, turn, into: batch) }
            index += 1
        }
        pending.removeAll(keepingCapacity: true)
        sending.engine.flush()
    }

    /// Forgets the waiting packets of a track that goes.
    func dropPending(_ track: ReceivedTrack) {
        pending.removeAll { $0.refers(to: track) }
        track.clearBacklog()
    }

    func makeTurn(at now: Instant) -> SendTurn { SendTurn(now: now, ntp: ntp(at: now)) }

    /// Forwards the pending packets of one track.
    func fanOut(_ track: ReceivedTrack, at now: Instant, into batch: DatagramBatch) {
        guard let place = pending.firstIndex(where: { $0.refers(to: track) })
        else { return }
        pending.remove(at: place)
        if !track.exports.isEmpty {
            mediaLinks.now = now
            relay(track)
            flushLinks()
        }
        sendBacklog(of: track, makeTurn(at: now), into: batch)
        // The ring may overwrite what a multi-buffer backend still reads.
        sending.engine.flush()
    }

    /// Relays pending packets to other loops before anything is encrypted here, so that the loops work in parallel.
    private func transferPending(at now: Instant) {
        guard relays.hasExports else { return }
        mediaLinks.now = now
        var isRelayed = false
        var index = 0
        while index < pending.count {
            pending[index].with { track in
                guard !track.exports.isEmpty else { return }
                relay(track)
                isRelayed = true
            }
            index += 1
        }
        if isRelayed { flushLinks() }
    }

    private func sendBacklog(of track: ReceivedTrack, _ turn: SendTurn, into batch: DatagramBatch) {
        let count = track.backlogCount
        guard count > 0, let backlog = unsafe track.backlog else { return }
        var sent = SentCount()
        unsafe track.states.withUnsafeBufferPointer { states in
            var next = 0
            while next < states.count {
                let state = unsafe states[next]
                next += 1
                guard unsafe state.pointee.egress.pointee.leavesAtOnce(at: turn.now) else {
                    unsafe sendOrQueue(backlog, count, state, turn, into: batch)
                    continue
                }
                var index = 0
                while index < count {
                    unsafe Self.sendOn(backlog + index, state, turn, into: batch, &sent)
                    index += 1
                }
            }
        }
        counters.rtpSent &+= sent.packets
        counters.rtpBytesSent &+= sent.bytes
        track.clearBacklog()
    }

    /// Sends the packets of a turn to a slot whose peer has a ``SendPolicy`` or packets that wait.
    @inline(never)
    private func sendOrQueue(
        _ backlog: UnsafePointer<PendingPacket>,
        _ count: Int,
        _ state: UnsafeMutablePointer<SlotState>,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) {
        guard unsafe state.pointee.egress.pointee.isSendable else { return }
        unsafe state.pointee.owner?.with { slot in
            for index in 0..<count { unsafe slot.sendOrQueue(backlog + index, turn, into: batch) }
        }
    }

    struct SentCount {
        var packets: UInt64 = 0
        var bytes: UInt64 = 0
    }

    /// Sends one packet to one slot. A plain one, of the stream and payload type that play, costs a header, one pass of
    /// encryption from the history into the batch, and no reference count; all others take the slow path through the
    /// slot.
    @inline(__always)
    private static func sendOn(
        _ packet: UnsafePointer<PendingPacket>,
        _ state: UnsafeMutablePointer<SlotState>,
        _ turn: SendTurn,
        into batch: DatagramBatch,
        _ sent: inout SentCount
    ) {
        guard unsafe state.pointee.playing == packet.pointee.streamID else {
            // A packet of another layer matters only when the slot is to switch to that layer.
            if unsafe state.pointee.wanted == packet.pointee.streamID {
                unsafe sendSlowPath(packet, state, turn, into: batch)
            }
            return
        }
        guard unsafe state.pointee.sourcePayloadType == packet.pointee.description.payloadType.rawValue,
            unsafe packet.pointee.description.isPlain,
            let segment = unsafe state.pointee.rewriter.currentSegment,
            unsafe segment.stream.rawValue == packet.pointee.streamID,
            unsafe packet.pointee.description.sequence >= segment.sourceStart,
            unsafe state.pointee.rewriter.follows(packet.pointee.description.sequence, in: segment),
            let stream = unsafe state.pointee.stream
        else {
            unsafe sendSlowPath(packet, state, turn, into: batch)
            return
        }
        let payloadLength = unsafe Int(packet.pointee.description.payloadLength)
        // The slow path also writes the two-byte form.
        guard HeaderWriter.fitsDatagram(headerLengthMax: HeaderWriter.oneByteLengthMax, payloadLength: payloadLength),
            unsafe state.pointee.extensions.isOneByte,
            unsafe packet.pointee.description.fitsOneByteForm
        else {
            unsafe sendSlowPath(packet, state, turn, into: batch)
            return
        }
        guard let place = unsafe batch.reserve() else { return }
        let header = unsafe writeHeader(packet, segment, state, turn, to: place)
        var payload = unsafe packet.pointee.bytes + Int(packet.pointee.description.payloadOffset)
        if !segment.keepsPayload {
            unsafe (place + header).copyMemory(from: payload, byteCount: payloadLength)
            unsafe segment.renumber(place + header, packet.pointee.description)
            unsafe payload = UnsafeRawPointer(place + header)
        }
        let length = unsafe state.pointee.egress.pointee.send(
            stream,
            place,
            headerLength: header,
            payload: payload,
            payloadLength: payloadLength,
            index: segment.packetIndex(packet.pointee.description.sequence),
            numbering: state.pointee.extensions.numbering,
            kind: .media,
            turn,
            into: batch
        )
        guard length > 0 else { return }
        unsafe state.pointee.rewriter.sent(packet.pointee.description, in: segment, at: turn.now)
        unsafe state.pointee.packetsSent &+= 1
        unsafe state.pointee.octetsSent &+= UInt32(truncatingIfNeeded: payloadLength)
        unsafe state.pointee.bytesSent &+= UInt64(truncatingIfNeeded: length)
        sent.packets &+= 1
        sent.bytes &+= UInt64(truncatingIfNeeded: length)
    }

    /// Writes the header of a plain packet, in the one-byte form.
    @inline(__always)
    private static func writeHeader(
        _ packet: UnsafePointer<PendingPacket>,
        _ segment: RTPRewriter.Segment,
        _ state: UnsafeMutablePointer<SlotState>,
        _ turn: SendTurn,
        to place: UnsafeMutableRawPointer
    ) -> Int {
        var writer = unsafe HeaderWriter(
            place,
            isTwoByte: false,
            marker: packet.pointee.description.marker,
            payloadType: state.pointee.outgoingPayloadType,
            sequence: segment.sequence(packet.pointee.description.sequence).wire,
            timestamp: segment.timestamp(packet.pointee.description.timestamp),
            ssrc: state.pointee.ssrc
        )
        if unsafe state.pointee.sendsMID && state.pointee.extensions.mid != 0 {
            unsafe writer.appendMID(state.pointee.extensions)
        }
        unsafe state.pointee.egress.pointee.writePerSendElements(state.pointee.extensions, turn, to: &writer)
        unsafe writer.appendForwarded(packet, segment, state.pointee.extensions)
        return writer.finish()
    }

    @inline(never)
    private static func sendSlowPath(
        _ packet: UnsafePointer<PendingPacket>,
        _ state: UnsafeMutablePointer<SlotState>,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) {
        unsafe state.pointee.owner?.with {
            if unsafe $0.catchUp(with: packet, turn, into: batch) { return }
            unsafe $0.forward(packet, turn, into: batch)
        }
    }
}
