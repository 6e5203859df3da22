import Base
import Glibc
import TestSupport
import Testing
import Wire

@testable import EventLoop

/// Sending with GSO, receiving with GRO, and the fallback when the kernel refuses GSO.
@Suite(.timeLimit(.minutes(10)))
struct SegmentationTests {
    /// Media datagrams with the given lengths, numbered in their bytes.
    private func media(_ lengths: [Int]) -> [[UInt8]] {
        lengths.enumerated().map { number, length -> [UInt8] in
            let low = UInt8(number & 255)
            return [128, 0, UInt8(number >> 8), low] + [UInt8](repeating: low, count: length - 4)
        }
    }

    private func options(gso: Bool = true, gro: Bool = true) -> SocketOptions {
        SocketOptions(usesGSO: gso, usesGRO: gro)
    }

    struct Way: Sendable, CustomTestStringConvertible {
        let address: String
        let gso: Bool
        let gro: Bool
        var testDescription: String { "\(address)\(gso ? " GSO" : "")\(gro ? " GRO" : "")" }
        static let all = ["127.0.0.1:0", "[::1]:0", "[::]:0"].flatMap { address in
            [(true, true), (true, false), (false, true), (false, false)].map {
                Way(address: address, gso: $0.0, gro: $0.1)
            }
        }
    }

