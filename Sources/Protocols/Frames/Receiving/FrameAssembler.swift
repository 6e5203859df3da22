import Base
import MediaFormat
import Wire

/// A frame that a stream's packets make up.
struct AssembledFrame {
    var codec: MediaCodec
    var timestamp: RTPTimestamp
    var bytes: [UInt8]
    var references = FrameReferences()
    var isDiscardable = false
    /// Of a key frame: what a decoder needs.
    var configuration: CodecConfiguration?
    var rotation: PictureRotation?
    /// When its first packet arrived.
    var arrivedAt: Instant
}

/// The payload format of one codec: collects the payloads of one frame.
protocol FrameCollector {
    /// Takes the next payload of a frame.
    /// - Returns: whether the frame began with it, as far as the format tells.
    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool

    /// Makes the frame of what was collected; `nil` when that is none. It begins anew.
    mutating func finish() throws(FormatError) -> CollectedFrame?

    /// Forgets the frame that was begun.
    mutating func reset()
}

/// A frame without its place in time.
struct CollectedFrame {
    var bytes: [UInt8]
    var references: FrameReferences
    var isDiscardable = false
    var configuration: CodecConfiguration?
}

/// Makes frames of one stream's packets, which come in order.
struct FrameAssembler {
    /// What became of packets.
    enum Outcome {
        case frame(AssembledFrame)
        /// A frame that packets are missing of, or that cannot be read.
        case broken(isUnreadable: Bool)
    }

    private let codec: MediaCodec
    private var collector: any FrameCollector
    private var timestamp: RTPTimestamp?
    private var arrivedAt = Instant(nanoseconds: 0)
    private var rotation: PictureRotation?
    private var isAfterLoss = false
    private var isBroken = false
    private var isUnreadable = false

    /// `nil` for a codec without an RTP payload format here.
    init?(codec: MediaCodec, channels: Int) {
        self.codec = codec
        switch codec {
        case .h264: collector = NALCollector(codec: .h264)
        case .h265: collector = NALCollector(codec: .h265)
        case .av1: collector = AV1Collector()
        case .vp8: collector = VP8Collector()
        case .vp9: collector = VP9Collector()
        case .opus: collector = OpusCollector(channels: channels)
        case .aac, .mp3, .speex, .pcma, .pcmu: return nil
        }
    }

    /// Packets are missing in front of the next one.
    mutating func lost() {
        isAfterLoss = true
        // What was begun may have lost its end.
        isBroken = isBroken || timestamp != nil
    }

    /// Takes the next packet.
    mutating func receive(_ packet: ReceivedPacket, _ payload: RawSpan, _ emit: (Outcome) -> Void) {
        if let timestamp, timestamp != packet.timestamp { finish(emit) }
        let isFirst = timestamp == nil
        if isFirst {
            timestamp = packet.timestamp
            arrivedAt = packet.arrivedAt
        }
        if let turned = packet.rotation { rotation = turned }
        do throws(FormatError) {
            let isStart = try collector.append(payload)
            // Without a loss, the first packet begins the frame whatever the format tells.
            if isFirst, isAfterLoss, !isStart { isBroken = true }
        } catch {
            (isBroken, isUnreadable) = (true, true)
        }
        isAfterLoss = false
        if packet.marker || codec.kind == .audio { finish(emit) }
    }

    private mutating func finish(_ emit: (Outcome) -> Void) {
        guard let timestamp else { return }
        self.timestamp = nil
        defer { (isBroken, isUnreadable) = (false, false) }
        guard !isBroken else {
            collector.reset()
            return emit(.broken(isUnreadable: isUnreadable))
        }
        do throws(FormatError) {
            guard let frame = try collector.finish() else { return }
            emit(
                .frame(
                    AssembledFrame(
                        codec: codec,
                        timestamp: timestamp,
                        bytes: frame.bytes,
                        references: frame.references,
                        isDiscardable: frame.isDiscardable,
                        configuration: frame.configuration,
                        rotation: rotation,
                        arrivedAt: arrivedAt
                    )
                )
            )
        } catch {
            collector.reset()
            emit(.broken(isUnreadable: true))
        }
    }
}
