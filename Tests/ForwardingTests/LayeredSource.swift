import Base
import TestSupport
import Testing

@testable import Forwarding

/// What a publisher sends, as libwebrtc's scalability structures describe it.
struct LayeredFormat: CustomTestStringConvertible {
    enum Codec { case vp8, vp9, vp9Flexible, h264, h265, descriptor }
    /// Which frames a spatial layer predicts from the one below.
    enum Prediction { case all, keyPictures, none }

    let name: String
    let codec: Codec
    var spatial: UInt8 = 1
    var temporal: UInt8 = 1
    var prediction = Prediction.all

    var testDescription: String { name }

    /// Whether a decoder of the layers up to these two needs a frame.
    func needs(_ frame: LayeredFrame, spatialID: UInt8, temporalID: UInt8) -> Bool {
        let highest = min(spatialID, spatial - 1)
        guard frame.temporalID <= temporalID else { return false }
        switch prediction {
        case .all: return frame.spatialID <= highest
        case .keyPictures: return frame.spatialID == highest || (frame.isKey && frame.spatialID < highest)
        case .none: return frame.spatialID == highest
        }
    }
}

/// One spatial layer of a picture.
struct LayeredFrame {
    let id: Int
    let picture: Int
    let spatialID: UInt8
    let temporalID: UInt8
    let isKey: Bool
    /// It refers to frames of lower temporal layers only.
    let isSync: Bool
    /// All frames that it refers to, by their ids.
    let references: [Int]
    let packets: ClosedRange<Int64>
}

/// Makes the packets of a stream with layers, with all that its format says of them.
struct LayeredSource {
    let format: LayeredFormat
    private(set) var frames: [LayeredFrame] = []
    /// The frame of each packet.
    private(set) var frameOfPacket: [Int64: Int] = [:]
    private var waiting: ArraySlice<PacketDescription> = []
    private var sequence: Int64
    private var timestamp: UInt32
    private var pictureID: UInt16
    private var tl0: UInt8
    private var frameNumber: UInt16
    private(set) var picture = -1
    /// Pictures since the last key picture.
    private var position = 0
    /// The newest frame of each spatial and temporal layer since the last key picture.
    private var newest: [[Int?]] = []
    private var templates = DependencyTemplates()
    /// The frame numbers of the newest frames of each chain, one chain for each spatial layer.
    private var chains: [UInt16?] = []
    /// For each frame the distances to the frames before it in all chains; 0 where a chain begins.
    private var chainDifferences: [[UInt8]] = []
    /// Pictures until the next key picture; `nil` while none is asked for.
    var picturesUntilKey: Int? = 0

    init(_ format: LayeredFormat, using generator: inout SeededGenerator) {
        self.format = format
        sequence = Int64.random(in: 0x1_0000...0x1_FFFF, using: &generator)
        timestamp = UInt32.random(in: 0...UInt32.max, using: &generator)
        pictureID = UInt16.random(in: 0...0x7FFF, using: &generator)
        tl0 = UInt8.random(in: 0...255, using: &generator)
        frameNumber = UInt16.random(in: 0...UInt16.max, using: &generator)
    }

    mutating func next(using generator: inout SeededGenerator) -> PacketDescription {
        if waiting.isEmpty { makePicture(using: &generator) }
        return waiting.removeFirst()
    }

    private mutating func makePicture(using generator: inout SeededGenerator) {
        picture += 1
        timestamp &+= 3_000
        pictureID = (pictureID &+ 1) & 0x7FFF
        let isKey = picturesUntilKey == 0
        if isKey {
            newest = Array(repeating: Array(repeating: nil, count: 3), count: Int(format.spatial))
            position = 0
            picturesUntilKey = nil
        } else {
            picturesUntilKey = picturesUntilKey.map { $0 - 1 }
            position += 1
        }
        let pattern: [UInt8] = format.temporal == 3 ? [0, 2, 1, 2] : format.temporal == 2 ? [0, 1] : [0]
        let layer = pattern[position % pattern.count]
        if layer == 0 { tl0 &+= 1 }
        // Upper layers begin with frames that refer to the lowest one.
        let isFirst = newest[0][Int(layer)] == nil
        let isSync = layer > 0 && (isFirst || Bool.random(using: &generator))
        var packets: [PacketDescription] = []
        for spatialID in 0..<format.spatial {
            packets += makeFrame(spatialID, layer, isKey: isKey, isSync: isSync, using: &generator)
        }
        packets[packets.count - 1].marker = true
        if !hasFrameEnds { packets[packets.count - 1].frame.insert(.endsFrame) }
        waiting = packets[...]
    }

    /// Frames have an end of their own.
    private var hasFrameEnds: Bool { [.vp9, .vp9Flexible, .descriptor].contains(format.codec) }

