/// The encoding of relay messages between nodes. Integers are big-endian.
///
/// | bytes | |
/// |---|---|
/// | 1 | version, 2 |
/// | 1 | kind |
/// | 4 | relay |
/// | … | the fields of the kind, in the order of the declarations |
/// | … | the body. Of a packet: the RTP packet as the publisher sent it. Of layers: the table of the track's streams |
///
/// A key frame request for all streams has stream 0. The version changes with every change of the layout. A receiver
/// refuses unknown versions; the nodes of a link negotiate the version first.
extension RelayMessage {
    /// The version that is written and accepted.
    public static let version: UInt8 = 2

    private enum Kind: UInt8 {
        case packet = 1
        case clock, layers, keyFrameRequest, repairRequest, hold, subscribe, unsubscribe

        var hasBody: Bool { self == .packet || self == .layers }

        /// The bytes of the message without its body.
        var byteCount: Int {
            switch self {
            case .packet: 30
            case .clock: 34
            case .keyFrameRequest, .repairRequest, .hold: 14
            case .subscribe: 9
            case .layers, .unsubscribe: 6
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
        }
    }

    /// The mirror that sends or receives the message.
    public var relay: RelayID {
        switch self {
        case .packet(let packet): packet.relay
        case .clock(let clock): clock.relay
        case .subscribe(let subscription): subscription.relay
        case .layers(let relay), .keyFrameRequest(let relay, _), .repairRequest(let relay, _), .hold(let relay, _),
            .unsubscribe(let relay):
            relay
        }
    }

    // MARK: - Encoding

    /// Writes the message, followed by its body, to the start of `target`.
    /// - Parameter body: the RTP packet or the layer table; empty for every other kind.
    /// - Returns: the bytes written; `nil` when the message does not fit.
    @_lifetime(target: copy target)
    public func encode(_ body: RawSpan, into target: inout MutableRawSpan) -> Int? {
        let length = kind.byteCount
        precondition(kind.hasBody || body.isEmpty, "only a packet and a layer table have bytes beside the message")
        guard length + body.byteCount <= target.byteCount else { return nil }
        target.store(Self.version, at: 0)
        target.store(kind.rawValue, at: 1)
        target.store(bigEndian: relay.rawValue, at: 2)
        switch self {
        case .packet(let packet):
            target.store(bigEndian: packet.stream, at: 6)
            target.store(bigEndian: packet.ssrc.rawValue, at: 14)
            target.store(packet.layer, at: 18)
            target.store(packet.choices, at: 19)
            target.store(packet.exactChoices, at: 20)
            target.store(packet.isRTXRecovered ? 1 : 0, at: 21)
            target.store(bigEndian: UInt64(bitPattern: packet.sequence.rawValue), at: 22)
        case .clock(let clock):
            target.store(bigEndian: clock.stream, at: 6)
            target.store(bigEndian: UInt64(bitPattern: clock.senderNanoseconds), at: 14)
            target.store(bigEndian: clock.timestamp.rawValue, at: 22)
            target.store(bigEndian: UInt64(bitPattern: clock.offsetNanoseconds), at: 26)
        case .keyFrameRequest(_, let stream): target.store(bigEndian: stream ?? 0, at: 6)
        case .repairRequest(_, let stream), .hold(_, let stream): target.store(bigEndian: stream, at: 6)
        case .subscribe(let subscription):
            target.store(subscription.choices, at: 6)
            target.store(subscription.layers.rawValue, at: 7)
            target.store(subscription.wanted.rawValue, at: 8)
        case .layers, .unsubscribe: break
        }
        target.store(body, at: length)
        return length + body.byteCount
    }

    /// The encoded message as an array.
    /// - Parameter body: as for ``encode(_:into:)``.
    public func encoded(_ body: RawSpan = RawSpan()) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: kind.byteCount + body.byteCount)
        var span = bytes.mutableSpan
        var target = unsafe span.mutableBytes
        _ = encode(body, into: &target)
        return bytes
    }

    // MARK: - Decoding

    /// Reads a message.
    /// - Parameter bytes: exactly one message. The body of a packet or of layers is the rest from `bodyOffset` and is
    ///   not parsed.
    public static func decode(
        _ bytes: RawSpan
    ) throws(RelayMessageError) -> (message: RelayMessage, bodyOffset: Int) {
        try require(bytes, 2)
        guard bytes.byte(at: 0) == version else { throw .version(bytes.byte(at: 0)) }
        guard let kind = Kind(rawValue: bytes.byte(at: 1)) else { throw .kind(bytes.byte(at: 1)) }
        let length = kind.byteCount
        try require(bytes, length)
        guard kind.hasBody || bytes.byteCount == length else { throw .trailingBytes(bytes.byteCount - length) }
        return (try read(kind, bytes), length)
    }

    private static func require(_ bytes: RawSpan, _ count: Int) throws(RelayMessageError) {
        guard bytes.byteCount >= count else { throw .truncated(needed: count, available: bytes.byteCount) }
    }

    /// - Parameter bytes: a message with the length of its kind.
    private static func read(_ kind: Kind, _ bytes: RawSpan) throws(RelayMessageError) -> RelayMessage {
        let relay = RelayID(rawValue: bytes.bigEndianUInt32(at: 2))
        switch kind {
        case .subscribe:
            let layers = LayerSet(rawValue: bytes.byte(at: 7))
            let wanted = LayerSet(rawValue: bytes.byte(at: 8))
            return .subscribe(
                Subscription(relay: relay, choices: bytes.byte(at: 6), layers: layers, wanted: wanted)
            )
        case .unsubscribe: return .unsubscribe(relay)
        case .layers: return .layers(relay)
        case .keyFrameRequest:
            let stream = bytes.bigEndianUInt64(at: 6)
            return .keyFrameRequest(relay, stream: stream == 0 ? nil : stream)
        case .packet, .clock, .repairRequest, .hold: break
        }
        let stream = bytes.bigEndianUInt64(at: 6)
        guard stream != 0 else { throw .value }
        switch kind {
        case .packet:
            guard bytes.byte(at: 21) <= 1 else { throw .value }
            return .packet(
                Packet(
                    relay: relay,
                    stream: stream,
                    ssrc: SSRC(rawValue: bytes.bigEndianUInt32(at: 14)),
                    layer: bytes.byte(at: 18),
                    choices: bytes.byte(at: 19),
                    exactChoices: bytes.byte(at: 20),
                    isRTXRecovered: bytes.byte(at: 21) == 1,
                    sequence: ExtendedSequenceNumber(rawValue: Int64(bitPattern: bytes.bigEndianUInt64(at: 22)))
                )
            )
        case .clock:
            return .clock(
                Clock(
                    relay: relay,
                    stream: stream,
                    senderNanoseconds: Int64(bitPattern: bytes.bigEndianUInt64(at: 14)),
                    timestamp: RTPTimestamp(rawValue: bytes.bigEndianUInt32(at: 22)),
                    offsetNanoseconds: Int64(bitPattern: bytes.bigEndianUInt64(at: 26))
                )
            )
        case .hold: return .hold(relay, stream: stream)
        case .repairRequest, .layers, .keyFrameRequest, .subscribe, .unsubscribe:
            return .repairRequest(relay, stream: stream)
        }
    }
}
