import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Random targets, losses, reordering and waiting, against receivers that stop at whatever stops libwebrtc's.
@Suite struct LayerFilterPropertyTests {
    #if DEBUG
        private static let runs = 100
    #else
        private static let runs = 320
    #endif
    private static let formats: [LayeredFormat] = [
        LayeredFormat(name: "VP8 L1T2", codec: .vp8, temporal: 2),
        LayeredFormat(name: "VP8 L1T3", codec: .vp8, temporal: 3),
        LayeredFormat(name: "H.264 L1T2", codec: .h264, temporal: 2),
        LayeredFormat(name: "H.265 L1T3", codec: .h265, temporal: 3),
        LayeredFormat(name: "VP9 L1T3", codec: .vp9, temporal: 3),
        LayeredFormat(name: "VP9 L2T2", codec: .vp9, spatial: 2, temporal: 2),
        LayeredFormat(name: "VP9 L3T3", codec: .vp9, spatial: 3, temporal: 3),
        LayeredFormat(name: "VP9 L3T3_KEY", codec: .vp9, spatial: 3, temporal: 3, prediction: .keyPictures),
        LayeredFormat(name: "VP9 L3T3 flexible", codec: .vp9Flexible, spatial: 3, temporal: 3),
        LayeredFormat(
            name: "VP9 L2T3_KEY flexible",
            codec: .vp9Flexible,
            spatial: 2,
            temporal: 3,
            prediction: .keyPictures
        ),
        LayeredFormat(name: "VP9 S3T3", codec: .vp9Flexible, spatial: 3, temporal: 3, prediction: .none),
        LayeredFormat(name: "AV1 L1T3", codec: .descriptor, temporal: 3),
        LayeredFormat(name: "AV1 L2T2", codec: .descriptor, spatial: 2, temporal: 2),
        LayeredFormat(name: "AV1 L3T3", codec: .descriptor, spatial: 3, temporal: 3),
        LayeredFormat(name: "AV1 L3T3_KEY", codec: .descriptor, spatial: 3, temporal: 3, prediction: .keyPictures),
        LayeredFormat(name: "AV1 S2T3", codec: .descriptor, spatial: 2, temporal: 3, prediction: .none),
    ]

    private static let paths: [(name: String, loss: Int, late: Int, disorder: Int)] = [
        ("in order", 0, 0, 0), ("reordering", 0, 0, 8), ("recovered losses", 0, 6, 4), ("losses", 3, 3, 3),
    ]

    @Test(arguments: formats, [false, true])
    func `a receiver of some layers decodes all that it is sent`(format: LayeredFormat, isPaced: Bool) {
        for path in Self.paths {
            for seed in 0..<UInt64(Self.runs / 4) {
                var run = LayerRun(format, seed: seed, path.loss, path.late, path.disorder, isPaced: isPaced)
                run.run()
                let faults = run.faults()
                if let fault = faults.first {
                    Issue.record("\(format.name), \(path.name), seed \(seed): \(fault), \(faults.count) in all")
                    return
                }
            }
        }
    }
}

