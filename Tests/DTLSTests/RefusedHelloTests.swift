import Base
import DTLS
import Testing

/// ClientHellos that the server cannot accept.
struct RefusedHelloTests {
    /// A ClientHello in one record (RFC 6347 §4.2), with use_srtp.
    private static func hello(version: UInt16, cipherSuites: [UInt16], extensions: [UInt8] = []) -> [UInt8] {
        var body: [UInt8] = []
        body.append(bigEndian: version)
        body += [UInt8](repeating: 0x5A, count: 32) + [0, 0]
        body.append(bigEndian: UInt16(2 * cipherSuites.count))
        for suite in cipherSuites { body.append(bigEndian: suite) }
        body += [1, 0]
        // use_srtp: AEAD_AES_128_GCM; supported_groups: P-256; signature_algorithms: ecdsa_secp256r1_sha256.
        var all: [UInt8] = [0, 14, 0, 5, 0, 2, 0, 7, 0, 0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3]
        all += extensions
        body.append(bigEndian: UInt16(all.count))
        body += all
        let length: [UInt8] = [0, UInt8(body.count >> 8), UInt8(body.count & 0xFF)]
        let message: [UInt8] = [1] + length + [0, 0, 0, 0, 0] + length + body
        var record: [UInt8] = [22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0]
        record.append(bigEndian: UInt16(message.count))
        return record + message
    }

    enum Case: CaseIterable {
        case dtls10, dtls13Only, noCommonSuite, badExtensions
        var bytes: [UInt8] {
            switch self {
            case .dtls10: hello(version: 0xFEFF, cipherSuites: [0xC009, 0xC00A])
            // supported_versions: DTLS 1.3; TLS_AES_128_GCM_SHA256.
            case .dtls13Only:
                hello(version: 0xFEFD, cipherSuites: [0x1301], extensions: [0, 43, 0, 3, 2, 0xFE, 0xFC])
            case .noCommonSuite: hello(version: 0xFEFD, cipherSuites: [0x009C])
            case .badExtensions: hello(version: 0xFEFD, cipherSuites: [0xC02B], extensions: [0, 10, 0, 9, 1])
            }
        }
    }

    @Test func `a valid hand-made hello is answered`() throws {
        let link = try Link()
        let bytes = Self.hello(version: 0xFEFD, cipherSuites: [0xC02B])
        #expect(link.server.receive(unsafe bytes.span.bytes, at: link.now) == nil)
        var first: [UInt8] = []
        link.server.drainOutput { if first.isEmpty { first = $0.array() } }
        #expect(first.first == 22)
    }

    @Test(arguments: Case.allCases)
    func `an unacceptable hello gets an alert, and the handshake fails`(hello: Case) throws {
        let link = try Link()
        link.server.start(at: link.now)
        let bytes = hello.bytes
        #expect(link.server.receive(unsafe bytes.span.bytes, at: link.now) == nil)
        link.collect()
        #expect(link.sent[.server]?.map { $0.first } == [21])
        link.run(stopWhen: { link.failure(.server) != nil })
        #expect(link.failure(.server) == .handshake)
        #expect(link.now == Instant(nanoseconds: 0) + DTLSConnection.refusalGrace)
    }

    @Test(arguments: Case.allCases)
    func `a forged hello ahead of the real one does not end the handshake`(hello: Case) throws {
        let link = try Link()
        for _ in 0..<3 { link.inject(hello.bytes, to: .server) }
        link.start()
        link.run()
        #expect(link.isHealthy)
    }

    @Test func `a flood of bad hellos is answered a bounded number of times`() throws {
        let link = try Link()
        for _ in 0..<100 { link.inject(Case.noCommonSuite.bytes, to: .server) }
        link.run()
        #expect(link.failure(.server) == .handshake)
        #expect((link.sent[.server]?.count ?? 0) <= 17)
    }
}
