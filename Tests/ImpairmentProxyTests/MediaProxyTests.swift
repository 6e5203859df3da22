import Base
import EventLoop
import Impairment
import TestSupport
import Testing
import Wire

@testable import ImpairmentProxy

/// A UDP socket on a loop of its own, which records what arrives and may answer it.
private actor Endpoint {
    private nonisolated let loop = EventLoop(name: "endpoint")
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.executor.asUnownedSerialExecutor() }
    private let batch = DatagramBatch()
    private let echoes: Bool
    private let arrivals: AsyncStream<(bytes: [UInt8], from: TransportAddress)>.Continuation
    nonisolated let received: AsyncStream<(bytes: [UInt8], from: TransportAddress)>

    init(echoes: Bool) throws {
        self.echoes = echoes
        (received, arrivals) = AsyncStream.makeStream()
        try loop.start()
    }

    func open() throws -> TransportAddress {
        let socket = try loop.addSocket(bind: TransportAddress(ip: .loopbackV4, port: 0))
        loop.onDatagram = { [self] datagram, length, path, _ in
            let bytes = datagram.bytes.extracting(0..<length)
            arrivals.yield((bytes.array(), path.remote))
            if echoes { batch.append(to: path, copying: bytes) }
        }
        loop.onTurnEnd = { [self] _ in loop.send(batch) }
        return try #require(loop.description(of: socket)?.local)
    }

    func send(_ bytes: [UInt8], to remote: TransportAddress) {
        unsafe batch.append(
            to: NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote),
            copying: bytes.span.bytes
        )
        loop.send(batch)
    }

    func stop() async {
        arrivals.finish()
        await loop.stop()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct MediaProxyTests {
    @Test func `clients reach the server through sockets of their own, and the answers come back`() async throws {
        let server = try Endpoint(echoes: true)
        let clients = [try Endpoint(echoes: false), try Endpoint(echoes: false)]
        let address = try await server.open()
        var configuration = MediaProxy.Configuration(listen: .loopbackV4, firstPort: 0, ports: 2)
        configuration.down = try LinkConditions(parsing: "delay=20ms,rate=1M")
        let proxy = try await MediaProxy.start(configuration)
        let port = try #require(proxy.ports.port(for: address))
        for (number, client) in clients.enumerated() {
            _ = try await client.open()
            await client.send([UInt8(number), 2, 3], to: TransportAddress(ip: .loopbackV4, port: port))
        }
        var sources: Set<TransportAddress> = []
        for await (_, from) in server.received {
            sources.insert(from)
            if sources.count == 2 { break }
        }
        for (number, client) in clients.enumerated() {
            var answers = client.received.makeAsyncIterator()
            let answer = try #require(await answers.next())
            #expect(answer.bytes == [UInt8(number), 2, 3])
            #expect(answer.from.port == port)
        }
        let status = await proxy.status()
        #expect(status.clients == 2)
        #expect(status.down.statistics.packetsDelivered == 2)
        #expect(status.up.statistics.packetsSent == 2)
        #expect(try #require(status.elapsed) >= .milliseconds(20))
        #expect(status.down.conditions == "1 Mbit/s, 20 ms delay")
        await proxy.shutdown()
        await server.stop()
        for client in clients { await client.stop() }
    }

    @Test func `a change of the link releases what it holds`() async throws {
        let server = try Endpoint(echoes: true)
        let client = try Endpoint(echoes: false)
        let address = try await server.open()
        _ = try await client.open()
        var configuration = MediaProxy.Configuration(listen: .loopbackV4, firstPort: 0, ports: 1)
        configuration.down = try LinkConditions(parsing: "rate=0/1M@10000s")
        configuration.isPerClient = true
        let proxy = try await MediaProxy.start(configuration)
        let port = try #require(proxy.ports.port(for: address))
        await client.send([7], to: TransportAddress(ip: .loopbackV4, port: port))
        try await eventually("the link holds the answer") { await proxy.status().down.queuePackets > 0 }
        await proxy.change(.down, to: LinkConditions())
        var answers = client.received.makeAsyncIterator()
        #expect(await answers.next()?.bytes == [7])
        #expect(await proxy.status().down.conditions == "unlimited")
        await proxy.shutdown()
        await server.stop()
        await client.stop()
    }
}
