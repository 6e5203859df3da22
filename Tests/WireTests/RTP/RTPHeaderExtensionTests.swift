import Base
import TestSupport
import Testing
import Wire

struct RTPHeaderExtensionTests {
    /// Reads a packet with `elements`.
    static func read(
        _ elements: [(id: UInt8, data: [UInt8])]
    ) throws -> (bytes: [UInt8], data: [[UInt8]], ids: [UInt8]) {
        let bytes = makeRTP(
            payloadType: 111,
            marker: true,
            sequence: 0xFFFF,
            timestamp: 0xFFFF_FFFE,
            ssrc: 7,
            extensions: elements,
            payload: [0x55]
        )
        let view = try RTPPacketView(unsafe bytes.span.bytes)
        #expect(view.marker && view.payloadType.rawValue == 111 && view.sequenceNumber.rawValue == 0xFFFF)
        #expect(view.timestamp.rawValue == 0xFFFF_FFFE && view.ssrc.rawValue == 7)
        #expect(view.payload.array() == [0x55])
        var cursor = view.makeExtensionCursor()
        var data: [[UInt8]] = []
        var ids: [UInt8] = []
        while let element = cursor.next() {
            data.append(view.data(of: element).array())
            ids.append(element.id)
        }
        return (bytes, data, ids)
    }

    @Test func `no element means no extension`() throws {
        let result = try Self.read([])
        #expect(result.bytes.count == 13)
        #expect(result.bytes[0] == 0x80)
        #expect(result.ids.isEmpty)
    }

    @Test func `short elements take the one-byte form`() throws {
        let result = try Self.read([(1, [9]), (14, [1, 2, 3])])
        #expect(result.bytes[12..<24] == [0xBE, 0xDE, 0, 2, 0x10, 9, 0xE2, 1, 2, 3, 0, 0])
        #expect(result.ids == [1, 14])
        #expect(result.data == [[9], [1, 2, 3]])
    }

    @Test(
        arguments: [
            (15, [7]), (1, []), (2, [UInt8](repeating: 3, count: 17)), (255, [UInt8](repeating: 4, count: 255)),
        ] as [(UInt8, [UInt8])]
    )
    func `an element that needs it gives the block the two-byte form`(id: UInt8, data: [UInt8]) throws {
        let before: [(id: UInt8, data: [UInt8])] = [(1, [1]), (2, Array(1...16)), (3, [1, 2])]
        let result = try Self.read(before + [(id, data), (4, [8, 9])])
        #expect(result.bytes[12..<14] == [0x10, 0x00])
        #expect(result.ids == [1, 2, 3, id, 4])
        #expect(result.data == [[1], Array(1...16), [1, 2], data, [8, 9]])
    }

    @Test func `random element lists are read as they were written`() throws {
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
            let result = try Self.read(elements)
            #expect(result.ids == elements.map(\.id))
            #expect(result.data == elements.map(\.data))
        }
    }

    @Test func `identifiers are read`() {
        let (name, layer) = (Array("video-0".utf8), Array("hi".utf8))
        #expect(MID(unsafe name.span.bytes)?.value == "video-0")
        #expect(RID(unsafe layer.span.bytes)?.value == "hi")
    }

    /// The bits above the lowest are of experiments.
    @Test(arguments: [([], nil), ([0xFE], .unspecified), ([0x03, 0], .screenshare)] as [([UInt8], VideoContentType?)])
    func `the content type is the lowest bit`(data: [UInt8], expected: VideoContentType?) {
        #expect(VideoContentType(unsafe data.span.bytes) == expected)
    }

    @Test(arguments: [
        (Int64(0), UInt32(0)), (1_000_000_000, 0x40000), (500_000_000, 0x20000), (63_999_999_999, 0xFFFFFF),
        (64_000_000_000, 0), (-500_000_000, 0xFE0000),
    ])
    func `absolute send time is seconds in 18 fractional bits`(nanoseconds: Int64, expected: UInt32) {
        // 1970 began at a multiple of 64 s.
        #expect(NTPTimestamp(unixNanoseconds: nanoseconds).absoluteSendTime == expected)
    }

    @Test(arguments: [[], [0x80], [0xC3, 0x28], Array(repeating: 0x61, count: 33), [0x61, 0x20]] as [[UInt8]])
    func `text that is not an identifier is refused`(data: [UInt8]) {
        #expect(MID(unsafe data.span.bytes) == nil)
        #expect(RID(unsafe data.span.bytes) == nil)
    }

    @Test func `a playout delay has its minimum below its maximum, and 12 bits`() {
        #expect(PlayoutDelay(minimumUnits: 0x123, maximumUnits: 0xABC)?.wireValue == 0x12_3ABC)
        #expect(PlayoutDelay(minimumUnits: 2, maximumUnits: 1) == nil)
        #expect(PlayoutDelay(minimumUnits: 0, maximumUnits: PlayoutDelay.unitsMax + 1) == nil)
    }
}

struct NTPTimestampTests {
    @Test func `the Unix epoch is 2208988800`() {
        #expect(NTPTimestamp(unixNanoseconds: 0).rawValue == 0x83AA_7E80_0000_0000)
        #expect(NTPTimestamp(unixNanoseconds: 500_000_000).rawValue == 0x83AA_7E80_8000_0000)
        #expect(NTPTimestamp(unixNanoseconds: -500_000_000).rawValue == 0x83AA_7E7F_8000_0000)
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
