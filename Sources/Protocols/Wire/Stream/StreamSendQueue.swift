public import Base

/// The priority of a packet on a connection, and what it belongs to.
public enum StreamPacketKind: Hashable, Sendable {
    /// STUN, DTLS, RTCP and data channels.
    case control
    case audio
    /// A packet of a video frame. `startsKeyFrame`: the first packet of a frame that needs no other.
    case video(SSRC, frame: RTPTimestamp, startsKeyFrame: Bool)
    /// Retransmissions and padding, which a connection without loss needs least.
    case repair
}

/// Why a packet was not queued, or was dropped from the queue.
public enum StreamDropReason: UInt8, Hashable, Sendable, CaseIterable {
    /// The connection is blocked, and the packet is a repair, or belongs to a frame that came when others had waited for
    /// too long already.
    case blocked
    /// An earlier frame of the video was dropped, and this one depends on it.
    case awaitsKeyFrame
    /// The packet waited for too long, or belongs to the same frame as one that did.
    case late
    /// The queue has no room for packets of this kind.
    case full
}

/// What waits to be written to one connection.
///
/// TCP delays what it cannot deliver, and late video is worse than none. So while the connection is blocked and the oldest
/// waiting video is older than ``videoWaitMax``, a video frame is dropped before its first packet is queued, and what
/// follows of this video up to a key frame. Frames are taken before that, because a key frame is often longer than what a
/// connection takes at once: if it cost the frame behind it, each key frame would require another one. A frame of which a
/// part was queued is completed, because without its rest the part is useless and a large key frame would never arrive.
/// Control packets are written first, then audio, then video.
///
/// The owner calls ``append(_:kind:at:)`` for each packet, then ``prepareWrite(at:)``, writes the bytes, and reports with
/// ``finishWrite(_:)`` how many were written. What was prepared is written completely: the receiver could not find the
/// next packet after a part of one.
public struct StreamSendQueue: Sendable {
    /// The most bytes of one write: the payload of a TLS record (RFC 8446 §5.1).
    public static let writeBytesMax = 16_384
    public static let controlBytesMax = 32_768
    /// About a hundred milliseconds of audio from a dozen participants.
    public static let audioBytesMax = 16_384
    public static let videoBytesMax = 131_072
    /// Five packets of 20 ms, which a receiver's jitter buffer covers.
    public static let audioAgeMax = Interval.milliseconds(100)
    /// As for datagrams: about the longest jitter buffer of a receiver.
    public static let videoAgeMax = Interval.milliseconds(200)
    /// For how long video waits before no more frames are taken for a blocked connection. Half of ``videoAgeMax``, so that
    /// what was taken has time to leave.
    public static let videoWaitMax = Interval.milliseconds(100)
    /// Videos that are told apart. With more, the oldest is forgotten, and its next frame is taken for decodable.
    public static let videosMax = 128

    private struct Video: Sendable {
        let ssrc: SSRC
        /// The newest frame.
        var frame: RTPTimestamp?
        /// The frame of the last packet that was taken for a write.
        var begunFrame: RTPTimestamp?
        var isFrameDropped = false
        var awaitsKeyFrame = false
        var isKeyFrameRequested = false
    }

    private let framing: StreamFraming
    private var control = StreamLane()
    private var audio = StreamLane()
    private var video = StreamLane()
    /// What was prepared for a write, from `written` on not yet written.
    private var write: [UInt8] = []
    private var written = 0
    private var videos: [Video] = []
    private var nextForgotten = 0
    private var dropped: [Int] = Array(repeating: 0, count: StreamDropReason.allCases.count)

    /// - Parameter framing: with `.rfc4571` the queue writes the lengths; with `.turn` packets come with their headers and
    ///   padding.
    public init(_ framing: StreamFraming) { self.framing = framing }

    /// Whether the last write was incomplete: the connection takes no more for now.
    public private(set) var isBlocked = false
    /// All bytes that wait, at most 196 KiB.
    public var byteCount: Int { control.byteCount + audio.byteCount + video.byteCount + write.count - written }
    public var isEmpty: Bool { byteCount == 0 }
    /// The packets that were dropped for `reason`. A congestion controller takes them for a sign of congestion.
    public func drops(_ reason: StreamDropReason) -> Int { dropped[Int(reason.rawValue)] }

    // MARK: - Packets

