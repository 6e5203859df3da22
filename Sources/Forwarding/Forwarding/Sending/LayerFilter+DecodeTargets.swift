import Wire

/// Decode targets of codecs with a dependency descriptor (AV1 RTP specification, A.8).
extension LayerFilter {
    /// Decides about a frame by the decode target that is sent.
    mutating func decide(_ packet: PacketDescription, by targets: DecodeTargets) -> LayerDecision {
        if picture.timestamp != packet.timestamp {
            noteBeginning(of: packet)
            picture.isUnknown = packet.dependencies.targetCount == 0
        }
        // Frames before the structure that they refer to go out whole pictures at a time.
        guard !picture.isUnknown, packet.dependencies.targetCount > 0 else { return .forwarded }
        // A frame that later ones overtook begins nothing, as those were decided without it.
        let target = state.decodeTarget
        if picture.isOrderly, packet.sequence.rawValue == newestSequence { switchTarget(at: packet, targets) }
        let decision = decision(packet, by: targets, for: state.decodeTarget)
        if state.decodeTarget != target { isChainBroken = false } else { checkChain(before: packet, targets) }
        if decision == .forwardedLast { picture.isMarked = true }
        picture.isBegun = true
        // A receiver needs the structure of each key frame.
        return decision == .dropped && packet.startsKeyFrame ? .forwarded : decision
    }

    /// What a decode target says about a frame.
    func decision(
        _ packet: PacketDescription,
        by targets: DecodeTargets,
        for target: UInt8
    ) -> LayerDecision {
        guard target != .max, packet.dependencies.targetCount > 0 else { return .forwarded }
        guard packet.dependencies.indication(for: Int(target)) != .notPresent else { return .dropped }
        return packet.spatialID == targets.layers(of: target).spatialID ? .forwardedLast : .forwarded
    }

    /// A frame names the distance to the frame before it in the chain of the target. If that was left out, nothing of the
    /// target decodes until the chain starts again. A frame that is missing is asked for elsewhere.
    private mutating func checkChain(before packet: PacketDescription, _ targets: DecodeTargets) {
        guard let distance = packet.dependencies.chainDifference(Int(targets.chain(of: state.decodeTarget))) else {
            return
        }
        if distance == 0 {
            isChainBroken = false
        } else if decision(ofFrame: packet.frameNumber &- UInt16(distance)) == .dropped {
            isChainBroken = true
        }
        if isChainBroken { needsKeyFrame = true }
    }

    /// Changes to the wanted decode target where that decodes, and until then to the one of the current spatial layer.
    private mutating func switchTarget(at packet: PacketDescription, _ targets: DecodeTargets) {
        let temporalID = state.targetTemporalID
        guard let wanted = targets.best(spatialID: targetSpatialID, temporalID: temporalID) else { return }
        let spatialID = targets.layers(of: wanted).spatialID
        needsKeyFrame = false
        if canSwitch(to: wanted, at: packet, targets) {
            setDecodeTarget(wanted, targets)
        } else if state.spatialID != spatialID {
            needsKeyFrame = true
            let interim = targets.best(spatialID: state.spatialID, temporalID: temporalID, in: state.spatialID)
            if let interim, canSwitch(to: interim, at: packet, targets) { setDecodeTarget(interim, targets) }
        }
    }

    /// Whether a decode target decodes from here on: at a key frame, with a frame that is sent and a switch indication for the
    /// target, or where all frames of the target were sent until now.
    private func canSwitch(to target: UInt8, at packet: PacketDescription, _ targets: DecodeTargets) -> Bool {
        if packet.startsKeyFrame || state.decodeTarget == .max { return true }
        guard target != state.decodeTarget else { return true }
        if targets.isPart(target, of: state.decodeTarget), !picture.isBegun { return true }
        return !picture.isMarked && packet.dependencies.indication(for: Int(target)) == .switchable
            && packet.dependencies.indication(for: Int(state.decodeTarget)) != .notPresent
    }

    private mutating func setDecodeTarget(_ target: UInt8, _ targets: DecodeTargets) {
        let layers = targets.layers(of: target)
        state.decodeTarget = target
        state.spatialID = layers.spatialID
        state.openTemporal = Self.mask(upTo: layers.temporalID)
    }
}
