import Wire

/// Temporal layers of VP8, H.264 and H.265.
extension LayerFilter {
    /// Decides about a frame of a stream without spatial layers.
    /// - Returns: whether it is forwarded.
    mutating func decideTemporalLayer(_ packet: PacketDescription) -> Bool {
        picture.timestamp = packet.timestamp
        let layer = min(packet.temporalID, 7)
        if packet.startsKeyFrame {
            state.open(.max)
            temporalOpenedAt = .init(repeating: packet.sequence.rawValue)
        } else if packet.frame.contains(.switchesUp) {
            temporalOpenedAt[Int(layer)] = packet.sequence.rawValue
        }
        let isForwarded = isSent(packet, state)
        guard layer > 0 else { return isForwarded }
        if isForwarded { state.open(1 << layer) } else { state.openTemporal &= ~(1 << layer) }
        return isForwarded
    }

    /// Decides about a frame whose number waits since later packets came.
    /// - Parameter placed: what was sent at its place.
    /// - Returns: whether it is forwarded.
    mutating func decideLate(_ packet: PacketDescription, _ placed: State) -> Bool {
        if forwardsLate(packet, placed) { return true }
        let layer = min(packet.temporalID, 7)
        // Later frames of its layer refer to it.
        if layer > 0, packet.sequence.rawValue > temporalOpenedAt[Int(layer)] { state.openTemporal &= ~(1 << layer) }
        return false
    }

    /// Whether such a frame is forwarded.
    ///
    /// A VP8 receiver takes a picture id that stays unused for a lost frame, and holds the upper layers back. So while it gets
    /// any of those it gets the frame, also above the target.
    private func forwardsLate(_ packet: PacketDescription, _ state: State) -> Bool {
        if isSent(packet, state) { return true }
        return packet.frame.contains(.closesPictureIDs) && state.targetTemporalID > 0 && state.isOpen(upTo: 1)
    }

    private func isSent(_ packet: PacketDescription, _ state: State) -> Bool {
        let layer = min(packet.temporalID, 7)
        let isVP8 = packet.frame.contains(.closesPictureIDs)
        guard layer > 0 else {
            // H.264 names no layers, but frames that no other refers to.
            return isVP8 || !packet.frame.contains(.isDiscardable) || state.targetTemporalID > 0
        }
        guard layer <= state.targetTemporalID else { return false }
        // A VP8 frame with Y refers to the lowest layer only, a TSA or STSA picture of H.265 to all lower ones.
        if packet.frame.contains(.switchesUp), isVP8 || state.isOpen(upTo: layer - 1) { return true }
        return state.isOpen(upTo: layer)
    }
}
