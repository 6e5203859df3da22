import ChannelTypes
import MediaTypes
import TestSupport
import Testing

@testable import Cluster

struct LinkFrameTests {
    private static let hello = LinkHello(
        cluster: ClusterName(rawValue: "test")!,
        instance: NodeInstance(node: NodeID(rawValue: "a")!, incarnation: NodeIncarnation(rawValue: 7)!),
        media: NodeIncarnation(rawValue: 0x80_0001)!
    )
    private static let frames: [LinkFrame] = [
        .hello(hello), .ping(1), .pong(.max), .channel([]), .channel([1, 2, 3]),
        .request(9, NodeRequest(kind: .hostingNodes, body: [4])), .response(9, nil), .response(9, []),
        .response(9, [5]),
        .goodbye(.stopping), .goodbye(.unused), .unused, .relay([]), .relay([1, 2]),
        .request(10, NodeRequest(kind: .callRoom, body: [4])),
    ]

    @Test func `frames are read as they were written, however the bytes arrive`() throws {
        let bytes = Self.frames.flatMap { $0.encoded() }
        for size in [1, 2, 3, 7, bytes.count] {
            var reader = LinkFrameReader()
            var read: [LinkFrame] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                reader.feed(bytes[start..<min(start + size, bytes.count)])
                while let frame = try reader.next() { read.append(frame) }
            }
            #expect(read == Self.frames)
        }
    }

    @Test func `a frame of a later version is told by its kind, and its question is answered`() throws {
        var reader = LinkFrameReader()
        reader.feed([0, 0, 0, 2, 200, 1] + LinkFrame.ping(3).encoded() + [0, 0, 0, 6, 5, 0, 0, 0, 1, 99])
        #expect(try reader.next() == .unknown(200))
        #expect(try reader.next() == .ping(3))
        #expect(try reader.next() == .request(1, NodeRequest(kind: .unknown, body: [])))
        #expect(try reader.next() == nil)
    }

    @Test(
        arguments: [
            [0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 2, 2, 1], [0, 0, 0, 3, 5, 0, 0], [0, 0, 0, 5, 5, 0, 0, 0, 1],
            [0, 0, 0, 5, 6, 0, 0, 0, 1], [0, 0, 0, 6, 6, 0, 0, 0, 1, 2], [0, 0, 0, 1, 7], [0, 0, 0, 3, 1, 123, 125],
        ] as [[UInt8]]
    ) func `a malformed frame is refused`(_ bytes: [UInt8]) {
        var reader = LinkFrameReader()
        reader.feed(bytes)
        #expect(throws: LinkFrameError.malformed) { try reader.next() }
    }

    @Test func `a frame is refused by its length, before its bytes arrive`() {
        var reader = LinkFrameReader()
        reader.feed([0, 0, 16, 1])
        #expect(throws: LinkFrameError.tooLong(4_097)) { try reader.next() }
        reader = LinkFrameReader(bytesMax: LinkFrame.bytesMax)
        reader.feed([0xFF, 0xFF, 0xFF, 0xFF])
        #expect(throws: LinkFrameError.tooLong(Int(UInt32.max))) { try reader.next() }
    }

    @Test func `random bytes never trap`() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            var reader = LinkFrameReader()
            let length = Int.random(in: 0...40, using: &generator)
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...8, using: &generator) }
            reader.feed(bytes)
            while (try? reader.next()) != nil {}
        }
    }

    @Test(arguments: [(1...1, 1), (1...2, 1), (0...1, 1), (2...3, nil), (0...0, nil)] as [(ClosedRange<Int>, Int?)])
    func `two builds speak the highest version that both know`(_ versions: ClosedRange<Int>, _ common: Int?) throws {
        var other = Self.hello
        other.versions = versions
        #expect(Self.hello.version(with: other) == common)
        #expect(other.version(with: Self.hello) == common)
        #expect(LinkHello(encoded: other.encoded) == other)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"cluster":"A","node":"a:1","media":1,"min":1,"max":1}"#,
        #"{"cluster":"a","node":"a","media":1,"min":1,"max":1}"#, #"{"cluster":"a","node":"a:1","min":1,"max":1}"#,
        #"{"cluster":"a","node":"a:1","media":16777216,"min":1,"max":1}"#,
        #"{"cluster":"a","node":"a:1","media":1,"min":2,"max":1}"#,
        #"{"cluster":"a","node":"a:1","media":1,"min":1,"max":1,"url":7}"#,
    ]) func `what is no hello is refused`(_ text: String) {
        #expect(LinkHello(encoded: Array(text.utf8)) == nil)
    }

    @Test func `a node says where clients reach it, and a build that does not is understood`() throws {
        var hello = Self.hello
        #expect(!String(decoding: hello.encoded, as: UTF8.self).contains("url"))
        hello.publicURL = "https://a.example.com:8443"
        #expect(LinkHello(encoded: hello.encoded) == hello)
        hello.publicURL = String(repeating: "u", count: 256)
        #expect(LinkHello(encoded: hello.encoded) == nil)
    }

    @Test func `a hello of a later version may have more fields`() {
        let text = #"{"cluster":"test","node":"a:7","media":8388609,"min":1,"max":1,"later":[1]}"#
        #expect(LinkHello(encoded: Array(text.utf8)) == Self.hello)
    }
}