    /// Queues a copy of 1...``StreamDeframer/packetBytesMax`` bytes.
    /// - Returns: why the packet was dropped instead; `nil` when it was queued.
    @discardableResult
    public mutating func append(_ packet: RawSpan, kind: StreamPacketKind, at now: Instant) -> StreamDropReason? {
        precondition((1...StreamDeframer.packetBytesMax).contains(packet.byteCount), "a packet fits a slot")
        let reason: StreamDropReason?
        switch kind {
        case .control:
            reason = control.byteCount + packet.byteCount > Self.controlBytesMax - 2 ? .full : nil
            if reason == nil { control.append(packet, framing, nil, at: now) }
        case .audio:
            drop(.late, audio.removeAll(olderThan: now - Self.audioAgeMax))
            while audio.byteCount + packet.byteCount > Self.audioBytesMax - 2 {
                audio.removeFirst()
                drop(.full, 1)
            }
            audio.append(packet, framing, nil, at: now)
            reason = nil
        case .repair:
            let isFull = video.byteCount + packet.byteCount > Self.videoBytesMax - 2
            reason = isBlocked ? .blocked : isFull ? .full : nil
            if reason == nil { video.append(packet, framing, nil, at: now) }
        case .video(let ssrc, let frame, let startsKeyFrame):
            reason = appendVideo(packet, ssrc, frame, startsKeyFrame, at: now)
        }
        if let reason { drop(reason, 1) }
        return reason
    }

    private mutating func appendVideo(
        _ packet: RawSpan,
        _ ssrc: SSRC,
        _ frame: RTPTimestamp,
        _ startsKeyFrame: Bool,
        at now: Instant
    ) -> StreamDropReason? {
        let index = place(of: ssrc)
        if videos[index].frame != frame {
            videos[index].frame = frame
            videos[index].isFrameDropped = true
            if isBehind(at: now) {
                loseFrame(of: index, isKeyFrame: startsKeyFrame)
                return .blocked
            }
            if videos[index].awaitsKeyFrame, !startsKeyFrame { return .awaitsKeyFrame }
            videos[index].awaitsKeyFrame = false
            videos[index].isKeyFrameRequested = false
            videos[index].isFrameDropped = false
        } else if videos[index].isFrameDropped {
            return isBehind(at: now) ? .blocked : .awaitsKeyFrame
        }
        if video.byteCount + packet.byteCount > Self.videoBytesMax - 2 {
            loseFrame(of: index, isKeyFrame: true)
            drop(.full, video.removeAll(of: StreamLane.Frame(ssrc: ssrc, timestamp: frame)))
            return .full
        }
        video.append(packet, framing, StreamLane.Frame(ssrc: ssrc, timestamp: frame), at: now)
        return nil
    }

    /// Whether the connection is blocked and video waits for so long that no more frames are taken.
    private func isBehind(at now: Instant) -> Bool {
        guard isBlocked, let first = video.first else { return false }
        return first.queuedAt < now - Self.videoWaitMax
    }

    /// Drops the rest of the current frame and what follows up to a key frame.
    /// - Parameter isKeyFrame: whether a requested key frame may be lost, so that another one is requested.
    private mutating func loseFrame(of index: Int, isKeyFrame: Bool) {
        videos[index].isFrameDropped = true
        videos[index].awaitsKeyFrame = true
        if isKeyFrame { videos[index].isKeyFrameRequested = false }
    }

    private mutating func place(of ssrc: SSRC) -> Int {
        if let index = videos.firstIndex(where: { $0.ssrc == ssrc }) { return index }
        if videos.count < Self.videosMax {
            videos.append(Video(ssrc: ssrc))
            return videos.count - 1
        }
        nextForgotten = (nextForgotten + 1) % Self.videosMax
        videos[nextForgotten] = Video(ssrc: ssrc)
        return nextForgotten
    }

    /// A video that continues only with a key frame; each is returned once. `nil` while the connection is blocked,
    /// because the key frame might be dropped too.
    public mutating func nextKeyFrameRequest() -> SSRC? {
        guard !isBlocked, let index = videos.firstIndex(where: { $0.awaitsKeyFrame && !$0.isKeyFrameRequested }) else {
            return nil
        }
        videos[index].isKeyFrameRequested = true
        return videos[index].ssrc
    }

    // MARK: - Writes

    /// Gathers what is written next, up to ``writeBytesMax``, and drops what has waited for too long. The result is in
    /// ``unwritten``.
    /// - Returns: whether there is something to write.
    public mutating func prepareWrite(at now: Instant) -> Bool {
        guard write.isEmpty else { return true }
        drop(.late, audio.removeAll(olderThan: now - Self.audioAgeMax))
        dropLateVideo(at: now)
        while control.moveFirst(to: &write, limit: Self.writeBytesMax) != nil {}
        while audio.moveFirst(to: &write, limit: Self.writeBytesMax) != nil {}
        while let packet = video.moveFirst(to: &write, limit: Self.writeBytesMax) {
            guard let frame = packet.frame, let index = videos.firstIndex(where: { $0.ssrc == frame.ssrc }) else {
                continue
            }
            videos[index].begunFrame = frame.timestamp
        }
        return !write.isEmpty
    }

