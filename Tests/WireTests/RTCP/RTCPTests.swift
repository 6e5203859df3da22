import TestSupport
import Testing
import Wire

/// The packets of a datagram as values.
enum RTCPTestValue: Equatable {
    case sender(SSRC?, SenderInfo?)
    case report(ReportBlock)
    case pictureLoss(SSRC?, SSRC?)
    case fullIntraRequest(FullIntraRequest)
    case lost(UInt16)
    case remb(UInt64?)
    case feedback(base: UInt16, count: Int, reference: Int, number: UInt8)
    case status(UInt16, Int?)
    case packet(CongestionControlFeedbackStatus)
    case other(UInt8)
}

/// Reads a datagram with all cursors.
func readRTCP(_ bytes: [UInt8]) throws(RTCPParseError) -> [RTCPTestValue] {
    var compound = RTCPCompoundCursor(unsafe bytes.span.bytes)
    var values: [RTCPTestValue] = []
    while let packet = try compound.next() { readRTCP(packet, into: &values) }
    return values
}

private func readRTCP(_ packet: borrowing RTCPPacketView, into values: inout [RTCPTestValue]) {
    switch packet.kind {
    case .senderReport: values.append(.sender(packet.senderSSRC, packet.senderInfo))
    case .receiverReport: values.append(.sender(packet.senderSSRC, nil))
    case .pictureLoss: values.append(.pictureLoss(packet.senderSSRC, packet.mediaSSRC))
    case .remb: values.append(.remb(packet.rembBitrate))
    case .sourceDescription, .goodbye, .applicationDefined, .extendedReport, .other:
        values.append(.other(packet.packetType))
    default: break
    }
    var reports = packet.makeReportBlockCursor()
    while let block = reports.next() { values.append(.report(block)) }
    var requests = packet.makeFullIntraRequestCursor()
    while let request = requests.next() { values.append(.fullIntraRequest(request)) }
    var lost = packet.makeLostSequenceCursor()
    while let number = lost.next() { values.append(.lost(number.rawValue)) }
    if var packets = packet.makeCongestionControlFeedbackCursor() {
        while let status = packets.next() { values.append(.packet(status)) }
    }
    guard var statuses = packet.makeTransportFeedbackCursor() else { return }
    values.append(
        .feedback(
            base: statuses.base.rawValue,
            count: statuses.statusCount,
            reference: statuses.referenceTime,
            number: statuses.feedbackCount
        )
    )
    // Enough for any status vector; a run of 65,535 would take too long.
    for _ in 0..<500 {
        guard let status = statuses.next() else { break }
        values.append(.status(status.sequence.rawValue, status.arrivalTicks))
    }
}

struct RTCPReadTests {
    static let a = SSRC(rawValue: 0x902F_9E2E)
    static let b = SSRC(rawValue: 0xBC5E_9A40)

    @Test func `the sender report of RFC 3550 figure 2 is read`() throws {
        let bytes: [UInt8] = [
            0x81, 0xC8, 0x00, 0x0C, 0x90, 0x2F, 0x9E, 0x2E, 0xB4, 0x4D, 0xB7, 0x05, 0x20, 0x00, 0x00, 0x00,
            0x00, 0x01, 0x02, 0x03, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x10, 0x00,
            0xBC, 0x5E, 0x9A, 0x40, 0x55, 0xFF, 0xFF, 0xFE, 0x00, 0x01, 0x46, 0xE1, 0x00, 0x00, 0x01, 0x11,
            0x09, 0xF3, 0x64, 0x32, 0x00, 0x05, 0x40, 0x00,
        ]
        let info = SenderInfo(
            ntp: NTPTimestamp(rawValue: 0xB44D_B705_2000_0000),
            rtp: RTPTimestamp(rawValue: 0x0001_0203),
            packetCount: 5,
            octetCount: 4096
        )
        let block = ReportBlock(
            ssrc: Self.b,
            fractionLost: 0x55,
            cumulativeLost: -2,
            highestSequence: 0x146E1,
            jitter: 273,
            lastSR: 0x09F3_6432,
            delaySinceLastSR: 0x0005_4000
        )
        #expect(try readRTCP(bytes) == [.sender(Self.a, info), .report(block)])
        var writer = RTCPWriter()
        writer.appendSenderReport(sender: Self.a, info: info, blocks: [block])
        #expect(writer.bytes == bytes)
    }

