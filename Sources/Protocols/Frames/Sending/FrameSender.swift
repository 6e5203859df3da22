package import Base
package import MediaFormat
package import Wire

/// How a track of a sender goes out.
package struct SentTrack: Sendable {
    package var codec: MediaCodec
    package var ssrc: SSRC
    package var payloadType: PayloadType
    /// Of the first packet.
    package var sequence: SequenceNumber
    /// Of the stream's origin.
    package var timestamp: RTPTimestamp

    package init(
        codec: MediaCodec,
        ssrc: SSRC,
        payloadType: PayloadType,
        sequence: SequenceNumber,
        timestamp: RTPTimestamp
    ) {
        self.codec = codec
        self.ssrc = ssrc
        self.payloadType = payloadType
        self.sequence = sequence
        self.timestamp = timestamp
    }
}

/// What a sender has for its owner.
package enum SenderOutput: Hashable, Sendable {
    /// An RTP packet of a track.
    case packet(track: Int, [UInt8])
    /// The publisher's time, in nanoseconds since 1900, at a timestamp of a track, as a sender report tells it.
    case report(track: Int, senderNanoseconds: Int64, timestamp: RTPTimestamp)
    /// Video is held, because pictures are shown in another order than they are sent in.
    case held
    /// Video goes on.
    case resumed
    /// The publisher is to be refused for the order of its pictures. It is said once.
    case refused
    /// Key frames are further apart than viewers who join like to wait. It is said once.
    case longGroup(Interval)
}

/// What a sender has done.
package struct SenderCounters: Hashable, Sendable {
    package var frames = 0
    package var packets = 0
    /// Left out or held, for the order in which they are shown.
    package var reorderedFrames = 0
    /// Too late after a stall.
    package var skippedFrames = 0
    /// Not readable, or of a codec that RTP does not carry.
    package var malformedFrames = 0
}