/// Chains of the dependency descriptor.
@Suite struct LayerFilterChainTests {
    @Test func `a chain of which a frame was left out needs a key frame`() throws {
        var generator = SeededGenerator(seed: 5)
        let format = LayeredFormat(name: "AV1 L2T1", codec: .descriptor, spatial: 2)
        var source = LayeredSource(format, using: &generator)
        let templates = source.structure
        var filter = LayerFilter(spatialID: .max, temporalID: .max, after: 0, of: nil, at: .ms(0))
        var keyPicture: Int?
        while source.picture < 40 {
            var packet = source.next(using: &generator)
            let frame = source.frames[try #require(source.frameOfPacket[packet.sequence.rawValue])]
            if frame.isKey, packet.frame.contains(.startsFrame), frame.spatialID == 0 {
                if frame.picture == 0 { filter.begin(at: packet.sequence, spatialID: 0, temporalID: .max) }
                keyPicture = frame.picture
            }
            if frame.picture == 20, frame.spatialID == 0 {
                // It names the frame before it, of the upper layer, as the one before it in the lower one's chain.
                let bytes = DescriptorBytes.make(
                    format,
                    frame,
                    number: packet.frameNumber,
                    chains: [1, 1],
                    isStart: packet.frame.contains(.startsFrame),
                    isEnd: packet.frame.contains(.endsFrame)
                )
                packet.frame = []
                templates.read(unsafe bytes.span.bytes, into: &packet)
                source.picturesUntilKey = 6
            }
            let decision = filter.decide(packet, of: Unretained(templates), at: .ms(0))
            #expect(decision == (frame.spatialID == 0 ? .forwardedLast : .dropped))
            #expect(filter.needsKeyFrame == (frame.picture >= 20 && keyPicture == 0))
        }
        #expect(try #require(keyPicture) > 20)
    }
}

/// One slot with its filter and one source.
private struct LayerRun {
    private struct Sent {
        let frame: Int
        let source: Int64
        let marker: Bool
        let isFill: Bool
        let pictureID: UInt16
        let tl0: UInt8
    }
    private struct Decided {
        let decision: LayerDecision
        let isLate: Bool
        /// The target, and since which picture it is that.
        let target: (spatialID: UInt8, temporalID: UInt8)
        let targetPicture: Int
        let neededKeyFrame: Bool
    }

    private let format: LayeredFormat
    private let loss: Int
    private let late: Int
    private let disorder: Int
    private let isPaced: Bool
    private var generator: SeededGenerator
    private var source: LayeredSource
    private var rewriter: RTPRewriter
    private var filter: LayerFilter?
    private let templates: DependencyTemplates
    private let stream = StreamID(rawValue: 1)
    private var target: (spatialID: UInt8, temporalID: UInt8) = (.max, .max)
    private var targetPicture = 0
    private var now = 0
    private var packetsSent: UInt32 = 0
    private var delayed: [(at: Int, packet: PacketDescription)] = []
    private var arrived: Set<Int64> = []
    private var waiting: [(packet: PacketDescription, layer: LayerDecision)] = []
    private var newestArrived = Int64.min
    private var decided: [Int: Decided] = [:]
    private var sent: [Int64: Sent] = [:]
    private var trouble: [String] = []
    private static let picturesPerRun = 140
    private static let picturesAtEnd = 80

    init(_ format: LayeredFormat, seed: UInt64, _ loss: Int, _ late: Int, _ disorder: Int, isPaced: Bool) {
        var generator = SeededGenerator(seed: seed &* 16 &+ UInt64(loss + late + disorder))
        self.format = format
        self.loss = loss
        self.late = late
        self.disorder = disorder
        self.isPaced = isPaced
        source = LayeredSource(format, using: &generator)
        templates = source.structure
        rewriter = RTPRewriter(clockRate: 90_000, seed: generator.next())
        self.generator = generator
    }

    private mutating func percent() -> Int { Int.random(in: 0..<100, using: &generator) }

    mutating func run() {
        while source.picture < Self.picturesPerRun {
            now += 1
            let isEnd = source.picture >= Self.picturesPerRun - Self.picturesAtEnd
            if !isEnd, source.picture > 4, percent() < 4 { changeTarget() }
            if !isEnd, source.picturesUntilKey == nil, percent() < 1 { source.picturesUntilKey = 3 }
            let packet = source.next(using: &generator)
            let chance = percent()
            // The stream begins with what arrives first.
            let isFirst = packet.startsKeyFrame && source.picture == 0
            if isFirst || chance >= loss + late + disorder {
                arrive(packet)
            } else if chance >= loss {
                let most = chance < loss + late ? 40 : 4
                delayed.append((now + Int.random(in: 1...most, using: &generator), packet))
            }
            deliver()
            release(isEnd ? 8 : 3)
        }
        while !delayed.isEmpty {
            now += 1
            deliver()
        }
        release(.max)
    }

