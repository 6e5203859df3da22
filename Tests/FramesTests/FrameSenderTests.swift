import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

@testable import Frames

/// A sender with tracks, and what it sent.
private struct SenderBench {
    var sender: FrameSender
    var outputs: [SenderOutput] = []
    var codecs: [MediaCodec] = []

    init(_ codecs: [MediaCodec], policy: BFramePolicy = .drop, most: Int = 1_200) {
        sender = FrameSender(policy: policy, packetBytesMax: most, senderNanosecondsAtZero: 7)
        self.codecs = codecs
        for (number, codec) in codecs.enumerated() {
            let track = SentTrack(
                codec: codec,
                ssrc: SSRC(rawValue: UInt32(100 + number)),
                payloadType: PayloadType(wire: UInt8(96 + number)),
                sequence: SequenceNumber(rawValue: 65_530),
                timestamp: RTPTimestamp(rawValue: .max - 1_000)
            )
            #expect(sender.addTrack(track) == number)
        }
    }

    mutating func take(at now: Instant) {
        sender.advance(to: now)
        outputs += sender.takeOutputs()
    }

    /// Frames that come when they are made.
    mutating func send(_ frames: [MediaFrame]) {
        for frame in frames {
            let now = Instant.at(0) + frame.decodeTime
            sender.append(frame, track: codecs.firstIndex(of: frame.codec) ?? 99, at: now)
            take(at: now)
        }
    }

    var packets: [(track: Int, bytes: [UInt8])] {
        outputs.compactMap { if case .packet(let track, let bytes) = $0 { (track, bytes) } else { nil } }
    }

    /// What a receiver makes of a track's packets.
    func received(_ track: Int) throws -> [MediaFrame] {
        let receiver = TrackReceiver(kind: codecs[track].kind, publisher: PublisherClock())
        var unwrapper = SequenceUnwrapper()
        for (number, packet) in packets.filter({ $0.track == track }).enumerated() {
            let view = try RTPPacketView(unsafe packet.bytes.span.bytes)
            receiver.receive(
                ReceivedPacket(
                    stream: 1,
                    codec: codecs[track],
                    sequence: unwrapper.unwrap(view.sequenceNumber),
                    timestamp: view.timestamp,
                    marker: view.marker,
                    payload: Array(packet.bytes[12...]),
                    arrivedAt: .at(number)
                ),
                at: .at(number)
            )
        }
        receiver.advance(to: .at(100_000))
        #expect(receiver.lostPackets == 0 && receiver.droppedFrames == 0)
        return receiver.takeFrames().map(\.frame)
    }
}

struct FrameSenderTests {
    /// Frames of a group, without pictures in another order.
    private static func frames(_ codec: MediaCodec) throws -> [MediaFrame] {
        let file: [UInt8]? =
            switch codec {
            case .h264: Fixtures.h264
            case .h265: Fixtures.h265
            case .av1: Fixtures.av1
            case .vp9, .opus: Fixtures.vp9
            default: nil
            }
        guard let file else {
            return (0..<24).map {
                MediaFrame(
                    codec: .vp8,
                    decodeTime: .milliseconds($0 * 33),
                    isKey: $0 % 12 == 0,
                    bytes: Packetising.vp8Frame($0, isKey: $0 % 12 == 0, bytes: 90 * $0),
                    configuration: $0 == 0 ? .vp8(VPConfiguration(size: PictureSize(width: 640, height: 360))) : nil
                )
            }
        }
        return try demux(file).filter { $0.codec == codec }.map {
            var frame = $0
            frame.presentationTime = frame.decodeTime
            return frame
        }
    }

    @Test(arguments: [MediaCodec.h264, .h265, .av1, .vp8, .vp9, .opus], [100, 113, 300, 1_200])
    func `a receiver gets back what was sent, in packets that fit`(codec: MediaCodec, most: Int) throws {
        let frames = try Self.frames(codec).filter { $0.kind == .video || $0.bytes.count <= most - 12 }
        var bench = SenderBench([codec], most: most)
        bench.send(frames)
        bench.take(at: .at(60_000))
        #expect(try bench.received(0).map(\.bytes) == frames.map(\.bytes))
        #expect(bench.packets.allSatisfy { (13...most).contains($0.bytes.count) })
        #expect(bench.packets.allSatisfy { $0.bytes[0] == 0x80 && $0.bytes[1] & 0x7F == 96 })
        #expect(bench.sender.counters.frames == frames.count && bench.sender.counters.packets == bench.packets.count)
    }

