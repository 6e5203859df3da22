import Wire

/// Decode targets of codecs with a dependency descriptor (AV1 RTP specification, A.8).
extension LayerFilter {
    /// Decides about a frame by the decode target that is sent.
    mutating func decide(_ packet: PacketDescription, by targets: DecodeTargets, isLate: Bool) -> LayerDecision {
        if picture.timestamp != packet.timestamp {
            if isLate {
                let isBefore = packet.sequence.rawValue < switchedSequence
                return decision(packet, by: targets, for: isBefore ? decodeTargetBefore : decodeTarget)
            }
            picture = Picture(timestamp: packet.timestamp)
            picture.isUnknown = packet.dependencies.targetCount == 0
        }
        // Frames before the structure that they refer to go out whole pictures at a time.
        guard !picture.isUnknown, packet.dependencies.targetCount > 0 else { return .forwarded }
        if !isLate { switchTarget(at: packet, targets) }
        let decision = decision(packet, by: targets, for: decodeTarget)
        if decision == .forwardedLast { picture.isMarked = true }
        picture.isBegun = true
        // A receiver needs the structure of each key frame.
        return decision == .leftOut && packet.startsKeyFrame ? .forwarded : decision
    }

    private func decision(
        _ packet: PacketDescription,
        by targets: DecodeTargets,
        for target: UInt8
    ) -> LayerDecision {
        guard target != .max, packet.dependencies.targetCount > 0 else { return .forwarded }
        guard packet.dependencies.indication(for: Int(target)) != .notPresent else { return .leftOut }
        return packet.spatialID == targets.layers(of: target).spatialID ? .forwardedLast : .forwarded
    }

    /// Changes to the wanted decode target where that decodes: at a key frame, with a frame that is sent and a switch indication
    /// for the wanted one, or where all frames of that were sent until now.
    private mutating func switchTarget(at packet: PacketDescription, _ targets: DecodeTargets) {
        guard let wanted = targets.best(spatialID: targetSpatialID, temporalID: targetTemporalID) else { return }
        guard wanted != decodeTarget || packet.startsKeyFrame else {
            needsKeyFrame = false
            return
        }
        let isPart = decodeTarget == .max || targets.isPart(wanted, of: decodeTarget)
        let isSent = decodeTarget == .max || packet.dependencies.indication(for: Int(decodeTarget)) != .notPresent
        let isSwitch = isSent && packet.dependencies.indication(for: Int(wanted)) == .switchable
        if packet.startsKeyFrame || (isPart && !picture.isBegun) || (isSwitch && !picture.isMarked) {
            decodeTargetBefore = decodeTarget
            decodeTarget = wanted
            switchedSequence = packet.sequence.rawValue
            needsKeyFrame = false
            let layers = targets.layers(of: wanted)
            spatialID = layers.spatialID
            openTemporal = UInt8(truncatingIfNeeded: (2 << UInt16(min(layers.temporalID, 7))) &- 1)
        } else {
            needsKeyFrame = targets.layers(of: wanted).spatialID != targets.layers(of: decodeTarget).spatialID
        }
    }
}
