package import Base
package import Wire

/// Generates VP8 packets as an encoder would send them, a frame at a time in a burst, with a stamp as payload.
///
/// The picture cannot be decoded. Everything that a forwarder or a jitter buffer reads is valid.
package struct SyntheticVideo {
    package struct Settings: Sendable {
        /// Of all temporal layers together.
        package var bitrate = 1_500_000
        package var framesPerSecond = 30
        /// RTP payload bytes, descriptor included.
        package var payloadBytesMax = 1_100
        /// The size of a key frame in delta frames.
        package var keyFrameFactor = 5
        /// `nil`: on request only.
        package var keyFrameInterval: Interval?
        /// From a request to the key frame.
        package var keyFrameDelay = Interval.zero
        /// L1T3 as libwebrtc has it, else one temporal layer. The layers have 40, 20 and 40 % of the rate.
        package var hasTemporalLayers = false
        /// How far the size of a frame is from the mean at most, as a part of it.
        package var sizeVariation = 0.0
        package init() {}
    }

    private let source: UInt32
    /// Takes effect with the next frame. `payloadBytesMax` must stay.
    package var settings: Settings
    private let payloadType: PayloadType
    private let ssrc: SSRC
    private var sequence: SequenceNumber
    private let firstTimestamp: RTPTimestamp
    private let startedAt: Instant
    private var packets: UInt32 = 0
    private var frames: UInt32 = 0
    private var pictureID: UInt16
    private var tl0: UInt8
    private var lastKeyFrameAt: Instant?
    /// When the key frame that was asked for is ready.
    private var keyFrameDueAt: Instant?
    /// Frames since the key frame.
    private var place = 0
    private var layer = TemporalLayer.base
    private var sizes: SplitMix64
    private var bytes: [UInt8] = []
    /// The temporal layer of a frame.
    private struct TemporalLayer {
        let id: UInt8
        /// It depends on the lowest layer only.
        let isSync: Bool
        /// Of the mean.
        let size: Double

        static let base = Self(id: 0, isSync: true, size: 1)
        static let pattern = [
            Self(id: 0, isSync: false, size: 1.6), Self(id: 2, isSync: true, size: 0.8),
            Self(id: 1, isSync: true, size: 0.8), Self(id: 2, isSync: false, size: 0.8),
        ]
    }
    /// The bytes after the stamp.
    private let filler: [UInt8]
    package private(set) var nextFrameAt: Instant
    package private(set) var keyFramesMade = 0
    package var packetCount: UInt32 { packets }
    package var frameCount: UInt32 { frames }

    package init(
        source: UInt32,
        settings: Settings,
        payloadType: PayloadType,
        ssrc: SSRC,
        startingAt now: Instant,
        using generator: inout some RandomNumberGenerator
    ) {
        self.source = source
        self.settings = settings
        self.payloadType = payloadType
        self.ssrc = ssrc
        sequence = SequenceNumber(rawValue: .random(in: 0...0xFFFF, using: &generator))
        firstTimestamp = RTPTimestamp(rawValue: .random(in: 0...UInt32.max, using: &generator))
        pictureID = .random(in: 0...0x7FFF, using: &generator)
        tl0 = .random(in: 0...0xFF, using: &generator)
        sizes = SplitMix64(seed: UInt64(pictureID) << 8 | UInt64(tl0))
        startedAt = now
        nextFrameAt = now
        filler = (0..<max(settings.payloadBytesMax, 0)).map { UInt8(truncatingIfNeeded: $0) }
        bytes.reserveCapacity(RTPPacketView.fixedHeaderLength + settings.payloadBytesMax)
    }

    /// The RTP timestamp of a frame captured at `now`.
    package func timestamp(at now: Instant) -> RTPTimestamp {
        firstTimestamp.advanced(by: Int((now - startedAt).nanoseconds / 1_000 * 90 / 1_000))
    }

    /// Makes the frame that is due at `now`, if one is.
    /// - Parameter send: takes each packet, valid only during the call.
    package mutating func makeFrame(at now: Instant, keyFrameWanted: Bool, _ send: (RawSpan) -> Void) -> Bool {
        guard now >= nextFrameAt else { return false }
        let interval = Interval(nanoseconds: 1_000_000_000 / Int64(settings.framesPerSecond))
        // A late source catches up, but two frames are at least half an interval apart.
        nextFrameAt = max(nextFrameAt + interval, now + Interval(nanoseconds: interval.nanoseconds / 2))
        let periodic = settings.keyFrameInterval.map { every in lastKeyFrameAt.map { now - $0 >= every } ?? true }
        if keyFrameWanted { keyFrameDueAt = keyFrameDueAt ?? now + settings.keyFrameDelay }
        let isWanted = keyFrameDueAt.map { $0 <= now } ?? false
        let isKeyFrame = isWanted || frames == 0 || periodic == true
        if isKeyFrame {
            lastKeyFrameAt = now
            keyFrameDueAt = nil
            keyFramesMade += 1
        }
        let frameBytes = beginFrame(isKeyFrame: isKeyFrame)
        let count = (frameBytes + settings.payloadBytesMax - 1) / settings.payloadBytesMax
        let timestamp = timestamp(at: now)
        for index in 0..<count {
            let size = min(settings.payloadBytesMax, frameBytes - index * settings.payloadBytesMax)
            let stamp = MediaStamp(
                source: source,
                packet: packets,
                frame: frames,
                indexInFrame: UInt16(index),
                packetsInFrame: UInt16(count),
                isKeyFrame: isKeyFrame,
                sentAt: now
            )
            build(stamp, timestamp: timestamp, size: max(size, MediaStamp.length + 7))
            send(unsafe bytes.span.bytes)
            packets &+= 1
            sequence = sequence.advanced(by: 1)
        }
        frames &+= 1
        pictureID = (pictureID &+ 1) & 0x7FFF
        return true
    }

    /// Decides the temporal layer of a frame.
    /// - Returns: the size of the frame in bytes.
    private mutating func beginFrame(isKeyFrame: Bool) -> Int {
        place = isKeyFrame ? 0 : place + 1
        let pattern = TemporalLayer.pattern
        layer = settings.hasTemporalLayers ? pattern[place % pattern.count] : .base
        if layer.id == 0 { tl0 &+= 1 }
        var size = isKeyFrame ? Double(settings.keyFrameFactor) : layer.size
        if settings.sizeVariation > 0 { size *= 1 + settings.sizeVariation * nextVariation() }
        let mean = settings.bitrate / 8 / settings.framesPerSecond
        return max(Int(Double(mean) * size), MediaStamp.length + 8)
    }

    /// -1…1.
    private mutating func nextVariation() -> Double {
        Double(Int64(bitPattern: sizes.next())) / Double(Int64.max)
    }

    /// VP8 descriptor with 15-bit picture id and TL0PICIDX, then one payload header byte, then the stamp.
    private mutating func build(_ stamp: MediaStamp, timestamp: RTPTimestamp, size: Int) {
        bytes.removeAll(keepingCapacity: true)
        let isLast = stamp.indexInFrame + 1 == stamp.packetsInFrame
        bytes.append(0x80)
        bytes.append((isLast ? 0x80 : 0) | payloadType.rawValue)
        bytes.append(bigEndian: sequence.rawValue)
        bytes.append(bigEndian: timestamp.rawValue)
        bytes.append(bigEndian: ssrc.rawValue)
        bytes.append(stamp.indexInFrame == 0 ? 0x90 : 0x80)
        bytes.append(0xE0)
        bytes.append(bigEndian: 0x8000 | pictureID)
        bytes.append(tl0)
        bytes.append(layer.id << 6 | (layer.isSync ? 0x20 : 0))
        bytes.append(stamp.isKeyFrame ? 0x00 : 0x01)
        stamp.append(to: &bytes)
        let missing = RTPPacketView.fixedHeaderLength + size - bytes.count
        bytes.append(contentsOf: filler.prefix(max(missing, 0)))
    }

    /// The offset of the stamp in a forwarded payload.
    package static let stampOffset = 7
}