    @Test func `a compound of receiver report and description is read`() throws {
        let bytes: [UInt8] = [
            0x80, 0xC9, 0x00, 0x01, 0x90, 0x2F, 0x9E, 0x2E,
            0x81, 0xCA, 0x00, 0x03, 0x90, 0x2F, 0x9E, 0x2E, 0x01, 0x02, 0x61, 0x62, 0x00, 0x00, 0x00, 0x00,
        ]
        #expect(try readRTCP(bytes) == [.sender(Self.a, nil), .other(202)])
    }

    @Test(
        arguments: [
            (
                "RFC 4585 NACK", [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xFE, 0x80, 0x05],
                [65534, 65535, 1, 14]
            ),
            ("no entry", [0x81, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2], []),
            ("two entries", [0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 9, 0, 1], [1, 9, 10]),
        ] as [(String, [UInt8], [UInt16])]
    )
    func `the packets that a NACK asks for`(name: String, bytes: [UInt8], expected: [UInt16]) throws {
        #expect(try readRTCP(bytes) == expected.map { .lost($0) })
    }

    @Test func `feedback messages are read`() throws {
        let pictureLoss: [UInt8] = [0x81, 206, 0, 2, 0x90, 0x2F, 0x9E, 0x2E, 0xBC, 0x5E, 0x9A, 0x40]
        #expect(try readRTCP(pictureLoss) == [.pictureLoss(Self.a, Self.b)])
        let request: [UInt8] = [
            0x84, 206, 0, 4, 0x90, 0x2F, 0x9E, 0x2E, 0, 0, 0, 0, 0xBC, 0x5E, 0x9A, 0x40, 7, 0, 0, 0,
        ]
        #expect(try readRTCP(request) == [.fullIntraRequest(FullIntraRequest(ssrc: Self.b, sequence: 7))])
        // libwebrtc's REMB: 0x3FB93 × 2 = 522,022 bit/s for one source.
        let remb: [UInt8] = [
            0x8F, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4D, 0x42, 1, 0x07, 0xFB, 0x93, 0x23, 0x45, 0x67,
            0x89,
        ]
        #expect(try readRTCP(remb) == [.remb(522_022)])
        let unknown: [UInt8] = [0x8F, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4D, 0x41, 0, 0, 0, 0]
        #expect(try readRTCP(unknown) == [.other(206)])
    }

    @Test func `a REMB beyond 64 bits saturates`() throws {
        let remb: [UInt8] = [0x8F, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4D, 0x42, 9, 0xFF, 0xFF, 0xFF]
        #expect(try readRTCP(remb) == [.remb(.max)])
    }

    @Test func `padding is excluded and unknown types are skipped`() throws {
        let bytes: [UInt8] = [
            0xA1, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 0, 4,
            0x80, 195, 0, 0, 0x80, 204, 0, 2, 0, 0, 0, 1, 65, 66, 67, 68,
        ]
        #expect(try readRTCP(bytes) == [.lost(5), .other(195), .other(204)])
    }

    @Test(
        arguments: [
            ("short", [0x80, 200, 0], RTCPParseError.truncated(needed: 4, available: 3)),
            ("length", [0x80, 200, 0, 2, 0, 0, 0, 0], .truncated(needed: 12, available: 8)),
            ("version", [0x00, 200, 0, 0], .version(0)),
            ("padding of none", [0xA0, 200, 0, 1, 0, 0, 0, 0], .padding(count: 0, available: 4)),
            ("padding too long", [0xA0, 200, 0, 1, 0, 0, 0, 5], .padding(count: 5, available: 4)),
            ("padding without a body", [0xA0, 200, 0, 0], .padding(count: 0, available: 0)),
            ("behind a good one", [0x80, 201, 0, 1, 0, 0, 0, 1, 0x80], .truncated(needed: 4, available: 1)),
        ] as [(String, [UInt8], RTCPParseError)]
    )
    func `a malformed packet is refused with the reason`(name: String, bytes: [UInt8], error: RTCPParseError) {
        #expect(throws: error) { try readRTCP(bytes) }
    }

