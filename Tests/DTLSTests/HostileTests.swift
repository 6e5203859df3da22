import Base
import DTLS
import TestSupport
import Testing
import Wire

struct HostileTests {
    private static func garbage(using generator: inout SeededGenerator) -> [UInt8] {
        var bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
            UInt8.random(in: 0...255, using: &generator)
        }
        // Half of it is demultiplexed as DTLS, and a quarter has an almost valid record header.
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
    func `any mutation ends with matching keys or without keys, never in a trap`(seed: UInt64) throws {
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

    @Test func `an unprotected fatal alert ends the handshake after the grace period`() throws {
        let link = try Link(fate: { _, _, _ in [] })
        link.start()
        link.inject(Self.alert, to: .client, delay: .milliseconds(50))
        link.run(stopWhen: { link.failure(.client) != nil })
        #expect(link.failure(.client) == .handshake)
        #expect(link.now == Instant(nanoseconds: 0) + .milliseconds(50) + DTLSConnection.refusalGrace)
    }

    @Test func `early protected records are bounded and do not end a handshake`() throws {
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
        // Each side gets 200 before a cipher is chosen, which it drops, and 200 after that, of which it keeps 16.
        #expect(link.client.recordsDropped >= 384 && link.server.recordsDropped >= 384)
    }

    @Test func `an established connection ignores every mutation of a close_notify and closes on the real one`()
        throws
    {
        let link = try Link()
        link.start()
        link.run()
        var closeNotifies: [[UInt8]] = []
        link.fate = { _, _, bytes in
            closeNotifies.append(bytes)
            return []
        }
        link.client.close()
        link.run()
        let closeNotify = try #require(closeNotifies.first)
        for position in closeNotify.indices {
            for bit in 0..<8 {
                var forged = closeNotify
                forged[position] ^= 1 << UInt8(bit)
                _ = link.server.receive(unsafe forged.span.bytes, at: link.now)
                try #require(link.server.isEstablished, "byte \(position), bit \(bit)")
            }
        }
        for length in 0..<closeNotify.count {
            let cut = Array(closeNotify.prefix(length))
            #expect(link.server.receive(unsafe cut.span.bytes, at: link.now) == nil)
        }
        // The forged records used up the budget: the real one is not even read. The next token comes after 100 ms.
        #expect(link.server.receive(unsafe closeNotify.span.bytes, at: link.now) == nil)
        let later = link.now + .milliseconds(100)
        guard case .closed = link.server.receive(unsafe closeNotify.span.bytes, at: later) else {
            Issue.record("the real close_notify was not understood")
            return
        }
    }

    @Test(arguments: 0..<10)
    func `garbage and a replay of the whole handshake do not affect an established connection`(seed: UInt64) throws {
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

    /// A protected record of `count` bytes of garbage.
    private static func protected(_ kind: UInt8, _ count: Int, using generator: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = [kind, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 9]
        bytes.append(bigEndian: UInt16(count))
        return bytes + (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    @Test func `protected garbage of every length is counted and does not affect an established connection`() throws {
        var generator = SeededGenerator(seed: 5)
        let link = try Link()
        link.start()
        link.run()
        let sent = link.sent[.server]?.count
        var now = link.now
        var records = 0
        for kind in [21, 22] as [UInt8] {
            for count in 1...300 {
                let record = Self.protected(kind, count, using: &generator)
                // Also several records in one datagram.
                for datagram in [record, record + record + record] {
                    now = now + .milliseconds(400)
                    #expect(link.server.receive(unsafe datagram.span.bytes, at: now) == nil)
                }
                records += 4
            }
        }
        #expect(link.server.isEstablished)
        #expect(link.server.recordsDropped == records)
        link.collect()
        #expect(link.sent[.server]?.count == sent, "nothing is answered")
    }

    @Test func `a flood of protected garbage costs a bounded number of decryptions, and the peer can still close`()
        throws
    {
        var generator = SeededGenerator(seed: 6)
        let link = try Link()
        link.start()
        link.run()
        let record = Self.protected(21, 26, using: &generator)
        let datagram = Array(repeatElement(record, count: 30).joined())
        for _ in 0..<1_000 { #expect(link.server.receive(unsafe datagram.span.bytes, at: link.now) == nil) }
        #expect(link.server.recordsDropped == 30_000)
        link.client.close()
        link.fate = { _, _, bytes in [Link.Delivery(bytes: bytes, delay: .milliseconds(200))] }
        link.run()
        #expect(link.isClosed(.server))
    }

    /// One plaintext handshake message in one record.
    private static func message(_ kind: UInt8, _ sequence: UInt16, _ body: [UInt8]) -> [UInt8] {
        let length: [UInt8] = [0, UInt8(body.count >> 8), UInt8(body.count & 0xFF)]
        var message = [kind] + length
        message.append(bigEndian: sequence)
        message += [0, 0, 0] + length + body
        var record: [UInt8] = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0]
        record.append(bigEndian: UInt16(message.count))
        return record + message
    }

    @Test(arguments: 0..<26 as Range<UInt8>)
    func `plaintext messages ahead of the ClientHello do not end or block the handshake`(kind: UInt8) throws {
        let link = try Link()
        for sequence in 0..<8 as Range<UInt16> where kind != 1 || sequence > 0 {
            link.inject(Self.message(kind, sequence, [1, 2, 3]), to: .server)
        }
        link.inject([20, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], to: .server)
        link.inject([23, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], to: .server)
        link.inject([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0], to: .server)
        link.inject([22, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5], to: .server)
        link.start()
        link.run()
        #expect(link.isHealthy)
    }

    @Test(arguments: 0..<26 as Range<UInt8>)
    func `unexpected plaintext messages between the flights do not end the handshake`(
        kind: UInt8
    ) throws {
        let numbers: [UInt8: UInt16] = [1: 0, 11: 1, 16: 2, 15: 3]
        let link = try Link()
        var isInjected = false
        link.fate = { [unowned link] side, _, bytes in
            if side == .server, !isInjected {
                isInjected = true
                for sequence in 0..<8 as Range<UInt16> where numbers[kind] != sequence {
                    link.inject(Self.message(kind, sequence, [1, 2, 3]), to: .server)
                }
                // A warning, a fatal alert, ChangeCipherSpec, application data, and protected records too short for
                // any cipher.
                link.inject([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0], to: .server)
                link.inject([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 40], to: .server)
                link.inject([20, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], to: .server)
                link.inject([23, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], to: .server)
                link.inject([22, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5], to: .server)
                link.inject([21, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0], to: .server)
            }
            return [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
        }
        link.start()
        link.run()
        #expect(isInjected)
        #expect(link.isHealthy)
    }

    /// The first three bytes of a plaintext handshake message of `length` bytes, in one record.
    private static func fragment(_ kind: UInt8, _ sequence: UInt16, of length: Int) -> [UInt8] {
        var record: [UInt8] = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15]
        record += [kind, UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
        record.append(bigEndian: sequence)
        return record + [0, 0, 0, 0, 0, 3, 1, 2, 3]
    }

    /// OpenSSL would buffer the first one, and end the handshake at the second.
    @Test(arguments: [16_385, 0xFF_FFFF])
    func `a fragment of a message longer than any certificate chain is dropped, and the handshake goes on`(
        length: Int
    ) throws {
        let link = try Link()
        link.start()
        // Ahead of the ServerHello, as one.
        link.inject(Self.fragment(2, 0, of: length), to: .client)
        link.run()
        #expect(link.isHealthy)
        #expect(link.client.recordsDropped == 1)
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