    @Test func `NAL units of every length come back whole`() throws {
        let configuration = try demux(Fixtures.h264).lazy.compactMap(\.configuration).first { $0.codec == .h264 }
        var bench = SenderBench([.h264], most: 112)
        // Around one, two and three packets.
        let lengths = Array(90...110) + Array(180...210) + Array(280...310)
        let frames = lengths.enumerated().map { number, length in
            let slice: [UInt8] = number == 0 ? [0x65, 0x88, 0x84, 0x21] : [0x41, 0x9A, 0x21, 0x6C]
            let unit = slice + Array(repeating: UInt8(truncatingIfNeeded: number) | 1, count: length - 4)
            return MediaFrame(
                codec: .h264,
                decodeTime: .milliseconds(number * 33),
                isKey: number == 0,
                bytes: [0, 0, UInt8(length >> 8), UInt8(length & 0xFF)] + unit,
                configuration: number == 0 ? configuration : nil
            )
        }
        bench.send(frames)
        #expect(try bench.received(0).map(\.bytes) == frames.map(\.bytes))
        #expect(bench.packets.allSatisfy { $0.bytes.count <= 112 })
    }

    @Test func `headers are written as RFC 3550 has them`() throws {
        var bench = SenderBench([.vp8])
        bench.send([MediaFrame(codec: .vp8, decodeTime: .milliseconds(100), isKey: false, bytes: [0x11, 2, 0])])
        let timestamp = UInt32.max - 1_000 &+ 9_000
        #expect(
            bench.packets[0].bytes == [
                0x80, 0xE0, 0xFF, 0xFA, UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 0xFF),
                UInt8(timestamp >> 8 & 0xFF), UInt8(timestamp & 0xFF), 0, 0, 0, 100, 0x90, 0x80, 0x80, 0, 0x11, 2, 0,
            ]
        )
    }

    @Test func `VP9 pictures refer to the one before`() {
        var bench = SenderBench([.vp9])
        bench.send([
            MediaFrame(codec: .vp9, decodeTime: .zero, isKey: true, bytes: [0x82]),
            MediaFrame(codec: .vp9, decodeTime: .milliseconds(33), isKey: false, bytes: [0x86]),
        ])
        #expect(bench.packets.map { Array($0.bytes[12...]) } == [[0x9C, 0x80, 0, 0x82], [0xDC, 0x80, 1, 0x02, 0x86]])
    }

    @Test func `frames that cannot be read are left out and counted`() {
        var bench = SenderBench([.h264])
        bench.send([MediaFrame(codec: .h264, decodeTime: .zero, isKey: true, bytes: [0, 0, 9, 9, 1])])
        bench.send([MediaFrame(codec: .aac, decodeTime: .zero, isKey: true, bytes: [1])])
        bench.send([MediaFrame(codec: .h264, decodeTime: .zero, isKey: true, bytes: [])])
        #expect(bench.packets.isEmpty && bench.sender.counters.malformedFrames == 3)
        var sender = FrameSender(senderNanosecondsAtZero: 0)
        let aac = SentTrack(
            codec: .aac,
            ssrc: SSRC(rawValue: 1),
            payloadType: PayloadType(wire: 1),
            sequence: SequenceNumber(rawValue: 1),
            timestamp: RTPTimestamp(rawValue: 1)
        )
        #expect(sender.addTrack(aac) == nil)
    }

    // MARK: Order

    /// Pictures by their times in frames: decoded one after the other, shown at the given places.
    private func pictures(_ shown: [(Int, isReference: Bool)], from start: Int = 0) -> [MediaFrame] {
        shown.enumerated().map { number, place in
            MediaFrame(
                codec: .vp8,
                decodeTime: .milliseconds((start + number) * 40),
                presentationTime: .milliseconds((start + place.0 + 2) * 40),
                isKey: number == 0,
                isDiscardable: !place.isReference,
                bytes: Packetising.vp8Frame(start + number, isKey: number == 0, bytes: 3)
            )
        }
    }

    @Test func `pictures in another order are left out while nothing refers to them`() throws {
        var bench = SenderBench([.vp8])
        // I P B B P B B.
        bench.send(
            pictures([(0, true), (3, true), (1, false), (2, false), (6, true), (4, false), (5, false)])
        )
        let times = try bench.packets.map { try RTPPacketView(unsafe $0.bytes.span.bytes).timestamp }
        #expect(zip(times, times.dropFirst()).map { $0.distance(to: $1) } == [3 * 3_600, 3 * 3_600])
        #expect(bench.sender.counters.reorderedFrames == 4 && !bench.outputs.contains(.held))
    }

    @Test(arguments: [BFramePolicy.drop, .hold])
    func `video is held once something refers to a picture in another order, and goes on ten seconds later`(
        policy: BFramePolicy
    ) {
        var bench = SenderBench([.vp8], policy: policy)
        // The reference is the second of two: with hold the first one is enough.
        bench.send(pictures([(0, true), (4, true), (1, false), (2, true), (3, false), (8, true)]))
        #expect(bench.packets.count == 2 && bench.sender.isHolding)
        #expect(bench.outputs.filter { $0 == .held }.count == 1)
        // Key frames without such pictures between them.
        for second in 1...12 { bench.send(pictures([(0, true), (1, true)], from: second * 25)) }
        #expect(bench.outputs.filter { $0 == .resumed }.count == 1)
        #expect(!bench.sender.isHolding && bench.packets.count == 2 + 2 * 2)
    }

    @Test func `a publisher is refused for the order of its pictures where that is set`() {
        var bench = SenderBench([.vp8], policy: .refuse)
        bench.send(pictures([(0, true), (3, true), (1, false), (2, false)]))
        #expect(bench.outputs.filter { $0 == .refused }.count == 1 && bench.packets.count == 2)
    }

    // MARK: Time

    /// A second of sound and picture, by the publisher's times.
    private func second(_ number: Int, isKey: Bool = true, from base: Interval = .zero) -> [MediaFrame] {
        (0..<50).flatMap { tick -> [MediaFrame] in
            let time = base + .milliseconds(number * 1_000 + tick * 20)
            let sound = MediaFrame(codec: .opus, decodeTime: time, isKey: true, bytes: [0xF8, 1, 2])
            guard tick % 2 == 0 else { return [sound] }
            let picture = MediaFrame(
                codec: .vp8,
                decodeTime: time,
                isKey: isKey && tick == 0,
                bytes: Packetising.vp8Frame(tick, isKey: isKey && tick == 0, bytes: 50)
            )
            return [picture, sound]
        }
    }

    /// The times of a track's packets in milliseconds, by its timestamps.
    private func times(_ bench: SenderBench, _ track: Int, rate: Int) throws -> [Int] {
        try bench.packets.filter { $0.track == track }.map {
            let timestamp = try RTPPacketView(unsafe $0.bytes.span.bytes).timestamp
            return RTPTimestamp(rawValue: .max - 1_000).distance(to: timestamp) * 1_000 / rate
        }
    }

    @Test func `what a stall piled up leaves at twice the speed, sound and picture together`() throws {
        var bench = SenderBench([.vp8, .opus])
        bench.send(second(0))
        // 1.5 s come at once.
        let stalled = second(1, isKey: false) + second(2, isKey: false).prefix(37)
        let now = Instant.at(2_500)
        for frame in stalled { bench.sender.append(frame, track: frame.codec == .vp8 ? 0 : 1, at: now) }
        var sent: [(at: Int, time: Int)] = []
        for milliseconds in 2_500..<5_000 {
            let before = bench.packets.count
            bench.take(at: .at(milliseconds))
            for packet in bench.packets[before...] {
                let timestamp = try RTPPacketView(unsafe packet.bytes.span.bytes).timestamp
                let rate = packet.track == 0 ? 90 : 48
                sent.append((milliseconds, RTPTimestamp(rawValue: .max - 1_000).distance(to: timestamp) / rate))
            }
        }
        #expect(sent.count == stalled.count)
        for (one, next) in zip(sent, sent.dropFirst()) {
            #expect(next.time >= one.time - 1)
            #expect((next.at - one.at) * 2 >= next.time - one.time - 2)
        }
        // It has caught up after about as long again.
        let last = try #require(sent.last)
        #expect(last.at - 2_500 <= 900)
        #expect(bench.sender.counters.skippedFrames == 0)
    }

    @Test func `what is two seconds late gives way to the newest key frame`() throws {
        var bench = SenderBench([.vp8, .opus])
        bench.send(second(0))
        let stalled = (1..<5).flatMap { second($0) }
        for frame in stalled { bench.sender.append(frame, track: frame.codec == .vp8 ? 0 : 1, at: .at(5_000)) }
        let before = bench.packets.count
        bench.take(at: .at(5_000))
        let packet = bench.packets[before].bytes
        let first = try RTPPacketView(unsafe packet.span.bytes).timestamp
        // The key frame of the fifth second.
        #expect(RTPTimestamp(rawValue: .max - 1_000).distance(to: first) / 90 == 4_000)
        #expect(bench.sender.counters.skippedFrames == 225)
        for milliseconds in 5_000..<7_000 { bench.take(at: .at(milliseconds)) }
        #expect(bench.packets.count - before == 75)
    }

    @Test func `a connection that brings too much is not read`() {
        var bench = SenderBench([.vp8])
        let large = Array(repeating: UInt8(1), count: 1 << 20)
        for number in 0..<4 {
            let isBlocked = bench.sender.isBlocked
            #expect(!isBlocked)
            let frame = MediaFrame(
                codec: .vp8,
                decodeTime: .milliseconds(number * 33),
                isKey: false,
                bytes: [0x11] + large
            )
            bench.sender.append(frame, track: 0, at: .at(0))
        }
        var isBlocked = bench.sender.isBlocked
        #expect(isBlocked)
        for milliseconds in 0..<200 { bench.take(at: .at(milliseconds)) }
        isBlocked = bench.sender.isBlocked
        #expect(!isBlocked)
    }

    @Test(arguments: [Interval.seconds(100), Interval.seconds(-3), .milliseconds(0xFFFF_FFFF)])
    func `a jump of the publisher's times does not move what goes out`(jump: Interval) throws {
        var bench = SenderBench([.vp8, .opus])
        bench.send(second(0))
        for frame in second(1, from: jump) {
            let now = Instant.at(0) + (frame.decodeTime - jump)
            bench.sender.append(frame, track: frame.codec == .vp8 ? 0 : 1, at: now)
            bench.take(at: now)
        }
        bench.take(at: .at(4_000))
        for (track, rate, step) in [(0, 90_000, 40), (1, 48_000, 20)] {
            let times = try times(bench, track, rate: rate)
            #expect(times.count == 2_000 / step)
            #expect(zip(times, times.dropFirst()).allSatisfy { abs($1 - $0 - step) <= 20 })
        }
    }

    @Test func `reports keep sound and picture on one clock`() throws {
        var bench = SenderBench([.vp8, .opus])
        for number in 0..<3 { bench.send(second(number)) }
        var zeros: [Set<Int64>] = [[], []]
        var counts = [0, 0]
        for output in bench.outputs {
            guard case .report(let track, let sender, let timestamp) = output else { continue }
            let ticks = Int64(RTPTimestamp(rawValue: .max - 1_000).distance(to: timestamp))
            zeros[track].insert(sender - ticks * 1_000_000_000 / (track == 0 ? 90_000 : 48_000))
            counts[track] += 1
        }
        #expect(zeros == [[7], [7]])
        #expect(counts == [3, 3])
    }

    @Test func `a long group of pictures is told once`() {
        var bench = SenderBench([.vp8])
        for number in 0..<14 {
            bench.send(second(number, isKey: number % 6 == 0).filter { $0.kind == .video })
        }
        #expect(bench.outputs.filter { $0 == .longGroup(.seconds(6)) }.count == 1)
    }

    @Test(arguments: [MediaCodec.h264, .h265, .av1, .vp8, .vp9, .opus], [1, 2] as [UInt64])
    func `hostile frames never trap`(codec: MediaCodec, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let real = try Self.frames(codec)
        var bench = SenderBench([codec], most: 100 + Int(seed) * 7)
        var now = Instant.at(0)
        for _ in 0..<3_000 {
            var frame = real[Int(random.next() % UInt64(real.count))]
            frame.isKey = random.next() % 4 == 0
            switch random.next() % 5 {
            case 0: frame.decodeTime = Interval(nanoseconds: Int64(bitPattern: random.next()))
            case 1: frame.presentationTime = Interval(nanoseconds: Int64(bitPattern: random.next()))
            case 2: frame.bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            case 3 where !frame.bytes.isEmpty:
                frame.bytes[Int(random.next() % UInt64(frame.bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            default: break
            }
            bench.sender.append(frame, track: 0, at: now)
            now += .milliseconds(Int(random.next() % 100))
            bench.sender.advance(to: now)
            _ = bench.sender.takeOutputs()
        }
    }
}
