import Base
import Wire

/// What the layer filter of a slot decided about a frame.
package enum LayerDecision: UInt8, BitwiseCopyable, Sendable {
    /// The frame was not seen, or it is too long ago.
    case undecided
    case forwarded
    /// It is forwarded as the last frame of its picture, so its last packet has the marker.
    case forwardedLast
    case dropped
}

/// Decides which frames of the stream that plays go out to a slot that is to be sent a part of its layers.
///
/// A frame, which is one spatial layer of a picture, is decided at the first packet of it that comes. The decision is kept, so
/// that late packets and retransmissions of the frame follow it. Only a slot that was limited once has a filter.
struct LayerFilter: BitwiseCopyable {
    /// What is sent. A frame that comes late is decided by what was sent at its place.
    struct State: BitwiseCopyable {
        /// The highest temporal layer of the target; `.max` for all.
        var targetTemporalID: UInt8
        /// The temporal layers that a decoder can go on with: of which each frame was forwarded since one that refers to no other
        /// frame of its layer. Bit 0 is always set.
        var openTemporal = UInt8.max
        /// The highest spatial layer that is sent, in a stream whose packets name one; `.max` while all are.
        var spatialID = UInt8.max
        /// The highest spatial layer that the source sends.
        var spatialIDSeen: UInt8 = 0
        /// With a dependency descriptor: the decode target that is sent; `.max` for all.
        var decodeTarget = UInt8.max

        /// Whether all temporal layers from 1 up to this one are open.
        func isOpen(upTo temporalID: UInt8) -> Bool {
            let needed = LayerFilter.mask(upTo: temporalID)
            return openTemporal & needed == needed
        }

        /// Adds layers that a decoder can go on with from here on. Those above the target are not sent.
        mutating func open(_ layers: UInt8) { openTemporal |= layers & LayerFilter.mask(upTo: targetTemporalID) }
    }

    /// The highest spatial layer to send; `.max` for all.
    private(set) var targetSpatialID: UInt8
    var state: State
    /// The newest frame of each temporal layer that refers to no earlier one of its layer, by its first packet.
    var temporalOpenedAt: [8 of Int64] = .init(repeating: .min)
    /// The spatial layers of which each frame was forwarded since a key frame.
    var openSpatial = UInt8.max
    /// The first packet of the newest key picture.
    var openedAt = Int64.min
    /// Pictures of the source in a row that ended below that layer.
    var picturesWithoutHighest: UInt8 = 0
    /// Frames of upper layers refer to the lower ones of their picture, not in key pictures only.
    var usesLowerLayers = false
    /// With a dependency descriptor: a frame was left out that the chain of the decode target needs.
    var isChainBroken = false
    /// The target cannot be reached without a key frame.
    var needsKeyFrame = false
    /// The picture that is being decided.
    var picture = Picture()
    /// Packets that wait to leave came before the filter or before their stream played. All are decided when they leave,
    /// until none waits.
    var decidesAtRelease = false
    /// The last time that something was left out or marked.
    private(set) var changedAt: Instant

    /// Packets up to this one went out, or were dropped, before the filter was there.
    private var sequenceBefore: Int64
    /// The newest packet that was decided.
    private(set) var newestSequence = Int64.min
    /// No packet is missing before the one that is being decided.
    private(set) var isNext = false
    /// The picture that began to go out before the filter was there. All of it does.
    private var pictureBefore: RTPTimestamp?

    /// Frames that are remembered: as many as a source sends in two seconds, at 30 pictures a second in four spatial layers.
    static let framesMax = 256
    private var frames: [256 of Frame]
    private var newestFrame: UInt8 = 0

    private struct Frame: BitwiseCopyable {
        var key: UInt32 = 0
        /// The first packet of it that came, by the low bits of its number.
        var sequence: UInt32 = 0
        /// With a dependency descriptor.
        var number: UInt16 = 0
        var decision = LayerDecision.undecided
        /// What was sent when it was decided.
        var state: State

