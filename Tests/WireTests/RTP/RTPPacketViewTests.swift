import Base
import Testing
import Wire

struct RTPPacketViewTests {
    /// Two contributing sources, a one-byte extension block of two elements, five bytes of payload, three of padding.
    static let full: [UInt8] = [
        0xB2, 0xE0, 0x12, 0x34, 0x00, 0x01, 0x02, 0x03, 0xDE, 0xAD, 0xBE, 0xEF,
        0, 0, 0, 1, 0, 0, 0, 2,
        0xBE, 0xDE, 0x00, 0x02, 0x10, 0xFF, 0x00, 0x32, 0xAA, 0xBB, 0xCC, 0x00,
        1, 2, 3, 4, 5, 0, 0, 3,
    ]

    static func elements(_ bytes: [UInt8]) throws -> [HeaderExtensionElement] {
        let packet = try RTPPacketView(unsafe bytes.span.bytes)
        var cursor = packet.makeExtensionCursor()
        var found: [HeaderExtensionElement] = []
        while let element = cursor.next() { found.append(element) }
        return found
    }

    /// A packet with this extension block after the fixed header.
    static func packet(block: [UInt8], payload: [UInt8] = [0]) -> [UInt8] {
        [0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1] + block + payload
    }

    @Test func `every field of a full packet is read`() throws {
        let packet = try RTPPacketView(unsafe Self.full.span.bytes)
        #expect(packet.marker == true)
        #expect(packet.payloadType.rawValue == 96)
        #expect(packet.sequenceNumber.rawValue == 0x1234)
        #expect(packet.timestamp.rawValue == 0x0001_0203)
        #expect(packet.ssrc.rawValue == 0xDEAD_BEEF)
        #expect(packet.contributingSourceCount == 2)
        #expect(packet.hasExtension == true)
        #expect(packet.extensionOffset == 20)
        #expect(packet.headerLength == 32)
        #expect(packet.payloadRange == 32..<37)
        #expect(packet.payload.array() == [1, 2, 3, 4, 5])
        let elements = try Self.elements(Self.full)
        #expect(elements == [.init(id: 1, range: 25..<26), .init(id: 3, range: 28..<31)])
    }

    @Test(arguments: [0, 3, 11])
    func `a short packet is refused`(count: Int) {
        let bytes = [UInt8](repeating: 0x80, count: count)
        #expect(throws: RTPParseError.truncated(needed: 12, available: count)) {
            _ = try RTPPacketView(unsafe bytes.span.bytes)
        }
    }

    @Test(arguments: [
        ("version 1", [0x40] + [UInt8](repeating: 0, count: 11), RTPParseError.version(1)),
        ("sources missing", [0x81] + [UInt8](repeating: 0, count: 11), .truncated(needed: 16, available: 12)),
        ("no extension head", [0x90] + [UInt8](repeating: 0, count: 11), .truncated(needed: 16, available: 12)),
        (
            "extension too long", [0x90] + [UInt8](repeating: 0, count: 11) + [0xBE, 0xDE, 0, 1],
            .truncated(needed: 20, available: 16)
        ),
        ("padding with no byte", [0xA0] + [UInt8](repeating: 0, count: 11), .padding(count: 0, available: 0)),
        ("padding of none", [0xA0] + [UInt8](repeating: 0, count: 12), .padding(count: 0, available: 1)),
        ("padding too long", [0xA0] + [UInt8](repeating: 0, count: 11) + [2], .padding(count: 2, available: 1)),
    ])
    func `a malformed packet is refused with the reason`(name: String, bytes: [UInt8], error: RTPParseError) {
        #expect(throws: error) { _ = try RTPPacketView(unsafe bytes.span.bytes) }
    }

    @Test func `a padding-only packet has an empty payload`() throws {
        let bytes = [0xA0] + [UInt8](repeating: 0, count: 11) + [0, 0, 3]
        let packet = try RTPPacketView(unsafe bytes.span.bytes)
        #expect(packet.payloadRange == 12..<12)
    }

    @Test(arguments: [(191, false), (192, true), (200, true), (223, true), (224, false), (96, false)])
    func `the second byte distinguishes RTCP from RTP`(second: UInt8, expected: Bool) {
        let bytes: [UInt8] = [0x80, second]
        #expect(RTPPacketView.isRTCP(unsafe bytes.span.bytes) == expected)
        let short: [UInt8] = [0x80]
        #expect(!RTPPacketView.isRTCP(unsafe short.span.bytes))
    }

    @Test(
        arguments: [
            (0x8F, 205, true), (0x8B, 205, true), (0x81, 205, false), (0x8F, 206, false), (0x81, 201, false),
        ] as [(UInt8, UInt8, Bool)]
    )
    func `a datagram with a report on arrivals is known by its first header`(first: UInt8, second: UInt8, isOne: Bool) {
        let bytes = [first, second]
        #expect(RTCPPacketView.reportsArrivals(unsafe bytes.span.bytes) == isOne)
        #expect(!RTCPPacketView.reportsArrivals(unsafe bytes.span.bytes.extracting(0..<1)))
    }

    @Test(arguments: [
        ("one-byte", [0xBE, 0xDE, 0, 1, 0x11, 1, 2, 0], [HeaderExtensionElement(id: 1, range: 17..<19)]),
        ("15 stops", [0xBE, 0xDE, 0, 2, 0x10, 1, 0xF0, 2, 0x20, 3, 0, 0], [.init(id: 1, range: 17..<18)]),
        ("0 with a length stops", [0xBE, 0xDE, 0, 2, 0x10, 1, 0x01, 2, 0x20, 3, 0, 0], [.init(id: 1, range: 17..<18)]),
        ("past the end", [0xBE, 0xDE, 0, 1, 0x10, 1, 0x23, 0], [.init(id: 1, range: 17..<18)]),
        (
            "two-byte", [0x10, 0x00, 0, 2, 0, 200, 1, 9, 16, 0, 0, 0],
            [.init(id: 200, range: 19..<20), .init(id: 16, range: 22..<22)]
        ),
        ("two-byte, application bits", [0x10, 0x0F, 0, 1, 1, 2, 7, 8], [.init(id: 1, range: 18..<20)]),
        ("two-byte, past the end", [0x10, 0x00, 0, 1, 1, 3, 7, 8], []),
        ("two-byte, no length", [0x10, 0x00, 0, 1, 1, 1, 7, 8], [.init(id: 1, range: 18..<19)]),
        ("unknown form", [0x12, 0x34, 0, 1, 0x10, 1, 0x10, 2], []),
        ("empty", [0xBE, 0xDE, 0, 0], []),
    ])
    func `the extension walk keeps to RFC 8285`(name: String, block: [UInt8], expected: [HeaderExtensionElement]) throws
    {
        #expect(try Self.elements(Self.packet(block: block)) == expected)
    }

    @Test(arguments: [full, packet(block: [0x10, 0x00, 0, 2, 0, 200, 1, 9, 16, 0, 0, 0])])
    func `mutated packets never trap, and all ranges are inside the packet`(valid: [UInt8]) {
        forEachDamage(of: valid, seed: 1, rounds: 60_000) { bytes in
            guard let packet = try? RTPPacketView(unsafe bytes.span.bytes) else { return }
            var cursor = packet.makeExtensionCursor()
            var sum = packet.payload.byteCount
            while let element = cursor.next() {
                let data = packet.data(of: element)
                sum += data.byteCount
                _ = VideoContentType(data)
                _ = MID(data)
                _ = RID(data)
                _ = try? DependencyDescriptor(data, structure: nil)
            }
            #expect(sum <= bytes.count)
        }
    }
}
