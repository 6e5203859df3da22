import Testing
import Wire

struct RelayMessageTests {
    private static let relay = RelayID(place: 0x1234, generation: 0xABCD)
    static let packet = RelayMessage.packet(
        RelayMessage.Packet(
            relay: relay,
            stream: 0x0102_0304_0506_0708,
            ssrc: SSRC(rawValue: 0xDEAD_BEEF),
            layer: 2,
            choices: 0b1_0001,
            exactChoices: 0b0_0001,
            isRTXRecovered: true,
            sequence: ExtendedSequenceNumber(rawValue: -7)
        )
    )
    static let layers = RelayMessage.layers(relay)
    static let messages: [RelayMessage] = [
        packet,
        .clock(
            RelayMessage.Clock(
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
            RelayMessage.Subscription(
                relay: relay,
                choices: 0b11,
                layers: LayerSet(layer: 1),
                wanted: [LayerSet(layer: 0), LayerSet(layer: 1)]
            )
        ),
        .unsubscribe(relay),
    ]

    private func decode(_ bytes: [UInt8]) throws(RelayMessageError) -> (message: RelayMessage, bodyOffset: Int) {
        try RelayMessage.decode(unsafe bytes.span.bytes)
    }

    @Test(arguments: messages)
    func `a message is decoded as it was encoded`(message: RelayMessage) throws {
        let bytes = message.encoded()
        let decoded = try decode(bytes)
        #expect(decoded.message == message)
        #expect(decoded.bodyOffset == bytes.count)
        #expect(decoded.message.relay == Self.relay)
    }

    @Test(arguments: messages)
    func `a truncated message of any length is refused`(message: RelayMessage) {
        let bytes = message.encoded()
        for count in 0..<bytes.count {
            let needed = count < 2 ? 2 : bytes.count
            #expect(throws: RelayMessageError.truncated(needed: needed, available: count)) {
                try decode(Array(bytes.prefix(count)))
            }
        }
    }

    @Test(arguments: messages.filter { $0 != packet && $0 != layers })
    func `trailing bytes are refused in a message without a body`(message: RelayMessage) {
        #expect(throws: RelayMessageError.trailingBytes(1)) { try decode(message.encoded() + [0]) }
    }

    @Test(arguments: [packet, layers])
    func `the body follows the message`(message: RelayMessage) throws {
        let body: [UInt8] = [0x80, 96, 1, 2, 3]
        let bytes = message.encoded(unsafe body.span.bytes)
        let decoded = try decode(bytes)
        #expect(decoded.message == message)
        #expect(Array(bytes[decoded.bodyOffset...]) == body)
    }

    @Test func `the layout is as documented`() {
        let payload: [UInt8] = [0x80]
        #expect(
            Self.packet.encoded(unsafe payload.span.bytes) == [
                2, 1, 0xAB, 0xCD, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8, 0xDE, 0xAD, 0xBE, 0xEF, 2, 0x11, 0x01, 1,
                0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF9, 0x80,
            ]
        )
        #expect(RelayMessage.unsubscribe(Self.relay).encoded() == [2, 8, 0xAB, 0xCD, 0x12, 0x34])
    }

    @Test func `other versions and kinds are refused`() {
        var bytes = RelayMessage.unsubscribe(Self.relay).encoded()
        bytes[0] = 1
        #expect(throws: RelayMessageError.version(1)) { try decode(bytes) }
        bytes[0] = RelayMessage.version
        for kind: UInt8 in [0, 9, 255] {
            bytes[1] = kind
            #expect(throws: RelayMessageError.kind(kind)) { try decode(bytes) }
        }
    }

    @Test func `stream 0 and reserved bits are refused`() {
        var bytes = RelayMessage.hold(Self.relay, stream: 1).encoded()
        bytes[13] = 0
        #expect(throws: RelayMessageError.value) { try decode(bytes) }
        var packet = Self.packet.encoded()
        packet[21] = 2
        #expect(throws: RelayMessageError.value) { try decode(packet) }
    }

    @Test func `a message that does not fit is not written`() {
        let payload: [UInt8] = [1]
        var room = [UInt8](repeating: 0, count: 30)
        var span = room.mutableSpan
        var target = unsafe span.mutableBytes
        #expect(Self.packet.encode(unsafe payload.span.bytes, into: &target) == nil)
        #expect(Self.packet.encode(RawSpan(), into: &target) == 30)
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
            if bytes.count > 1 { (bytes[0], bytes[1]) = (RelayMessage.version, byte() % 10) }
            guard let decoded = try? decode(bytes) else { continue }
            #expect(decoded.message.encoded(unsafe bytes.span.bytes.extracting(decoded.bodyOffset...)) == bytes)
        }
    }
}