    @Test(arguments: Way.all)
    func `runs arrive as their datagrams, in order`(way: Way) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let opened: SocketDescription
        do {
            opened = try await server.open(way.address, options: options(gro: way.gro))
        } catch EventLoopError.ipv6NotAvailable, EventLoopError.addressNotAvailable {
            throw MissingIPv6()
        }
        try #require(opened.usesGRO == way.gro, "this kernel supports GRO")
        // To the IPv4 address of a socket on all addresses, so that both address families are covered.
        let target = opened.local.ip.isUnspecified ? .loopbackV4 : opened.local.ip
        let description = try await client.open(way.address, options: options(gso: way.gso))
        try #require(description.usesGSO == way.gso, "this kernel supports GSO")
        let arrivals = await server.arrivals()
        // One message each: 64 short datagrams, 40 long ones, 10 with a shorter last one, one, and two.
        let lengths = [
            Array(repeating: 100, count: 64), Array(repeating: 1200, count: 40),
            Array(repeating: 700, count: 9) + [30], [1000], [1001, 5],
        ]
        let datagrams = media(lengths.flatMap { $0 })
        await client.send(datagrams, to: TransportAddress(ip: target, port: opened.local.port))
        let arrived = try await arrivals.collect(datagrams.count)
        #expect(arrived.map(\.bytes) == datagrams)
        #expect(Set(arrived.map(\.path)).count == 1)
        let sent = await client.statistics
        #expect(sent.datagramsSent == UInt64(datagrams.count))
        #expect(sent.bytesSent == UInt64(lengths.joined().reduce(0, +)))
        #expect(sent.messagesSent == UInt64(way.gso ? lengths.count : datagrams.count))
        #expect(sent.segmentsPerSend.total == sent.messagesSent)
        #expect(sent.segmentsPerSend.sum == sent.datagramsSent)
        let expected: [UInt64] = way.gso ? [1, 1, 0, 0, 1, 0, 2, 0] : [UInt64(datagrams.count), 0, 0, 0, 0, 0, 0, 0]
        #expect(sent.segmentsPerSend.counts == expected)
        let received = await server.statistics
        #expect(received.datagramsReceived == UInt64(datagrams.count))
        #expect(received.bytesReceived == sent.bytesSent)
        #expect(received.segmentsPerRead.sum == UInt64(datagrams.count))
        #expect(received.datagramsPerReceiveCall.total == received.receiveCalls)
        if way.gso, way.gro {
            #expect(received.segmentsPerRead.counts == expected, "loopback keeps a message together")
        } else if !way.gro {
            #expect(received.segmentsPerRead.counts[0] == UInt64(datagrams.count))
        }
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `several runs to one address stay in order among those to others`() async throws {
        let client = try LoopHost("client")
        _ = try await client.open()
        var servers: [LoopHost] = []
        var arrivals: [AsyncStream<Arrival>] = []
        var targets: [TransportAddress] = []
        for gro in [true, false, true] {
            let server = try LoopHost("server")
            targets.append(try await server.open(options: options(gro: gro)).local)
            arrivals.append(await server.arrivals())
            servers.append(server)
        }
        // Lengths go up and down and addresses change, so that runs have all sizes.
        let datagrams = media((0..<300).map { 200 + $0 * $0 / 50 % 7 * 90 })
        let addresses = targets
        await client.run { host in
            let batch = DatagramBatch()
            for (number, datagram) in datagrams.enumerated() {
                let remote = addresses[number / 5 % addresses.count]
                batch.append(to: NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote), datagram)
            }
            host.loop.send(batch)
        }
        for (place, stream) in arrivals.enumerated() {
            let expected = datagrams.enumerated().filter { $0.offset / 5 % 3 == place }.map(\.element)
            #expect(try await stream.collect(expected.count).map(\.bytes) == expected)
        }
        #expect(await client.statistics.messagesSent < 300)
        for host in servers + [client] { await host.loop.stop() }
    }

    /// The three runs that the tests below send, of 4, 10 and 6 datagrams.
    private var threeRuns: [[UInt8]] {
        media([400, 400, 400, 300] + Array(repeating: 1000, count: 10) + Array(repeating: 1100, count: 6))
    }

    @Test(arguments: [EIO, EINVAL, EMSGSIZE, EOPNOTSUPP])
    func `a message that the kernel refuses to split is sent datagram by datagram`(code: Int32) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        let (calls, note) = AsyncStream.makeStream(of: [Int].self)
        // The second run is refused when it is the first message of a call.
        await client.refuse { segments in
            note.yield(segments)
            if segments.count == 3 { return 1 }
            return segments[0] == 10 ? -Int(code) : nil
        }
        await client.send(threeRuns, to: target)
        #expect(try await arrivals.collect(20).map(\.bytes) == threeRuns)
        #expect(try await calls.collect(4) == [[4, 10, 6], [10, 6], Array(repeating: 1, count: 10), [6]])
        let statistics = await client.statistics
        #expect(statistics.gsoFallbacks == 1)
        #expect(statistics.gsoPauses == 0)
        #expect(statistics.sendErrorDrops == 0)
        #expect(statistics.socketErrors == 0)
        #expect(statistics.datagramsSent == 20)
        #expect(statistics.messagesSent == 12)
        #expect(statistics.segmentsPerSend.sum == 20)
        await server.loop.stop()
        await client.loop.stop()
    }

    /// More local addresses than the refusals after which the socket pauses GSO.
    private static let addresses = (1...12).map { IPAddress(v4: 0x7F00_0000 + $0) }

    /// Sends datagrams in one batch, each to the address whose index `place` returns for its number.
    private func send(
        _ datagrams: [[UInt8]],
        from client: LoopHost,
        port: UInt16,
        place: @Sendable (Int) -> Int
    ) async {
        let remotes = datagrams.indices.map { TransportAddress(ip: Self.addresses[place($0)], port: port) }
        await client.run { host in
            let batch = DatagramBatch()
            for (datagram, remote) in zip(datagrams, remotes) {
                batch.append(to: NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote), datagram)
            }
            host.loop.send(batch)
        }
    }

    @Test(arguments: [(EIO, true), (EINVAL, false), (EOPNOTSUPP, true), (EMSGSIZE, false)])
    func `GSO is paused when the kernel always refuses it, and this is counted`(code: Int32, ends: Bool) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let port = try await server.open("0.0.0.0:0").local.port
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse { segments in
            // All messages before the first GSO message are sent.
            let first = segments.firstIndex { $0 > 1 }
            return first == 0 ? -Int(code) : first
        }
        // Two batches of twelve runs, each run to its own address.
        let datagrams = media((0..<120).map { 500 + $0 / 10 % 2 })
        for _ in 0..<2 {
            await send(datagrams, from: client, port: port) { $0 / 10 }
            #expect(try await arrivals.collect(120).map(\.bytes) == datagrams)
        }
        let statistics = await client.statistics
        #expect(statistics.gsoFallbacks == (ends ? UInt64(SegmentationOffload.refusalsMax) : 12))
        #expect(statistics.gsoPathPauses == (ends ? UInt64(SegmentationOffload.refusalsMax - 1) : 12))
        #expect(statistics.gsoPauses == (ends ? 1 : 0))
        #expect(statistics.gsoPausedSockets == (ends ? 1 : 0))
        #expect(statistics.segmentsPerSend.counts[0] == 240)
        #expect(statistics.sendErrorDrops == 0)
        await client.loop.stop()
        #expect(await client.statistics.gsoPausedSockets == 0, "a closed socket is not counted")
        await server.loop.stop()
    }

    @Test(arguments: [EIO, EINVAL, EMSGSIZE])
    func `refusals for some addresses do not split the messages to others`(code: Int32) async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let port = try await server.open("0.0.0.0:0").local.port
        _ = try await client.open()
        let arrivals = await server.arrivals()
        // Messages of five datagrams go to refused addresses, the one of ten to a subscriber.
        await client.refuse { segments in
            let first = segments.firstIndex(of: 5)
            return first == 0 ? -Int(code) : first
        }
        let refused = media(Array(repeating: 300, count: 55))
        let honest = media(Array(repeating: 900, count: 10))
        for _ in 0..<3 {
            await send(honest + refused, from: client, port: port) { $0 < 10 ? 0 : 1 + ($0 - 10) / 5 }
            #expect(try await arrivals.collect(65).map(\.bytes) == honest + refused)
        }
        let statistics = await client.statistics
        #expect(statistics.gsoPauses == 0)
        #expect(statistics.gsoFallbacks == 11, "each refused address is tried once")
        #expect(statistics.gsoPathPauses == 11)
        #expect(statistics.segmentsPerSend.sum == 195)
        #expect(statistics.messagesSent == 3 + 165, "the subscriber's ten datagrams stay one message")
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `a datagram from an address that is not unicast or has port 0 is dropped and counted`() async throws {
        let server = try LoopHost("server")
        _ = try await server.open()
        await server.run { host in
            var bytes: [UInt8] = [128, 1, 2, 3]
            var delivered: [TransportAddress] = []
            let honest = TransportAddress(ip: .loopbackV4, port: 1)
            let sources = [
                TransportAddress(ip: .loopbackV4, port: 0), TransportAddress(ip: .anyV4, port: 5),
                TransportAddress(ip: .anyV6, port: 5), TransportAddress(ip: IPAddress(v4: 0xE000_0001), port: 5),
                TransportAddress(ip: IPAddress(v4: 0xFFFF_FFFF), port: 5),
                TransportAddress(ip: IPAddress(high: 0xFF02 << 48, low: 1), port: 5), honest,
            ]
            unsafe bytes.withUnsafeMutableBytes { buffer in
                guard let base = buffer.baseAddress else { return }
                for source in sources {
                    let message = unsafe ReceivedMessage(
                        bytes: base,
                        length: buffer.count,
                        segmentBytes: 0,
                        isTruncated: false,
                        remote: source
                    )
                    _ = unsafe host.loop.sockets[0].deliver(message, at: Instant(nanoseconds: 0)) { _, _, path, _ in
                        delivered.append(path.remote)
                    }
                }
            }
            #expect(delivered == [honest])
            #expect(host.loop.statistics.receiveSourceDrops == 6)
        }
        await server.loop.stop()
    }

    @Test func `a full buffer in the middle of a refused message drops nothing and keeps the order`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        var call = 0
        await client.refuse { segments in
            call += 1
            switch call {
            case 1: return 1
            case 2: return -Int(EIO)
            // Three of the ten are sent, then the buffer is full.
            case 3: return 3
            case 4: return -Int(EAGAIN)
            default: return nil
            }
        }
        let queued = await client.run { host in
            host.send(threeRuns, to: target)
            return host.loop.queuedDatagrams
        }
        #expect(queued == 13)
        #expect(try await arrivals.collect(20).map(\.bytes) == threeRuns)
        let statistics = await client.statistics
        #expect(statistics.datagramsSent == 20)
        #expect(statistics.sendQueued == 13)
        #expect(statistics.messagesSent == 17, "one run, and after the refusal each datagram by itself")
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test func `all messages are sent when the kernel accepts one per call`() async throws {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse { _ in 1 }
        await client.send(threeRuns, to: target)
        #expect(try await arrivals.collect(20).map(\.bytes) == threeRuns)
        #expect(await client.statistics.sendCalls == 3)
        await server.loop.stop()
        await client.loop.stop()
    }

    @Test(arguments: [EPERM, ENOBUFS, ENETUNREACH])
    func `a message that is refused for another reason is dropped, and each datagram is counted`(code: Int32)
        async throws
    {
        let server = try LoopHost("server")
        let client = try LoopHost("client")
        let target = try await server.open().local
        _ = try await client.open()
        let arrivals = await server.arrivals()
        await client.refuse { segments in
            segments.count == 3 ? 1 : segments[0] == 10 ? -Int(code) : nil
        }
        await client.send(threeRuns, to: target)
        #expect(try await arrivals.collect(10).map(\.bytes) == Array(threeRuns[..<4] + threeRuns[14...]))
        #expect(await client.statistics.sendErrorDrops == 10)
        #expect(await client.statistics.gsoFallbacks == 0)
        await server.loop.stop()
        await client.loop.stop()
    }
}

