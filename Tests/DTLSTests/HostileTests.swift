import DTLS
import Testing
import Wire

struct HostileTests {
    private static func garbage(using generator: inout SeededGenerator) -> [UInt8] {
        var bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
            UInt8.random(in: 0...255, using: &generator)
        }
        // Half of it passes for DTLS at the demultiplexer, a quarter has a record header that is nearly right.
        let kind = Int.random(in: 0..<4, using: &generator)
        if kind >= 2, !bytes.isEmpty { bytes[0] = UInt8.random(in: 20...63, using: &generator) }
        if kind == 3, bytes.count > 13 {
            bytes.replaceSubrange(0..<3, with: [UInt8.random(in: 20...23, using: &generator), 0xFE, 0xFD])
            bytes.replaceSubrange(3..<5, with: [0, UInt8.random(in: 0...1, using: &generator)])
            bytes.store(bigEndian: UInt16(bytes.count - 13), at: 11)
        }
        return bytes
    }

    @Test(arguments: 0..<40)
    func `garbage before every datagram does not end a handshake`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link(fate: { _, _, bytes in
            let junk = (0..<5).map { _ in
                Link.Delivery(bytes: Self.garbage(using: &generator), delay: Link.oneWay)
            }
            return junk + [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
        })
        link.start()
        link.run()
        #expect(link.isHealthy, "seed \(seed)")
        #expect(link.server.recordsDropped > 0)
    }

    @Test(arguments: 0..<13, [UInt64(0), 1, 2])
    func `a copy with a forged record header ahead of each datagram does not end a handshake`(
        position: Int,
        seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link(fate: { _, _, bytes in
            var forged = bytes
            forged[position] = forged[position] ^ UInt8.random(in: 1...255, using: &generator)
            return [forged, bytes].map { Link.Delivery(bytes: $0, delay: Link.oneWay) }
        })
        link.start()
        link.run()
        #expect(link.isHealthy)
    }

    @Test(arguments: 0..<200)
    func `any mutation ends in the same keys or in no keys, never in a trap`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link(
            mtuBytes: seed.isMultiple(of: 2) ? 1200 : 256,
            fate: { _, _, bytes in
                var forged = bytes
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    let position = Int.random(in: 0..<forged.count, using: &generator)
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0: forged[position] = UInt8.random(in: 0...255, using: &generator)
                    case 1: forged[position] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                    case 2 where forged.count > 1: forged.removeLast(min(forged.count - 1, position))
                    default: forged.insert(0xFF, at: position)
                    }
                }
                return [forged, bytes].map { Link.Delivery(bytes: $0, delay: Link.oneWay) }
            }
        )
        link.start()
        link.run()
        if let client = link.keys(.client), let server = link.keys(.server) {
            #expect(client.local == server.remote && client.remote == server.local, "seed \(seed)")
        }
        #expect(link.client.nextDeadline == nil && link.server.nextDeadline == nil, "seed \(seed)")
    }

    /// An unprotected fatal alert: handshake_failure.
    private static let alert: [UInt8] = [21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 99, 0, 2, 2, 40]

    @Test func `a forged alert ahead of every datagram does not end a handshake`() throws {
        let link = try Link(fate: { _, _, bytes in
            [Self.alert, bytes].map { Link.Delivery(bytes: $0, delay: Link.oneWay) }
        })
        link.start()
        link.run()
        #expect(link.isHealthy)
    }

    @Test func `an alert that the peer means ends the handshake after the grace`() throws {
        let link = try Link(fate: { _, _, _ in [] })
        link.start()
        link.inject(Self.alert, to: .client, delay: .milliseconds(50))
        link.run(stopWhen: { link.failure(.client) != nil })
        #expect(link.failure(.client) == .handshake)
        #expect(link.now == Instant(nanoseconds: 0) + .milliseconds(50) + DTLSConnection.refusalGrace)
    }

    @Test func `protected records ahead of their time are bounded and do not end a handshake`() throws {
        let link = try Link()
        link.fate = { _, _, bytes in
            let early = (0..<200).map { number -> Link.Delivery in
                var record: [UInt8] = [22, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, UInt8(number), 0, 48]
                record += [UInt8](repeating: 0xAA, count: 48)
                return Link.Delivery(bytes: record, delay: Link.oneWay)
            }
            return early + [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
        }
        link.start()
        link.run()
        #expect(link.isHealthy)
        #expect(link.client.recordsDropped >= 184)
    }

    @Test func `an established connection survives every mutation of a close_notify, and then closes by the real one`()
        throws
    {
        let link = try Link()
        link.start()
        link.run()
        var farewells: [[UInt8]] = []
        link.fate = { _, _, bytes in
            farewells.append(bytes)
            return []
        }
        link.client.close()
        link.run()
        let farewell = try #require(farewells.first)
        for position in farewell.indices {
            for bit in 0..<8 {
                var forged = farewell
                forged[position] ^= 1 << UInt8(bit)
                _ = link.server.receive(unsafe forged.span.bytes, at: link.now)
                try #require(link.server.isEstablished, "byte \(position), bit \(bit)")
            }
        }
        for length in 0..<farewell.count {
            let cut = Array(farewell.prefix(length))
            #expect(link.server.receive(unsafe cut.span.bytes, at: link.now) == nil)
        }
        guard case .closed = link.server.receive(unsafe farewell.span.bytes, at: link.now) else {
            Issue.record("the real close_notify was not understood")
            return
        }
    }

    @Test(arguments: 0..<10)
    func `garbage and the whole handshake over again leave an established connection alone`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Link()
        link.start()
        link.run()
        let recorded = link.sent
        for _ in 0..<300 {
            let junk = Self.garbage(using: &generator)
            #expect(link.server.receive(unsafe junk.span.bytes, at: link.now) == nil)
            #expect(link.client.receive(unsafe junk.span.bytes, at: link.now) == nil)
        }
        for datagram in recorded[.client] ?? [] { link.inject(datagram, to: .server) }
        for datagram in recorded[.server] ?? [] { link.inject(datagram, to: .client) }
        link.inject(Self.alert, to: .server)
        link.inject(Self.alert, to: .client)
        link.run()
        #expect(link.isHealthy)
        #expect(link.server.isEstablished && link.client.isEstablished)
        link.server.close()
        link.run()
        #expect(link.isClosed(.client))
    }

    @Test func `nothing is received or sent after a close`() throws {
        let link = try Link()
        link.start()
        link.server.close()
        link.run()
        #expect(link.events[.server]?.isEmpty == true)
        #expect(link.sent[.server]?.isEmpty == true)
        #expect(link.server.nextDeadline == nil)
        #expect(link.failure(.client) == .timedOut)
    }
}