    private mutating func changeTarget() {
        let isUnlimited = percent() < 10
        target =
            isUnlimited
            ? (.max, .max)
            : (UInt8.random(in: 0..<format.spatial, using: &generator), UInt8.random(in: 0...2, using: &generator))
        targetPicture = source.picture
        if filter == nil {
            filter = LayerFilter(
                spatialID: target.spatialID,
                temporalID: target.temporalID,
                after: rewriter.newestSource?.sequence ?? 0,
                of: rewriter.newestSource?.timestamp,
                at: .ms(now)
            )
            filter?.decidesAtRelease = !waiting.isEmpty
        } else {
            filter?.setTarget(spatialID: target.spatialID, temporalID: target.temporalID)
        }
    }

    private mutating func deliver() {
        let due = delayed.filter { $0.at <= now }
        delayed.removeAll { $0.at <= now }
        for (_, packet) in due { arrive(packet) }
    }

    // MARK: - What a slot does

    private mutating func arrive(_ packet: PacketDescription) {
        arrived.insert(packet.sequence.rawValue)
        guard isPaced else {
            forward(packet, .undecided)
            return
        }
        if waiting.isEmpty { filter?.decidesAtRelease = false }
        let isEarly = filter?.decidesAtRelease == false && rewriter.currentStream != nil
        waiting.append((packet, isEarly ? decide(packet) : .undecided))
    }

    private mutating func release(_ most: Int) {
        var count = min(most == .max ? .max : Int.random(in: 0...most, using: &generator), waiting.count)
        while count > 0 {
            let (packet, layer) = waiting.removeFirst()
            forward(packet, layer)
            count -= 1
        }
    }

    private mutating func decide(_ packet: PacketDescription) -> LayerDecision {
        guard filter != nil, let frame = source.frameOfPacket[packet.sequence.rawValue] else { return .forwarded }
        let isLate = packet.sequence.rawValue < filter?.newestSequence ?? .min
        guard let decision = filter?.decide(packet, of: Unretained(templates), at: .ms(now)) else { return .forwarded }
        let needsKeyFrame = filter?.needsKeyFrame == true
        if needsKeyFrame, source.picturesUntilKey == nil { source.picturesUntilKey = Int(packet.sequence.rawValue % 5) }
        if let before = decided[frame] {
            if before.decision != decision { trouble.append("frame \(frame) was \(before.decision), is \(decision)") }
        } else {
            decided[frame] = Decided(
                decision: decision,
                isLate: isLate,
                target: target,
                targetPicture: targetPicture,
                neededKeyFrame: needsKeyFrame
            )
        }
        return decision
    }

    private mutating func forward(_ packet: PacketDescription, _ known: LayerDecision) {
        if rewriter.currentStream == nil {
            guard packet.startsKeyFrame else { return }
            rewriter.begin(stream, at: packet, alignedTimestamp: nil, now: .ms(now))
        }
        rewriter.followJump(to: packet, packetsSent: packetsSent, at: .ms(now))
        let layer = known == .undecided ? decide(packet) : known
        guard let segment = rewriter.segment(of: packet.sequence, in: stream) else {
            if layer != .dropped { trouble.append("\(packet.sequence.rawValue) has no number") }
            return
        }
        if layer == .dropped {
            if rewriter.drop(packet) { return }
            if rewriter.leaveUnused(packet.sequence) == nil { return }
        }
        let out = packet.adapted(to: layer)
        let number = segment.sequence(packet.sequence).rawValue
        rewriter.noteGap(before: packet.sequence, in: segment, packetsSent: packetsSent)
        rewriter.sent(out, in: segment, at: .ms(now))
        packetsSent += 1
        if sent[number] != nil { trouble.append("\(number) is sent twice") }
        sent[number] = Sent(
            frame: source.frameOfPacket[packet.sequence.rawValue] ?? -1,
            source: packet.sequence.rawValue,
            marker: out.marker,
            isFill: layer == .dropped,
            pictureID: segment.pictureID(packet.pictureID, bits: 15),
            tl0: segment.tl0(packet.tl0)
        )
    }

    // MARK: - What the receiver sees

