import TLS
import TestSupport
import Testing

/// A client and a server, with a network that cuts what they send into pieces.
private final class Link {
    let client: TLSStream
    let server: TLSStream
    var pieceBytes: Int
    var atServer: [UInt8] = []
    var atClient: [UInt8] = []

    init(pieceBytes: Int = .max, minorMax: Int32 = 3) throws {
        server = try TLSStream(Link.certificate())
        client = try TLSStream.client(name: "localhost", minorMax: minorMax)
        self.pieceBytes = pieceBytes
    }

    static func certificate() throws -> TLSCertificate {
        try TLSCertificate(chain: Array(TestCertificate.chain.utf8), key: Array(TestCertificate.key.utf8))
    }

    private static func array(_ data: RawSpan) -> [UInt8] { unsafe data.withUnsafeBytes { unsafe Array($0) } }

    func deliver(_ bytes: [UInt8], to stream: TLSStream) {
        for start in stride(from: 0, to: bytes.count, by: min(pieceBytes, max(bytes.count, 1))) {
            let piece = Array(bytes[start..<min(start + min(pieceBytes, bytes.count), bytes.count)])
            stream.receive(unsafe piece.span.bytes) { data in
                if stream === server { atServer += Link.array(data) } else { atClient += Link.array(data) }
            }
        }
    }

    /// Carries everything until neither side has more to say.
    func run() {
        while client.hasOutput || server.hasOutput {
            deliver(client.takeOutput(), to: server)
            deliver(server.takeOutput(), to: client)
        }
    }

    func connected() -> Self {
        run()
        #expect(client.status == .open && server.status == .open)
        return self
    }

    func send(_ bytes: [UInt8], from stream: TLSStream) -> Bool { stream.send(unsafe bytes.span.bytes) }
}

struct TLSStreamTests {
    @Test(arguments: [1, 2, 7, 1_000, Int.max], [2, 3] as [Int32])
    func `both sides connect and exchange data, however the connection is cut`(pieceBytes: Int, minor: Int32) throws {
        let link = try Link(pieceBytes: pieceBytes, minorMax: minor).connected()
        #expect(link.server.version == "TLSv1.\(minor)")
        let up = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for start in stride(from: 0, to: up.count, by: 10_000) {
            #expect(link.send(Array(up[start..<start + 10_000]), from: link.client))
        }
        let down = [UInt8](repeating: 9, count: TLSStream.recordBytesMax)
        #expect(link.send(down, from: link.server))
        link.run()
        #expect(link.atServer == up && link.atClient == down)
    }

    @Test func `what is sent at once is one record`() throws {
        let link = try Link().connected()
        for count in [1, 100, TLSStream.recordBytesMax] {
            #expect(link.send([UInt8](repeating: 1, count: count), from: link.server))
            let output = link.server.takeOutput()
            #expect(output[0] == 23 && Int(output[3]) << 8 + Int(output[4]) == output.count - 5)
            #expect(output.count <= count + 22, "the header, the content's type and the tag")
        }
    }

    @Test(arguments: [0, 1] as [Int32])
    func `versions before TLS 1,2 are refused, with an alert`(minor: Int32) throws {
        let link = try Link(minorMax: minor)
        link.deliver(link.client.takeOutput(), to: link.server)
        #expect(link.server.status == .failed)
        #expect(link.server.takeOutput().first == 21)
    }

    @Test(
        arguments: [
            ("HTTP", Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)),
            ("STUN", [0, 3, 0, 8, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 0, count: 20)),
            ("a hello of SSL 2", [0x80, 46, 1, 3, 1, 0, 21, 0, 0, 0, 16]),
            ("application data", [23, 3, 3, 0, 4, 1, 2, 3, 4]),
            ("an alert", [21, 3, 1, 0, 2, 2, 40]),
            ("a record that is too long", [22, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 100)),
            ("a hello of nonsense", [22, 3, 1, 0, 8, 1, 0, 0, 4, 9, 9, 9, 9]),
        ] as [(String, [UInt8])]
    )
    func `what is no handshake ends the connection`(name: String, bytes: [UInt8]) throws {
        let link = try Link()
        link.deliver(bytes, to: link.server)
        #expect(link.server.status == .failed)
        link.deliver(bytes, to: link.server)
        #expect(!link.send([1], from: link.server) && link.atServer.isEmpty)
    }

    @Test func `random bytes and changed handshakes end a connection or wait, and never trap`() throws {
        var generator = SeededGenerator(seed: 5)
        for round in 0..<200 {
            let link = try Link()
            var bytes = link.client.takeOutput()
            if round % 2 == 0 {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= UInt8.random(
                    in: 1...255,
                    using: &generator
                )
            } else {
                bytes = (0..<Int.random(in: 1...500, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
            }
            link.deliver(bytes, to: link.server)
            #expect(link.server.status != .open)
        }
    }

    @Test func `a handshake that never ends is cut off`() throws {
        let link = try Link()
        // A ClientHello of 128 kilobytes, in records of 16.
        var bytes: [UInt8] = [1, 1, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 16_380)
        for _ in 0..<3 {
            link.deliver([22, 3, 1, 0x40, 0] + bytes, to: link.server)
            bytes = [UInt8](repeating: 0, count: 16_384)
        }
        #expect(link.server.status == .failed)
    }

    @Test func `a changed record ends the connection`() throws {
        let link = try Link().connected()
        #expect(link.send([1, 2, 3], from: link.client))
        var record = link.client.takeOutput()
        record[record.count - 1] ^= 1
        link.deliver(record, to: link.server)
        #expect(link.server.status == .failed && link.atServer.isEmpty)
    }

    @Test func `half a handshake waits, and sends nothing`() throws {
        let link = try Link()
        let hello = link.client.takeOutput()
        link.deliver(Array(hello.dropLast()), to: link.server)
        #expect(link.server.status == .handshaking && !link.server.hasOutput)
        #expect(!link.send([1], from: link.server))
        link.deliver(Array(hello.suffix(1)), to: link.server)
        #expect(link.server.status == .handshaking && link.server.hasOutput)
    }

    @Test func `what waits to be written is bounded`() throws {
        let link = try Link().connected()
        let record = [UInt8](repeating: 1, count: TLSStream.recordBytesMax)
        var sent = 0
        while link.send(record, from: link.server), sent < 100 { sent += 1 }
        #expect(sent == 3 && link.server.status == .failed)
        #expect(link.server.takeOutput().count <= TLSStream.outputBytesMax)
    }

    @Test func `a certificate and a key that do not fit are told`() throws {
        let chain = Array(TestCertificate.chain.utf8)
        let key = Array(TestCertificate.key.utf8)
        #expect(throws: TLSError.certificate) { try TLSCertificate(chain: [], key: key) }
        #expect(throws: TLSError.certificate) { try TLSCertificate(chain: key, key: key) }
        #expect(throws: TLSError.key) { try TLSCertificate(chain: chain, key: []) }
        #expect(throws: TLSError.key) { try TLSCertificate(chain: chain, key: chain) }
        let other = Array(TestCertificate.otherKey.utf8)
        #expect(throws: TLSError.mismatch) { try TLSCertificate(chain: chain, key: other) }
        _ = try TLSCertificate(chain: chain + [10] + chain, key: key)
    }
}
