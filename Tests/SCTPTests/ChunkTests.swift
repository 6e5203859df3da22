import Base
import Testing

@testable import SCTP

@Suite struct ChunkTests {
    // RFC 3720 B.4, and the check value of the CRC catalogue.
    @Test(
        arguments: [
            ([UInt8](repeating: 0, count: 32), 0x8A91_36AA), ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
            (Array(0..<32), 0x46DD_794E), (Array((0..<32).reversed()), 0x113F_DB5C),
            (Array("123456789".utf8), 0xE306_9283),
            ([], 0),
        ] as [([UInt8], UInt32)]
    )
    func `the checksum is CRC32c`(bytes: [UInt8], expected: UInt32) {
        for split in 0...bytes.count {
            var crc = CRC32C()
            withSpan(Array(bytes[..<split])) { crc.update($0) }
            withSpan(Array(bytes[split...])) { crc.update($0) }
            #expect(crc.value == expected)
        }
        var zeros = CRC32C()
        zeros.updateZeros(32)
        #expect(zeros.value == 0x8A91_36AA)
    }

    @Test func `numbers are extended near a reference`() {
        let base: Int64 = 1 << 32
        #expect(SerialNumber.extend(0xFFFF_FFFF as UInt32, near: base) == base - 1)
        #expect(SerialNumber.extend(5 as UInt32, near: base - 3) == base + 5)
        #expect(SerialNumber.extend(0x8000_0000 as UInt32, near: base) == base - 0x8000_0000, "half away is older")
        #expect(SerialNumber.extend(0xFFFF as UInt16, near: 0x1_0000) == 0xFFFF)
        #expect(SerialNumber.extend(1 as UInt16, near: 0xFFFF) == 0x1_0001)
    }

    private func chunk(_ bytes: [UInt8]) -> (packet: [UInt8], chunk: ChunkRange?) {
        let packet = [UInt8](repeating: 0, count: 12) + bytes
        var walk = ChunkWalk()
        return (packet, walk.next(in: unsafe packet.span.bytes))
    }

    @Test func `an INIT reads as it was written`() throws {
        let initiation = Initiation(
            tag: 7,
            window: 100_000,
            outgoingStreams: 10,
            incomingStreams: 20,
            firstTSN: 0xFFFF_FFFE,
            capabilities: [.partialReliability, .reconfiguration, .interleaving, .zeroChecksum]
        )
        var extras = Initiation.Extras()
        extras.cookie = [1, 2, 3]
        let (packet, range) = chunk(initiation.encoded(as: .initiationAck, extras))
        let body = try #require(range).body
        let (read, readExtras) = try Initiation.parse(unsafe packet.span.bytes.extracting(body))
        #expect(read == initiation)
        #expect(readExtras == extras)
    }

    /// An INIT with these parameters: what of them is understood.
    @Test(
        arguments: [
            ("none", [], []), ("forward TSN", [0xC0, 0, 0, 4], [.partialReliability]),
            (
                "extensions", [0x80, 8, 0, 8, 130, 192, 64, 194],
                [.partialReliability, .reconfiguration, .interleaving]
            ),
            ("zero checksum of another method", [0x80, 1, 0, 8, 0, 0, 0, 2], []),
            ("zero checksum", [0x80, 1, 0, 8, 0, 0, 0, 1], [.zeroChecksum]),
            ("an unknown one that stops", [0, 99, 0, 4, 0xC0, 0, 0, 4], []),
            ("an unknown one that is skipped", [0x80, 99, 0, 4, 0xC0, 0, 0, 4], [.partialReliability]),
            ("an address", [0, 5, 0, 8, 1, 2, 3, 4, 0xC0, 0, 0, 4], [.partialReliability]),
        ] as [(String, [UInt8], Capabilities)]
    )
    func `parameters of an INIT`(name: String, parameters: [UInt8], expected: Capabilities) throws {
        let bytes: [UInt8] = [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0] + parameters
        let (read, _) = try Initiation.parse(unsafe bytes.span.bytes)
        #expect(read.capabilities == expected)
    }

    @Test(
        arguments: [
            ("short", Array(repeating: 1, count: 15), .malformed),
            ("no tag", [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], .invalid),
            ("tiny window", [0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0], .invalid),
            ("no streams out", [0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], .invalid),
            ("no streams in", [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], .invalid),
            ("a host name", [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 11, 0, 8, 65, 0, 0, 0], .invalid),
            ("length 0", [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 7, 0, 0], .malformed),
            ("too long", [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 7, 0, 9, 1, 1, 1, 1], .malformed),
        ] as [(String, [UInt8], Initiation.Failure)]
    )
    func `a wrong INIT is refused`(name: String, bytes: [UInt8], failure: Initiation.Failure) {
        #expect(throws: failure) { _ = try Initiation.parse(unsafe bytes.span.bytes) }
    }

