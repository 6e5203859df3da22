import Base

/// The encoding of transfer messages between nodes. Integers are big-endian.
///
/// | bytes | |
/// |---|---|
/// | 1 | kind |
/// | 4 | relay |
/// | … | the fields of the kind, in the order of the declarations |
/// | … | the body. Of a packet: the RTP packet as the publisher sent it. Of layers: the table of the track's streams |
///
/// The end of a mirror is written as layers with a body of one byte, 0: no table is that short, so a node that does not know
/// the message ignores it, and the records behind it stay readable.
///
/// A key frame request for all streams has stream 0. The fields of a packet are short, because every packet pays for them:
///
/// | bits | |
/// |---|---|
/// | 1, 1 | recovered by RTX, repair |
/// | 4 | layer; 15 for none |
/// | 5, 5 | choices, exact choices |
/// | 40 | stream |
/// | 24 | the extended sequence number above its low 16 bits, signed |
///
/// The SSRC and the low 16 bits of the sequence number are those of the RTP packet. The version changes with every change
/// of the layout. It is not in the message: the nodes of a link negotiate it, and it is part of the link's keys.
extension TransferMessage {
    /// The version that is written and accepted.
    public static let version: UInt8 = 3
    /// The greatest stream number that a packet can name.
    public static let streamMax: UInt64 = 1 << 40 - 1
    /// Bytes of a packet's message without its body.
    public static let packetBytes = 15
    /// The fixed part of an RTP header, which the body of a packet has at least.
    private static let rtpHeaderBytes = 12
    /// Bytes of the message that a mirror has ended.
    private static let endedBytes = 6

    private enum Kind: UInt8 {
        case packet = 1
        case clock, layers, keyFrameRequest, repairRequest, hold, subscribe, unsubscribe
        /// Never written or read: ``layers`` stands in its place.
        case ended = 0

        var hasBody: Bool { self == .packet || self == .layers }

        /// The bytes of the message without its body.
        var byteCount: Int {
            switch self {
            case .packet: TransferMessage.packetBytes
            case .clock: 33
            case .keyFrameRequest, .repairRequest, .hold: 13
            case .subscribe: 8
            case .layers, .unsubscribe: 5
            case .ended: TransferMessage.endedBytes
            }
        }
    }

    private var kind: Kind {
        switch self {
        case .packet: .packet
        case .clock: .clock
        case .layers: .layers
        case .keyFrameRequest: .keyFrameRequest
        case .repairRequest: .repairRequest
        case .hold: .hold
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .ended: .ended
        }
    }

    /// The mirror that sends or receives the message.
    public var relay: MirrorID {
        switch self {
        case .packet(let packet): packet.relay
        case .clock(let clock): clock.relay
        case .subscribe(let subscription): subscription.relay
        case .layers(let relay), .keyFrameRequest(let relay, _), .repairRequest(let relay, _), .hold(let relay, _),
            .unsubscribe(let relay), .ended(let relay):
            relay
        }
    }

    // MARK: - Encoding

    /// Bytes of the message with a body of `bodyBytes`.
    @inline(__always)
    public func encodedBytes(bodyBytes: Int) -> Int { kind.byteCount + bodyBytes }

    /// Writes the message, followed by its body, to `offset` of `target`.
    /// - Parameter body: the RTP packet or the layer table; empty for every other kind.
    /// - Returns: the bytes written; `nil` when the message does not fit, or the body of a packet is none.
    @_lifetime(target: copy target)
    public func encode(_ body: RawSpan, at offset: Int = 0, into target: inout MutableRawSpan) -> Int? {
        let length = kind.byteCount
        precondition(kind.hasBody || body.isEmpty, "only a packet and a layer table have bytes beside the message")
        guard offset >= 0, length + body.byteCount <= target.byteCount - offset else { return nil }
        target.store(kind.rawValue, at: offset)
        target.store(bigEndian: relay.rawValue, at: offset + 1)
        switch self {
        case .packet(let packet):
            guard body.byteCount >= Self.rtpHeaderBytes, packet.stream <= Self.streamMax else { return nil }
            target.store(bigEndian: packet.layerBits, at: offset + 5)
            target.store(bigEndian: packet.numberBits, at: offset + 7)
        case .clock(let clock):
            target.store(bigEndian: clock.stream, at: offset + 5)
            target.store(bigEndian: UInt64(bitPattern: clock.senderNanoseconds), at: offset + 13)
            target.store(bigEndian: clock.timestamp.rawValue, at: offset + 21)
            target.store(bigEndian: UInt64(bitPattern: clock.offsetNanoseconds), at: offset + 25)
        case .keyFrameRequest(_, let stream): target.store(bigEndian: stream ?? 0, at: offset + 5)
        case .repairRequest(_, let stream), .hold(_, let stream): target.store(bigEndian: stream, at: offset + 5)
        case .subscribe(let subscription):
            target.store(subscription.choices, at: offset + 5)
            target.store(subscription.layers.rawValue, at: offset + 6)
            target.store(subscription.wanted.rawValue, at: offset + 7)
        case .ended:
            target.store(Kind.layers.rawValue, at: offset)
            target.store(0 as UInt8, at: offset + 5)
        case .layers, .unsubscribe: break
        }
        target.store(body, at: offset + length)
        return length + body.byteCount
    }

