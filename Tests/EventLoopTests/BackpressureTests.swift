import Glibc
import Testing
import Wire

@testable import EventLoop

@Suite(.timeLimit(.minutes(1)))
struct BackpressureTests {
    /// Makes the loop's first socket refuse `refusals` calls with `code` before it sends again.
    private func refuse(_ host: LoopHost, code: Int32, refusals: Int) async {
        await host.run { host in
            let socket = host.loop.sockets[0]
            let send = unsafe socket.transmit
            var left = refusals
            unsafe socket.transmit = { descriptor, isV6, first, count in
                if left > 0 {
                    left -= 1
                    return -Int(code)
                }
                return unsafe send(descriptor, isV6, first, count)
            }
        }
    }

    @Test func `what a full buffer refuses waits and leaves in order`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await refuse(client, code: EAGAIN, refusals: 2)
        let queued = await client.run { host in
            host.send((0..<100).map { [UInt8($0)] }, to: target)
            host.send((100..<150).map { [UInt8($0)] }, to: target)
            return host.loop.queuedDatagrams
        }
        #expect(queued == 150)
        let numbers = await arrivals.collect(150).map { $0.bytes[0] }
        #expect(numbers == Array(0..<150))
        let statistics = await client.statistics
        #expect(statistics.sendQueued == 150)
        #expect(statistics.sendQueueDrops == 0)
        #expect(statistics.datagramsSent == 150)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `the queue is bounded, and what it cannot take is counted`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        await refuse(client, code: EAGAIN, refusals: .max)
        await client.send(Array(repeating: [7], count: SendQueue.capacity + 30), to: target)
        let statistics = await client.statistics
        #expect(statistics.sendQueued == UInt64(SendQueue.capacity))
        #expect(statistics.sendQueueDrops == 30)
        #expect(statistics.datagramsSent == 0)
        await client.loop.stop()
        #expect(await client.statistics.sendQueueDrops == UInt64(SendQueue.capacity) + 30)
        await server.loop.stop()
    }

    @Test(arguments: [EPERM, ENETUNREACH, ENOBUFS, EMSGSIZE])
    func `a datagram that the system refuses is dropped and the rest is sent`(code: Int32) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        // Twice refused is refused; the third call is for the next datagram.
        await refuse(client, code: code, refusals: 2)
        await client.send([[1], [2], [3]], to: target)
        #expect(await arrivals.collect(2).map(\.bytes) == [[2], [3]])
        let statistics = await client.statistics
        #expect(statistics.sendErrorDrops == 1)
        #expect(statistics.datagramsSent == 2)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `an error about an earlier datagram costs the next one nothing`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await refuse(client, code: ECONNREFUSED, refusals: 1)
        await client.send([[1], [2]], to: target)
        #expect(await arrivals.collect(2).map(\.bytes) == [[1], [2]])
        #expect(await client.statistics.sendErrorDrops == 0)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `ICMP errors do not stop a socket`() async throws {
        let host = try LoopHost()
        let gone = try LoopHost()
        let local = try await host.open().local
        let closed = try await gone.open().local
        await gone.loop.stop()
        let descriptor = await host.run { host in
            // With this the kernel reports ICMP errors at sockets that are not connected.
            var on: Int32 = 1
            let descriptor = host.loop.sockets[0].descriptor
            unsafe setsockopt(descriptor, Int32(IPPROTO_IP), IP_RECVERR, &on, socklen_t(MemoryLayout<Int32>.size))
            return descriptor
        }
        #expect(descriptor >= 0)
        let arrivals = await host.arrivals()
        for number in 0..<20 {
            await host.send([[0], [0], [0]], to: closed)
            await host.send([[UInt8(number)]], to: local)
            #expect(await arrivals.collect(1)[0].bytes == [UInt8(number)])
        }
        #expect(await host.statistics.socketErrors > 0)
        await host.loop.stop()
    }

    @Test func `datagrams that are too long or empty are dropped and counted`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.run { host in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = target.port.bigEndian
            address.sin_addr.s_addr = target.ip.v4.bigEndian
            for length in [0, DatagramBatch.slotBytes, DatagramBatch.slotBytes + 1, 9000] {
                let bytes = [UInt8](repeating: 1, count: length)
                let descriptor = host.loop.sockets[0].descriptor
                unsafe withUnsafePointer(to: &address) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                        _ = unsafe sendto(
                            descriptor,
                            bytes,
                            length,
                            0,
                            pointer,
                            socklen_t(MemoryLayout<sockaddr_in>.size)
                        )
                    }
                }
            }
        }
        await client.send([[2]], to: target)
        let arrived = await arrivals.collect(2)
        #expect(arrived.map(\.bytes.count) == [DatagramBatch.slotBytes, 1])
        #expect(await server.statistics.receiveSizeDrops == 3)
        await server.loop.stop()
        await client.loop.stop()
    }
}
