package import Base
package import MediaFormat
package import Wire

/// A frame of a track, and how it goes on from the one before.
package struct ReceivedFrame: Hashable, Sendable {
    package var frame: MediaFrame
    /// How the picture is turned; `none` for audio.
    package var rotation: PictureRotation
    /// The time does not continue that of the frames before, and may go back: a writer begins anew.
    package var isDiscontinuity: Bool
}

/// What a receiver of frames has for its owner.
package enum ReceiverOutput: Hashable, Sendable {
    case frame(ReceivedFrame)
    /// The publisher is to be asked for a key frame of a stream.
    case keyFrameRequest(stream: UInt64)
    /// A stream plays from now on; the others are not needed.
    case plays(stream: UInt64)
    /// Nothing was received between two times, of which the second is that of the next frame.
    case gap(from: Interval, to: Interval)
    /// No frame could be read for five seconds: it is encrypted end to end, or is of another codec. It is said once.
    case unreadable
}

/// Makes frames of the RTP packets of one track: reorders, waits for what is repaired, leaves out what cannot be decoded, follows
/// the layer that was asked for, and places all of it on the publisher's clock.
package final class TrackReceiver {
    /// Key frames are asked for no more often than this.
    package static let requestSpacing = Interval.milliseconds(500)
    /// A layer without packets for this time has stopped.
    package static let silenceMax = Interval.seconds(1)
    /// How long the first frames wait for the publisher's reports.
    package static let reportPatience = Interval.seconds(1)
    /// How long nothing may be readable.
    package static let unreadableMax = Interval.seconds(5)
    private static let silentPacket: [UInt8] = [0xF8, 0xFF, 0xFE]
    private static let silentLength = Interval.milliseconds(20)

    /// The longest time between two key frames; `nil` where none are asked for.
    package var keyFrameInterval: Interval?
    /// The time to the publisher and back, which decides how long missing packets are waited for; `nil` while unknown.
    package var roundTrip: Interval?
    /// Frames left out because packets or references of theirs were missing.
    package private(set) var droppedFrames = 0
    /// Packets that never came.
    package private(set) var lostPackets = 0

    private let kind: MediaKind
    private let channels: Int
    private let publisher: PublisherClock
    private var streams: [StreamReceiver] = []
    /// The stream whose frames are handed out.
    private var playing: UInt64?
    private var outputs: [ReceiverOutput] = []
    private var held: [AssembledFrame] = []
    private var holdsUntil: Instant?
    private var lastEnd: Interval?
    private var lastDecodeTime: Interval?
    private var configuration: CodecConfiguration?
    private var rotation = PictureRotation.none
    private var keyFrameAt: Instant?
    private var requestedAt: Instant?
    private var isUnreadableTold = false

    /// - Parameters:
    ///   - channels: of audio, 1 or 2.
    ///   - publisher: shared by the tracks of the publisher.
    package init(kind: MediaKind, channels: Int = 2, publisher: PublisherClock, keyFrameInterval: Interval? = nil) {
        self.kind = kind
        self.channels = channels
        self.publisher = publisher
        self.keyFrameInterval = kind == .video ? keyFrameInterval : nil
    }

    private var patience: Interval {
        min(roundTrip.map { max($0 * 3, .milliseconds(50)) } ?? ReceiveLimits.patienceMax, ReceiveLimits.patienceMax)
    }

    // MARK: - Input

    /// Takes a packet.
    package func receive(_ packet: ReceivedPacket, at now: Instant) {
        guard packet.codec.kind == kind, let index = index(of: packet.stream, at: now) else { return }
        streams[index].insert(packet)
        advance(to: now)
    }

    /// Takes what a sender report said of a stream: the publisher's time, in nanoseconds since 1900, at a timestamp.
    package func receiveReport(of stream: UInt64, senderNanoseconds: Int64, timestamp: RTPTimestamp, at now: Instant) {
        publisher.note(senderNanoseconds: senderNanoseconds, at: now)
        guard let index = index(of: stream, at: now) else { return }
        streams[index].clock.note((timestamp, senderNanoseconds))
        advance(to: now)
    }

    /// Hands out what has waited long enough, and asks for what is needed.
    package func advance(to now: Instant) {
        for index in streams.indices {
            var frames: [AssembledFrame] = []
            streams[index].advance(to: now, patience: patience) { frames.append($0) }
            for frame in frames where plays(frame, of: streams[index]) {
                if frame.references.isKey { keyFrameAt = now }
                hold(frame, at: now)
            }
        }
        droppedFrames = streams.reduce(0) { $0 &+ $1.droppedFrames }
        lostPackets = streams.reduce(0) { $0 &+ $1.lostPackets }
        if let holdsUntil, now >= holdsUntil || playingStream?.clock.isAnchored == true { releaseHeld() }
        leaveSilentStream(at: now)
        requestKeyFrames(at: now)
        tellUnreadable(at: now)
    }

    /// What was not taken yet, in order.
    package func takeOutputs() -> [ReceiverOutput] {
        defer { outputs = [] }
        return outputs
    }

    /// When ``advance(to:)`` is to be called if nothing comes before.
    package var nextDeadline: Instant? {
        var deadline = holdsUntil
        for stream in streams { deadline = earliest(deadline, stream.deadline(patience: patience)) }
        if wantedStream != nil, let requestedAt { deadline = earliest(deadline, requestedAt + Self.requestSpacing) }
        if let keyFrameInterval, let keyFrameAt { deadline = earliest(deadline, keyFrameAt + keyFrameInterval) }
        return deadline
    }

    // MARK: - Streams

    private var playingStream: StreamReceiver? { streams.first { $0.number == playing } }

    private func index(of number: UInt64, at now: Instant) -> Int? {
        if let index = streams.firstIndex(where: { $0.number == number }) { return index }
        if streams.count >= ReceiveLimits.streamsMax {
            let oldest = streams.indices.filter { streams[$0].number != playing }
                .min { streams[$0].lastPacketAt < streams[$1].lastPacketAt }
            guard let oldest else { return nil }
            streams.remove(at: oldest)
        }
        streams.append(StreamReceiver(number: number, kind: kind, channels: channels, at: now))
        return streams.endIndex - 1
    }

    /// Whether a frame is handed out. A key frame of the layer that was asked for lets that play.
    private func plays(_ frame: AssembledFrame, of stream: StreamReceiver) -> Bool {
        if stream.number == playing { return true }
        guard frame.references.isKey, stream.isChosen || playing == nil else { return false }
        playing = stream.number
        outputs.append(.plays(stream: stream.number))
        return true
    }

    private func leaveSilentStream(at now: Instant) {
        guard let stream = playingStream, now - stream.lastPacketAt >= Self.silenceMax,
            streams.contains(where: { $0.number != stream.number && $0.lastPacketAt > stream.lastPacketAt })
        else { return }
        playing = nil
    }

    // MARK: - Time

    /// The first frames wait for the publisher's reports.
    private func hold(_ frame: AssembledFrame, at now: Instant) {
        guard holdsUntil != nil || lastDecodeTime == nil, playingStream?.clock.isAnchored == false,
            held.count < ReceiveLimits.heldFramesMax
        else {
            releaseHeld()
            return place(frame)
        }
        if holdsUntil == nil { holdsUntil = now + Self.reportPatience }
        held.append(frame)
    }

    private func releaseHeld() {
        holdsUntil = nil
        let frames = held
        held = []
        for frame in frames { place(frame) }
    }

    /// Gives a frame its time, and hands it out.
    private func place(_ frame: AssembledFrame) {
        guard let index = streams.firstIndex(where: { $0.number == playing }) else { return }
        let reading = streams[index].clock.read(frame.timestamp, arrivedAt: frame.arrivedAt, publisher)
        var time = reading.time
        var isDiscontinuity = reading.isJump
        // After a switch of layers and corrections, time still goes on.
        if !isDiscontinuity, let last = lastDecodeTime, time <= last { time = last + .microseconds(1) }
        if kind == .audio, !fill(to: time, isDiscontinuity) { isDiscontinuity = true }
        lastDecodeTime = time
        if let turned = frame.rotation { rotation = turned }
        var media = MediaFrame(
            codec: frame.codec,
            decodeTime: time,
            isKey: frame.references.isKey,
            isDiscardable: frame.isDiscardable,
            bytes: frame.bytes
        )
        if let found = frame.configuration, found != configuration {
            configuration = found
            media.configuration = found
        }
        lastEnd = time + length(of: frame)
        outputs.append(.frame(ReceivedFrame(frame: media, rotation: rotation, isDiscontinuity: isDiscontinuity)))
    }

    private func length(of frame: AssembledFrame) -> Interval {
        guard kind == .audio, let samples = OpusConfiguration.samples(of: unsafe frame.bytes.span.bytes) else {
            return .zero
        }
        return MediaFrame.time(ticks: Int64(samples), per: OpusConfiguration.sampleRate)
    }

    /// Lets silence stand for audio that was not sent or was lost.
    /// - Returns: `false` where the gap stays.
    private func fill(to time: Interval, _ isDiscontinuity: Bool) -> Bool {
        guard var end = lastEnd, time - end >= Self.silentLength else { return true }
        guard !isDiscontinuity, time - end <= ReceiveLimits.silenceMax else {
            outputs.append(.gap(from: end, to: time))
            return false
        }
        while time - end >= Self.silentLength {
            let silence = MediaFrame(codec: .opus, decodeTime: end, isKey: true, bytes: Self.silentPacket)
            outputs.append(.frame(ReceivedFrame(frame: silence, rotation: .none, isDiscontinuity: false)))
            lastDecodeTime = end
            end = end + Self.silentLength
        }
        return true
    }

    // MARK: - Key frames

    /// The stream that a key frame is needed of at once.
    private var wantedStream: UInt64? {
        guard kind == .video else { return nil }
        // A layer that stopped was chosen last, too.
        let newest = streams.max { $0.lastPacketAt < $1.lastPacketAt }
        let chosen = streams.filter(\.isChosen).max { $0.lastPacketAt < $1.lastPacketAt }
        if let chosen, chosen.number != playing, let newest, newest.lastPacketAt - chosen.lastPacketAt < Self.silenceMax
        {
            return chosen.number
        }
        if let stream = playingStream { return stream.needsKeyFrame ? stream.number : nil }
        return newest?.number
    }

    private func requestKeyFrames(at now: Instant) {
        if let requestedAt, now - requestedAt < Self.requestSpacing { return }
        var wanted = wantedStream
        if wanted == nil, let keyFrameInterval, let keyFrameAt, now - keyFrameAt >= keyFrameInterval {
            wanted = playing
        }
        guard let wanted else { return }
        requestedAt = now
        outputs.append(.keyFrameRequest(stream: wanted))
    }

    private func tellUnreadable(at now: Instant) {
        guard !isUnreadableTold,
            streams.contains(where: { $0.unreadableSince.map { now - $0 >= Self.unreadableMax } ?? false })
        else { return }
        isUnreadableTold = true
        outputs.append(.unreadable)
    }
}
