import Base
import TestSupport
import Testing
import Wire

struct RTPHeaderWriterTests {
    /// Writes a packet with `elements` and reads them back.
    static func roundTrip(
        _ elements: [(id: UInt8, data: [UInt8])],
        capacity: Int = 1500
    ) throws -> (bytes: [UInt8], fitted: [Bool], read: [[UInt8]], ids: [UInt8]) {
        var buffer = [UInt8](repeating: 0xEE, count: capacity)
        var fitted: [Bool] = []
        var span = buffer.mutableSpan
        var packet = unsafe span.mutableBytes
        var writer = HeaderExtensionWriter(
            at: RTPHeaderWriter.write(
                marker: true,
                payloadType: PayloadType(wire: 111),
                sequenceNumber: SequenceNumber(rawValue: 0xFFFF),
                timestamp: RTPTimestamp(rawValue: 0xFFFF_FFFE),
                ssrc: SSRC(rawValue: 7),
                into: &packet
            )
        )
        for element in elements {
            let id = try #require(HeaderExtensionID(rawValue: element.id))
            fitted.append(writer.append(id, unsafe element.data.span.bytes, to: &packet))
        }
        let end = writer.finish(&packet)
        packet.store(0x55 as UInt8, at: end)
        let bytes = Array(buffer.prefix(end + 1))
        let view = try RTPPacketView(unsafe bytes.span.bytes)
        #expect(view.marker && view.payloadType.rawValue == 111 && view.sequenceNumber.rawValue == 0xFFFF)
        #expect(view.timestamp.rawValue == 0xFFFF_FFFE && view.ssrc.rawValue == 7)
        #expect(view.payload.array() == [0x55])
        var cursor = view.makeExtensionCursor()
        var read: [[UInt8]] = []
        var ids: [UInt8] = []
        while let element = cursor.next() {
            read.append(view.data(of: element).array())
            ids.append(element.id)
        }
        return (bytes, fitted, read, ids)
    }

    @Test func `no element means no extension`() throws {
        let result = try Self.roundTrip([])
        #expect(result.bytes.count == 13)
        #expect(result.bytes[0] == 0x80)
    }

    @Test func `short elements take the one-byte form`() throws {
        let result = try Self.roundTrip([(1, [9]), (14, [1, 2, 3])])
        #expect(result.bytes[12..<24] == [0xBE, 0xDE, 0, 2, 0x10, 9, 0xE2, 1, 2, 3, 0, 0])
        #expect(result.read == [[9], [1, 2, 3]])
    }

    @Test(
        arguments: [
            (15, [7]), (1, []), (2, [UInt8](repeating: 3, count: 17)), (255, [UInt8](repeating: 4, count: 255)),
        ] as [(UInt8, [UInt8])]
    )
    func `an element that needs it turns the block into the two-byte form`(id: UInt8, data: [UInt8]) throws {
        let before: [(id: UInt8, data: [UInt8])] = [(1, [1]), (2, Array(1...16)), (3, [1, 2])]
        let result = try Self.roundTrip(before + [(id, data), (4, [8, 9])])
        #expect(result.bytes[12..<14] == [0x10, 0x00])
        #expect(result.ids == [1, 2, 3, id, 4])
        #expect(result.read == [[1], Array(1...16), [1, 2], data, [8, 9]])
    }

    @Test func `an element that does not fit is refused and changes nothing`() throws {
        let result = try Self.roundTrip([(1, [1, 2, 3]), (20, Array(1...9)), (2, [5])], capacity: 28)
        #expect(result.fitted == [true, false, true])
        #expect(result.read == [[1, 2, 3], [5]])
    }

    @Test func `random element lists round trip`() throws {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<2000 {
            var elements: [(id: UInt8, data: [UInt8])] = []
            for _ in 0..<Int.random(in: 0...8, using: &generator) {
                let isLong = Int.random(in: 0..<6, using: &generator) == 0
                let count =
                    isLong ? Int.random(in: 0...40, using: &generator) : Int.random(in: 1...16, using: &generator)
                let id = UInt8.random(in: 1...(isLong ? 255 : 14), using: &generator)
                elements.append((id, (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }))
            }
            let result = try Self.roundTrip(elements)
            #expect(result.ids == elements.map(\.id))
            #expect(result.read == elements.map(\.data))
        }
    }