    private func references(_ spatialID: UInt8, _ layer: UInt8, isKey: Bool, isSync: Bool) -> [Int] {
        var references: [Int] = []
        let below = spatialID > 0 ? frames[frames.count - 1].id : nil
        if let below, format.prediction == .all || (format.prediction == .keyPictures && isKey) {
            references.append(below)
        }
        guard !isKey else { return references }
        let known = newest[Int(spatialID)]
        switch format.codec {
        case .vp8, .h265:
            // All layers up to its own, of which a sync frame needs the lowest, or the lower ones.
            let highest = isSync ? (format.codec == .vp8 ? 0 : Int(layer) - 1) : Int(layer)
            references += known[0...max(highest, 0)].compactMap { $0 }
        case .h264: references += [known[0]].compactMap { $0 }
        case .vp9, .vp9Flexible, .descriptor:
            // The third layer refers to the second one in the second half of the pattern.
            let isSecondHalf = layer == 2 && position % 4 == 3
            references += [isSecondHalf ? known[1] : known[0]].compactMap { $0 }
        }
        return references
    }

    private mutating func makeFrame(
        _ spatialID: UInt8,
        _ layer: UInt8,
        isKey: Bool,
        isSync: Bool,
        using generator: inout SeededGenerator
    ) -> [PacketDescription] {
        frameNumber &+= 1
        let references = references(spatialID, layer, isKey: isKey, isSync: isSync)
        let count = Int64.random(in: 1...3, using: &generator)
        let frame = LayeredFrame(
            id: frames.count,
            picture: picture,
            spatialID: spatialID,
            temporalID: layer,
            isKey: isKey,
            isSync: isSync,
            references: references,
            packets: sequence + 1...sequence + count
        )
        frames.append(frame)
        if format.codec == .descriptor { noteChains(frame) }
        newest[Int(spatialID)][Int(layer)] = frame.id
        return frame.packets.map { number in
            sequence = number
            frameOfPacket[number] = frame.id
            return makePacket(number, of: frame)
        }
    }

    /// A chain begins with the key picture and goes on with the lowest temporal layer of what its spatial layer refers to.
    private mutating func noteChains(_ frame: LayeredFrame) {
        if frame.isKey, frame.spatialID == 0 { chains = Array(repeating: nil, count: Int(format.spatial)) }
        chainDifferences.append(
            chains.map { newest in newest.map { UInt8(truncatingIfNeeded: frameNumber &- $0) } ?? 0 }
        )
        for chain in chains.indices where frame.temporalID == 0 {
            if format.needs(frame, spatialID: UInt8(chain), temporalID: 0) { chains[chain] = frameNumber }
        }
    }

    private func makePacket(_ number: Int64, of frame: LayeredFrame) -> PacketDescription {
        let isVP8 = format.codec == .vp8
        let isVP9 = format.codec == .vp9 || format.codec == .vp9Flexible
        var packet = describe(
            number,
            timestamp: timestamp,
            pictureID: isVP8 || isVP9 ? pictureID : nil,
            tl0: isVP8 || format.codec == .vp9 ? tl0 : nil
        )
        packet.startsKeyFrame = frame.isKey && frame.spatialID == 0 && number == frame.packets.lowerBound
        if number == frame.packets.lowerBound { packet.frame.insert(.startsFrame) }
        if number == frame.packets.upperBound, hasFrameEnds { packet.frame.insert(.endsFrame) }
        packet.spatialID = frame.spatialID
        packet.temporalID = frame.temporalID
        switch format.codec {
        case .vp8:
            packet.frame.insert(.closesPictureIDs)
            if frame.isSync { packet.frame.insert(.switchesUp) }
        case .vp9, .vp9Flexible: addVP9Facts(to: &packet, of: frame)
        case .h264:
            packet.temporalID = 0
            if frame.temporalID > 0 { packet.frame.insert(.isDiscardable) }
        case .h265: if frame.isSync { packet.frame.insert(.switchesUp) }
        case .descriptor: addDescriptor(to: &packet, of: frame)
        }
        return packet
    }

    private func addVP9Facts(to packet: inout PacketDescription, of frame: LayeredFrame) {
        let predictsUp = format.prediction == .all || (format.prediction == .keyPictures && frame.isKey)
        if !frame.isKey { packet.frame.insert(.refersToEarlier) }
        if predictsUp, frame.spatialID > 0 { packet.frame.insert(.refersToLowerLayer) }
        if !predictsUp || frame.spatialID == format.spatial - 1 { packet.frame.insert(.isUnusedAbove) }
        if format.codec == .vp9Flexible {
            packet.frame.insert(.isFlexible)
            if frame.temporalID > 0 { packet.frame.insert(.switchesUp) }
        } else {
            packet.frame.insert(.switchesUp)
        }
    }

