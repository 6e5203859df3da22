import Base
import Glibc
import TestSupport
import Testing
import Wire

@testable import EventLoop

@Suite(.timeLimit(.minutes(10)))
struct BackpressureTests {
    @Test func `datagrams that a full buffer refuses are queued and sent in order`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse(code: EAGAIN, calls: 2)
        let queued = await client.run { host in
            host.send((0..<100).map { [0, UInt8($0)] }, to: target)
            host.send((100..<150).map { [0, UInt8($0)] }, to: target)
            return host.loop.queuedDatagrams
        }
        #expect(queued == 150)
        let numbers = try await arrivals.collect(150).map { $0.bytes[1] }
        #expect(numbers == Array(0..<150))
        let statistics = await client.statistics
        #expect(statistics.sendQueued == 150)
        #expect(statistics.sendQueueDrops == 0)
        #expect(statistics.datagramsSent == 150)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `the queue is bounded, and dropped datagrams are counted`() async throws {
        let client = try LoopHost("client")
        let target = try await client.open().local
        await client.refuse(code: EAGAIN)
        let count = SendQueue.datagramsMax + 30
        await client.send(Array(repeating: [7], count: count), to: target)
        let statistics = await client.statistics
        #expect(statistics.sendQueued == UInt64(count))
        #expect(statistics.sendQueueDrops == 30)
        #expect(statistics.sendQueueControlDrops == 30)
        #expect(statistics.datagramsSent == 0)
        #expect(await client.run { $0.loop.queuedDatagrams } == SendQueue.datagramsMax)
        await client.loop.stop()
        #expect(await client.statistics.sendQueueDrops == UInt64(count), "the stop drops what still waits")
    }

    @Test func `a full queue drops the oldest media and keeps control`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse(code: EAGAIN)
        // 10 % is control: the queue keeps all of it and the newest media.
        let count = SendQueue.datagramsMax + 1_000
        let datagrams = (0..<count).map { number -> [UInt8] in
            let first: UInt8 = number % 10 == 0 ? 20 : 128
            return [first, 0, UInt8(number >> 8), UInt8(number & 255)]
        }
        await client.send(datagrams, to: target)
        let control = datagrams.filter { $0[0] == 20 }
        let media = Array(datagrams.filter { $0[0] == 128 }.suffix(SendQueue.datagramsMax - control.count))
        #expect(await client.statistics.sendQueueDrops == 1_000)
        #expect(await client.statistics.sendQueueControlDrops == 0)
        // At most 64 datagrams per call, because the server's buffer may have the kernel's minimum size.
        var arrived: [[UInt8]] = []
        for start in stride(from: 0, to: SendQueue.datagramsMax, by: 128) {
            var callsLeft = 2
            await client.refuse { _ in
                callsLeft -= 1
                return callsLeft < 0 ? -Int(EAGAIN) : nil
            }
            arrived += try await arrivals.collect(min(128, SendQueue.datagramsMax - start)).map(\.bytes)
        }
        let isInOrder = arrived == control + media
        #expect(isInOrder, "control leaves first, and each kind in its order")
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `a share with few datagrams loses none when another has too many`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.run { host in
            host.loop.sockets[0].mediaAgeMax = .seconds(3_600)
            host.loop.shareOf = { bytes, _ in SendShare(id: UInt64(bytes.byte(at: 2))) }
        }
        await client.refuse(code: EAGAIN)
        func media(_ share: UInt8, _ number: Int) -> [UInt8] {
            [128, 0, share, UInt8(number >> 8), UInt8(number & 255)]
        }
        let few = (0..<20).map { media(1, $0) }
        await client.send(few + (0..<SendQueue.datagramsMax + 1_000).map { media(2, $0) }, to: target)
        #expect(await client.statistics.sendQueueDrops == 1_020)
        var arrived: [[UInt8]] = []
        for start in stride(from: 0, to: SendQueue.datagramsMax, by: 128) {
            var callsLeft = 2
            await client.refuse { _ in
                callsLeft -= 1
                return callsLeft < 0 ? -Int(EAGAIN) : nil
            }
            arrived += try await arrivals.collect(min(128, SendQueue.datagramsMax - start)).map(\.bytes)
        }
        #expect(arrived.count == SendQueue.datagramsMax)
        #expect(arrived.filter { $0[2] == 1 } == few)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `media that was queued too long is dropped, control is not`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.run { host in
            host.refuse(code: EAGAIN, calls: 1)
            host.loop.sockets[0].mediaAgeMax = .zero
            host.send([[128, 0, 1], [20, 1], [128, 0, 2], [128, 200]], to: target)
        }
        #expect(try await arrivals.collect(2).map(\.bytes) == [[20, 1], [128, 200]])
        await client.send([[128, 0, 3]], to: target)
        #expect(try await arrivals.collect(1).map(\.bytes) == [[128, 0, 3]], "what need not wait is never late")
        #expect(await client.statistics.sendQueueLateDrops == 2)
        #expect(await client.statistics.sendQueueDrops == 0)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `new datagrams do not overtake queued ones`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        var calls = 0
        await client.refuse { _ in
            calls += 1
            return calls == 1 ? -Int(EAGAIN) : nil
        }
        let media = (0..<40).map { [UInt8(128), 0, UInt8($0)] }
        await client.run { host in
            host.send(Array(media[..<20]), to: target)
            host.send(Array(media[20...]), to: target)
        }
        #expect(try await arrivals.collect(40).map(\.bytes) == media)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test(arguments: [EPERM, ENETUNREACH, ENOBUFS, EMSGSIZE])
    func `a datagram that the system refuses is dropped, and the rest is sent`(code: Int32) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        // A datagram is dropped after two refusals; the third call is for the next datagram. Each is longer than the
        // previous one, so that each is a separate message.
        await client.refuse(code: code, calls: 2)
        await client.send([[1], [2, 2], [3, 3, 3]], to: target)
        #expect(try await arrivals.collect(2).map(\.bytes) == [[2, 2], [3, 3, 3]])
        let statistics = await client.statistics
        #expect(statistics.sendErrorDrops == 1)
        #expect(statistics.datagramsSent == 2)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `a pending error about an earlier datagram does not drop the next one`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse(code: ECONNREFUSED, calls: 1)
        await client.send([[1], [2]], to: target)
        #expect(try await arrivals.collect(2).map(\.bytes) == [[1], [2]])
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
            // Makes the kernel report ICMP errors on unconnected sockets.
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
            #expect(try await arrivals.collect(1)[0].bytes == [UInt8(number)])
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
        let arrived = try await arrivals.collect(2)
        #expect(arrived.map(\.bytes.count) == [DatagramBatch.slotBytes, 1])
        #expect(await server.statistics.receiveSizeDrops == 3)
        await server.loop.stop()
        await client.loop.stop()
    }
}
