import Base
import Glibc
import TestSupport
import Testing
import Wire

@testable import EventLoop

/// Listeners of a process that has no file descriptors left. The limit is that of the whole process, so each test has a process
/// of its own.
@Suite(.timeLimit(.minutes(1))) struct AcceptFailureTests {
    @Test func `without descriptors a listener rests, and serves those who waited when there are some again`() async {
        await #expect(processExitsWith: .success) {
            let host = try LoopHost()
            let (served, address) = try await host.listen()
            var arrivals = served.makeAsyncIterator()
            let first = try Client()
            try first.connect(to: address)
            #expect(await arrivals.next() == first.local)

            // The system completes these connections before anybody accepts them.
            let waiting = try (0..<3).map { _ in try Client() }
            let began = EventLoop.now()
            let limit = try DescriptorLimit.none()
            for client in waiting { try client.connect(to: address) }
            let counters = try await host.counters { $0.acceptErrors >= 3 }
            // A second's rest after each, by the loop's clock, which counts whole milliseconds. A listener without a rest fails
            // thousands of times.
            let elapsed = EventLoop.now() - began + .milliseconds(10)
            #expect(counters.acceptErrors <= 1 + UInt64(elapsed.milliseconds / 1_000))
            #expect(counters.accepted == 1)
            // The connection that is there goes on meanwhile.
            try first.send([1, 2, 3])
            _ = try await host.counters { $0.bytesReceived == 3 }

            limit.restore()
            let errors = try await host.counters { _ in true }.acceptErrors
            var addresses: Set<TransportAddress> = []
            while addresses.count < 3, let remote = await arrivals.next() { addresses.insert(remote) }
            #expect(addresses == Set(waiting.map(\.local)))
            // And so are those who come later, at once.
            let last = try Client()
            try last.connect(to: address)
            #expect(await arrivals.next() == last.local)
            #expect(try await host.counters { $0.accepted == 5 }.acceptErrors == errors)
            await host.loop.stop()
        }
    }

    @Test func `a loop that stops while its listener rests closes it`() async {
        await #expect(processExitsWith: .success) {
            let host = try LoopHost()
            let (_, address) = try await host.listen()
            let (client, second) = (try Client(), try Client())
            let limit = try DescriptorLimit.none()
            try client.connect(to: address)
            _ = try await host.counters { $0.acceptErrors >= 1 }
            await host.loop.stop()
            limit.restore()
            #expect(throws: SocketFailure.self) { try second.connect(to: address) }
        }
    }
}

private struct SocketFailure: Error { let code: Int32 }

/// A TCP client that has its descriptor before it connects.
private final class Client: Sendable {
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
    }

    deinit { close(descriptor) }

    func connect(to address: TransportAddress) throws {
        var name = sockaddr_in.loopback(port: Int(address.port))
        let result = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw SocketFailure(code: errno) }
    }

    var local: TransportAddress {
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        return TransportAddress(
            ip: IPAddress(v4: UInt32(bigEndian: name.sin_addr.s_addr)),
            port: UInt16(bigEndian: name.sin_port)
        )
    }

    func send(_ bytes: [UInt8]) throws {
        let count = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        try #require(count == bytes.count)
    }
}

extension LoopHost {
    /// Listens on loopback. The stream has the clients of the connections that were accepted.
    fileprivate func listen() throws -> (AsyncStream<TransportAddress>, TransportAddress) {
        let (stream, continuation) = AsyncStream.makeStream(of: TransportAddress.self)
        loop.tcp.onConnection = { path, _, _ in
            continuation.yield(path.remote)
            return true
        }
        let address = try loop.tcp.listen(on: TransportAddress(ip: .loopbackV4, port: 0))
        return (stream, address)
    }

    /// The listener's counters, as soon as they fulfil a condition.
    /// - Throws: ``Overdue`` when they do not within half a minute.
    fileprivate func counters(
        when condition: @escaping @Sendable (TCPSockets.Counters) -> Bool
    ) async throws -> TCPSockets.Counters {
        let (stream, continuation) = AsyncStream.makeStream(of: TCPSockets.Counters?.self)
        let loop = loop
        let end = EventLoop.now() + .seconds(30)
        loop.onTimer = { now in
            let counters = loop.tcp.counters
            if condition(counters) {
                continuation.yield(counters)
            } else if now >= end {
                continuation.yield(nil)
            } else {
                loop.setTimer(at: now + .milliseconds(10))
            }
        }
        loop.setTimer(at: EventLoop.now())
        var iterator = stream.makeAsyncIterator()
        guard let counters = await iterator.next() ?? nil else { throw Overdue() }
        return counters
    }
}

private struct Overdue: Error {}
