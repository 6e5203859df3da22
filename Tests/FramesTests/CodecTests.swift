import Base
import MediaFormat
import MediaSamples
import Testing
import Wire

@testable import Frames

/// Real streams, as packets.
struct CodecTests {
    /// A track's frames twice over: two groups of pictures.
    private static func frames(_ codec: MediaCodec) throws -> (frames: [MediaFrame], configuration: CodecConfiguration?)
    {
        let file: [UInt8]? =
            switch codec {
            case .h264: Fixtures.h264
            case .h265: Fixtures.h265
            case .av1: Fixtures.av1
            case .vp9, .opus: Fixtures.vp9
            default: nil
            }
        guard let file else {
            let frames = (0..<24).map {
                MediaFrame(
                    codec: .vp8,
                    decodeTime: .milliseconds($0 * 33),
                    isKey: $0 % 12 == 0,
                    bytes: Packetising.vp8Frame($0, isKey: $0 % 12 == 0, bytes: 40 * $0)
                )
            }
            return (frames, .vp8(VPConfiguration(size: PictureSize(width: 640, height: 360))))
        }
        let found = try demux(file).filter { $0.codec == codec }
        return (found + found, found.lazy.compactMap(\.configuration).first)
    }

    private static let codecs: [MediaCodec] = [.h264, .h265, .av1, .vp8, .vp9, .opus]

    /// All packets with their frames' numbers.
    private static func packets(_ codec: MediaCodec) throws -> [(frame: Int, packet: ReceivedPacket)] {
        let (frames, configuration) = try frames(codec)
        var stream = TestStream(codec: codec, ticksPerFrame: codec == .opus ? 960 : 3_000)
        return frames.enumerated().flatMap { number, frame in
            let now = Instant.at(number * (codec == .opus ? 20 : 33))
            let payloads = Packetising.payloads(of: frame, configuration: configuration)
            return stream.packets(payloads, at: now).map { (number, $0) }
        }
    }