    @Test func `every value round trips`() throws {
        var buffer = [UInt8](repeating: 0, count: 200)
        var span = buffer.mutableSpan
        var packet = unsafe span.mutableBytes
        var writer = HeaderExtensionWriter(
            at: RTPHeaderWriter.write(
                marker: false,
                payloadType: PayloadType(wire: 96),
                sequenceNumber: SequenceNumber(rawValue: 0),
                timestamp: RTPTimestamp(rawValue: 0),
                ssrc: SSRC(rawValue: 0),
                into: &packet
            )
        )
        let ids = (1...7).compactMap { HeaderExtensionID(rawValue: $0) }
        let sendTime = AbsoluteSendTime(at: Instant(nanoseconds: 1_500_000_000))
        let level = AudioLevel(voiceActivity: true, level: 42)
        let orientation = VideoOrientation(rotation: .by270, isFlipped: true, isBackCamera: true)
        let delay = try #require(PlayoutDelay(minimumUnits: 0x123, maximumUnits: 0xABC))
        let mid = try #require(MID("video-0"))
        let rid = try #require(RID("hi"))
        let sequence = TransportSequenceNumber(rawValue: 0xFEDC)
        #expect(writer.append(ids[0], sendTime, to: &packet) == true)
        #expect(writer.append(ids[1], level, to: &packet) == true)
        #expect(writer.append(ids[2], orientation, to: &packet) == true)
        #expect(writer.append(ids[3], delay, to: &packet) == true)
        #expect(writer.append(ids[4], mid, to: &packet) == true)
        #expect(writer.append(ids[5], rid, to: &packet) == true)
        #expect(writer.append(ids[6], sequence, to: &packet) == true)
        let end = writer.finish(&packet)
        let bytes = Array(buffer.prefix(end))
        let view = try RTPPacketView(unsafe bytes.span.bytes)
        var cursor = view.makeExtensionCursor()
        while let element = cursor.next() {
            let data = view.data(of: element)
            switch element.id {
            case 1: #expect(AbsoluteSendTime(data) == sendTime)
            case 2: #expect(AudioLevel(data) == level)
            case 3: #expect(VideoOrientation(data) == orientation)
            case 4: #expect(PlayoutDelay(data) == delay)
            case 5:
                #expect(MID(data) == mid)
                #expect(data.equals("video-0") && !data.equals("video-1") && !data.equals("video"))
            case 6: #expect(RID(data) == rid)
            default: #expect(TransportSequenceNumber(data) == sequence)
            }
        }
    }

    @Test(arguments: [
        (Int64(0), UInt32(0)), (1_000_000_000, 0x40000), (500_000_000, 0x20000), (63_999_999_999, 0xFFFFFF),
        (64_000_000_000, 0), (-500_000_000, 0xFE0000),
    ])
    func `absolute send time is seconds in 18 fractional bits`(nanoseconds: Int64, expected: UInt32) {
        #expect(AbsoluteSendTime(at: Instant(nanoseconds: nanoseconds)).rawValue == expected)
    }

    @Test func `absolute send time differences cross the wrap`() {
        let before = AbsoluteSendTime(rawValue: 0xFFFFFF)
        let after = AbsoluteSendTime(rawValue: 0x3FFFF)
        #expect(before.distance(to: after) == .seconds(1))
        #expect(after.distance(to: before) == .seconds(-1))
    }

    @Test(arguments: [[], [0x80], [0xC3, 0x28], Array(repeating: 0x61, count: 33), [0x61, 0x20]] as [[UInt8]])
    func `text that is not an identifier is refused`(data: [UInt8]) {
        #expect(MID(unsafe data.span.bytes) == nil)
        #expect(RID(unsafe data.span.bytes) == nil)
    }

    @Test func `a playout delay with the minimum above the maximum is refused`() {
        let data: [UInt8] = [0x00, 0x20, 0x01]
        #expect(PlayoutDelay(unsafe data.span.bytes) == nil)
    }
}

struct NTPTimestampTests {
    @Test func `the Unix epoch is 2208988800`() {
        #expect(NTPTimestamp(unixNanoseconds: 0).rawValue == 0x83AA_7E80_0000_0000)
        #expect(NTPTimestamp(unixNanoseconds: 500_000_000).rawValue == 0x83AA_7E80_8000_0000)
        #expect(NTPTimestamp(unixNanoseconds: -500_000_000).rawValue == 0x83AA_7E7F_8000_0000)
    }

    @Test(arguments: [0, 1_000_000_000, -1_000_000_000, 250_000_000, -250_000_000, 86_400_000_000_000] as [Int64])
    func `advancing and distance agree`(nanoseconds: Int64) {
        let start = NTPTimestamp(rawValue: 0xFFFF_FFFF_C000_0000)
        let end = start.advanced(by: Interval(nanoseconds: nanoseconds))
        #expect(start.distance(to: end).nanoseconds == nanoseconds)
    }

    /// RFC 3550 §6.4.1, figure 2: SR at b44d:b705.2000 0000, DLSR 5.250 s, arrival at b710:8000.
    @Test func `the compact form measures the RFC's round trip`() {
        let report = NTPTimestamp(rawValue: 0xB44D_B705_2000_0000)
        #expect(report.compact == 0xB705_2000)
        #expect(Interval.milliseconds(5250).compactNTP == 0x0005_4000)
        let roundTrip = 0xB710_8000 &- report.compact &- Interval.milliseconds(5250).compactNTP
        #expect(Interval(compactNTP: roundTrip) == .milliseconds(6125))
    }

    @Test(arguments: [(-1, UInt32(0)), (0, 0), (65_536, .max), (65_535, 0xFFFF_0000)])
    func `compact intervals saturate`(seconds: Int, expected: UInt32) {
        #expect(Interval.seconds(seconds).compactNTP == expected)
    }
}
