import MediaTypes
import Wire

/// Layers that a slot can be sent, and what they cost.
struct LayerStep: BitwiseCopyable, Equatable, Sendable {
    var stream: UInt64
    /// `UInt8.max` for all of them.
    var spatialID: UInt8
    /// `UInt8.max` for all of them.
    var temporalID: UInt8
    /// The step's place by encoding, spatial and temporal layer, in that order.
    var order: UInt16
    var pixels: Int
    /// Bit/s, with packet overhead and retransmissions.
    var cost: Int
    var utility: Double
    /// What it takes to switch here: of a key frame with the spatial layers up to this one.
    var keyFrameBytes: Int
    /// Utility for each bit/s on top of the step below, averaged so that it falls from step to step.
    var slope = 0.0

    var target: TargetLayer {
        .layer(stream: StreamID(rawValue: stream), spatialID: spatialID, temporalID: temporalID)
    }

    /// Whether switching between the two needs a key frame.
    func differsSpatially(from other: LayerStep) -> Bool { stream != other.stream || spatialID != other.spatialID }
}

/// The steps of one slot, cheapest first.
struct LayerLadder: Sendable {
    let id: SSRC
    let importance: SlotImportance
    let isScreen: Bool
    /// In ``LayerLadders/steps``.
    var steps: Range<Int>
    /// Steps up to the least that the slot's importance asks for.
    var minimum = 1
}

/// The ladders of a receiver's slots: of each source the layers that the slot's preference allows, without those for which
/// others are better and no dearer.
struct LayerLadders: Sendable {
    private(set) var steps: [LayerStep] = []
    private(set) var ladders: [LayerLadder] = []
    private var levels: [Level] = []
    /// What a bit/s of RTP takes on the wire, in thousandths: IP, UDP and SRTP around some 1,100 bytes, and retransmissions.
    private static let costPerMille = 1_060

    /// One spatial layer of one encoding.
    private struct Level {
        let encoding: Int
        let rank: Int
        let spatialID: Int
        let isTop: Bool
        let isKnown: Bool
        var pixels: Int
    }

    subscript(slot: Int) -> ArraySlice<LayerStep> { steps[ladders[slot].steps] }

    mutating func removeAll() {
        steps.removeAll(keepingCapacity: true)
        ladders.removeAll(keepingCapacity: true)
    }

    /// The cost of the first steps of a slot.
    func cost(_ count: Int, of slot: Int) -> Int {
        count > 0 ? steps[ladders[slot].steps.lowerBound + count - 1].cost : 0
    }

    /// Appends the ladder of a slot. It is empty while nothing flows.
    /// - Parameter costPerMille: factor on all costs, in thousandths.
    mutating func append(_ request: LayerRequest, costPerMille: Int = 1_000) {
        let start = steps.count
        if let table = request.table {
            let ranked = RankedEncodings(table, cap: request.preference.cap)
            collectLevels(table, ranked, height: request.preference.height)
            estimateSizes(table)
            var below = 0
            for index in levels.indices {
                below = appendSteps(of: levels[index], table, request, above: below, costPerMille)
            }
            sort(from: start)
            removeDominated(from: start)
            setSlopes(from: start)
        }
        var ladder = LayerLadder(
            id: request.id,
            importance: request.importance,
            isScreen: request.isScreen,
            steps: start..<steps.count
        )
        ladder.minimum = minimum(of: ladder)
        ladders.append(ladder)
    }

    // MARK: - Levels

    private mutating func collectLevels(_ table: LayerTable, _ ranked: RankedEncodings, height: Int?) {
        levels.removeAll(keepingCapacity: true)
        for rank in 0..<ranked.count {
            let encoding = table.encodings[ranked[rank]]
            let spatials = encoding.layers.spatials
            let top = spatials.top
            for spatialID in 0...top where spatials.contains(spatialID) {
                let size = encoding.layers.size(ofSpatial: spatialID)
                levels.append(
                    Level(
                        encoding: ranked[rank],
                        rank: rank,
                        spatialID: spatialID,
                        isTop: spatialID == top,
                        isKnown: size != nil,
                        pixels: size.map { $0.width * $0.height } ?? 0
                    )
                )
                if let height, let size, size.height >= height { return }
            }
        }
    }