    /// What is wrong with everything that was sent.
    func faults() -> [String] {
        guard let filter, !sent.isEmpty else { return trouble }
        var faults = trouble + numberFaults() + targetFaults()
        let order = sent.keys.sorted()
        let media = order.compactMap { sent[$0] }.filter { !$0.isFill }
        var forwarded: [Int: Int] = [:]
        for packet in media { forwarded[packet.frame, default: 0] += 1 }
        for (frame, count) in forwarded {
            let whole = source.frames[frame].packets.count { arrived.contains($0) }
            if count != whole { faults.append("\(count) of \(whole) packets of frame \(frame) are sent") }
        }
        faults += referenceFaults(forwarded) + markerFaults(media)
        if loss == 0 { faults += receiverFaults(media) }
        if filter.needsKeyFrame { faults.append("a key frame is needed at the end") }
        return faults
    }

    /// Numbers are unused only for packets that never came.
    private func numberFaults() -> [String] {
        guard let first = sent.keys.min(), let last = sent.keys.max() else { return [] }
        let unused = Int(last - first) + 1 - sent.count
        let lost = Int(source.frames.last?.packets.upperBound ?? 0) - arrived.count
        return loss == 0 ? (unused == 0 ? [] : ["\(unused) numbers are unused"]) : (unused <= lost ? [] : ["unused"])
    }

    /// A frame that came whole, with all that it needs.
    private func wholeFrames() -> Set<Int> {
        var whole: Set<Int> = []
        for frame in source.frames
        where frame.packets.allSatisfy(arrived.contains) && frame.references.allSatisfy(whole.contains) {
            whole.insert(frame.id)
        }
        return whole
    }

    /// The frame comes after later ones and fills a picture id which upper layers wait for.
    private func fillsPictureID(_ frame: Int) -> Bool {
        format.codec == .vp8 && source.frames[frame].temporalID > 0 && decided[frame]?.isLate == true
    }

    private func referenceFaults(_ forwarded: [Int: Int]) -> [String] {
        let whole = wholeFrames()
        var faults: [String] = []
        for frame in forwarded.keys.sorted() where whole.contains(frame) && !fillsPictureID(frame) {
            for reference in source.frames[frame].references where forwarded[reference] == nil {
                faults.append("frame \(frame) is sent without \(reference)")
            }
        }
        return faults
    }

    /// The marker is on the last packet of each picture, and there only.
    private func markerFaults(_ media: [Sent]) -> [String] {
        var faults: [String] = []
        for (index, packet) in media.enumerated() {
            let picture = source.frames[packet.frame].picture
            let isLast = index + 1 == media.count || source.frames[media[index + 1].frame].picture != picture
            if packet.marker, !isLast { faults.append("picture \(picture) goes on behind its marker") }
            guard isLast, !packet.marker, index + 1 < media.count else { continue }
            // The end of the picture may have been lost.
            if loss == 0 { faults.append("picture \(picture) has no marker") }
        }
        return faults
    }

    /// Nothing above the target goes out, and in the end all of the target does.
    private func targetFaults() -> [String] {
        var faults: [String] = []
        let last = Self.picturesPerRun - 8
        // A layer does not change in a picture before which something is missing.
        let delay = loss + late + disorder > 0 ? 10 : 1
        for frame in source.frames {
            guard let decided = decided[frame.id], !decided.isLate else { continue }
            let isSent = decided.decision != .dropped
            let temporal = format.codec == .h264 ? min(decided.target.temporalID, 1) : decided.target.temporalID
            if isSent, frame.temporalID > temporal, frame.picture > decided.targetPicture + delay {
                faults.append("frame \(frame.id) of layer \(frame.temporalID) is sent with the target \(temporal)")
            }
            let isAbove = frame.spatialID > decided.target.spatialID
            if isSent, isAbove, frame.picture > decided.targetPicture + delay, format.prediction == .all {
                faults.append("frame \(frame.id) of spatial layer \(frame.spatialID) is sent above the target")
            }
            if frame.picture >= last {
                let needs = format.needs(frame, spatialID: target.spatialID, temporalID: target.temporalID)
                if needs != isSent {
                    faults.append(
                        "frame \(frame.id), S\(frame.spatialID) T\(frame.temporalID), in the end: \(isSent), "
                            + "target \(target)"
                    )
                }
            }
        }
        return faults
    }