    /// The encoded message as an array; empty when the body of a packet is none.
    /// - Parameter body: as for ``encode(_:into:)``.
    public func encoded(_ body: RawSpan = RawSpan()) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: kind.byteCount + body.byteCount)
        var span = bytes.mutableSpan
        var target = unsafe span.mutableBytes
        return encode(body, into: &target) == nil ? [] : bytes
    }

    // MARK: - Decoding

    /// Reads a message.
    /// - Parameter bytes: exactly one message. The body of a packet or of layers is the rest from `bodyOffset` and is
    ///   not parsed, except for the SSRC and the sequence number of a packet.
    public static func decode(
        _ bytes: RawSpan
    ) throws(TransferMessageError) -> (message: TransferMessage, bodyOffset: Int) {
        try require(bytes, 1)
        guard let kind = Kind(rawValue: bytes.byte(at: 0)) else { throw .kind(bytes.byte(at: 0)) }
        let length = kind.byteCount
        guard kind != .packet else {
            try require(bytes, length + rtpHeaderBytes)
            return (try read(kind, bytes), length)
        }
        guard kind != .ended else { throw .kind(bytes.byte(at: 0)) }
        try require(bytes, length)
        if kind == .layers, bytes.byteCount == endedBytes, bytes.byte(at: length) == 0 {
            return (.ended(MirrorID(rawValue: bytes.bigEndianUInt32(at: 1))), endedBytes)
        }
        guard kind.hasBody || bytes.byteCount == length else { throw .trailingBytes(bytes.byteCount - length) }
        return (try read(kind, bytes), length)
    }

    private static func require(_ bytes: RawSpan, _ count: Int) throws(TransferMessageError) {
        guard bytes.byteCount >= count else { throw .truncated(needed: count, available: bytes.byteCount) }
    }

    /// - Parameter bytes: a message with the length of its kind.
    private static func read(_ kind: Kind, _ bytes: RawSpan) throws(TransferMessageError) -> TransferMessage {
        let relay = MirrorID(rawValue: bytes.bigEndianUInt32(at: 1))
        switch kind {
        case .subscribe:
            let layers = LayerSet(rawValue: bytes.byte(at: 6))
            let wanted = LayerSet(rawValue: bytes.byte(at: 7))
            return .subscribe(
                Subscription(relay: relay, choices: bytes.byte(at: 5), layers: layers, wanted: wanted)
            )
        case .unsubscribe: return .unsubscribe(relay)
        case .layers: return .layers(relay)
        case .keyFrameRequest:
            let stream = bytes.bigEndianUInt64(at: 5)
            return .keyFrameRequest(relay, stream: stream == 0 ? nil : stream)
        case .packet:
            let packet = Packet(
                relay: relay,
                layerBits: bytes.bigEndianUInt16(at: 5),
                numberBits: bytes.bigEndianUInt64(at: 7),
                ssrc: SSRC(rawValue: bytes.bigEndianUInt32(at: packetBytes + 8)),
                sequence: SequenceNumber(rawValue: bytes.bigEndianUInt16(at: packetBytes + 2))
            )
            guard packet.stream != 0 else { throw .value }
            return .packet(packet)
        case .clock, .repairRequest, .hold, .ended: break
        }
        let stream = bytes.bigEndianUInt64(at: 5)
        guard stream != 0 else { throw .value }
        switch kind {
        case .clock:
            return .clock(
                Clock(
                    relay: relay,
                    stream: stream,
                    senderNanoseconds: Int64(bitPattern: bytes.bigEndianUInt64(at: 13)),
                    timestamp: RTPTimestamp(rawValue: bytes.bigEndianUInt32(at: 21)),
                    offsetNanoseconds: Int64(bitPattern: bytes.bigEndianUInt64(at: 25))
                )
            )
        case .hold: return .hold(relay, stream: stream)
        case .packet, .repairRequest, .layers, .keyFrameRequest, .subscribe, .unsubscribe, .ended:
            return .repairRequest(relay, stream: stream)
        }
    }
}

extension TransferMessage.Packet {
    /// Layers from this index on are encoded as none: no track has as many streams.
    private static var layerNone: UInt8 { 15 }

    @inline(__always)
    fileprivate var layerBits: UInt16 {
        let flags: UInt16 = (isRTXRecovered ? 0x8000 : 0) | (isRepair ? 0x4000 : 0)
        let layers = UInt16(min(layer, Self.layerNone)) << 10
        return flags | layers | UInt16(choices & 0x1F) << 5 | UInt16(exactChoices & 0x1F)
    }

    @inline(__always)
    fileprivate var numberBits: UInt64 {
        stream << 24 | UInt64(bitPattern: sequence.rawValue >> 16) & 0xFF_FFFF
    }

    @inline(__always)
    fileprivate init(relay: MirrorID, layerBits: UInt16, numberBits: UInt64, ssrc: SSRC, sequence: SequenceNumber) {
        let layer = UInt8(truncatingIfNeeded: layerBits >> 10 & 0xF)
        // The shifts extend the sign of the 24 bits.
        let high = Int64(bitPattern: numberBits << 40) >> 24
        self.init(
            relay: relay,
            stream: numberBits >> 24,
            ssrc: ssrc,
            layer: layer == Self.layerNone ? .max : layer,
            choices: UInt8(truncatingIfNeeded: layerBits >> 5 & 0x1F),
            exactChoices: UInt8(truncatingIfNeeded: layerBits & 0x1F),
            isRTXRecovered: layerBits & 0x8000 != 0,
            isRepair: layerBits & 0x4000 != 0,
            sequence: ExtendedSequenceNumber(rawValue: high | Int64(sequence.rawValue))
        )
    }
}
