import Base
internal import Wire

/// A video and an audio stream through the send queue of a connection and a ``ModelledTCP``, in virtual time.
final class StreamVideo {
    /// What the connection goes over.
    struct Link {
        let name: String
        let tcp: ModelledTCP.Link

        /// 50 ms round trip, 1 % loss.
        static let lossy = Link(name: "1 % loss", tcp: ModelledTCP.Link(loss: 0.01))
        /// It carries three quarters of the video. 50 ms round trip, and up to 100 ms before the bottleneck.
        static let congested = Link(name: "1.5 Mbit/s", tcp: ModelledTCP.Link(rate: 1_500_000))
    }

    private static let seeds: [UInt64] = [1, 2, 3, 4, 5]
    private static let seconds = 120
    private static let step = Interval.milliseconds(1)
    private static let audioInterval = Interval.milliseconds(20)
    private static let audioBytes = 160
    private static let frameInterval = Interval.microseconds(33_333)
    private static let bitsPerSecond = 2_000_000
    private static let keyFrameFactor = 5
    private static let packetBytes = 1_200
    /// From a request to the publisher's key frame.
    private static let keyFrameDelay = Interval.milliseconds(50)
    private static let ssrc = SSRC(rawValue: 1)

    private struct Frame {
        let sentAt: Instant
        let isKey: Bool
        var missing: Int
        var completeAt: Instant?
    }

    private var queue = StreamSendQueue(.rfc4571)
    private var tcp: ModelledTCP
    private var deframer = StreamDeframer(.rfc4571)
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var nextFrame: Instant
    private var nextAudio: Instant
    private var keyFrameAt: Instant?
    /// By their number.
    private var frames: [Frame] = []
    private var audioDelays: [Double] = []
    private var bytesMax = 0

    private init(_ link: ModelledTCP.Link, seed: UInt64) {
        tcp = ModelledTCP(link, seed: seed)
        nextFrame = now
        nextAudio = now
        keyFrameAt = now
    }

    /// The delays of video frames and audio packets from the forwarder to the client, and the most bytes that wait.
    static func figures(over link: Link) throws -> [Figure] {
        let runs = try seeds.map { seed in
            let video = StreamVideo(link.tcp, seed: seed)
            try video.run()
            return video
        }
        let trip = Double((link.tcp.delay + link.tcp.delay).nanoseconds) / 1e6
        func figure(_ name: String, _ unit: String, _ value: Double, _ goal: Double? = nil) -> Figure {
            Figure(name: "\(name), \(link.name)", unit: unit, value: value, goal: goal)
        }
        let queueBytesMax =
            StreamSendQueue.controlBytesMax + StreamSendQueue.audioBytesMax + StreamSendQueue.videoBytesMax
            + StreamSendQueue.writeBytesMax
        let bytesMax = Double(queueBytesMax + ModelledTCP.bufferBytes)
        return [
            figure("video over TCP, p95", "ms", runs.flatMap(\.frameDelays).percentile(95), 250 + trip),
            figure("audio over TCP, p95", "ms", runs.flatMap(\.audioDelays).percentile(95), 250 + trip),
            figure("frames dropped", "%", runs.map(\.lostPercent).median),
            figure("most bytes that wait", "bytes", Double(runs.map(\.bytesMax).max() ?? 0), bytesMax),
        ]
    }

    private var frameDelays: [Double] {
        frames.compactMap { frame in frame.completeAt.map { Double(($0 - frame.sentAt).nanoseconds) / 1e6 } }
    }
    private var lostPercent: Double { Double(frames.count { $0.completeAt == nil }) / Double(frames.count) * 100 }

    private func run() throws {
        let end = now + .seconds(Self.seconds)
        while now < end {
            makeMedia()
            if !queue.isBlocked || tcp.isWritable { write() }
            let read = tcp.advance(to: now)
            try deframer.append(unsafe read.span.bytes) { receive($0) }
            if queue.isBlocked, tcp.isWritable { write() }
            while queue.nextKeyFrameRequest() != nil { keyFrameAt = keyFrameAt ?? now + Self.keyFrameDelay }
            bytesMax = max(bytesMax, queue.byteCount + tcp.bufferedBytes)
            now += Self.step
        }
    }

    private func makeMedia() {
        if nextAudio <= now {
            nextAudio += Self.audioInterval
            append(.audio, kind: 0, number: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000), Self.audioBytes)
        }
        guard nextFrame <= now else { return }
        nextFrame += Self.frameInterval
        let isKey = keyFrameAt.map { $0 <= now } ?? false
        if isKey { keyFrameAt = nil }
        let bytes = Self.bitsPerSecond / 8 / 30 * (isKey ? Self.keyFrameFactor : 1)
        let packets = (bytes + Self.packetBytes - 1) / Self.packetBytes
        let number = UInt32(frames.count)
        frames.append(Frame(sentAt: now, isKey: isKey, missing: packets))
        for packet in 0..<packets {
            let frame = RTPTimestamp(rawValue: number &* 3_000)
            append(
                .video(Self.ssrc, frame: frame, startsKeyFrame: isKey),
                kind: 1,
                number: number,
                min(Self.packetBytes, bytes - packet * Self.packetBytes)
            )
        }
    }

    private func append(_ packetKind: StreamPacketKind, kind: UInt8, number: UInt32, _ count: Int) {
        var packet: [UInt8] = [kind]
        packet.append(bigEndian: number)
        packet += [UInt8](repeating: 0, count: max(0, count - packet.count))
        queue.append(unsafe packet.span.bytes, kind: packetKind, at: now)
    }

    private func receive(_ packet: RawSpan) {
        let number = packet.bigEndianUInt32(at: 1)
        guard packet.byte(at: 0) == 1 else {
            audioDelays.append(Double(now.nanoseconds) / 1e6 - Double(number))
            return
        }
        let index = Int(number)
        frames[index].missing -= 1
        if frames[index].missing == 0 { frames[index].completeAt = now }
    }

    private func write() {
        while queue.prepareWrite(at: now) {
            queue.finishWrite(tcp.write(queue.unwritten))
            if queue.isBlocked { return }
        }
    }
}

extension [Double] {
    /// - Parameter percent: 0...100.
    fileprivate func percentile(_ percent: Int) -> Double {
        precondition(!isEmpty)
        return sorted()[Swift.min(count - 1, count * percent / 100)]
    }
}