        func isPart(ofPicture timestamp: RTPTimestamp) -> Bool { key &- timestamp.rawValue <= UInt32(UInt8.max) }
    }

    /// One picture of a stream with spatial layers.
    struct Picture: BitwiseCopyable {
        var timestamp: RTPTimestamp?
        /// Its temporal layer is left out.
        var isDropped = false
        /// What was sent when its temporal layer was decided.
        var stateAtBeginning: State?
        /// A frame of it came whose dependency structure is not known.
        var isUnknown = false
        /// Its beginning was seen. Spatial layers change in such a picture only: none of its frames can come late and belong
        /// before others.
        var isOrderly = false
        /// A frame of it was decided.
        var isBegun = false
        /// A frame of it has the marker.
        var isMarked = false
        /// The highest spatial layer of it that was forwarded; -1 before the first one.
        var highestForwarded: Int8 = -1
    }

    /// A filter of a stream of which all layers went out until now.
    /// - Parameters:
    ///   - sequence: the newest packet that went out.
    ///   - picture: its picture.
    init(
        spatialID: UInt8,
        temporalID: UInt8,
        after sequence: ExtendedSequenceNumber,
        of picture: RTPTimestamp?,
        at now: Instant
    ) {
        targetSpatialID = spatialID
        state = State(targetTemporalID: .max)
        frames = .init(repeating: Frame(state: state))
        sequenceBefore = sequence.rawValue
        pictureBefore = picture
        changedAt = now
        setTarget(spatialID: spatialID, temporalID: temporalID)
    }

    /// Sets what is to be sent of the stream that plays.
    mutating func setTarget(spatialID: UInt8, temporalID: UInt8) {
        targetSpatialID = spatialID
        state.targetTemporalID = temporalID
        state.openTemporal &= Self.mask(upTo: temporalID)
    }

    /// A stream begins to play, with a key frame. Packets of the one before keep their decisions.
    mutating func begin(at sequence: ExtendedSequenceNumber, spatialID: UInt8, temporalID: UInt8) {
        state = State(targetTemporalID: temporalID)
        setTarget(spatialID: spatialID, temporalID: temporalID)
        state.spatialID = spatialID
        openSpatial = 0
        openedAt = sequence.rawValue
        needsKeyFrame = false
        isChainBroken = false
        picture = Picture()
        sequenceBefore = sequence.rawValue &- 1
        newestSequence = .min
        pictureBefore = nil
    }

    var isLimited: Bool { targetSpatialID != .max || state.targetTemporalID != .max }

    /// The highest temporal layer that is sent; `.max` when all are.
    var temporalID: UInt8 {
        let wanted = Self.mask(upTo: state.targetTemporalID)
        guard state.openTemporal & wanted != wanted else { return state.targetTemporalID }
        return UInt8(truncatingIfNeeded: (~state.openTemporal).trailingZeroBitCount &- 1)
    }

    /// One bit for each temporal layer up to one.
    static func mask(upTo temporalID: UInt8) -> UInt8 {
        UInt8(truncatingIfNeeded: (2 << UInt16(min(temporalID, 7))) &- 1)
    }

    // MARK: - Decisions

    /// A picture begins with a packet of it.
    mutating func noteBeginning(of packet: PacketDescription) {
        picture = Picture(timestamp: packet.timestamp)
        picture.isOrderly = packet.frame.contains(.startsFrame) && (packet.spatialID == 0 || isNext)
    }

    private static func key(of packet: PacketDescription) -> UInt32 {
        // The timestamps of two pictures are further apart than the spatial layers of one.
        packet.timestamp.rawValue &+ UInt32(packet.spatialID)
    }

    /// What was decided about a packet's frame.
    /// - Parameter count: how many of the last frames to look at.
    func decision(of packet: PacketDescription, among count: Int = framesMax) -> LayerDecision {
        let key = Self.key(of: packet)
        var index = newestFrame
        for _ in 0..<count {
            let decision = frames[Int(index)].decision
            guard decision != .undecided else { return .undecided }
            if frames[Int(index)].key == key { return decision }
            index &-= 1
        }
        return .undecided
    }

