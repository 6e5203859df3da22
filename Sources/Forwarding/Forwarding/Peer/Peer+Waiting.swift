package import Base
import MediaTypes
import Wire

/// Packets that wait because the peer's ``SendPolicy`` does not let them leave yet.
extension Peer {
    /// Replaces the policy. Packets that wait are looked at again in the next turn.
    package func setSendPolicy(_ policy: SendPolicy, at now: Instant) {
        transport.egress.policy = policy
        if !transport.egress.waiting.isEmpty { core.schedule.setSendTime(of: id, to: now) }
    }

    /// Whether a packet leaves now. Otherwise it waits its turn, or is dropped and counted when too many wait.
    func mayLeave(_ packet: PacketReference, isAudio: Bool, at now: Instant) -> Bool {
        let egress = transport.egress
        if egress.leavesAtOnce(at: now) || (isAudio && egress.policy.isPaced) { return true }
        switch egress.admit(packet, at: now) {
        case .leaves: return true
        case .waits(let wakesAt):
            if let wakesAt { core.schedule.setSendTime(of: id, to: earliest(wakesAt, otherSendTime)) }
            return false
        case .refused:
            core.counters.drop(.sendQueueFull)
            slotTable.slot(packet.slot)?.queueOverflowed(at: now)
            return false
        }
    }

    /// Sends what waits, as far as the policy allows, and has the rest looked at later.
    func sendWaiting(at now: Instant, into batch: DatagramBatch) {
        let egress = transport.egress
        let turn = core.makeTurn(at: now)
        sendProbe(turn, into: batch)
        sendRetransmissionCopies(turn, into: batch)
        while let packet = egress.waiting.first {
            guard let slot = slotTable.slot(packet.slot), let stream = core.streams[packet.stream] else {
                egress.removeFirstWaiting()
                core.counters.drop(.expiredInSendQueue)
                continue
            }
            let decision = stream.history.withPacket(packet.sequence) { bytes, description -> SendPolicy.Decision in
                let decision = packet.isDropped ? .now : egress.decision(packet, at: now)
                if decision == .now {
                    egress.removeFirstWaiting()
                    slot.sendWaiting(packet, bytes, description, of: stream, turn, into: batch)
                }
                return decision
            }
            switch decision {
            case .now: break
            case .later(let instant):
                let next = max(instant, now + Interval(nanoseconds: 1))
                core.schedule.setSendTime(of: id, to: earliest(next, otherSendTime))
                return
            case nil:
                egress.removeFirstWaiting()
                core.counters.drop(.expiredInSendQueue)
            }
        }
        core.schedule.setSendTime(of: id, to: otherSendTime)
    }

    /// Removes the packets of a slot from those that wait.
    func removeWaiting(of slot: SSRC) {
        guard !transport.egress.waiting.isEmpty else { return }
        transport.egress.removeWaiting(of: slot)
        scheduleOtherSends()
    }

    /// When something leaves that does not wait for the policy.
    private var otherSendTime: Instant? { earliest(probe?.nextAt, retransmissionCopies.nextAt) }

    /// Has a packet that was sent again leave once more.
    func copyLater(_ number: SequenceNumber, of slot: SendSlot, at now: Instant) {
        retransmissionCopies.append(number, of: slot.parameters.ssrc, at: now)
        scheduleOtherSends()
    }

    /// While packets wait, all that is due is looked at with them.
    private func scheduleOtherSends() {
        if transport.egress.waiting.isEmpty { core.schedule.setSendTime(of: id, to: otherSendTime) }
    }

    private func sendRetransmissionCopies(_ turn: SendTurn, into batch: DatagramBatch) {
        while let (slot, number) = retransmissionCopies.takeDue(at: turn.now) {
            guard let slot = slotTable.slot(slot) else { continue }
            core.counters.note(slot.retransmit(number, turn, into: batch))
        }
    }
}