    /// Gives levels of unknown size half the width and height of the next one that is known.
    private mutating func estimateSizes(_ table: LayerTable) {
        guard levels.contains(where: { !$0.isKnown }) else { return }
        guard let known = levels.lastIndex(where: \.isKnown) else {
            var below = 0
            for index in levels.indices {
                let level = levels[index]
                let layers = table.encodings[level.encoding].layers
                let bitrate = layers.bitrate(upToSpatial: level.spatialID, temporal: EncodingLayers.temporalMax - 1)
                let pixels = LayerUtility.pixels(
                    atBitrate: bitrate > 0 ? bitrate : table.encodings[level.encoding].bitrate
                )
                levels[index].pixels = max(pixels, 2 * below)
                below = levels[index].pixels
            }
            return
        }
        for index in levels.indices.reversed() where index < known && !levels[index].isKnown {
            levels[index].pixels = max(1, levels[index + 1].pixels / 4)
        }
        for index in levels.indices where index > known { levels[index].pixels = levels[index - 1].pixels * 4 }
    }

    // MARK: - Steps

    /// Appends the steps of a level by its temporal layers.
    /// - Parameter below: the cost of the level below.
    /// - Returns: the cost of this one.
    private mutating func appendSteps(
        of level: Level,
        _ table: LayerTable,
        _ request: LayerRequest,
        above below: Int,
        _ costPerMille: Int
    ) -> Int {
        let encoding = table.encodings[level.encoding]
        let temporals = encoding.layers.temporals(upToSpatial: level.spatialID)
        let pixels = Self.pixels(of: level, shownAt: request.preference.height)
        var cost = 0
        for place in 0..<max(1, temporals.count) {
            let isTop = place + 1 >= temporals.count
            let temporalID = temporals.count > 0 ? temporals[place] : EncodingLayers.temporalMax - 1
            var bitrate = encoding.layers.bitrate(upToSpatial: level.spatialID, temporal: temporalID)
            if bitrate == 0 { bitrate = encoding.bitrate }
            cost = bitrate * Self.costPerMille / 1_000 * costPerMille / 1_000
            // Not measured yet.
            if cost == 0 { cost = max(150_000, 3 * below) }
            let step = LayerStep(
                stream: encoding.stream,
                spatialID: level.isTop ? .max : UInt8(level.spatialID),
                temporalID: isTop ? .max : UInt8(temporalID),
                order: UInt16(level.rank << 8 | (level.isTop ? 15 : level.spatialID) << 4 | (isTop ? 15 : temporalID)),
                pixels: level.pixels,
                cost: cost,
                utility: LayerUtility.value(
                    pixels: pixels,
                    halvings: max(0, temporals.count - 1 - place),
                    isScreen: request.isScreen
                ),
                keyFrameBytes: Self.keyFrameBytes(of: encoding, upToSpatial: level.spatialID)
            )
            steps.append(step)
        }
        return cost
    }

    /// Six frames at 30 frames a second, in bytes: what a key frame takes that was not measured yet, as a part of bit/s.
    private static let presumedKeyFrameDivisor = 8 * 30 / 6

    private static func keyFrameBytes(of encoding: LayerTable.Encoding, upToSpatial spatialID: Int) -> Int {
        let top = EncodingLayers.temporalMax - 1
        let whole = encoding.layers.bitrate(upToSpatial: EncodingLayers.spatialMax - 1, temporal: top)
        guard whole > 0 else { return encoding.keyFrameBytes }
        let part = encoding.layers.bitrate(upToSpatial: spatialID, temporal: top)
        guard encoding.keyFrameBytes > 0 else { return part / presumedKeyFrameDivisor }
        return encoding.keyFrameBytes * part / whole
    }

    /// The pixels of a level that the receiver shows. A size that is only estimated is no limit.
    private static func pixels(of level: Level, shownAt height: Int?) -> Int {
        guard level.isKnown, let height else { return level.pixels }
        let shown = min(max(height, 1), Int(UInt16.max))
        return min(level.pixels, shown * shown * 16 / 9)
    }

    /// Sorts by cost, and the best first of those that cost the same.
    private mutating func sort(from start: Int) {
        for end in start..<steps.count {
            var index = end
            while index > start,
                (steps[index].cost, -steps[index].utility) < (steps[index - 1].cost, -steps[index - 1].utility)
            {
                steps.swapAt(index, index - 1)
                index -= 1
            }
        }
    }