@Suite struct SegmentationOffloadTests {
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    private func address(_ number: Int) -> TransportAddress {
        TransportAddress(ip: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 4_000)
    }

    /// Refuses messages, each to another address.
    private func refuse(
        _ offload: inout SegmentationOffload,
        _ times: Int,
        code: Int32 = EIO,
        from first: Int = 0,
        at now: Instant
    ) -> [SegmentationOffload.Verdict] {
        (0..<times).map { number in offload.refused(code, to: address(first + number), at: now) }
    }

    private let all = SegmentationOffload.refusalsMax

    @Test func `refusals for several addresses pause the socket when no message was accepted for a minute`() {
        var offload = SegmentationOffload(isOn: true)
        let first = refuse(&offload, all - 1, at: at(0))
        #expect(first == Array(repeating: .destinationPaused, count: all - 1))
        offload.accepted()
        let second = refuse(&offload, 2 * all, from: 100, at: at(1))
        #expect(second == Array(repeating: .destinationPaused, count: 2 * all))
        #expect(offload.isOn)
        let third = refuse(&offload, all, from: 200, at: at(61))
        #expect(third == Array(repeating: .destinationPaused, count: all - 1) + [.socketPaused])
        #expect(!offload.isOn)
        #expect(offload.isPaused)
    }