    /// The bytes to write, valid after ``prepareWrite(at:)``.
    public var unwritten: ArraySlice<UInt8> { write[written...] }

    /// Reports that the connection took the first `count` bytes of ``unwritten``. With fewer than all of them it is
    /// blocked until the rest is written.
    public mutating func finishWrite(_ count: Int) {
        precondition(count >= 0 && count <= write.count - written, "no more is written than was prepared")
        written += count
        isBlocked = written < write.count
        guard !isBlocked else { return }
        write.removeAll(keepingCapacity: true)
        written = 0
    }

    /// A frame of which a packet is late is dropped with the frames after it, but not when a part of it was written.
    private mutating func dropLateVideo(at now: Instant) {
        let limit = now - Self.videoAgeMax
        guard let first = video.first, first.queuedAt < limit else { return }
        let begun = Set(
            videos.compactMap { video in
                video.begunFrame.map { StreamLane.Frame(ssrc: video.ssrc, timestamp: $0) }
            }
        )
        let late = Set(video.frames(queuedBefore: limit).filter { !begun.contains($0) }.map(\.ssrc))
        for ssrc in late { loseFrame(of: place(of: ssrc), isKeyFrame: true) }
        let count = video.removeAll { packet in
            guard let frame = packet.frame else { return packet.queuedAt < limit }
            return late.contains(frame.ssrc) && !begun.contains(frame)
        }
        drop(.late, count)
    }

    private mutating func drop(_ reason: StreamDropReason, _ count: Int) { dropped[Int(reason.rawValue)] &+= count }
}

/// Packets of one priority, first in, first out, back to back in one buffer.
struct StreamLane: Sendable {
    struct Frame: Hashable, Sendable {
        let ssrc: SSRC
        let timestamp: RTPTimestamp
    }
    struct Packet: Sendable {
        let length: Int
        let queuedAt: Instant
        /// `nil` for what is not video.
        let frame: Frame?
    }
    private var bytes: [UInt8] = []
    private var packets: [Packet] = []
    private var firstByte = 0
    private var firstPacket = 0

    var byteCount: Int { bytes.count - firstByte }
    var first: Packet? { firstPacket < packets.count ? packets[firstPacket] : nil }

    mutating func append(_ packet: RawSpan, _ framing: StreamFraming, _ frame: Frame?, at now: Instant) {
        let before = bytes.count
        if framing == .rfc4571 { bytes.append(bigEndian: UInt16(packet.byteCount)) }
        unsafe packet.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        packets.append(Packet(length: bytes.count - before, queuedAt: now, frame: frame))
    }

    mutating func removeFirst() {
        guard let first else { return }
        firstByte += first.length
        firstPacket += 1
        // Moves the rest when more than half is behind, so that each byte is moved about once.
        guard firstByte * 2 > bytes.count else { return }
        bytes.removeFirst(firstByte)
        packets.removeFirst(firstPacket)
        firstByte = 0
        firstPacket = 0
    }

    mutating func removeAll(olderThan limit: Instant) -> Int {
        var count = 0
        while let first, first.queuedAt < limit {
            removeFirst()
            count += 1
        }
        return count
    }

    mutating func removeAll(of frame: Frame) -> Int { removeAll { $0.frame == frame } }

    /// The frames of the packets that were queued before an instant.
    func frames(queuedBefore limit: Instant) -> [Frame] {
        packets[firstPacket...].prefix { $0.queuedAt < limit }.compactMap(\.frame)
    }

    mutating func removeAll(where isRemoved: (Packet) -> Bool) -> Int {
        var kept = StreamLane()
        var offset = firstByte
        for packet in packets[firstPacket...] {
            if !isRemoved(packet) {
                kept.bytes += bytes[offset..<offset + packet.length]
                kept.packets.append(packet)
            }
            offset += packet.length
        }
        let count = packets.count - firstPacket - kept.packets.count
        self = kept
        return count
    }

    /// Moves the first packet to the end of `target`, unless that would have more than `limit` bytes then.
    mutating func moveFirst(to target: inout [UInt8], limit: Int) -> Packet? {
        guard let first, target.count + first.length <= limit else { return nil }
        target += bytes[firstByte..<firstByte + first.length]
        removeFirst()
        return first
    }
}