    /// What was decided about one of the last frames of a stream with a dependency descriptor, by its number.
    func decision(ofFrame number: UInt16) -> LayerDecision {
        var index = newestFrame
        for _ in 0..<Self.framesMax {
            let frame = frames[Int(index)]
            if frame.decision == .undecided || frame.number == number { return frame.decision }
            index &-= 1
        }
        return .undecided
    }

    /// The packet came after the filter was made, so its frame had a decision.
    func covers(_ packet: PacketDescription) -> Bool { packet.sequence.rawValue > sequenceBefore }

    /// What was sent at a packet's place: in its picture, or else before it.
    private func state(at packet: PacketDescription) -> State {
        let sequence = UInt32(truncatingIfNeeded: packet.sequence.rawValue)
        var before: (distance: UInt32, index: Int)?
        var after: (distance: UInt32, index: Int)?
        for index in 0..<Self.framesMax where frames[index].decision != .undecided {
            let distance = sequence &- frames[index].sequence
            if distance < 0x8000_0000 {
                if distance < before?.distance ?? .max { before = (distance, index) }
            } else if frames[index].isPart(ofPicture: packet.timestamp), 0 &- distance < after?.distance ?? .max {
                after = (0 &- distance, index)
            }
        }
        if let before, after == nil || frames[before.index].isPart(ofPicture: packet.timestamp) {
            return frames[before.index].state
        }
        // Before the first frame that was decided all went out.
        return after.map { frames[$0.index].state } ?? State(targetTemporalID: .max)
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
        isNext = sequence == newestSequence &+ 1
        newestSequence = max(newestSequence, sequence)
        if packet.marker, !isLate { notePictureEnd(packet.spatialID) }
        // A packet in order is of one of the frames of its picture.
        let known = decision(of: packet, among: isLate ? Self.framesMax : 8)
        if known != .undecided { return known }
        if packet.timestamp == pictureBefore || !covers(packet) { return .forwarded }
        let isOfEarlierPicture = isLate && packet.timestamp != picture.timestamp
        var placed = isOfEarlierPicture ? state(at: packet) : state
        let decision = decideFrame(packet, templates, isOfEarlierPicture ? placed : nil)
        if !isOfEarlierPicture {
            placed = state
            if let begun = picture.stateAtBeginning {
                // A temporal layer is sent or left out in all frames of a picture.
                placed.targetTemporalID = begun.targetTemporalID
                placed.openTemporal = begun.openTemporal
            }
        }
        if decision == .dropped || (decision == .forwardedLast && isLimited) { changedAt = now }
        newestFrame &+= 1
        frames[Int(newestFrame)] = Frame(
            key: Self.key(of: packet),
            sequence: UInt32(truncatingIfNeeded: sequence),
            number: packet.frameNumber,
            decision: decision,
            state: placed
        )
        return decision
    }

    /// - Parameter placed: what was sent at the packet's place, if later pictures came before it.
    private mutating func decideFrame(
        _ packet: PacketDescription,
        _ templates: Unretained<DependencyTemplates>,
        _ placed: State?
    ) -> LayerDecision {
        if packet.hasFrameNumber {
            let targets = templates.with { $0.targets }
            if targets.count > 0 {
                return placed.map { decision(packet, by: targets, for: $0.decodeTarget) } ?? decide(packet, by: targets)
            }
        }
        if packet.pictureIDBits != 0, !packet.frame.contains(.closesPictureIDs) {
            guard let placed else { return decideVP9(packet) }
            return decideLateVP9(packet, placed)
        }
        let isForwarded = if let placed { decideLate(packet, placed) } else { decideTemporalLayer(packet) }
        return isForwarded ? .forwarded : .dropped
    }
}