    @Test func `a count that exceeds the packet returns the complete items only`() throws {
        let bytes: [UInt8] = [0x9F, 201, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4, 0x9F, 203, 0, 1, 0, 0, 0, 9, 0x9F, 202, 0, 0]
        #expect(try readRTCP(bytes) == [.sender(SSRC(rawValue: 1), nil), .other(203), .other(202)])
        let short: [UInt8] = [0x81, 200, 0, 1, 0, 0, 0, 1]
        #expect(try readRTCP(short) == [.sender(SSRC(rawValue: 1), nil)])
    }
}

struct RTCPWriterTests {
    static let everything: [UInt8] = {
        var writer = RTCPWriter()
        let blocks = (0..<3).map { ReportBlock(ssrc: SSRC(rawValue: $0), cumulativeLost: Int32($0) - 1) }
        let info = SenderInfo(
            ntp: NTPTimestamp(rawValue: 1),
            rtp: RTPTimestamp(rawValue: 2),
            packetCount: 3,
            octetCount: 4
        )
        writer.appendSenderReport(sender: RTCPReadTests.a, info: info, blocks: blocks)
        writer.appendReceiverReport(sender: RTCPReadTests.a, blocks: blocks)
        writer.appendSourceDescription(ssrc: RTCPReadTests.a, cname: "nagare")
        writer.appendPictureLoss(sender: RTCPReadTests.a, media: RTCPReadTests.b)
        writer.appendNACK(
            sender: RTCPReadTests.a,
            media: RTCPReadTests.b,
            lost: [1, 2, 17, 18, 40].map { SequenceNumber(rawValue: $0) }
        )
        var encoder = TransportFeedbackEncoder(base: TransportSequenceNumber(rawValue: 65535), firstArrivalTicks: 300)
        _ = encoder.append(missing: 0, arrivalTicks: 300)
        _ = encoder.append(missing: 2, arrivalTicks: 1300)
        writer.appendTransportFeedback(sender: RTCPReadTests.a, media: RTCPReadTests.b, feedbackCount: 255, encoder)
        let (a, b) = (RTCPReadTests.a.rawValue, RTCPReadTests.b.rawValue)
        return writer.bytes
            + RTCPPackets.fullIntraRequest(sender: a, media: b, sequence: 200)
            + RTCPPackets.remb(sender: a, bitrate: 2_500_000, sources: [b])
            + RTCPPackets.extendedReport(sender: a, receiver: b)
            + RTCPPackets.goodbye(a)
    }()

    @Test func `what is written is read back`() throws {
        let values = try readRTCP(Self.everything)
        #expect(values.count == 1 + 3 + 1 + 3 + 1 + 1 + 5 + 1 + 4 + 1 + 1 + 1 + 1)
        #expect(values.contains(.fullIntraRequest(FullIntraRequest(ssrc: RTCPReadTests.b, sequence: 200))))
        #expect(values.contains(.remb(2_500_000)))
        #expect(values.contains(.feedback(base: 65535, count: 4, reference: 1, number: 255)))
        #expect(values.contains(.status(65535, 44)))
        #expect(values.contains(.status(0, nil)))
        #expect(values.contains(.status(2, 1044)))
        #expect(values.suffix(2) == [.other(207), .other(203)])
    }

    @Test func `mutated datagrams never trap`() {
        forEachDamage(of: Self.everything, seed: 11, rounds: 40_000) { bytes in _ = try? readRTCP(bytes) }
    }