    @Test(arguments: codecs)
    func `frames come out as they went in`(codec: MediaCodec) throws {
        let (frames, configuration) = try Self.frames(codec)
        #expect(frames.count >= 20)
        let receiver = TrackReceiver(kind: codec.kind, publisher: PublisherClock())
        let packets = try Self.packets(codec)
        if codec != .opus { #expect(packets.count > frames.count) }
        for (_, packet) in packets { receiver.receive(packet, at: packet.arrivedAt) }
        receiver.advance(to: .at(5_000))
        let received = receiver.takeFrames()
        #expect(received.map(\.frame.bytes) == frames.map(\.bytes))
        #expect(received.map(\.frame.isKey) == frames.map(\.isKey))
        #expect(received.first?.frame.configuration?.codecs == configuration?.codecs)
        // Opus in RTP has nothing to skip, and the record of AV1 need not be its sequence header to the bit.
        if codec != .opus, codec != .av1 {
            #expect(received.first?.frame.configuration?.record == configuration?.record)
        }
        #expect(received.dropFirst().allSatisfy { $0.frame.configuration == nil && !$0.isDiscontinuity })
        #expect(received.first?.frame.configuration?.size == configuration?.size)
        let times = received.map(\.frame.decodeTime)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(receiver.lostPackets == 0 && receiver.droppedFrames == 0)
    }

    @Test(arguments: codecs, [1, 2, 3] as [UInt64])
    func `the order of arrival does not matter, nor doubles`(codec: MediaCodec, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let packets = try Self.packets(codec).map(\.packet)
        // The first packet tells where the stream begins.
        var mixed: [ReceivedPacket] = [packets[0]]
        for start in stride(from: 1, to: packets.count, by: 8) {
            let window = packets[start..<min(start + 8, packets.count)]
            mixed += (Array(window) + window.filter { _ in random.next() % 3 == 0 }).shuffled(using: &random)
        }
        let receiver = TrackReceiver(kind: codec.kind, publisher: PublisherClock())
        for packet in mixed { receiver.receive(packet, at: packet.arrivedAt) }
        receiver.advance(to: .at(5_000))
        #expect(receiver.takeFrames().map(\.frame.bytes) == (try Self.frames(codec)).frames.map(\.bytes))
        #expect(receiver.lostPackets == 0)
    }

    @Test(arguments: [MediaCodec.h264, .h265, .av1, .vp8, .vp9], [1, 2, 3, 4, 5, 6] as [UInt64])
    func `no frame is shown that refers to a missing one`(codec: MediaCodec, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let (frames, _) = try Self.frames(codec)
        let packets = try Self.packets(codec)
        let lost = Set((0..<3).map { _ in Int(random.next() % UInt64(packets.count)) }).subtracting([0])
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        var requests = 0
        var received: [ReceivedFrame] = []
        func take() {
            for output in receiver.takeOutputs() {
                if case .frame(let frame) = output { received.append(frame) }
                if case .keyFrameRequest = output { requests += 1 }
            }
        }
        for (index, packet) in packets.enumerated() where !lost.contains(index) {
            receiver.receive(packet.packet, at: packet.packet.arrivedAt)
            take()
        }
        receiver.advance(to: .at(5_000))
        take()
        // What a decoder could decode: all up to the first frame that something is missing of, and all from a whole key frame on.
        let broken = Set(lost.map { packets[$0].frame })
        var expected: [[UInt8]] = []
        var isWaiting = false
        for (number, frame) in frames.enumerated() {
            if broken.contains(number) { isWaiting = true } else if frame.isKey { isWaiting = false }
            if !isWaiting { expected.append(frame.bytes) }
        }
        let bytes = received.map(\.frame.bytes)
        #expect(bytes.allSatisfy { expected.contains($0) })
        // A lost packet between two frames may have begun the second one, for all that some formats tell.
        #expect(bytes.count >= expected.count - lost.count * 11)
        #expect(receiver.lostPackets == lost.count - (lost.contains(packets.count - 1) ? 1 : 0))
        if bytes.count < frames.count { #expect(requests > 0) }
    }

    @Test func `spatial layers of VP9 become one superframe`() throws {
        let key: [UInt8] = [0x82, 0x49, 0x83, 0x42, 0x40, 0x4F, 0xF0, 0x2C, 0xF0] + Array(repeating: 1, count: 100)
        let upper: [UInt8] = [0x86, 0x00, 0x40] + Array(repeating: 2, count: 300)
        var stream = TestStream(codec: .vp9)
        let receiver = TrackReceiver(kind: .video, publisher: PublisherClock())
        for packet in stream.packets(Packetising.vp9([key, upper], isKey: true, 80), at: .at(0)) {
            receiver.receive(packet, at: .at(0))
        }
        receiver.advance(to: .at(1_000))
        let frame = try #require(receiver.takeFrames().first?.frame)
        // Two frames, with lengths of two bytes (VP9 Annex B).
        let marker: UInt8 = 0b1100_1001
        #expect(frame.bytes == key + upper + [marker, 109, 0, 0x2F, 1, marker])
        #expect(frame.isKey)
    }

    @Test func `the primary block of a redundant payload counts`() throws {
        var stream = TestStream(codec: .opus, ticksPerFrame: 960)
        let receiver = TrackReceiver(kind: .audio, publisher: PublisherClock())
        // One redundant block of 3 bytes, then the primary one (RFC 2198 §3).
        let payload: [UInt8] = [0x80 | 111, 0x0F, 0x00, 0x03, 111, 0xF8, 1, 1, 0xF8, 2, 2]
        var packet = stream.packets([payload], at: .at(0))[0]
        packet.isRedundant = true
        receiver.receive(packet, at: .at(0))
        receiver.advance(to: .at(1_000))
        #expect(receiver.takeFrames().map(\.frame.bytes) == [[0xF8, 2, 2]])
    }

    @Test(arguments: codecs)
    func `hostile packets never trap, and nothing grows without a limit`(codec: MediaCodec) throws {
        var random = SplitMix64(seed: 42)
        let receiver = TrackReceiver(kind: codec.kind, publisher: PublisherClock(), keyFrameInterval: .seconds(4))
        let real = try Self.packets(codec).map(\.packet)
        var now = Instant.at(0)
        for step in 0..<20_000 {
            var packet = real[Int(random.next() % UInt64(real.count))]
            packet.stream = 1 + random.next() % 6
            packet.isChosen = random.next() % 2 == 0
            packet.marker = random.next() % 3 == 0
            packet.arrivedAt = now
            switch random.next() % 8 {
            case 0: packet.sequence = ExtendedSequenceNumber(rawValue: Int64(bitPattern: random.next()))
            case 1: packet.timestamp = RTPTimestamp(rawValue: UInt32(truncatingIfNeeded: random.next()))
            case 2: packet.payload = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            case 3:
                let place = Int(random.next() % UInt64(packet.payload.count))
                packet.payload[place] = UInt8(truncatingIfNeeded: random.next())
            case 4: packet.payload = Array(packet.payload.prefix(Int(random.next() % 12)))
            default: break
            }
            if step % 7 == 0 {
                receiver.receiveReport(
                    of: packet.stream,
                    senderNanoseconds: Int64(bitPattern: random.next()),
                    timestamp: packet.timestamp,
                    at: now
                )
            }
            receiver.receive(packet, at: now)
            now += .milliseconds(Int(random.next() % 40))
            // Silence for a gap is the most that one packet brings about.
            #expect(receiver.takeOutputs().count <= 260 + ReceiveLimits.waitingPacketsMax)
            _ = receiver.nextDeadline
        }
    }
}
