import Wire

/// What the layer filter of a slot decided about a frame.
package enum LayerDecision: UInt8, BitwiseCopyable, Sendable {
    /// The frame was not seen, or it is too long ago.
    case undecided
    case forwarded
    /// It is forwarded as the last frame of its picture, so its last packet has the marker.
    case forwardedLast
    case leftOut
}

/// Decides which frames of the stream that plays go out to a slot that is to be sent a part of its layers.
///
/// A frame, which is one spatial layer of a picture, is decided at the first packet of it that comes. The decision is kept, so
/// that late packets and retransmissions of the frame follow it. Only a slot that was limited once has a filter.
struct LayerFilter: BitwiseCopyable {
    /// The highest layers to send; `.max` for all.
    private(set) var targetSpatialID: UInt8
    private(set) var targetTemporalID: UInt8
    /// The highest spatial layer that is sent, in a stream whose packets name one; `.max` while all are.
    var spatialID = UInt8.max
    /// The one before, and from where on the other is sent.
    var spatialIDBefore = UInt8.max
    var switchedSequence = Int64.min
    /// With a dependency descriptor: the decode target that is sent, and the one before; `.max` for all.
    var decodeTarget = UInt8.max
    var decodeTargetBefore = UInt8.max
    /// The temporal layers of which each frame since the last one that refers to no other of its layer was forwarded: those
    /// that a decoder can go on with. Bit 0 is always set.
    var openTemporal = UInt8.max
    /// The spatial layers of which each frame was forwarded since a key frame.
    var openSpatial = UInt8.max
    /// The highest spatial layer of the source since its last key frame.
    var spatialIDSeen: UInt8 = 0
    /// The target cannot be reached without a key frame.
    var needsKeyFrame = false
    /// The picture that is being decided.
    var picture = Picture()
    /// Packets that wait to leave came before the filter or before their stream played. All are decided when they leave,
    /// until none waits.
    var decidesAtRelease = false
    /// The last time that something was left out or marked.
    private(set) var changedAt: Instant

    private var firstSequence: Int64?
    /// The newest packet that was decided.
    private(set) var newestSequence = Int64.min
    /// Where a temporal layer was opened last.
    var openedSequence = Int64.min
    /// The picture that began to go out before the filter was there. All of it does.
    private var pictureBefore: RTPTimestamp?

    /// Frames that are remembered: as many as a source sends in two seconds, at 30 pictures a second in four spatial layers.
    static let framesMax = 256
    private var frames: [256 of UInt32] = .init(repeating: 0)
    private var decisions: [256 of LayerDecision] = .init(repeating: .undecided)
    private var newestFrame: UInt8 = 0

    /// One picture of a stream with spatial layers.
    struct Picture: BitwiseCopyable {
        var timestamp: RTPTimestamp?
        /// Its temporal layer is left out.
        var isLeftOut = false
        /// A frame of it came whose dependency structure is not known.
        var isUnknown = false
        /// A frame of it was decided.
        var isBegun = false
        /// A frame of it has the marker.
        var isMarked = false
        /// The highest spatial layer of it that was forwarded.
        var highestForwarded: UInt8 = 0
    }

    /// A filter of a stream of which all layers went out until now.
    /// - Parameter picture: the one that went out last.
    init(spatialID: UInt8, temporalID: UInt8, after picture: RTPTimestamp?, at now: Instant) {
        targetSpatialID = spatialID
        targetTemporalID = temporalID
        pictureBefore = picture
        changedAt = now
    }

    /// Sets what is to be sent of the stream that plays.
    mutating func setTarget(spatialID: UInt8, temporalID: UInt8) {
        targetSpatialID = spatialID
        targetTemporalID = temporalID
    }