/// Makes RTP packets of the frames of one publisher that came over a connection: in time, in the order in which they are shown,
/// with sound and picture on one clock.
package struct FrameSender {
    /// A jump of the publisher's times that is no gap.
    static let jumpMin = Interval.seconds(1)
    private static let reportInterval = Interval.seconds(1)
    private static let groupLengthMax = Interval.seconds(4)
    private static let headerBytes = 12

    private struct Track {
        var sent: SentTrack
        var format: any PayloadFormat
        var configuration: CodecConfiguration?
        var reportedAt: Instant?
        var isFirst = true
    }

    private let packetBytesMax: Int
    /// Nanoseconds since 1900 at instant 0.
    private let senderNanosecondsAtZero: Int64
    private var tracks: [Track] = []
    private var schedule = SendSchedule()
    private var filter: BFrameFilter
    private var outputs: [SenderOutput] = []
    /// The newest time of the publisher, when it came, and what it was taken for.
    private var newest: (time: Interval, at: Instant)?
    /// What is added to the publisher's times.
    private var shift = Interval.zero
    private var keyFrameTime: Interval?
    private var isRefused = false
    private var isLongGroupTold = false
    private var counted = SenderCounters()

    /// - Parameters:
    ///   - packetBytesMax: of an RTP packet with its header, 100…9,000.
    ///   - senderNanosecondsAtZero: the wall clock at instant 0, in nanoseconds since 1900.
    package init(policy: BFramePolicy = .drop, packetBytesMax: Int = 1_200, senderNanosecondsAtZero: Int64) {
        filter = BFrameFilter(policy)
        self.packetBytesMax = min(max(packetBytesMax, 100), 9_000)
        self.senderNanosecondsAtZero = senderNanosecondsAtZero
    }

    /// Adds a track; its number is that of earlier tracks.
    /// - Returns: `nil` for a codec that RTP does not carry.
    package mutating func addTrack(_ sent: SentTrack) -> Int? {
        guard let format = sent.codec.makePayloadFormat() else { return nil }
        tracks.append(Track(sent: sent, format: format))
        return tracks.endIndex - 1
    }

    // MARK: - Input

    /// Takes a frame of a track, in the order of the connection.
    package mutating func append(_ frame: MediaFrame, track: Int, at now: Instant) {
        guard tracks.indices.contains(track), frame.codec == tracks[track].sent.codec, !frame.bytes.isEmpty,
            !isRefused
        else {
            counted.malformedFrames &+= 1
            return
        }
        let time = continued(frame.decodeTime, at: now)
        if frame.kind == .video {
            guard passes(frame) else { return }
            watchGroup(frame, time)
        }
        schedule.append(SendSchedule.Entry(track: track, frame: frame, time: time), at: now)
    }

    /// The time of a frame, which goes on where the publisher's times jump.
    private mutating func continued(_ time: Interval, at now: Instant) -> Interval {
        defer { newest = (time, now) }
        guard let newest else { return time + shift }
        let step = time - newest.time
        if step > Self.jumpMin || step < Interval.zero - Self.jumpMin {
            shift = newest.time + shift + (now - newest.at) - time
            schedule.discontinue()
            filter.discontinue()
            keyFrameTime = nil
        }
        return time + shift
    }

    private mutating func passes(_ frame: MediaFrame) -> Bool {
        let wasHolding = filter.isHolding
        let decision = filter.decide(frame)
        if filter.isHolding != wasHolding { outputs.append(filter.isHolding ? .held : .resumed) }
        switch decision {
        case .send: return true
        case .drop, .hold: break
        case .refuse:
            isRefused = true
            outputs.append(.refused)
        }
        counted.reorderedFrames &+= 1
        return false
    }

    private mutating func watchGroup(_ frame: MediaFrame, _ time: Interval) {
        guard frame.isKey else { return }
        if let before = keyFrameTime, time - before > Self.groupLengthMax, !isLongGroupTold {
            isLongGroupTold = true
            outputs.append(.longGroup(time - before))
        }
        keyFrameTime = time
    }

    // MARK: - Output

    /// Sends what is due.
    package mutating func advance(to now: Instant) {
        while let entry = schedule.next(at: now) { send(entry, at: now) }
    }

    /// What was not taken yet, in order.
    package mutating func takeOutputs() -> [SenderOutput] {
        defer { outputs = [] }
        return outputs
    }

    /// When ``advance(to:)`` is to be called; `nil` while nothing waits.
    package var nextDeadline: Instant? { schedule.due }

    /// Whether the publisher's connection is not to be read, because so much waits.
    package var isBlocked: Bool { schedule.isBlocked }

    /// Whether video is held for the order of its pictures.
    package var isHolding: Bool { filter.isHolding }

    package var counters: SenderCounters {
        var counters = counted
        counters.skippedFrames = schedule.skippedFrames
        return counters
    }

    private mutating func send(_ entry: SendSchedule.Entry, at now: Instant) {
        let frame = entry.frame
        if let found = frame.configuration { tracks[entry.track].configuration = found }
        let most = packetBytesMax - Self.headerBytes
        let payloads: [[UInt8]]
        do throws(FormatError) {
            let configuration = tracks[entry.track].configuration
            payloads = try tracks[entry.track].format.payloads(of: frame, configuration, most: most)
        } catch {
            counted.malformedFrames &+= 1
            return
        }
        // The difference of decoding and showing is that of the frame, whatever its times were shifted by.
        let time = entry.time + (frame.presentationTime - frame.decodeTime)
        let ticks = MediaFrame.ticks(time, per: frame.codec.clockRate)
        let timestamp = tracks[entry.track].sent.timestamp.advanced(by: Int(truncatingIfNeeded: ticks))
        report(entry.track, time, timestamp, at: now)
        for (index, payload) in payloads.enumerated() {
            outputs.append(
                .packet(
                    track: entry.track,
                    packet(payload, timestamp, entry.track, isLast: index == payloads.count - 1)
                )
            )
        }
        counted.frames &+= 1
        counted.packets &+= payloads.count
    }

    /// Sound and picture share one clock: that of the frames' times, which began at the wall clock's.
    private mutating func report(_ track: Int, _ time: Interval, _ timestamp: RTPTimestamp, at now: Instant) {
        if let last = tracks[track].reportedAt, now - last < Self.reportInterval { return }
        tracks[track].reportedAt = now
        let senderNanoseconds = senderNanosecondsAtZero &+ time.nanoseconds
        outputs.append(.report(track: track, senderNanoseconds: senderNanoseconds, timestamp: timestamp))
    }

    /// RFC 3550 §5.1, without extensions.
    private mutating func packet(_ payload: [UInt8], _ timestamp: RTPTimestamp, _ track: Int, isLast: Bool) -> [UInt8] {
        let sent = tracks[track].sent
        // The marker ends a picture, and begins sound after silence (RFC 3551 §4.1).
        let isMarked = sent.codec.kind == .video ? isLast : tracks[track].isFirst
        tracks[track].isFirst = false
        tracks[track].sent.sequence = SequenceNumber(rawValue: sent.sequence.rawValue &+ 1)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headerBytes + payload.count)
        bytes.append(0x80)
        bytes.append((isMarked ? 0x80 : 0) | sent.payloadType.rawValue)
        bytes.append(UInt8(truncatingIfNeeded: sent.sequence.rawValue >> 8))
        bytes.append(UInt8(truncatingIfNeeded: sent.sequence.rawValue))
        for word in [timestamp.rawValue, sent.ssrc.rawValue] {
            for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return bytes + payload
    }
}