    @Test(arguments: [0, 1, 31, 32, 63])
    func `report blocks beyond 31 are written to further packets`(count: Int) throws {
        let blocks = (0..<count).map { ReportBlock(ssrc: SSRC(rawValue: UInt32($0))) }
        var writer = RTCPWriter()
        writer.appendReceiverReport(sender: RTCPReadTests.a, blocks: blocks)
        let reports = try readRTCP(writer.bytes).filter { if case .report = $0 { true } else { false } }
        #expect(reports == blocks.map { .report($0) })
        #expect(writer.count == max(1, (count + 30) / 31) * 8 + count * 24)
    }

    @Test(arguments: [Int32.min, -0x80_0001, -0x80_0000, -1, 0, 0x7F_FFFF, 0x80_0000, .max])
    func `cumulative loss is clamped to 24 bits`(lost: Int32) throws {
        var writer = RTCPWriter()
        writer.appendReceiverReport(
            sender: RTCPReadTests.a,
            blocks: [ReportBlock(ssrc: RTCPReadTests.b, cumulativeLost: lost)]
        )
        let expected = max(-0x80_0000, min(0x7F_FFFF, lost))
        #expect(try readRTCP(writer.bytes).last == .report(.init(ssrc: RTCPReadTests.b, cumulativeLost: expected)))
    }

    @Test(
        arguments: [
            ([], 0), ([5], 1), ([5, 21], 1), ([5, 22], 2), ([65530, 65535, 0, 10], 1), ([10, 5], 2), ([5, 5, 6], 1),
        ] as [([UInt16], Int)]
    )
    func `a NACK packs 17 numbers to an entry`(lost: [UInt16], entries: Int) throws {
        var writer = RTCPWriter()
        writer.appendNACK(
            sender: RTCPReadTests.a,
            media: RTCPReadTests.b,
            lost: lost.map { SequenceNumber(rawValue: $0) }
        )
        #expect(writer.count == (entries == 0 ? 0 : 12 + 4 * entries))
        var unique: [UInt16] = []
        for number in lost where !unique.contains(number) { unique.append(number) }
        #expect(try readRTCP(writer.bytes) == unique.map { .lost($0) })
    }

    @Test func `a long NACK is several packets`() throws {
        let lost = (0..<600).map { SequenceNumber(rawValue: UInt16($0 * 20)) }
        var writer = RTCPWriter()
        writer.appendNACK(sender: RTCPReadTests.a, media: RTCPReadTests.b, lost: lost)
        #expect(writer.count == 3 * 12 + 600 * 4)
        #expect(try readRTCP(writer.bytes) == lost.map { .lost($0.rawValue) })
    }

    @Test(
        arguments: [(0, 0), (0x3FFFF, 0x3FFFF), (0x40001, 0x40000), (.max, 0xFFFF_C000_0000_0000)] as [(UInt64, UInt64)]
    )
    func `a REMB has 18 bits and an exponent`(bitrate: UInt64, expected: UInt64) throws {
        #expect(try readRTCP(RTCPPackets.remb(sender: 1, bitrate: bitrate, sources: [2, 3])) == [.remb(expected)])
    }

    @Test(arguments: [0, 1, 2, 3, 4, 255, 300])
    func `a CNAME of any length is terminated`(count: Int) {
        var writer = RTCPWriter()
        writer.appendSourceDescription(ssrc: RTCPReadTests.a, cname: String(repeating: "n", count: count))
        let written = min(count, 255)
        var chunk = [0x90, 0x2F, 0x9E, 0x2E, 1, UInt8(written)] + Array(repeating: UInt8(ascii: "n"), count: written)
        repeat { chunk.append(0) } while chunk.count % 4 != 0
        #expect(writer.bytes == [0x81, 202, 0, UInt8(chunk.count / 4)] + chunk)
    }

    @Test func `the storage is reused`() {
        var writer = RTCPWriter()
        writer.appendPictureLoss(sender: RTCPReadTests.a, media: RTCPReadTests.b)
        writer.removeAll()
        #expect(writer.isEmpty)
        writer.appendPictureLoss(sender: RTCPReadTests.a, media: RTCPReadTests.b)
        #expect(writer.count == 12)
    }
}
