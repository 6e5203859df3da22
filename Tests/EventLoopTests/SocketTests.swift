import EventLoop
import Foundation
import TestSupport
import Testing
import Wire

@Suite(.timeLimit(.minutes(10)))
struct SocketTests {
    @Test func `thousands of datagrams are echoed unchanged and in batches`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let address = try await server.open().local
        _ = try await client.open()
        await server.run { host in
            let batch = DatagramBatch()
            let loop = host.loop
            loop.onDatagram = { slot, length, path, _ in
                batch.append(to: path, copying: slot.bytes.extracting(0..<length))
            }
            loop.onTurnEnd = { _ in loop.send(batch) }
        }
        let count = 5000
        let arrivals = await client.arrivals()
        // As many at a time as fit in the kernel's smallest default buffer.
        for start in stride(from: 0, to: count, by: 50) {
            let payloads = (start..<start + 50).map { payload($0) }
            await client.send(payloads, to: address)
            let returned = try await arrivals.collect(50)
            #expect(returned.map(\.bytes) == payloads)
            #expect(returned.allSatisfy { $0.path.remote == address })
        }
        let statistics = await server.statistics
        #expect(statistics.datagramsReceived == UInt64(count))
        #expect(statistics.datagramsSent == UInt64(count))
        #expect(statistics.bytesSent == statistics.bytesReceived)
        #expect(statistics.receiveCalls < UInt64(count), "several datagrams a call")
        #expect(statistics.sendCalls < UInt64(count), "several datagrams a call")
        #expect(statistics.turns < UInt64(count))
        await server.loop.stop()
        await client.loop.stop()
    }

    private func payload(_ number: Int) -> [UInt8] {
        let length = 1 + number * 37 % DatagramBatch.slotBytes
        return (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ number) }
    }

    @Test func `a socket on all addresses serves IPv4 and IPv6 and reports IPv4 peers as IPv4`() async throws {
        let server = try LoopHost("server")
        let port: UInt16
        do {
            port = try await server.open("[::]:0").local.port
        } catch EventLoopError.ipv6NotAvailable {
            throw MissingIPv6()
        }
        let arrivals = await server.arrivals()
        for ip in [IPAddress.loopbackV4, .loopbackV6] {
            let client = try LoopHost("client")
            let local = try await client.open("\(TransportAddress(ip: ip, port: 0))").local
            await client.send([[1]], to: TransportAddress(ip: ip, port: port))
            let arrival = try await arrivals.collect(1)[0]
            #expect(arrival.path.remote == local)
            #expect(arrival.path.remote.ip == ip)
            let answers = await client.arrivals()
            await server.send([[2]], to: arrival.path.remote)
            #expect(try await answers.collect(1)[0].bytes == [2])
            await client.loop.stop()
        }
        await server.loop.stop()
    }

    @Test func `datagrams of one batch are sent from the socket of their path`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        let first = try await client.open()
        let second = try await client.open()
        let arrivals = await server.arrivals()
        await client.run { host in
            let batch = DatagramBatch()
            for number in 0..<10 {
                let socket = number % 2 == 0 ? first.index : second.index
                batch.append(
                    to: NetworkPath(socket: socket, remote: target),
                    [UInt8(number)]
                )
            }
            batch.append(
                to: NetworkPath(socket: SocketIndex(rawValue: 9), remote: target),
                [99]
            )
            batch.append(to: NetworkPath(local: LocalEndpoint(.tcp, index: 0), remote: target), [98])
            host.loop.send(batch)
        }
        for arrival in try await arrivals.collect(10) {
            let expected = arrival.bytes[0] % 2 == 0 ? first.local : second.local
            #expect(arrival.path.remote == expected)
        }
        #expect(await client.statistics.sendEndpointDrops == 2, "paths of no socket are counted")
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `a port in use is reported in one sentence`() async throws {
        let first = try LoopHost()
        let second = try LoopHost()
        let local = try await first.open().local
        await #expect(throws: EventLoopError.addressInUse(local)) { try await second.open("\(local)") }
        let message = EventLoopError.addressInUse(local).message
        #expect(message.contains("127.0.0.1") && message.contains("\(local.port)"))
        #expect(message.contains("another process uses it"))
        await first.loop.stop()
        #expect(try await second.open("\(local)").local == local, "a refused address does no harm")
        await second.loop.stop()
    }

    @Test(arguments: ["192.0.2.1:0", "[2001:db8::1]:0"])
    func `an address that is not local is refused`(text: String) async throws {
        let host = try LoopHost()
        let address = try #require(TransportAddress(text))
        let error = await #expect(throws: EventLoopError.self) { try await host.open(text) }
        #expect([.addressNotAvailable(address), .ipv6NotAvailable(address)].contains(error))
        #expect(error?.message.contains("choose") == true)
        await host.loop.stop()
    }

    @Test func `the number of sockets is bounded`() async throws {
        let host = try LoopHost()
        for _ in 0..<EventLoop.socketsMaxDefault { _ = try await host.open() }
        await #expect(throws: EventLoopError.self) { try await host.open() }
        await host.loop.stop()
    }

    @Test(arguments: [BufferShortfall.Setting.receive, .send])
    func `a buffer that the kernel limits is reported with the sysctl and its value`(
        setting: BufferShortfall.Setting
    ) async throws {
        let host = try LoopHost()
        let file = "/proc/sys/" + setting.rawValue.replacing(".", with: "/")
        let limit = try #require(Int(String(contentsOfFile: file, encoding: .utf8).dropLast()))
        let wanted = limit + 4096
        let options = SocketOptions(
            receiveBufferBytes: setting == .receive ? wanted : 16384,
            sendBufferBytes: setting == .send ? wanted : 16384,
            exceedsKernelLimits: false
        )
        let description = try await host.open(options: options)
        try #require(description.shortfalls.count == 1)
        let shortfall = description.shortfalls[0]
        #expect(shortfall.setting == setting)
        #expect(shortfall.requestedBytes == wanted)
        #expect(shortfall.grantedBytes == limit)
        #expect(shortfall.message.contains("sysctl -w \(setting.rawValue)=\(wanted)"))
        let other = setting == .receive ? description.sendBufferBytes : description.receiveBufferBytes
        #expect(other >= 16384)
        await host.loop.stop()
    }

    @Test func `a full batch is flushed by its callback, and without one it counts dropped datagrams`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        let refused = await client.run { host in
            let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: target)
            let batch = DatagramBatch(capacity: 4)
            let loop = host.loop
            batch.onFull = { loop.send($0) }
            for number in 0..<30 { batch.append(to: path, [UInt8(number)]) }
            loop.send(batch)
            batch.onFull = nil
            for number in 0..<6 { batch.append(to: path, [UInt8(100 + number)]) }
            loop.send(batch)
            return batch.overflowed
        }
        #expect(refused == 2)
        let numbers = try await arrivals.collect(34).map { $0.bytes[0] }
        #expect(numbers == Array(0..<30) + Array(100..<104))
        await server.loop.stop()
        await client.loop.stop()
    }

    /// With GRO one read may return 16 messages of 64 datagrams, which are all delivered.
    @Test(arguments: [(gro: true, count: 1_500, most: 16 * 64), (gro: false, count: 300, most: 256)])
    func `a flooded socket does not starve the others`(gro: Bool, count: Int, most: Int) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let flooded = try await server.open(options: SocketOptions(usesGRO: gro)).local
        let quiet = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        // Both sockets receive while the server's loop is busy with sending.
        await server.run { _ in
            let done = DispatchSemaphore(value: 0)
            Task {
                await client.send(Array(repeating: [0], count: count), to: flooded)
                await client.send([[1]], to: quiet)
                done.signal()
            }
            done.wait()
        }
        let bytes = try await arrivals.collect(count + 1).map { $0.bytes[0] }
        let place = try #require(bytes.firstIndex(of: 1))
        #expect(place <= most, "the quiet socket waits for one turn at most")
        await server.loop.stop()
        await client.loop.stop()
    }
}