    @Test func `errors that a destination can cause never pause the socket`() {
        var offload = SegmentationOffload(isOn: true)
        let sameAddress = (0..<100).map { _ in offload.refused(EIO, to: address(1), at: at(0)) }
        #expect(sameAddress == [.destinationPaused] + Array(repeating: .nothing, count: 99))
        for code in [EINVAL, EMSGSIZE] { _ = refuse(&offload, 1_000, code: code, from: 10, at: at(0)) }
        #expect(offload.isOn)
        #expect(!offload.isOn(for: address(1)))
        #expect(!offload.isOn(for: address(10)))
        #expect(offload.isOn(for: address(2)))
        #expect(offload.isOn(for: address(900)), "more than 256 addresses are not remembered")
    }

    @Test func `after a minute GSO is tried again toward an address`() {
        var offload = SegmentationOffload(isOn: true)
        _ = refuse(&offload, 2, code: EINVAL, at: at(100))
        offload.resumeDestinations(at: at(159))
        #expect(!offload.isOn(for: address(0)))
        offload.resumeDestinations(at: at(160))
        #expect(offload.isOn(for: address(0)))
        #expect(!offload.hasPausedDestinations)
    }

    @Test func `after a minute GSO is tried again for the socket`() {
        var offload = SegmentationOffload(isOn: true)
        _ = refuse(&offload, all, at: at(100))
        offload.resume(at: at(159))
        #expect(offload.isPaused)
        offload.resume(at: at(160))
        #expect(offload.isOn)
        let second = refuse(&offload, 1, at: at(160))
        #expect(second == [.socketPaused], "one refusal is enough now")
        offload.resume(at: at(220))
        offload.accepted()
        let third = refuse(&offload, 1, at: at(221))
        #expect(third == [.destinationPaused])
    }

    @Test func `GSO stays off when it was not requested`() {
        var offload = SegmentationOffload(isOn: false)
        #expect(!offload.isOn)
        #expect(!offload.isPaused)
        let refusals = refuse(&offload, 2 * all, at: at(0))
        #expect(refusals == Array(repeating: .nothing, count: 2 * all))
        offload.resume(at: at(1_000))
        #expect(!offload.isOn)
    }
}
