import Base
import MediaFormat
import Wire

/// VP8 (RFC 7741 §4).
struct VP8Collector: FrameCollector {
    private var bytes: [UInt8] = []
    private var references = FrameReferences()
    private var isDiscardable = false

    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool {
        guard let descriptor = VP8PayloadDescriptor(payload) else { throw .truncated("a VP8 payload") }
        let isStart = descriptor.startsPartition && descriptor.partition == 0
        if bytes.isEmpty {
            references.temporalID = descriptor.temporalID
            references.baseNumber = descriptor.tl0PictureIndex?.value
            references.switchesUp = descriptor.layerSync
            isDiscardable = descriptor.nonReference
        }
        guard bytes.count + payload.byteCount <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        bytes += payload.extracting(descriptor.headerLength...).array()
        return isStart
    }

    mutating func finish() throws(FormatError) -> CollectedFrame? {
        defer { reset() }
        guard !bytes.isEmpty else { return nil }
        let header = try VP8FrameHeader(unsafe bytes.span.bytes)
        references.isKey = header.isKey
        return CollectedFrame(
            bytes: bytes,
            references: references,
            isDiscardable: isDiscardable && !header.isKey,
            configuration: header.configuration.map { .vp8($0) }
        )
    }

    mutating func reset() { self = VP8Collector() }
}

/// VP9 (RFC 9628 §4): a picture with all its spatial layers, which become one superframe.
struct VP9Collector: FrameCollector {
    /// Frames of a superframe, as many as its index has places for (VP9 Annex B).
    private static let framesMax = 8

    private var frames: [[UInt8]] = []
    private var bytes = 0
    private var isOpen = false
    private var references = FrameReferences()
    private var isFlexible = false
    private var size: PictureSize?

    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool {
        guard let descriptor = VP9PayloadDescriptor(payload) else { throw .truncated("a VP9 payload") }
        if frames.isEmpty {
            references.temporalID = descriptor.temporalID
            references.baseNumber = descriptor.tl0PictureIndex?.value
            references.switchesUp = descriptor.switchingUp
        }
        if let structure = descriptor.scalabilityStructure, let width = structure.width, let height = structure.height {
            size = PictureSize(width: Int(width), height: Int(height))
        }
        bytes += payload.byteCount
        guard bytes <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        guard descriptor.beginsFrame != isOpen else { throw .truncated("a VP9 frame") }
        let part = payload.extracting(descriptor.headerLength...).array()
        let isStart = descriptor.beginsFrame && (descriptor.spatialID ?? 0) == 0
        if descriptor.beginsFrame {
            guard frames.count < Self.framesMax else { throw .limit("frames of a VP9 picture") }
            frames.append(part)
        } else if let last = frames.indices.last {
            frames[last] += part
        }
        isOpen = !descriptor.endsFrame
        return isStart
    }

    mutating func finish() throws(FormatError) -> CollectedFrame? {
        defer { reset() }
        guard let first = frames.first else { return nil }
        guard !isOpen else { throw .truncated("a VP9 frame") }
        let header = try VP9FrameHeader(unsafe first.span.bytes)
        references.isKey = header.isKey
        var configuration = header.configuration
        // The header is that of the lowest layer.
        if frames.count > 1, let size { configuration?.size = size }
        return CollectedFrame(
            bytes: frames.count == 1 ? first : superframe,
            references: references,
            configuration: configuration.map { .vp9($0) }
        )
    }

    /// The frames with their index behind them (VP9 Annex B.2): each length in as few bytes as the longest needs, least
    /// significant first.
    private var superframe: [UInt8] {
        let longest = frames.map(\.count).max() ?? 0
        let width = longest > 0xFF_FFFF ? 4 : longest > 0xFFFF ? 3 : longest > 0xFF ? 2 : 1
        let marker = 0xC0 | UInt8(truncatingIfNeeded: (width - 1) << 3 | (frames.count - 1))
        var bytes = frames.flatMap(\.self)
        bytes.append(marker)
        for frame in frames {
            for place in 0..<width { bytes.append(UInt8(truncatingIfNeeded: frame.count >> (8 * place))) }
        }
        bytes.append(marker)
        return bytes
    }

    mutating func reset() {
        frames = []
        bytes = 0
        isOpen = false
        references = FrameReferences()
    }
}

/// Opus (RFC 7587 §4.2): each payload is a packet.
struct OpusCollector: FrameCollector {
    private let configuration: OpusConfiguration
    private var packet: [UInt8] = []

    init(channels: Int) { configuration = OpusConfiguration(channels: channels) }

    mutating func append(_ payload: RawSpan) throws(FormatError) -> Bool {
        guard OpusConfiguration.samples(of: payload) != nil else { throw .invalid("an Opus packet") }
        packet = payload.array()
        return true
    }

    mutating func finish() throws(FormatError) -> CollectedFrame? {
        CollectedFrame(bytes: packet, references: FrameReferences(isKey: true), configuration: .opus(configuration))
    }

    mutating func reset() { packet = [] }
}