/// Generates packets like Opus: one stamp every 20 ms.
package struct SyntheticAudio {
    private let source: UInt32
    private let payloadType: PayloadType
    private let ssrc: SSRC
    private let payloadBytes: Int
    private var sequence: SequenceNumber
    private var rtpTimestamp: RTPTimestamp
    private var packets: UInt32 = 0
    private var bytes: [UInt8] = []
    package private(set) var nextPacketAt: Instant
    package var packetCount: UInt32 { packets }
    /// The RTP timestamp of the next packet.
    package var timestamp: RTPTimestamp { rtpTimestamp }
    package static let packetInterval = Interval.milliseconds(20)

    package init(
        source: UInt32,
        payloadType: PayloadType,
        ssrc: SSRC,
        bitrate: Int = 48_000,
        startingAt now: Instant,
        using generator: inout some RandomNumberGenerator
    ) {
        self.source = source
        self.payloadType = payloadType
        self.ssrc = ssrc
        payloadBytes = max(bitrate / 8 / 50, MediaStamp.length)
        sequence = SequenceNumber(rawValue: .random(in: 0...0xFFFF, using: &generator))
        rtpTimestamp = RTPTimestamp(rawValue: .random(in: 0...UInt32.max, using: &generator))
        nextPacketAt = now
    }

    /// Makes the packet that is due at `now`, if one is.
    package mutating func makePacket(at now: Instant, _ send: (RawSpan) -> Void) -> Bool {
        guard now >= nextPacketAt else { return false }
        nextPacketAt = max(nextPacketAt + Self.packetInterval, now - Self.packetInterval)
        bytes.removeAll(keepingCapacity: true)
        bytes.append(0x80)
        bytes.append(payloadType.rawValue)
        bytes.append(bigEndian: sequence.rawValue)
        bytes.append(bigEndian: rtpTimestamp.rawValue)
        bytes.append(bigEndian: ssrc.rawValue)
        MediaStamp(source: source, packet: packets, frame: packets, sentAt: now).append(to: &bytes)
        while bytes.count < RTPPacketView.fixedHeaderLength + payloadBytes { bytes.append(0) }
        send(unsafe bytes.span.bytes)
        packets &+= 1
        sequence = sequence.advanced(by: 1)
        rtpTimestamp = rtpTimestamp.advanced(by: 960)
        return true
    }
}
