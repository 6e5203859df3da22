import Wire

/// Spatial and temporal layers of VP9 (RFC 9628).
extension LayerFilter {
    /// Decides about a frame whose payload descriptor names layers.
    mutating func decideVP9(_ packet: PacketDescription) -> LayerDecision {
        if picture.timestamp != packet.timestamp { beginPicture(packet) }
        state.spatialIDSeen = max(state.spatialIDSeen, packet.spatialID)
        if picture.isDropped { return .dropped }
        let bit = Self.bit(ofSpatial: packet.spatialID)
        let refersToEarlier = packet.frame.contains(.refersToEarlier)
        if startsUpperLayer(packet) {
            state.spatialID = packet.spatialID
            needsKeyFrame = state.spatialID != targetSpatialID
        }
        if packet.spatialID > state.spatialID || isSkipped(packet, state) || isCutOff(packet) {
            openSpatial &= ~bit
            return .dropped
        }
        if !refersToEarlier { openSpatial |= bit }
        if refersToEarlier, packet.spatialID > 0 {
            usesLowerLayers = packet.frame.contains(.refersToLowerLayer)
            // The lower layers are not sent with this one, whether they were seen or not.
            if !usesLowerLayers { openSpatial &= ~(bit &- 1) }
        }
        picture.highestForwarded = max(picture.highestForwarded, Int8(clamping: packet.spatialID))
        guard packet.spatialID == state.spatialID else { return .forwarded }
        picture.isMarked = true
        return .forwardedLast
    }

    /// Notes which spatial layers the source sends, by the end of a picture. A layer may skip some pictures.
    mutating func notePictureEnd(_ spatialID: UInt8) {
        guard spatialID < state.spatialIDSeen else {
            picturesWithoutHighest = 0
            return
        }
        picturesWithoutHighest &+= 1
        guard picturesWithoutHighest >= Self.skippedPicturesMax else { return }
        state.spatialIDSeen = spatialID
        picturesWithoutHighest = 0
    }

    private static let skippedPicturesMax: UInt8 = 8

    private static func bit(ofSpatial spatialID: UInt8) -> UInt8 { 1 << min(spatialID, 7) }

    /// Whether the layers up to `highest` do not need a frame of a lower one. The scalability structure comes with the
    /// frames of a key picture, which are sent all.
    private func isSkipped(_ packet: PacketDescription, _ state: State) -> Bool {
        packet.spatialID < min(state.spatialID, state.spatialIDSeen)
            && packet.frame.contains([.refersToEarlier, .isUnusedAbove])
    }

    /// Whether the highest layer there is lacks the earlier frames that a frame of it refers to.
    private func isCutOff(_ packet: PacketDescription) -> Bool {
        packet.spatialID >= min(state.spatialID, state.spatialIDSeen) && packet.frame.contains(.refersToEarlier)
            && openSpatial & Self.bit(ofSpatial: packet.spatialID) == 0
    }

    /// Whether the next layer of the target can begin here, within a picture of which no frame can come late.
    private func startsUpperLayer(_ packet: PacketDescription) -> Bool {
        guard packet.spatialID > state.spatialID, packet.spatialID <= targetSpatialID, picture.isOrderly, isNext,
            !picture.isMarked, packet.frame.contains(.startsFrame), !packet.frame.contains(.refersToEarlier)
        else { return false }
        return !packet.frame.contains(.refersToLowerLayer)
            || Int8(clamping: packet.spatialID) == picture.highestForwarded + 1
    }

    /// A picture begins: the layers change to those of the target, as far as they can.
    private mutating func beginPicture(_ packet: PacketDescription) {
        noteBeginning(of: packet)
        // What is missing may be frames that are not sent.
        if !isNext, !usesLowerLayers {
            openSpatial &= ~(Self.bit(ofSpatial: min(state.spatialID, state.spatialIDSeen)) &- 1)
        }
        if picture.isOrderly, packet.spatialID == 0, !packet.frame.contains(.refersToEarlier) {
            state.spatialID = targetSpatialID
            openSpatial = Self.mask(upTo: targetSpatialID)
            openedAt = packet.sequence.rawValue
            state.spatialIDSeen = 0
            state.open(.max)
            needsKeyFrame = false
        } else if picture.isOrderly {
            let isUp = targetSpatialID > state.spatialID
            let wanted = min(targetSpatialID, state.spatialIDSeen)
            let isSame = min(state.spatialID, state.spatialIDSeen) == wanted
            let isOpen = openSpatial & Self.bit(ofSpatial: targetSpatialID) != 0
            if isUp ? isSame && isOpen : isSame || isOpen { state.spatialID = targetSpatialID }
            // Without the layers above, the highest one that there is cannot be decoded when its frames were not sent.
            let highest = min(state.spatialID, state.spatialIDSeen)
            let open = openSpatial & Self.mask(upTo: highest)
            needsKeyFrame = highest != wanted || open & Self.bit(ofSpatial: highest) == 0
            if open != 0, open & Self.bit(ofSpatial: highest) == 0 {
                state.spatialID = UInt8(truncatingIfNeeded: 7 &- open.leadingZeroBitCount)
            }
        }
        picture.isDropped = !decideTemporalLayerVP9(packet)
        picture.stateAtBeginning = state
    }

    /// Decides about the temporal layer of a picture.
    /// - Returns: whether it is forwarded.
    private mutating func decideTemporalLayerVP9(_ packet: PacketDescription) -> Bool {
        let layer = min(packet.temporalID, 7)
        let switchesUp = packet.frame.contains(.switchesUp)
        let isFlexible = packet.frame.contains(.isFlexible)
        // In the flexible mode libwebrtc sets U on a picture that refers to lower temporal layers only.
        let startsLayer = isFlexible && switchesUp && layer > 0 && state.isOpen(upTo: layer &- 1)
        guard layer == 0 || (layer <= state.targetTemporalID && (state.isOpen(upTo: layer) || startsLayer)) else {
            state.openTemporal &= ~(1 << layer)
            return false
        }
        if startsLayer { state.open(1 << layer) }
        // Later pictures of higher temporal layers refer to none of those layers from before (RFC 9628 §4.2, U).
        if switchesUp, !isFlexible || layer == 0 { state.open(.max << layer) }
        return true
    }

    /// Decides about a frame of a picture after which others came.
    /// - Parameter state: what was sent at its place.
    mutating func decideLateVP9(_ packet: PacketDescription, _ state: State) -> LayerDecision {
        let layer = min(packet.temporalID, 7)
        guard layer == 0 || (layer <= state.targetTemporalID && state.isOpen(upTo: layer)) else { return .dropped }
        guard packet.spatialID <= state.spatialID, !isSkipped(packet, state) else {
            if packet.sequence.rawValue > openedAt { openSpatial &= ~Self.bit(ofSpatial: packet.spatialID) }
            return .dropped
        }
        return packet.spatialID == state.spatialID ? .forwardedLast : .forwarded
    }
}