    /// A stream begins to play, with a key frame. Packets of the one before keep their decisions.
    mutating func begin(at sequence: ExtendedSequenceNumber, spatialID: UInt8, temporalID: UInt8) {
        setTarget(spatialID: spatialID, temporalID: temporalID)
        self.spatialID = spatialID
        spatialIDBefore = spatialID
        switchedSequence = .min
        decodeTarget = .max
        decodeTargetBefore = .max
        openTemporal = .max
        openSpatial = 0
        spatialIDSeen = 0
        needsKeyFrame = false
        picture = Picture()
        firstSequence = sequence.rawValue
        newestSequence = .min
        openedSequence = .min
        pictureBefore = nil
    }

    var isLimited: Bool { targetSpatialID != .max || targetTemporalID != .max }

    /// The highest temporal layer that is sent; `.max` when all are.
    var temporalID: UInt8 {
        let highestOpen = UInt8(truncatingIfNeeded: (~openTemporal).trailingZeroBitCount &- 1)
        return openTemporal == .max ? targetTemporalID : min(targetTemporalID, highestOpen)
    }

    // MARK: - Decisions

    private static func frame(of packet: PacketDescription) -> UInt32 {
        // The timestamps of two pictures are further apart than the spatial layers of one.
        packet.timestamp.rawValue &+ UInt32(packet.spatialID)
    }

    /// What was decided about a packet's frame.
    func decision(of packet: PacketDescription) -> LayerDecision {
        let frame = Self.frame(of: packet)
        var index = newestFrame
        repeat {
            let decision = decisions[Int(index)]
            guard decision != .undecided else { return .undecided }
            if frames[Int(index)] == frame { return decision }
            index &-= 1
        } while index != newestFrame
        return .undecided
    }

    /// The packet came after the filter was made, so its frame had a decision.
    func covers(_ packet: PacketDescription) -> Bool {
        firstSequence.map { packet.sequence.rawValue >= $0 } ?? false
    }

    /// Decides about a packet of the stream that plays, by its frame.
    /// - Parameter templates: the stream's dependency structure.
    mutating func decide(
        _ packet: PacketDescription,
        of templates: Unretained<DependencyTemplates>,
        at now: Instant
    ) -> LayerDecision {
        let sequence = packet.sequence.rawValue
        let isLate = sequence < newestSequence
        newestSequence = max(newestSequence, sequence)
        let known = decision(of: packet)
        if known != .undecided { return known }
        if firstSequence == nil { firstSequence = sequence }
        if packet.timestamp == pictureBefore || !covers(packet) { return .forwarded }
        let decision = decideFrame(packet, templates, isLate: isLate)
        if decision == .leftOut || (decision == .forwardedLast && isLimited) { changedAt = now }
        newestFrame &+= 1
        frames[Int(newestFrame)] = Self.frame(of: packet)
        decisions[Int(newestFrame)] = decision
        return decision
    }

    /// - Parameter isLate: packets of later frames came before.
    private mutating func decideFrame(
        _ packet: PacketDescription,
        _ templates: Unretained<DependencyTemplates>,
        isLate: Bool
    ) -> LayerDecision {
        if packet.hasFrameNumber {
            let targets = templates.with { $0.targets }
            if targets.count > 0 { return decide(packet, by: targets, isLate: isLate) }
        }
        if packet.pictureIDBits != 0, !packet.frame.contains(.closesPictureIDs) {
            return decideVP9(packet, isLate: isLate)
        }
        return decideTemporalLayer(packet, isLate: isLate) ? .forwarded : .leftOut
    }

    /// Whether all temporal layers from 1 up to this one are open.
    func isOpen(upTo temporalID: UInt8) -> Bool {
        let needed = UInt8(truncatingIfNeeded: (2 << UInt16(min(temporalID, 7))) &- 1)
        return openTemporal & needed == needed
    }

    mutating func open(_ layers: UInt8, at packet: PacketDescription) {
        guard openTemporal & layers != layers else { return }
        openTemporal |= layers
        openedSequence = packet.sequence.rawValue
    }
}