    /// What libwebrtc's reference finders hold back of the frames that were sent.
    private func receiverFaults(_ media: [Sent]) -> [String] {
        switch format.codec {
        case .vp8:
            var receiver = VP8Receiver()
            var faults: [String] = []
            for (index, packet) in media.enumerated() where index == 0 || media[index - 1].frame != packet.frame {
                let frame = source.frames[packet.frame]
                let isTaken = receiver.take(frame, pictureID: packet.pictureID, tl0: packet.tl0)
                let mayWait = (late > 0 || disorder > 0) && frame.temporalID > 0
                if !isTaken, !mayWait { faults.append("frame \(frame.id) is held back") }
            }
            return faults
        case .vp9:
            guard let first = media.first else { return [] }
            let pattern: [UInt8] = format.temporal == 3 ? [0, 2, 1, 2] : [0, 1]
            var receiver = VP9Receiver(pattern: pattern, start: first.pictureID)
            var faults: [String] = []
            for (index, packet) in media.enumerated() where index == 0 || media[index - 1].frame != packet.frame {
                let frame = source.frames[packet.frame]
                if !receiver.take(frame, pictureID: packet.pictureID) {
                    faults.append("frame \(frame.id) is held back")
                }
            }
            return faults
        default: return []
        }
    }
}

/// How libwebrtc finds the references of VP8 frames (rtp_vp8_ref_finder.cc), for frames in their order.
private struct VP8Receiver {
    private var newest: UInt16?
    private var missing: Set<UInt16> = []
    /// The newest picture of each layer, by TL0PICIDX.
    private var layers: [UInt8: [Int]] = [:]

    /// - Returns: whether the frame goes to the decoder.
    mutating func take(_ frame: LayeredFrame, pictureID: UInt16, tl0: UInt8) -> Bool {
        if let newest {
            var step = (newest &+ 1) & 0x7FFF
            while (pictureID &- step) & 0x7FFF < 0x4000, step != pictureID {
                missing.insert(step)
                step = (step &+ 1) & 0x7FFF
            }
        }
        newest = pictureID
        missing = missing.filter { (pictureID &- $0) & 0x7FFF <= 100 }
        let id = Int(pictureID)
        if frame.isKey {
            layers[tl0] = [id, -1, -1]
            return true
        }
        let layer = Int(frame.temporalID)
        guard var known = layers[layer == 0 ? tl0 &- 1 : tl0] else { return false }
        if layer > 0, !frame.isSync {
            for lower in 0...layer {
                guard known[lower] >= 0 else { return false }
                let distance = (pictureID &- UInt16(known[lower])) & 0x7FFF
                if missing.contains(where: { (pictureID &- $0) & 0x7FFF < distance }) { return false }
            }
        }
        known[layer] = id
        layers[tl0] = known
        missing.remove(pictureID)
        return true
    }
}

/// How libwebrtc places VP9 pictures in their group (rtp_vp9_ref_finder.cc), for frames in their order.
private struct VP9Receiver {
    let pattern: [UInt8]
    private var start: UInt16
    private var newest: UInt16
    private var missing: [UInt8: Set<UInt16>] = [:]

    init(pattern: [UInt8], start: UInt16) {
        self.pattern = pattern
        self.start = start
        newest = start
    }

    private func layer(_ pictureID: UInt16) -> UInt8 {
        pattern[Int((pictureID &- start) & 0x7FFF) % pattern.count]
    }

    /// - Returns: whether the frame goes to the decoder.
    mutating func take(_ frame: LayeredFrame, pictureID: UInt16) -> Bool {
        if frame.isKey {
            start = pictureID
            newest = pictureID
            missing = [:]
            return true
        }
        guard layer(pictureID) == frame.temporalID else { return false }
        while newest != pictureID {
            newest = (newest &+ 1) & 0x7FFF
            if newest != pictureID { missing[layer(newest), default: []].insert(newest) }
        }
        let reference: UInt16 =
            frame.temporalID == 0 ? UInt16(pattern.count) : frame.temporalID == 1 && pattern.count == 4 ? 2 : 1
        for lower in 0..<frame.temporalID {
            let isHeld = missing[lower, default: []].contains { (pictureID &- $0) & 0x7FFF <= reference }
            if isHeld { return false }
        }
        return true
    }
}
