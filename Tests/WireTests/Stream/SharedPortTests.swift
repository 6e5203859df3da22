import Testing
import Wire

struct SharedPortTests {
    /// A ClientHello with the extensions of a browser.
    static func clientHello(
        serverName: String?,
        protocols: [String] = [],
        keyShareBytes: Int = 32,
        recordBytes: Int = 16_384
    ) -> [UInt8] {
        func vector(_ bytes: [UInt8], _ lengthBytes: Int) -> [UInt8] {
            (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        var extensions: [UInt8] = [0, 43] + vector([2, 3, 4], 2)
        if let serverName { extensions += [0, 0] + vector(vector([0] + vector(Array(serverName.utf8), 2), 2), 2) }
        if !protocols.isEmpty {
            extensions += [0, 16] + vector(vector(protocols.flatMap { vector(Array($0.utf8), 1) }, 2), 2)
        }
        extensions += [0, 51] + vector([UInt8](repeating: 5, count: keyShareBytes), 2)
        let body =
            [3, 3] + [UInt8](repeating: 9, count: 32) + vector([UInt8](repeating: 1, count: 32), 1)
            + vector([0x13, 0x01], 2) + vector([0], 1) + vector(extensions, 2)
        var message = [1] + vector(body, 3)
        var records: [UInt8] = []
        while !message.isEmpty {
            records += [22, 3, 1] + vector(Array(message.prefix(recordBytes)), 2)
            message.removeFirst(min(recordBytes, message.count))
        }
        return records
    }

    private func route(_ bytes: [UInt8], turnName: String = "turn.example") -> SharedPortRoute {
        SharedPortRouter(turnName: turnName).route(unsafe bytes.span.bytes)
    }

    private static let binding = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 2)).bytes
    private static let allocate = STUNMessageBuilder(
        .request,
        method: .allocate,
        transactionID: .init(high: 1, low: 2)
    ).bytes

    @Test(arguments: [
        ("TURN over TCP", SharedPortTests.allocate, SharedPortRoute.turn),
        ("a Binding request to the TURN server", SharedPortTests.binding, .turn),
        ("ICE over TCP", [0, 20] + SharedPortTests.binding, .iceTCP),
        ("an HTTP request", Array("GET / HTTP/1.1\r\n".utf8), .web),
        ("a WebDAV request", Array("PROPFIND / HTTP/1.1\r\n".utf8), .web),
        ("SSH", Array("SSH-2.0-OpenSSH\r\n".utf8), .refused),
        ("lower case", Array("get / HTTP/1.1\r\n".utf8), .refused),
        ("a TLS alert", [21, 3, 1, 0, 2, 1, 0], .refused),
        ("a server's hello", [22, 3, 1, 0, 4, 2, 0, 0, 0], .refused),
        ("RTP", [UInt8](repeating: 0x80, count: 40), .refused),
        ("zeros", [UInt8](repeating: 0, count: 40), .refused),
    ])
    func `the first bytes tell where a connection goes`(name: String, bytes: [UInt8], expected: SharedPortRoute) {
        #expect(route(bytes) == expected)
        // With fewer bytes it is either undecided or the same.
        for count in bytes.indices {
            let early = route(Array(bytes.prefix(count)))
            #expect(early == .undecided || early == expected, "\(count) bytes")
        }
    }