    private func addDescriptor(to packet: inout PacketDescription, of frame: LayeredFrame) {
        packet.spatialID = 0
        packet.temporalID = 0
        let bytes = DescriptorBytes.make(
            format,
            frame,
            number: frameNumber,
            chains: chainDifferences[frame.id],
            isStart: packet.frame.contains(.startsFrame),
            isEnd: packet.frame.contains(.endsFrame)
        )
        packet.frame = []
        packet.dependencyDescriptor = PacketDescription.Field(20..<20 + min(bytes.count, 255))
        templates.read(unsafe bytes.span.bytes, into: &packet)
    }

    /// The dependency structure of the stream.
    var structure: DependencyTemplates { templates }
}

/// Writes dependency descriptors of libwebrtc's structures.
enum DescriptorBytes {
    /// Each target is one spatial and one temporal layer, in that order.
    private static func indication(
        _ format: LayeredFormat,
        isKey: Bool,
        _ frame: (s: UInt8, t: UInt8),
        _ target: (s: UInt8, t: UInt8)
    ) -> UInt32 {
        let (notPresent, discardable, switchable, required) = (0, 1, 2, 3) as (UInt32, UInt32, UInt32, UInt32)
        guard frame.t <= target.t, frame.s <= target.s else { return notPresent }
        if frame.s == target.s {
            if target.t == 0 || target.t > frame.t { return switchable }
            return discardable
        }
        switch format.prediction {
        case .all: return isKey ? switchable : required
        case .keyPictures: return isKey ? switchable : notPresent
        case .none: return notPresent
        }
    }

    private static func templates(_ format: LayeredFormat) -> [(s: UInt8, t: UInt8, isKey: Bool)] {
        var all: [(s: UInt8, t: UInt8, isKey: Bool)] = []
        for s in 0..<format.spatial {
            for t in 0..<format.temporal {
                if t == 0 { all.append((s, t, true)) }
                all.append((s, t, false))
            }
        }
        return all
    }

    static func make(
        _ format: LayeredFormat,
        _ frame: LayeredFrame,
        number: UInt16,
        chains: [UInt8],
        isStart: Bool,
        isEnd: Bool
    ) -> [UInt8] {
        let templates = templates(format)
        let template =
            templates.firstIndex {
                $0.s == frame.spatialID && $0.t == frame.temporalID && $0.isKey == frame.isKey
            } ?? 0
        var bits = BitWriter()
        bits.write(isStart ? 1 : 0, 1)
        bits.write(isEnd ? 1 : 0, 1)
        bits.write(UInt32(template + 5) & 0x3F, 6)
        bits.write(UInt32(number), 16)
        let hasStructure = frame.isKey && frame.spatialID == 0 && isStart
        // Structure or not; no mask, custom indications or references; chains.
        bits.write(hasStructure ? 0b10001 : 0b00001, 5)
        guard hasStructure else {
            for difference in chains { bits.write(UInt32(difference), 8) }
            return bits.bytes
        }
        bits.write(5, 6)
        let targets = (0..<format.spatial).flatMap { s in (0..<format.temporal).map { (s: s, t: $0) } }
        bits.write(UInt32(targets.count - 1), 5)
        for (index, template) in templates.enumerated() {
            guard index + 1 < templates.count else {
                bits.write(3, 2)
                break
            }
            let next = templates[index + 1]
            bits.write(next.s != template.s ? 2 : next.t != template.t ? 1 : 0, 2)
        }
        for template in templates {
            for target in targets {
                bits.write(indication(format, isKey: template.isKey, (template.s, template.t), target), 2)
            }
        }
        // No frame differences, which an SFU does not read, no sizes.
        for _ in templates { bits.write(0, 1) }
        bits.writeNonSymmetric(UInt32(chains.count), limit: UInt32(targets.count + 1))
        for target in targets { bits.writeNonSymmetric(UInt32(target.s), limit: UInt32(chains.count)) }
        for _ in templates { for _ in chains { bits.write(0, 4) } }
        bits.write(0, 1)
        for difference in chains { bits.write(UInt32(difference), 8) }
        return bits.bytes
    }
}

private struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var used = 0

    mutating func write(_ value: UInt32, _ count: Int) {
        for bit in (0..<count).reversed() {
            if used % 8 == 0 { bytes.append(0) }
            if value >> UInt32(bit) & 1 != 0 { bytes[bytes.count - 1] |= 0x80 >> UInt8(used % 8) }
            used += 1
        }
    }

    /// ns(n) (AV1 §4.10.7).
    mutating func writeNonSymmetric(_ value: UInt32, limit: UInt32) {
        let width = 32 - limit.leadingZeroBitCount
        let short = (1 as UInt32) << UInt32(width) - limit
        if value < short { write(value, width - 1) } else { write(value + short, width) }
    }
}
