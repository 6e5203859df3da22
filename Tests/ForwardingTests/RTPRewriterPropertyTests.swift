import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Random sources, losses, reordering, layer changes and jumps against a plain account of what was sent and left out.
@Suite struct RTPRewriterPropertyTests {
    private static let runs = 500
    private static let arrivalsPerRun = 300

    @Test(arguments: [
        (name: "nothing is lost", loss: 0, disorder: 0), (name: "reordering", loss: 0, disorder: 15),
        (name: "losses", loss: 10, disorder: 0), (name: "losses and reordering", loss: 8, disorder: 12),
    ])
    func `numbers stay compact, unique and traceable`(name: String, loss: Int, disorder: Int) throws {
        for seed in 0..<UInt64(Self.runs) {
            var run = Run(seed: seed &* 4 &+ UInt64(loss + disorder), loss: loss, disorder: disorder)
            for _ in 0..<Self.arrivalsPerRun where run.fault == nil { run.step() }
            if run.fault == nil { run.checkAll() }
            if let fault = run.fault {
                Issue.record("\(name), seed \(seed): \(fault)")
                return
            }
        }
    }
}

/// Makes pictures of three temporal layers as VP8 senders do.
private struct PictureSource {
    let stream: StreamID
    var sequence: Int64
    var timestamp: UInt32
    var pictureID: UInt16
    var tl0: UInt8
    var frame = 0
    var waiting: ArraySlice<PacketDescription> = []

    mutating func next(using generator: inout SeededGenerator) -> PacketDescription {
        if waiting.isEmpty { makePicture(using: &generator) }
        return waiting.removeFirst()
    }

    private mutating func makePicture(using generator: inout SeededGenerator) {
        frame += 1
        timestamp &+= 3_000
        pictureID = (pictureID &+ 1) & 0x7FFF
        let layer: UInt8 = [0, 2, 1, 2][frame % 4]
        if layer == 0 { tl0 &+= 1 }
        let count = Int.random(in: 1...3, using: &generator)
        var packets: [PacketDescription] = []
        for index in 0..<count {
            sequence += 1
            var packet = describe(
                sequence,
                timestamp: timestamp,
                pictureID: pictureID,
                tl0: tl0,
                frameNumber: UInt16(truncatingIfNeeded: frame)
            )
            packet.temporalID = layer
            packet.frame = .closesPictureIDs
            if index == 0 { packet.frame.insert(.startsFrame) }
            if index == count - 1 { packet.frame.insert(.endsFrame) }
            packet.startsKeyFrame = index == 0 && layer == 0 && frame % 12 == 0
            packets.append(packet)
        }
        waiting = packets[...]
    }
}

/// One subscriber that plays one of two sources and leaves temporal layers out.
private struct Run {
    private struct Key: Hashable {
        let stream: StreamID
        let source: Int64
    }
    private struct Sent: Equatable {
        let key: Key
        let timestamp: UInt32
        let pictureID: UInt16
        let tl0: UInt8
    }
    /// Since when one source plays, or goes on after a jump, and with which numbers.
    private struct Period {
        let first: PacketDescription
        let number: Int64
        let pictureID: UInt16
        let tl0: UInt8
        /// Left out, with all later numbers closed up.
        var gone: [Int64] = []
        /// One packet of each picture that is left out.
        var gonePictures: [UInt32: PacketDescription] = [:]
    }

    private(set) var fault: String?
    private var generator: SeededGenerator
    private let loss: Int
    private let disorder: Int
    private var rewriter: RTPRewriter
    private var sources: [PictureSource]
    private var playing = 0
    private var wanted = 0
    private var targetLayer: UInt8 = 2
    private var now = 0
    private var packetsSent: UInt32 = 1
    /// Packets on their way, with the step in which they arrive.
    private var delayed: [(at: Int, source: Int, packet: PacketDescription)] = []
    private var seen: Set<Key> = []
    private var leavesOut: [UInt32: Bool] = [:]
    private var period: Period?
    private var sent: [Int64: Sent] = [:]
    private var numbers: [Key: Int64] = [:]
    private var never: Set<Key> = []
    private var newest: Int64?

    init(seed: UInt64, loss: Int, disorder: Int) {
        var generator = SeededGenerator(seed: seed)
        self.loss = loss
        self.disorder = disorder
        rewriter = RTPRewriter(clockRate: 90_000, seed: generator.next())
        sources = (1...2 as ClosedRange<UInt64>).map { id in
            PictureSource(
                stream: StreamID(rawValue: id),
                sequence: Int64.random(in: 0x1_0000...0x1_FFFF, using: &generator),
                timestamp: UInt32.random(in: 0...UInt32.max, using: &generator),
                pictureID: UInt16.random(in: 0...0x7FFF, using: &generator),
                tl0: UInt8.random(in: 0...255, using: &generator)
            )
        }
        self.generator = generator
    }

    private func percent(_ generator: inout SeededGenerator) -> Int { Int.random(in: 0..<100, using: &generator) }

