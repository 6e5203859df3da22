import Base
import CongestionControl
import MediaTypes
import SRTP
package import Wire

/// Slots that come and go while the peer is connected.
extension Peer {
    package var slots: ContiguousArray<SendSlot> { slotTable.all }
    package func slot(_ mid: MID) -> SendSlot? { slotTable.slot(mid) }

    /// Adds and removes slots, all or, when it throws, none.
    func changeSlots(
        add: [SendTrackParameters],
        remove: [MID],
        random: () -> UInt64,
        at now: Instant
    ) throws(ForwarderError) {
        var names: Set<MID> = []
        var ssrcs: Set<SSRC> = []
        for parameters in add {
            let name = parameters.slotName
            guard slot(name) == nil, names.insert(name).inserted else {
                throw .duplicateSlot(TrackID(peer: id, mid: name))
            }
            for ssrc in parameters.ssrcs {
                guard !slotTable.usedSSRCs.contains(ssrc), ssrcs.insert(ssrc).inserted else { throw .ssrcUsed(ssrc) }
            }
        }
        guard slotTable.usedSSRCs.stretchCount + ssrcs.count <= SSRCMemory.stretchesMax else {
            throw .tooManySlots(limit: SSRCMemory.stretchesMax)
        }
        removeSlots(Set(remove), at: now)
        addSlots(add, random: random, at: now)
        core.schedule.markDirty(self)
    }

    /// Adds slots with names and SSRCs that are new.
    func addSlots(_ all: [SendTrackParameters], random: () -> UInt64, at now: Instant) {
        for parameters in all { addSlot(parameters, seed: random(), at: now) }
        noteUpgradeMeans()
    }

    private func addSlot(_ parameters: SendTrackParameters, seed: UInt64, at now: Instant) {
        transport.requireConsent(at: now)
        let numbering = PacketNumbering(parameters)
        if numbering != .none { transport.egress.recordSentPackets() }
        startSendRate(numbering, at: now)
        let slot = unsafe SendSlot(
            id: TrackID(peer: id, mid: parameters.slotName),
            parameters: parameters,
            peer: self,
            egress: transport.egress.state,
            slab: core.sending.slotStates,
            retransmitsWithoutRTX: transport.retransmitsWithoutRTX,
            seed: seed
        )
        if let sender = transport.egress.sender { slot.connected(sender) }
        slotTable.append(slot)
    }

    /// The slots changed, and with them what can show whether the path carries better layers.
    private func noteUpgradeMeans() {
        let reported = slots.lazy.filter { $0.parameters.kind == .video && $0.isReported }
        sendRate?.upgradeMeans =
            reported.contains(where: \.hasPacketsForProbes) ? .probe : reported.isEmpty ? .none : .trial
    }

    private func removeSlots(_ names: Set<MID>, at now: Instant) {
        guard !names.isEmpty else { return }
        // A multi-buffer backend finishes deferred packets before their SRTP streams are freed.
        core.sending.engine.flush()
        for slot in slotTable.remove(names) {
            // No peer owns a source made on this side, so its streams go with the slot.
            if let source = slot.source, source.id.peer == id, track(source.id.mid) !== source {
                for stream in source.streams { core.streams.remove(stream) }
            }
            slot.connect(to: nil, at: now)
            guard let sender = transport.egress.sender else { continue }
            // Feedback to the peer goes on under its SSRC.
            for ssrc in slot.parameters.ssrcs where ssrc != feedbackSSRC { sender.removeStream(ssrc) }
        }
    }
}

extension SendTrackParameters {
    /// Every SSRC of the slot's packets.
    var ssrcs: [SSRC] { [ssrc] + (rtxSSRC.map { [$0] } ?? []) }
}