    @Test func `a cookie is only accepted unchanged and with its key`() {
        let side = Initiation(
            tag: 1,
            window: 2_000,
            outgoingStreams: 3,
            incomingStreams: 4,
            firstTSN: 5,
            capabilities: [.interleaving]
        )
        var other = side
        other.tag = 99
        let tieTags = StateCookie.TieTags(local: 8, peer: 9)
        let cookie = StateCookie(local: side, peer: other, tieTags: tieTags, createdAt: at(3))
        let key: [UInt8] = Array(0..<32)
        let bytes = cookie.encoded(key: key)
        #expect(withSpan(bytes) { StateCookie.decode($0, key: key) } == cookie)
        #expect(withSpan(bytes) { StateCookie.decode($0, key: key.reversed()) } == nil)
        #expect(withSpan(bytes.dropLast()) { StateCookie.decode($0, key: key) } == nil)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(withSpan(changed) { StateCookie.decode($0, key: key) } == nil)
        }
    }

    @Test func `a SACK reads as it was written`() throws {
        let sack = Acknowledgement(
            cumulative: 10,
            window: 20,
            gaps: [.init(start: 2, end: 3), .init(start: 5, end: 5)],
            duplicates: [1]
        )
        var bytes = [UInt8](repeating: 0, count: sack.byteCount)
        var elements = bytes.mutableSpan
        var span = unsafe elements.mutableBytes
        sack.write(at: 0, into: &span)
        let (packet, range) = chunk(bytes)
        let read = Acknowledgement(try #require(range), in: unsafe packet.span.bytes)
        #expect(read?.cumulative == 10)
        #expect(read?.window == 20)
        #expect(read?.gaps == sack.gaps)
        #expect(read?.hasBrokenGap == false)
    }

    @Test(
        arguments: [
            ([(0, 0)], 0), ([(1, 1)], 0), ([(0xFFFF, 0xFFFF)], 1), ([(3, 2)], 0), ([(2, 3), (3, 4)], 1),
            ([(5, 6), (2, 3)], 1),
        ] as [([(UInt16, UInt16)], Int)]
    )
    func `a broken gap block ends the list`(gaps: [(UInt16, UInt16)], accepted: Int) throws {
        var value: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 9]
        value.append(bigEndian: UInt16(gaps.count))
        value.append(bigEndian: UInt16(0))
        for gap in gaps {
            value.append(bigEndian: gap.0)
            value.append(bigEndian: gap.1)
        }
        let (packet, range) = chunk(.chunk(.sack, value))
        let whole = try #require(range)
        let sack = try #require(Acknowledgement(whole, in: unsafe packet.span.bytes))
        #expect(sack.gaps.count == accepted)
        #expect(sack.hasBrokenGap == (accepted < gaps.count))
    }

    @Test(arguments: [false, true])
    func `skipped numbers read as they were written`(isInterleaved: Bool) throws {
        let numbers = ForwardedNumbers(
            tsn: 0xFFFF_FFFF,
            skipped: [
                .init(stream: stream(1), isUnordered: false, messageNumber: 0xFFFF),
                .init(stream: stream(2), isUnordered: isInterleaved, messageNumber: 3),
            ]
        )
        let (packet, range) = chunk(numbers.encoded(isInterleaved: isInterleaved))
        #expect(ForwardedNumbers(try #require(range), in: unsafe packet.span.bytes) == numbers)
    }

    @Test(
        arguments: [
            .outgoingReset(
                request: 1,
                response: 2,
                lastTSN: 3,
                streams: [StreamID(rawValue: 4), StreamID(rawValue: 5)]
            ),
            .outgoingReset(request: 1, response: 2, lastTSN: 3, streams: []),
            .incomingReset(request: 1, streams: [StreamID(rawValue: 9)]), .associationReset(request: 7),
            .response(request: 8, .inProgress), .addOutgoingStreams(request: 9, count: 10),
            .addIncomingStreams(request: 9, count: 10),
        ] as [ReconfigurationParameter]
    )
    func `a request reads as it was written`(parameter: ReconfigurationParameter) throws {
        let (packet, range) = chunk(parameter.encoded())
        let body = try #require(range).body
        #expect(ReconfigurationParameter.parse(unsafe packet.span.bytes.extracting(body)) == [parameter])
    }

    @Test(
        arguments: [
            .open(ChannelParameters(label: "")), .open(ChannelParameters(label: "signaling", subprotocol: "sora")),
            .open(ChannelParameters(label: "日本", policy: SendPolicy(isOrdered: false, limit: .retransmissions(3)))),
            .open(
                ChannelParameters(label: "a", policy: SendPolicy(limit: .lifetime(.milliseconds(250))), priority: 1_024)
            ), .ack,
        ] as [EstablishmentMessage]
    )
    func `a channel's opening reads as it was written`(message: EstablishmentMessage) {
        let bytes = message.encoded()
        #expect(withSpan(bytes) { EstablishmentMessage.parse($0, textBytesMax: 64) } == message)
        guard bytes.count > 1 else { return }
        #expect(withSpan(bytes.dropLast()) { EstablishmentMessage.parse($0, textBytesMax: 64) } == nil)
        #expect(withSpan(bytes + [0]) { EstablishmentMessage.parse($0, textBytesMax: 64) } == nil)
    }

    @Test(
        arguments: [
            [], [1], [3], [3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xFF],
            [3, 0, 0, 0, 0, 0, 0, 0, 0, 65, 0, 0] + Array(repeating: 65, count: 65),
        ] as [[UInt8]]
    )
    func `a broken opening is refused`(bytes: [UInt8]) {
        #expect(withSpan(bytes) { EstablishmentMessage.parse($0, textBytesMax: 64) } == nil)
    }
}
