import Wire

/// Spatial and temporal layers of VP9 (RFC 9628).
extension LayerFilter {
    /// Decides about a frame whose payload descriptor names layers.
    mutating func decideVP9(_ packet: PacketDescription, isLate: Bool) -> LayerDecision {
        if picture.timestamp != packet.timestamp {
            if isLate { return decideLateVP9(packet) }
            beginPicture(packet)
        }
        spatialIDSeen = max(spatialIDSeen, packet.spatialID)
        if picture.isLeftOut { return .leftOut }
        let bit = Self.bit(ofSpatial: packet.spatialID)
        let refersToEarlier = packet.frame.contains(.refersToEarlier)
        if startsUpperLayer(packet) { switchSpatial(to: packet.spatialID, at: packet) }
        if packet.spatialID > spatialID || isSkipped(packet, in: spatialID) {
            openSpatial &= ~bit
            return .leftOut
        }
        if !refersToEarlier { openSpatial |= bit }
        picture.highestForwarded = max(picture.highestForwarded, packet.spatialID)
        guard packet.spatialID == spatialID else { return .forwarded }
        picture.isMarked = true
        return .forwardedLast
    }

    private static func bit(ofSpatial spatialID: UInt8) -> UInt8 { 1 << min(spatialID, 7) }

    /// Whether the layers up to `highest` do not need a frame of a lower one. The scalability structure comes with the frames
    /// of a key picture, which are sent all.
    private func isSkipped(_ packet: PacketDescription, in highest: UInt8) -> Bool {
        packet.spatialID < highest && packet.frame.contains([.refersToEarlier, .isUnusedAbove])
    }

    /// Whether the next layer of the target can begin here, within a picture.
    private func startsUpperLayer(_ packet: PacketDescription) -> Bool {
        guard packet.spatialID > spatialID, packet.spatialID <= targetSpatialID, !picture.isMarked,
            !packet.frame.contains(.refersToEarlier)
        else { return false }
        return !packet.frame.contains(.refersToLowerLayer) || packet.spatialID == picture.highestForwarded &+ 1
    }

    private mutating func switchSpatial(to layer: UInt8, at packet: PacketDescription) {
        guard layer != spatialID else { return }
        spatialIDBefore = spatialID
        spatialID = layer
        switchedSequence = packet.sequence.rawValue
        needsKeyFrame = spatialID != targetSpatialID
    }

    /// A picture begins: the layers change to those of the target, as far as they can.
    private mutating func beginPicture(_ packet: PacketDescription) {
        picture = Picture(timestamp: packet.timestamp)
        if packet.spatialID == 0, !packet.frame.contains(.refersToEarlier) {
            switchSpatial(to: targetSpatialID, at: packet)
            openSpatial = 0
            spatialIDSeen = 0
            open(.max, at: packet)
            needsKeyFrame = false
        } else {
            let isSame = min(spatialID, spatialIDSeen) == min(targetSpatialID, spatialIDSeen)
            let isBelow = targetSpatialID < spatialID && openSpatial & Self.bit(ofSpatial: targetSpatialID) != 0
            if isSame || isBelow { switchSpatial(to: targetSpatialID, at: packet) }
            needsKeyFrame = spatialID != targetSpatialID
        }
        picture.isLeftOut = !decideTemporalLayerVP9(packet)
    }

    /// Decides about the temporal layer of a picture.
    /// - Returns: whether it is forwarded.
    private mutating func decideTemporalLayerVP9(_ packet: PacketDescription) -> Bool {
        let layer = min(packet.temporalID, 7)
        let switchesUp = packet.frame.contains(.switchesUp)
        let isFlexible = packet.frame.contains(.isFlexible)
        // In the flexible mode libwebrtc sets U on a picture that refers to lower temporal layers only.
        let startsLayer = isFlexible && switchesUp && layer > 0 && isOpen(upTo: layer &- 1)
        guard layer == 0 || (layer <= targetTemporalID && (isOpen(upTo: layer) || startsLayer)) else {
            openTemporal &= ~(1 << layer)
            return false
        }
        if startsLayer { open(1 << layer, at: packet) }
        // Later pictures of higher temporal layers refer to none of those layers from before (RFC 9628 §4.2, U).
        if switchesUp, !isFlexible || layer == 0 { open(.max << layer, at: packet) }
        return true
    }

    /// A frame of a picture after which others came.
    private func decideLateVP9(_ packet: PacketDescription) -> LayerDecision {
        let layer = min(packet.temporalID, 7)
        let sequence = packet.sequence.rawValue
        guard layer == 0 || (layer <= targetTemporalID && isOpen(upTo: layer) && sequence > openedSequence) else {
            return .leftOut
        }
        let highest = sequence < switchedSequence ? spatialIDBefore : spatialID
        if packet.spatialID > highest || isSkipped(packet, in: highest) { return .leftOut }
        return packet.spatialID == highest ? .forwardedLast : .forwarded
    }
}
