import Base
import Testing
import Wire

struct TransferMessageTests {
    private static let relay = MirrorID(place: 0x1234, generation: 0xABCD)
    static let packet = TransferMessage.packet(
        TransferMessage.Packet(
            relay: relay,
            stream: 0x01_0203_0405,
            ssrc: SSRC(rawValue: 0xDEAD_BEEF),
            layer: 2,
            choices: 0b1_0001,
            exactChoices: 0b0_0001,
            isRTXRecovered: true,
            isRepair: true,
            sequence: ExtendedSequenceNumber(rawValue: -7)
        )
    )
    /// The RTP header of ``packet``, whose SSRC and sequence number are read from it.
    static let rtp: [UInt8] = [0x80, 96, 0xFF, 0xF9, 1, 2, 3, 4, 0xDE, 0xAD, 0xBE, 0xEF]
    static let layers = TransferMessage.layers(relay)
    static let ended = TransferMessage.ended(relay)
    static let messages: [TransferMessage] = [
        packet,
        .clock(
            TransferMessage.Clock(
                relay: relay,
                stream: 5,
                senderNanoseconds: .max,
                timestamp: RTPTimestamp(rawValue: 90_000),
                offsetNanoseconds: .min
            )
        ),
        layers,
        .keyFrameRequest(relay, stream: 3), .keyFrameRequest(relay, stream: nil), .repairRequest(relay, stream: 3),
        .hold(relay, stream: .max),
        .subscribe(
            TransferMessage.Subscription(
                relay: relay,
                choices: 0b11,
                layers: LayerSet(layer: 1),
                wanted: [LayerSet(layer: 0), LayerSet(layer: 1)]
            )
        ),
        .unsubscribe(relay), ended,
    ]

    private static func encoded(_ message: TransferMessage) -> [UInt8] {
        message == packet ? message.encoded(unsafe rtp.span.bytes) : message.encoded()
    }

    private func decode(_ bytes: [UInt8]) throws(TransferMessageError) -> (message: TransferMessage, bodyOffset: Int) {
        try TransferMessage.decode(unsafe bytes.span.bytes)
    }

    @Test(arguments: messages)
    func `a message is decoded as it was encoded`(message: TransferMessage) throws {
        let bytes = Self.encoded(message)
        let decoded = try decode(bytes)
        #expect(decoded.message == message)
        #expect(decoded.bodyOffset == bytes.count - (message == Self.packet ? Self.rtp.count : 0))
        #expect(message.encodedBytes(bodyBytes: bytes.count - decoded.bodyOffset) == bytes.count)
        #expect(decoded.message.relay == Self.relay)
    }

    // Without its last byte the end of a mirror is an empty table.
    @Test(arguments: messages.filter { $0 != ended })
    func `a truncated message of any length is refused`(message: TransferMessage) {
        let bytes = Self.encoded(message)
        for count in 0..<bytes.count {
            let needed = count < 1 ? 1 : bytes.count
            #expect(throws: TransferMessageError.truncated(needed: needed, available: count)) {
                try decode(Array(bytes.prefix(count)))
            }
        }
    }

    @Test(arguments: messages.filter { ![packet, layers, ended].contains($0) })
    func `trailing bytes are refused in a message without a body`(message: TransferMessage) {
        #expect(throws: TransferMessageError.trailingBytes(1)) { try decode(message.encoded() + [0]) }
    }

    @Test(arguments: [packet, layers])
    func `the body follows the message`(message: TransferMessage) throws {
        let body = Self.rtp + [1, 2, 3]
        let bytes = message.encoded(unsafe body.span.bytes)
        let decoded = try decode(bytes)
        #expect(decoded.message == message)
        #expect(Array(bytes[decoded.bodyOffset...]) == body)
    }

    @Test func `the layout is as documented`() {
        #expect(
            Self.encoded(Self.packet) == [
                1, 0xAB, 0xCD, 0x12, 0x34, 0xCA, 0x21, 1, 2, 3, 4, 5, 0xFF, 0xFF, 0xFF,
            ] + Self.rtp
        )
        #expect(TransferMessage.unsubscribe(Self.relay).encoded() == [8, 0xAB, 0xCD, 0x12, 0x34])
    }

    @Test func `the end of a mirror is a table to a node that does not know it`() throws {
        let bytes = Self.ended.encoded()
        let body: [UInt8] = [0]
        #expect(bytes == Self.layers.encoded(unsafe body.span.bytes))
        for other in [bytes.dropLast() + [1], bytes + [0], bytes.dropLast()] {
            #expect(try decode(Array(other)).message == Self.layers)
        }
    }

    @Test func `other kinds are refused`() {
        var bytes = TransferMessage.unsubscribe(Self.relay).encoded()
        for kind: UInt8 in [0, 9, 255] {
            bytes[0] = kind
            #expect(throws: TransferMessageError.kind(kind)) { try decode(bytes) }
        }
    }

    @Test func `stream 0 is refused`() {
        var bytes = TransferMessage.hold(Self.relay, stream: 1).encoded()
        bytes[12] = 0
        #expect(throws: TransferMessageError.value) { try decode(bytes) }
        var packet = Self.encoded(Self.packet)
        for place in 7..<12 { packet[place] = 0 }
        #expect(throws: TransferMessageError.value) { try decode(packet) }
    }

    /// The greatest numbers that a packet can name, and layers beyond the greatest that it can.
    @Test(
        arguments: [
            (TransferMessage.streamMax, 1 << 39 - 1, 14, 14), (1, -(1 << 39), 0, 0), (7, 0x1_0000, 15, 255),
            (7, 0, 255, 255),
        ] as [(UInt64, Int64, UInt8, UInt8)]
    )
    func `numbers keep their value, and a layer beyond the last is none`(
        stream: UInt64,
        sequence: Int64,
        layer: UInt8,
        read: UInt8
    ) throws {
        guard case .packet(var packet) = Self.packet else { return }
        packet.stream = stream
        packet.sequence = ExtendedSequenceNumber(rawValue: sequence)
        packet.layer = layer
        var body = Self.rtp
        body.store(bigEndian: packet.sequence.wire.rawValue, at: 2)
        let decoded = try decode(TransferMessage.packet(packet).encoded(unsafe body.span.bytes))
        packet.layer = read
        #expect(decoded.message == .packet(packet))
    }

    @Test func `a message that does not fit is not written, nor a packet without a header`() {
        var room = [UInt8](repeating: 0, count: 27)
        var span = room.mutableSpan
        var target = unsafe span.mutableBytes
        let longer = Self.rtp + [1]
        #expect(Self.packet.encode(unsafe longer.span.bytes, into: &target) == nil)
        #expect(Self.packet.encode(unsafe Self.rtp.span.bytes, into: &target) == 27)
        #expect(Self.packet.encode(RawSpan(), into: &target) == nil)
        guard case .packet(var packet) = Self.packet else { return }
        packet.stream = TransferMessage.streamMax + 1
        #expect(TransferMessage.packet(packet).encode(unsafe Self.rtp.span.bytes, into: &target) == nil)
    }

    @Test(arguments: 0..<20)
    func `what is decoded from any bytes encodes to the same bytes`(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func byte() -> UInt8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        for _ in 0..<2_000 {
            var bytes = (0..<Int(byte() % 48)).map { _ in byte() }
            if !bytes.isEmpty { bytes[0] = byte() % 10 }
            guard let decoded = try? decode(bytes) else { continue }
            #expect(decoded.message.encoded(unsafe bytes.span.bytes.extracting(decoded.bodyOffset...)) == bytes)
        }
    }
}