    mutating func step() {
        now += 1
        if percent(&generator) < 2 { targetLayer = UInt8.random(in: 0...2, using: &generator) }
        if percent(&generator) < 1 { wanted = 1 - wanted }
        if percent(&generator) < 1 {
            // The sender restarts with other numbers, or skips many.
            sources[playing].sequence += Int64.random(in: 1_000...20_000, using: &generator)
            if Bool.random(using: &generator) {
                sources[playing].timestamp &+= UInt32.random(in: 0x1000_0000...0xE000_0000, using: &generator)
                sources[playing].pictureID = UInt16.random(in: 0...0x7FFF, using: &generator)
                sources[playing].tl0 = UInt8.random(in: 0...255, using: &generator)
            }
            // What was on its way arrives before that, or never.
            delayed = []
            seen = []
        }
        for index in sources.indices {
            let packet = sources[index].next(using: &generator)
            let chance = percent(&generator)
            if chance < loss {
                guard chance.isMultiple(of: 2) else { continue }
                delayed.append((now + Int.random(in: 5...40, using: &generator), index, packet))
            } else if chance < loss + disorder {
                delayed.append((now + Int.random(in: 1...4, using: &generator), index, packet))
            } else {
                arrive(packet, of: index)
            }
        }
        let due = delayed.filter { $0.at <= now }
        delayed.removeAll { $0.at <= now }
        for (_, index, packet) in due { arrive(packet, of: index) }
        check(newest.map { $0 - Int64.random(in: 0..<120, using: &generator) })
    }

    // MARK: - What a slot does

    private mutating func arrive(_ packet: PacketDescription, of index: Int) {
        let stream = sources[index].stream
        seen.insert(Key(stream: stream, source: packet.sequence.rawValue))
        if rewriter.currentStream == nil || playing != index {
            guard wanted == index, packet.startsKeyFrame else { return }
            playing = index
            leavesOut = [:]
            // The source may begin again before the point where it ended: a key frame that comes late.
            let start = packet.sequence.rawValue
            numbers = numbers.filter { $0.key.stream != stream || $0.key.source < start }
            never = never.filter { $0.stream != stream || $0.source < start }
            rewriter.begin(stream, at: packet, alignedTimestamp: nil, now: .ms(now * 33))
            begin(packet, number: newest.map { $0 + 1 } ?? rewriter.currentSegment?.outputStart.rawValue ?? 0)
        } else {
            followJump(packet)
        }
        let key = Key(stream: stream, source: packet.sequence.rawValue)
        guard let segment = rewriter.segment(of: packet.sequence, in: stream) else {
            if numbers[key] != nil { fault = "\(packet.sequence.rawValue) was sent and is forgotten" }
            return
        }
        if leaves(packet, segment, of: stream) {
            drop(packet, key)
        } else {
            send(packet, segment, key)
        }
    }

    private mutating func followJump(_ packet: PacketDescription) {
        let before = rewriter.currentSegment
        rewriter.followJump(to: packet, packetsSent: packetsSent, at: .ms(now * 33))
        guard let period, let after = rewriter.currentSegment, after.sourceStart != before?.sourceStart else { return }
        guard let newest, packet.sequence.rawValue - 900 > period.first.sequence.rawValue else {
            fault = "a new segment where nothing jumped"
            return
        }
        leavesOut = [:]
        let keepsPictures =
            after.pictureID(0, bits: 15) == before?.pictureID(0, bits: 15) && after.tl0(0) == before?.tl0(0)
        begin(packet, number: newest + 2, keeping: keepsPictures ? before : nil)
    }

    private mutating func begin(_ packet: PacketDescription, number: Int64, keeping: RTPRewriter.Segment? = nil) {
        let last = newest.flatMap { sent[$0] }
        period = Period(
            first: packet,
            number: number,
            pictureID: keeping?.pictureID(packet.pictureID, bits: 15)
                ?? last.map { ($0.pictureID &+ 1) & 0x7FFF } ?? packet.pictureID,
            tl0: keeping?.tl0(packet.tl0) ?? last.map { $0.tl0 &+ 1 } ?? packet.tl0
        )
    }

    /// A picture is left out as a whole, by its first packet, and only where nothing before it is missing.
    private mutating func leaves(
        _ packet: PacketDescription,
        _ segment: RTPRewriter.Segment,
        of stream: StreamID
    ) -> Bool {
        if let decided = leavesOut[packet.timestamp.rawValue] { return decided }
        let isNext = seen.contains(Key(stream: stream, source: packet.sequence.rawValue - 1))
        let isNewest = newest.map { segment.sequence(packet.sequence).rawValue > $0 } ?? false
        let leaves = packet.temporalID > targetLayer && packet.frame.contains(.startsFrame) && isNext && isNewest
        leavesOut[packet.timestamp.rawValue] = leaves
        return leaves
    }

