import Base
import MediaFormat
import Wire

/// The frames of one stream of a track: in order, whole, and with all that they refer to.
struct StreamReceiver {
    let number: UInt64
    /// Whether the stream is the layer that was asked for.
    private(set) var isChosen = false
    private(set) var lastPacketAt: Instant
    private(set) var lostPackets = 0
    private(set) var droppedFrames = 0
    /// Since when no frame could be read.
    private(set) var unreadableSince: Instant?
    var clock: StreamClock

    private let channels: Int
    private var buffer = ReorderBuffer()
    private var assembler: FrameAssembler?
    private var codec: MediaCodec?
    private var gate = ReferenceGate()

    init(number: UInt64, kind: MediaKind, channels: Int, at now: Instant) {
        self.number = number
        self.channels = channels
        lastPacketAt = now
        clock = StreamClock(rate: kind == .audio ? OpusConfiguration.sampleRate : 90_000)
    }

    /// Whether all frames are kept back until a key frame.
    var needsKeyFrame: Bool { gate.needsKeyFrame }

    mutating func insert(_ packet: ReceivedPacket) {
        isChosen = packet.isChosen
        lastPacketAt = packet.arrivedAt
        buffer.insert(packet)
    }

    /// Hands out what is whole, and gives up what has been missing for long enough.
    mutating func advance(to now: Instant, patience: Interval, _ emit: (AssembledFrame) -> Void) {
        while let release = buffer.take(at: now, patience: patience) {
            switch release {
            case .lost(let count):
                lostPackets &+= count
                assembler?.lost()
                gate.lost()
            case .packet(let packet): receive(packet, at: now, emit)
            }
        }
    }

    /// When ``advance(to:patience:_:)`` has to be called without a packet.
    func deadline(patience: Interval) -> Instant? { buffer.deadline(patience: patience) }

    private mutating func receive(_ packet: ReceivedPacket, at now: Instant, _ emit: (AssembledFrame) -> Void) {
        guard !packet.payload.isEmpty else { return }
        if codec != packet.codec {
            codec = packet.codec
            assembler = FrameAssembler(codec: packet.codec, channels: channels)
            gate = ReferenceGate()
        }
        guard var assembler else { return }
        let payload = unsafe packet.payload.span.bytes
        var gate = gate
        var dropped = 0
        var unreadableSince = unreadableSince
        assembler.receive(packet, Self.primary(of: payload, packet)) { outcome in
            switch outcome {
            case .broken(let isUnreadable):
                gate.lost()
                dropped += 1
                if isUnreadable, unreadableSince == nil { unreadableSince = now }
            case .frame(let frame):
                unreadableSince = nil
                if gate.accepts(frame.references) { emit(frame) } else { dropped += 1 }
            }
        }
        self.assembler = assembler
        self.gate = gate
        self.unreadableSince = unreadableSince
        droppedFrames &+= dropped
    }

    /// The primary block of a redundant payload; of others all.
    @_lifetime(copy payload)
    private static func primary(of payload: RawSpan, _ packet: ReceivedPacket) -> RawSpan {
        guard packet.isRedundant, var cursor = REDBlockCursor(payload) else { return payload }
        while let block = cursor.next() {
            if block.isPrimary { return payload.extracting(block.range) }
        }
        return payload
    }
}