    @Test(
        arguments: [
            ("turn.example", "turn.example", [], SharedPortRoute.turnTLS),
            ("Turn.Example", "TURN.example", [], .turnTLS),
            ("turn.example", "turn.example", ["webrtc"], .turnTLS),
            ("turn.example", "turn.example", ["stun.turn"], .turnTLS),
            ("turn.example", "turn.example", ["h2", "http/1.1"], .web),
            ("turn.example", "turn.example", ["\u{DA}\u{DA}", "http/1.1"], .web),
            ("turn.example", "sfu.example", [], .web),
            ("turn.example", "sfu.example", ["h2"], .web),
            ("turn.example", "sfu.example", ["stun.turn"], .turnTLS),
            ("turn.example", nil, [], .web),
            ("turn.example", nil, ["stun.turn"], .turnTLS),
            ("192.0.2.1", nil, [], .turnTLS),
            ("192.0.2.1", nil, ["http/1.1"], .web),
            ("192.0.2.1", "sfu.example", [], .web),
        ] as [(String, String?, [String], SharedPortRoute)]
    )
    func `a ClientHello goes by its name and its protocols`(
        turnName: String,
        serverName: String?,
        protocols: [String],
        expected: SharedPortRoute
    ) {
        // One record, and records that cut the message anywhere; with a post-quantum key share.
        for (keyShareBytes, recordBytes) in [(32, 16_384), (1_216, 16_384), (1_216, 700), (32, 1), (32, 3)] {
            let bytes = Self.clientHello(
                serverName: serverName,
                protocols: protocols,
                keyShareBytes: keyShareBytes,
                recordBytes: recordBytes
            )
            #expect(route(bytes, turnName: turnName) == expected)
            #expect(route(bytes + [20, 3, 3, 0, 1, 1], turnName: turnName) == expected, "more may follow")
        }
    }

    @Test func `an incomplete ClientHello is undecided at every length`() {
        let bytes = Self.clientHello(serverName: "sfu.example", protocols: ["h2"], recordBytes: 100)
        for count in bytes.indices { #expect(route(Array(bytes.prefix(count))) == .undecided) }
    }

    private func routes(of pieces: [[UInt8]]) -> [SharedPortRoute] {
        var opening = SharedPortOpening(SharedPortRouter(turnName: "turn.example"))
        return pieces.map { opening.append(unsafe $0.span.bytes) }
    }

    @Test(arguments: [16_384, 700])
    func `a ClientHello in single bytes or in two segments is routed by its last byte`(recordBytes: Int) {
        let name = "turn.example"
        let bytes = Self.clientHello(serverName: name, keyShareBytes: 1_216, recordBytes: recordBytes)
        for cut in 1..<bytes.count {
            let found = routes(of: [Array(bytes[..<cut]), Array(bytes[cut...])])
            #expect(found == [.undecided, .turnTLS], "\(cut)")
        }
        guard recordBytes == 16_384 else { return }
        let found = routes(of: bytes.map { [$0] })
        #expect(found.dropLast().allSatisfy { $0 == .undecided } && found.last == .turnTLS)
    }

    @Test func `bytes that tell nothing are not looked at for ever`() {
        let records = Array(repeatElement([22, 3, 1, 0, 1, 7] as [UInt8], count: 100))
        let found = routes(of: [[22, 3, 1, 0, 4, 1, 0, 0x3F, 0xF0]] + records)
        #expect(found.first == .undecided && found.last == .refused)
        #expect(found.firstIndex(of: .refused).map { $0 < 80 } == true)
        // A record that is longer than what is looked at.
        #expect(routes(of: [[22, 3, 1, 0x40, 1, 1]]) == [.refused])
    }

    @Test func `a hello that never ends is refused`() {
        #expect(route([22, 3, 1, 0x40, 0, 1, 0, 0x40, 0]) == .refused, "longer than what is looked at")
        let trickle = [UInt8]([22, 3, 1, 0, 4, 1, 0, 0x3F, 0xF0]) + Array([[22, 3, 1, 0, 1, 7]].joined())
        #expect(route(trickle) == .undecided)
        let records = Array(repeatElement([22, 3, 1, 0, 1, 7] as [UInt8], count: 2_800).joined())
        #expect(route(Array(trickle.prefix(9)) + records) == .refused, "too many records")
    }

    @Test func `a changed byte never traps`() {
        let bytes = Self.clientHello(serverName: "a.example", protocols: ["h2"])
        for index in bytes.indices {
            for value in [0, 1, 0x7F, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = value
                _ = route(changed)
            }
        }
    }
}
