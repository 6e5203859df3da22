import Base
import DTLS
import TestSupport
import Testing

@Suite struct DataTests {
    private static func connected(acceptsData: Bool = true) throws -> Link {
        let link = try Link(acceptsData: acceptsData)
        link.start()
        link.run { link.isConnected }
        try #require(link.isHealthy)
        return link
    }

    @Test(arguments: [1, 2, 100, 1_188, 1_500])
    func `data of one record arrives as it was sent, both ways`(count: Int) throws {
        let link = try Self.connected()
        let sent = (0..<3).map { number in (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) } }
        for bytes in sent {
            #expect(link.send(bytes, from: .client))
            #expect(link.send(bytes.reversed(), from: .server))
        }
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == sent)
        #expect(link.data[.client] == sent.map { $0.reversed() })
        #expect(link.server.recordsDropped == 0 && link.client.recordsDropped == 0)
        let longest = link.sent[.client]?.map(\.count).max() ?? 0
        #expect(longest <= max(count + 37, 1_200), "13 bytes of header, 24 of AES-GCM")
    }

    @Test func `empty and long data is not sent`() throws {
        let link = try Self.connected()
        #expect(!link.send([], from: .client))
        #expect(!link.send([UInt8](repeating: 1, count: 1_501), from: .client))
    }

    @Test func `data is neither sent nor accepted when it was not negotiated`() throws {
        let link = try Self.connected(acceptsData: false)
        #expect(!link.send([1], from: .client))
        let before = link.server.recordsDropped
        link.inject([23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 1, 0, 25] + [UInt8](repeating: 1, count: 25), to: .server)
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [] && link.server.recordsDropped == before + 1)
    }

    @Test func `data before the handshake is complete is not sent`() throws {
        let link = try Link(acceptsData: true)
        #expect(!link.send([1], from: .client))
        link.start()
        #expect(!link.send([1], from: .client))
    }

    @Test(arguments: [UInt64(0), 1, 2])
    func `forged, damaged and repeated records are dropped and counted, and data goes on`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = try Self.connected()
        let first = link.sent[.client]?.count ?? 0
        link.send([1, 2, 3], from: .client)
        let record = try #require(link.sent[.client]?[first])
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [[1, 2, 3]])
        for index in record.indices {
            var damaged = record
            damaged[index] ^= UInt8.random(in: 1...255, using: &generator)
            link.inject(damaged, to: .server)
        }
        link.inject(record, to: .server)
        for length in [0, 1, 23, 24, 25, 1_524, 1_525, 2_000] {
            let header: [UInt8] = [23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 1, 0, UInt8(length >> 8), UInt8(length & 255)]
            link.inject(header + (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }, to: .server)
        }
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [[1, 2, 3]], "nothing of it is accepted")
        #expect(link.server.recordsDropped >= record.count - 2 && link.server.isEstablished)
        link.send([4], from: .client)
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [[1, 2, 3], [4]])
    }

    @Test func `a flood of records is bounded`() throws {
        let link = try Self.connected()
        let forged: [UInt8] = [23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 1, 0, 0, 40] + [UInt8](repeating: 7, count: 40)
        for _ in 0..<10_000 { _ = link.server.receive(unsafe forged.span.bytes, at: link.now) }
        let number = link.sent[.client]?.count ?? 0
        link.send([1], from: .client)
        let record = try #require(link.sent[.client]?[number])
        // If it were read now, it would be a replay when it arrives.
        _ = link.server.receive(unsafe record.span.bytes, at: link.now)
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [[1]], "the bucket is empty at first, and not any more when the record arrives")
        #expect(link.server.recordsDropped > 10_000)
    }

    @Test func `record buffers are freed a second after the last data, and allocated again for the next`() throws {
        let link = try Self.connected()
        link.run(until: link.now + .seconds(1))
        #expect(link.client.nextDeadline == nil && link.server.nextDeadline == nil)
        let first = link.now
        link.send([1], from: .client)
        #expect(link.client.nextDeadline == first + .seconds(1))
        link.run(until: first + .milliseconds(900))
        let second = link.now
        #expect(second > first && link.server.nextDeadline == second + .seconds(1), "it read at the time of arrival")
        link.send([2], from: .client)
        link.run(until: first + .seconds(1))
        #expect(link.client.nextDeadline == second + .seconds(1), "later data puts it off")
        link.run(until: second + .seconds(3))
        #expect(link.client.nextDeadline == nil && link.server.nextDeadline == nil)
        link.send([3], from: .client)
        link.send([4], from: .server)
        link.run(until: link.now + .seconds(3))
        #expect(link.data == [.server: [[1], [2], [3]], .client: [[4]]])
        #expect(link.server.recordsDropped == 0 && link.client.recordsDropped == 0)
    }

    @Test func `a closed connection waits for nothing`() throws {
        let link = try Self.connected()
        link.send([1], from: .client)
        link.client.close()
        #expect(link.client.nextDeadline == nil && link.client.hasOutput)
        link.collect()
        #expect(!link.client.hasOutput)
    }

    @Test func `a close_notify ends a connection with data`() throws {
        let link = try Self.connected()
        link.send([1], from: .client)
        link.client.close()
        link.collect()
        link.run(until: link.now + .seconds(1))
        #expect(link.data[.server] == [[1]] && link.isClosed(.server))
        #expect(!link.send([2], from: .client))
    }
}
