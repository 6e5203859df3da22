import Wire

/// Temporal layers of VP8, H.264 and H.265.
extension LayerFilter {
    /// Decides about a frame of a stream without spatial layers.
    /// - Returns: whether it is forwarded.
    mutating func decideTemporalLayer(_ packet: PacketDescription, isLate: Bool) -> Bool {
        let isVP8 = packet.frame.contains(.closesPictureIDs)
        // H.264 names no layers, but frames that no other refers to.
        let isUnreferenced = !isVP8 && packet.temporalID == 0 && packet.frame.contains(.isDiscardable)
        if isUnreferenced { return targetTemporalID > 0 }
        let layer = min(packet.temporalID, 7)
        if isLate { return forwardsLate(packet, layer, isVP8: isVP8) }
        if packet.startsKeyFrame { open(.max, at: packet) }
        guard layer > 0 else { return true }
        let bit: UInt8 = 1 << layer
        if layer <= targetTemporalID {
            if packet.frame.contains(.switchesUp), isVP8 || isOpen(upTo: layer - 1) {
                // A VP8 frame with Y refers to the lowest layer only, a TSA or STSA picture of H.265 to all lower ones.
                open(bit, at: packet)
                return true
            }
            if isOpen(upTo: layer) { return true }
        }
        openTemporal &= ~bit
        return false
    }

    /// Whether a frame is forwarded whose number waits since later packets came.
    ///
    /// A VP8 receiver takes a picture id that stays unused for a lost frame, and holds the upper layers back. So while it gets
    /// any of those it gets the frame, also above the target.
    private func forwardsLate(_ packet: PacketDescription, _ layer: UInt8, isVP8: Bool) -> Bool {
        guard layer > 0 else { return true }
        if isVP8 { return targetTemporalID > 0 && isOpen(upTo: 1) }
        return layer <= targetTemporalID && isOpen(upTo: layer) && packet.sequence.rawValue > openedSequence
    }
}