    private mutating func drop(_ packet: PacketDescription, _ key: Key) {
        never.insert(key)
        let isLate = newest.map { number(packet.sequence.rawValue) <= $0 } ?? true
        if rewriter.drop(packet) {
            if isLate { fault = "\(key.source) is left out though later packets were sent" }
            close(packet, key)
            return
        }
        // A later packet that was left out has closed up already.
        if !isLate, let current = rewriter.currentSegment, packet.sequence >= current.sourceStart {
            fault = "\(key.source) is not left out"
        }
        let unused = rewriter.leaveUnused(packet.sequence)?.rawValue
        if let unused {
            if sent[unused] != nil { fault = "\(unused) was sent and is unused" }
            if unused != number(key.source) { fault = "\(key.source) gave up the number \(unused)" }
        }
    }

    private mutating func close(_ packet: PacketDescription, _ key: Key) {
        let known = period?.gonePictures.updateValue(packet, forKey: packet.timestamp.rawValue)
        guard let known else {
            period?.gone.append(key.source)
            return
        }
        // Everything between two packets of one picture is gone, unless something was sent in between.
        for source in known.sequence.rawValue + 1...max(key.source, known.sequence.rawValue + 1) {
            if period?.gone.contains(source) == false { period?.gone.append(source) }
            never.insert(Key(stream: key.stream, source: source))
        }
    }

    private mutating func send(_ packet: PacketDescription, _ segment: RTPRewriter.Segment, _ key: Key) {
        guard !never.contains(key) else {
            fault = "\(key.source) was left out and is sent"
            return
        }
        let number = segment.sequence(packet.sequence).rawValue
        let out = Sent(
            key: key,
            timestamp: segment.timestamp(packet.timestamp).rawValue,
            pictureID: segment.pictureID(packet.pictureID, bits: 15),
            tl0: segment.tl0(packet.tl0)
        )
        if let before = sent.updateValue(out, forKey: number), before != out {
            fault = "\(number) was \(before) and is \(out)"
        }
        if let before = numbers.updateValue(number, forKey: key), before != number {
            fault = "\(key.source) was \(before) and is \(number)"
        }
        if let period, packet.sequence >= period.first.sequence { checkNumbers(packet, number, out, period) }
        rewriter.noteGap(before: packet.sequence, in: segment, packetsSent: packetsSent)
        rewriter.sent(packet, in: segment, at: .ms(now * 33))
        packetsSent += 1
        newest = max(newest ?? number, number)
    }

    // MARK: - The account

    /// The number of a packet of the period: one after another without those that are gone.
    private func number(_ source: Int64) -> Int64 {
        guard let period else { return 0 }
        let gone = period.gone.count { $0 < source }
        return period.number + source - period.first.sequence.rawValue - Int64(gone)
    }

    private mutating func checkNumbers(_ packet: PacketDescription, _ number: Int64, _ out: Sent, _ period: Period) {
        let expected = self.number(packet.sequence.rawValue)
        if number != expected { fault = "\(packet.sequence.rawValue) is \(number) and not \(expected)" }
        let before = period.gonePictures.values.filter { $0.sequence < packet.sequence }
        let step = packet.pictureID &- period.first.pictureID &- UInt16(before.count)
        if out.pictureID != (period.pictureID &+ step) & 0x7FFF {
            fault = "the picture of \(packet.sequence.rawValue) is \(out.pictureID)"
        }
        let bases = before.count { $0.temporalID == 0 }
        if out.tl0 != period.tl0 &+ (packet.tl0 &- period.first.tl0) &- UInt8(bases) {
            fault = "TL0PICIDX of \(packet.sequence.rawValue) is \(out.tl0)"
        }
    }

    /// A NACK for a number leads to what went out under it, or to what is missing there, and never to what was left out.
    private mutating func check(_ number: Int64?) {
        guard let number, fault == nil else { return }
        let origin = rewriter.origin(of: ExtendedSequenceNumber(rawValue: number).wire)
        let key = origin.map { Key(stream: $0.segment.stream, source: $0.source.rawValue) }
        if let known = sent[number] {
            if key != known.key { fault = "\(number) is of \(known.key) and leads to \(String(describing: key))" }
        } else if let key, let period, number >= period.number {
            if never.contains(key) { fault = "\(number) leads to \(key), which was left out" }
            if let other = numbers[key] { fault = "\(number) leads to \(key), which went out as \(other)" }
        }
    }

    mutating func checkAll() {
        guard let newest else { return }
        for number in newest - 200...newest { check(number) }
        let segments = rewriter.earlier.count + (rewriter.currentSegment == nil ? 0 : 1)
        if segments > RTPRewriter.segmentsMax { fault = "\(segments) segments" }
        guard loss == 0, disorder == 0, let first = sent.keys.min() else { return }
        // Each jump leaves one number unused.
        let unused = newest - first + 1 - Int64(sent.count)
        if unused > 20 { fault = "\(unused) numbers are unused though nothing was lost" }
    }
}
