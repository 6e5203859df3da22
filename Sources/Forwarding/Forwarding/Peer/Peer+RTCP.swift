import Base
import SRTP
import Wire

/// What a peer reports and asks for.
extension Peer {
    /// Takes one SRTCP packet that stands at the start of `datagram`.
    func receivedRTCP(
        _ datagram: inout MutableRawSpan,
        length: Int,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(PacketRefusal) {
        let plainLength = try decryptRTCP(&datagram, length: length, at: now)
        core.counters.rtcpReceived &+= 1
        if plainLength >= 8 { directory.noteReporter(SSRC(rawValue: datagram.bytes.bigEndianUInt32(at: 4)), at: now) }
        var cursor = RTCPCompoundCursor(datagram.bytes.extracting(0..<plainLength))
        do {
            var budget = Self.retransmissionsPerDatagramMax
            while let packet = try cursor.next() { handle(packet, &budget, at: now, into: batch) }
        } catch {
            throw .drop(.malformedRTCP)
        }
    }

    private func decryptRTCP(
        _ datagram: inout MutableRawSpan,
        length: Int,
        at now: Instant
    ) throws(PacketRefusal) -> Int {
        do {
            return try transport.unprotectRTCP(&datagram, length: length)
        } catch {
            guard error == .tooManySources, forgetSilentReporter(at: now) else { throw .drop(DropReason(error)) }
        }
        do {
            return try transport.unprotectRTCP(&datagram, length: length)
        } catch {
            throw .drop(DropReason(error))
        }
    }

    private func handle(
        _ packet: borrowing RTCPPacketView,
        _ budget: inout Int,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        switch packet.kind {
        case .senderReport:
            handleSenderReport(packet, at: now)
            handleReportBlocks(packet, at: now)
        case .receiverReport: handleReportBlocks(packet, at: now)
        case .nack: handleNACK(packet, &budget, at: now, into: batch)
        case .pictureLoss:
            core.counters.keyFrameRequestsReceived &+= 1
            if let media = packet.mediaSSRC { requestKeyFrame(of: media, at: now) }
        case .fullIntraRequest:
            core.counters.keyFrameRequestsReceived &+= 1
            var requests = packet.makeFullIntraRequestCursor()
            while let request = requests.next() { requestKeyFrame(of: request.ssrc, at: now) }
        case .transportFeedback: receivedTransportFeedback(packet, at: now)
        case .remb: receivedEstimate(packet, at: now)
        case .congestionControlFeedback: receivedCongestionControlFeedback(packet, at: now)
        case .sourceDescription, .goodbye, .applicationDefined, .extendedReport, .other: break
        }
    }

    private func handleSenderReport(_ packet: borrowing RTCPPacketView, at now: Instant) {
        guard let ssrc = packet.senderSSRC, let info = packet.senderInfo, let stream = stream(ssrc) else { return }
        let senderTime = info.ntp.nanoseconds
        stream.lastSenderReport = (info.ntp.compact, now)
        // Zero means that the sender has no wall clock (RFC 3550 §6.4.1).
        guard info.ntp.rawValue != 0 else { return }
        stream.clock.receivedReport(senderNanoseconds: senderTime, timestamp: info.rtp)
        clock.receivedReport(senderNanoseconds: senderTime, ourNanoseconds: core.ntp(at: now).nanoseconds)
        // One datagram has room for 53 reports, and each would take a place on the way to every other loop.
        guard stream.mayTransferClock(at: now) else { return }
        core.transferClock(of: stream)
    }

    private func handleReportBlocks(_ packet: borrowing RTCPPacketView, at now: Instant) {
        var blocks = packet.makeReportBlockCursor()
        while let block = blocks.next() {
            guard let slot = slotTable.slot(block.ssrc) else { continue }
            slot.receivedReport(block)
            if block.lastSR != 0 {
                let elapsed = core.ntp(at: now).compact &- block.lastSR &- block.delaySinceLastSR
                // A negative round trip, by the peer's rounding, wraps to a huge one.
                if elapsed < 0x8000_0000 { reporting.noteRoundTrip(Interval(compactNTP: elapsed), at: now) }
            }
        }
    }

    private func handleNACK(
        _ packet: borrowing RTCPPacketView,
        _ budget: inout Int,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        let core = core
        core.counters.nacksReceived &+= 1
        guard let media = packet.mediaSSRC, let slot = slotTable.slot(media), mayRepair(at: now) else { return }
        let turn = core.makeTurn(at: now)
        if sendRate?.copiesRetransmissions == true {
            return retransmitWithCopies(packet, of: slot, &budget, turn, into: batch)
        }
        var lost = packet.makeLostSequenceCursor()
        while budget > 0, let number = lost.next() {
            budget -= 1
            core.counters.note(slot.retransmit(number, turn, into: batch))
        }
    }

    /// Answers a NACK with retransmissions that leave more than once. A function of its own, so that other peers do not pay for it.
    @inline(never)
    private func retransmitWithCopies(
        _ packet: borrowing RTCPPacketView,
        of slot: SendSlot,
        _ budget: inout Int,
        _ turn: SendTurn,
        into batch: DatagramBatch
    ) {
        slot.delayPlayout(roundTrip: reporting.roundTrip ?? .zero, at: turn.now)
        var lost = packet.makeLostSequenceCursor()
        while budget > 0, let number = lost.next() {
            budget -= 1
            let outcome = slot.retransmit(number, turn, into: batch)
            core.counters.note(outcome)
            if outcome == .sent, slot.sendsRTX { copyLater(number, of: slot, at: turn.now) }
        }
    }

    /// A full datagram of NACK items could name six thousand packets; libwebrtc asks for up to a thousand at worst.
    private static let retransmissionsPerDatagramMax = 256

    /// Whether packets are sent again. TCP loses none: what is missing there was dropped before it, because the connection was
    /// blocked, and to send it again would block it more.
    private func mayRepair(at now: Instant) -> Bool {
        guard let onTCPSince else { return true }
        return now - onTCPSince < Self.repairsOnTCP
    }

    /// For so long after a change to TCP, packets that UDP lost are sent again.
    private static let repairsOnTCP = Interval.seconds(1)

    private func requestKeyFrame(of ssrc: SSRC, at now: Instant) {
        slotTable.slot(ssrc)?.requestKeyFrame(at: now)
    }
}