    private mutating func removeDominated(from start: Int) {
        var kept = start
        for index in start..<steps.count where kept == start || steps[index].utility > steps[kept - 1].utility + 1e-9 {
            steps[kept] = steps[index]
            kept += 1
        }
        steps.removeSubrange(kept...)
        removeDetours(from: start)
    }

    /// Removes steps from which the next one up would go back to a lower spatial layer.
    private mutating func removeDetours(from start: Int) {
        var lowest = UInt16.max
        for index in (start..<steps.count).reversed() {
            let level = steps[index].order >> 4
            if level > lowest { steps.remove(at: index) } else { lowest = level }
        }
    }

    /// Sets the slopes of the concave hull over the steps.
    private mutating func setSlopes(from start: Int) {
        var index = start
        while index + 1 < steps.count {
            var slope = 0.0
            var end = index + 1
            for next in index + 1..<steps.count {
                let cost = steps[next].cost - steps[index].cost
                let candidate = (steps[next].utility - steps[index].utility) / Double(max(1, cost))
                if candidate >= slope { (slope, end) = (candidate, next) }
            }
            for inside in index + 1...end { steps[inside].slope = slope }
            index = end
        }
    }

    private func minimum(of ladder: LayerLadder) -> Int {
        let steps = steps[ladder.steps]
        if ladder.isScreen {
            let pixels = steps.reduce(0) { max($0, $1.pixels) }
            return (steps.firstIndex { $0.pixels == pixels } ?? steps.startIndex) - steps.startIndex + 1
        }
        guard ladder.importance == .stage else { return 1 }
        let place = steps.firstIndex { $0.pixels >= LayerUtility.stagePixels }
        return place.map { $0 - steps.startIndex + 1 } ?? steps.count
    }
}

/// Temporal layers of a stream that are measured, lowest first.
struct TemporalLayers: BitwiseCopyable, Sendable {
    private var ids: [4 of UInt8] = .init(repeating: 0)
    private(set) var count = 0

    subscript(place: Int) -> Int { Int(ids[place]) }
    /// The highest one; 0 without any.
    var top: Int { count > 0 ? Int(ids[count - 1]) : 0 }

    mutating func append(_ temporalID: Int) {
        ids[count] = UInt8(temporalID)
        count += 1
    }
}

/// Spatial layers of a stream that are measured.
struct SpatialLayers: BitwiseCopyable, Sendable {
    private var bits: UInt8 = 0

    mutating func insert(_ spatialID: Int) { bits |= 1 << UInt8(spatialID) }

    /// The highest one; 0 without any.
    var top: Int { bits == 0 ? 0 : 7 - bits.leadingZeroBitCount }

    func contains(_ spatialID: Int) -> Bool { spatialID == top || bits >> UInt8(spatialID) & 1 != 0 }
}

extension EncodingLayers {
    /// The part of a stream below which a layer is taken for one that ended: the measurement of a layer fades slowly.
    private static let partMin = 64

    /// The spatial layers that are measured; the lowest one without any.
    var spatials: SpatialLayers {
        var rates: [4 of Int] = .init(repeating: 0)
        var total = 0
        for spatialID in 0..<Self.spatialMax {
            for temporalID in 0..<Self.temporalMax {
                rates[spatialID] += self[spatialID * Self.temporalMax + temporalID]
            }
            total += rates[spatialID]
        }
        var layers = SpatialLayers()
        for spatialID in 0..<Self.spatialMax where rates[spatialID] > total / Self.partMin { layers.insert(spatialID) }
        return layers
    }

    /// The temporal layers that are measured in the spatial ones up to one.
    func temporals(upToSpatial spatialID: Int) -> TemporalLayers {
        var layers = TemporalLayers()
        let part = bitrate(upToSpatial: spatialID, temporal: Self.temporalMax - 1) / Self.partMin
        var below = 0
        for temporalID in 0..<Self.temporalMax {
            let bitrate = bitrate(upToSpatial: spatialID, temporal: temporalID)
            guard bitrate - below > part else { continue }
            layers.append(temporalID)
            below = bitrate
        }
        return layers
    }
}
