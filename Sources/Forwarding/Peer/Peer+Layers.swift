import Wire

/// Which layers the peer is sent.
extension Peer {
    /// Decides again what a slot is sent, after its preference or its source's table changed.
    func allocateLayers(to slot: SendSlot, at now: Instant) {
        let request = LayerRequest(preference: slot.preference, table: slot.source?.table)
        for target in Forwarding.allocateLayers([request], rate: .unlimited) { slot.setTarget(target, at: now) }
    }
}
