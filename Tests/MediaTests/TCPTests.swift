import Base
import EventLoop
import Forwarding
import Glibc
import Media
import MediaTypes
import TestSupport
import Testing
import Wire

/// A TCP client with blocking calls, each of which ends after ten seconds at the latest.
final class TCPClient {
    private let descriptor: Int32
    let local: TransportAddress

    init(_ address: TransportAddress) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = address.port.bigEndian
        name.sin_addr.s_addr = address.ip.v4.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, length)
            }
        }
        try #require(result == 0)
        _ = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        local = TransportAddress(
            ip: IPAddress(v4: UInt32(bigEndian: name.sin_addr.s_addr)),
            port: UInt16(bigEndian: name.sin_port)
        )
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        _ = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }

    /// The next bytes; empty at the end of the connection, `nil` when nothing comes.
    func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        if count < 0 { return errno == ECONNRESET ? [] : nil }
        return Array(buffer[..<count])
    }

    /// The next packet of a connection with the framing of RFC 4571.
    func receivePacket() -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < 2 || bytes.count < 2 + Int(bytes[0]) << 8 + Int(bytes[1]) {
            guard let more = receive(), !more.isEmpty else { return nil }
            bytes += more
        }
        return Array(bytes[2...])
    }
}

/// A listener on loopback that is no loop's.
final class TCPServer {
    private let descriptor: Int32
    let address: TransportAddress

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = IPAddress.loopbackV4.v4.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { local -> Int32 in
                guard unsafe bind(descriptor, local, length) == 0, listen(descriptor, 8) == 0 else { return -1 }
                return unsafe getsockname(descriptor, local, &length)
            }
        }
        try #require(result == 0)
        address = TransportAddress(ip: .loopbackV4, port: UInt16(bigEndian: name.sin_port))
    }

    deinit { close(descriptor) }

    /// The next connection, which must be there.
    func accept() throws -> Int32 {
        let accepted = Glibc.accept(descriptor, nil, nil)
        try #require(accepted >= 0)
        return accepted
    }
}

/// ICE over TCP on loopback.
@Suite(.timeLimit(.minutes(10))) struct TCPTests {
    private static func check(_ node: NodePeer, _ client: ICECredentials, _ number: UInt64 = 1) -> [UInt8] {
        StreamScene.frame(checkMessage(node, client, number))
    }

    /// A check that nominates its path.
    static func checkMessage(_ node: NodePeer, _ client: ICECredentials, _ number: UInt64 = 1) -> [UInt8] {
        var check = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: number))
        check.append(.username, "\(node.credentials.usernameFragment):\(client.usernameFragment)")
        check.append(.priority, 1 as UInt32)
        check.append(.iceControlling, 7 as UInt64)
        check.append(.useCandidate)
        check.appendMessageIntegrity(key: Array(node.credentials.password.utf8))
        check.appendFingerprint()
        return check.bytes
    }

    @Test func `a loop listens on TCP at its UDP ports, and announces that`() async throws {
        let media = try await MediaBench.makeLoop(listeningOn: ["127.0.0.1:0", "[::1]:0"], tcp: TCPAdmission())
        let transport = media.transport
        #expect(transport.candidates.count == 2)
        #expect(transport.tcpCandidates.count == 2)
        #expect(transport.tcpCandidates.allSatisfy(transport.candidates.contains))
        await media.shutdown()
        let without = try await MediaBench.makeLoop()
        #expect(without.transport.tcpCandidates.isEmpty)
        #expect(await without.metrics().tcp == nil)
        await without.shutdown()
    }

    @Test func `a check over TCP is answered over the same connection, and selects it`() async throws {
        let media = try await MediaBench.makeLoop(tcp: TCPAdmission())
        let address = try #require(media.transport.tcpCandidates.first)
        let client = try TestClient(1)
        let node = NodePeer(of: client)
        try await media.addPeer(node.parameters)
        let connection = try TCPClient(address)
        connection.send(Self.check(node, client.credentials))
        let answer = try #require(connection.receivePacket())
        let mapped = try Self.mappedAddress(answer)
        #expect(mapped == connection.local)
        let path = try #require(await media.statistics(of: client.id)?.path)
        #expect(path.local.kind == .tcp && path.remote == connection.local)
        let metrics = try #require(await media.metrics().tcp)
        #expect(metrics.connections == 1 && metrics.accepted == 1 && metrics.packetsReceived == 1)
        // The connection ends with the session.
        await media.removePeer(client.id)
        connection.send(Self.check(node, client.credentials, 2))
        while let bytes = connection.receive(), !bytes.isEmpty {}
        #expect(await media.metrics().tcp?.ended == [.sessionEnded: 1])
        await media.shutdown()
        await client.stop()
    }

    @inline(never)
    static func mappedAddress(_ answer: [UInt8]) throws -> TransportAddress? {
        let message = try STUNMessageView(unsafe answer.span.bytes)
        return message.messageClass == .success ? message.xorMappedAddress : nil
    }

    @Test func `strangers are closed, and a shutdown ends every connection`() async throws {
        let admission = TCPAdmission()
        let media = try await MediaBench.makeLoop(tcp: admission)
        let address = try #require(media.transport.tcpCandidates.first)
        let client = try TestClient(1)
        let node = NodePeer(of: client)
        try await media.addPeer(node.parameters)
        // A wrong password, an HTTP request, a frame that is too long, DTLS, a relayed message.
        var forged = Self.check(node, client.credentials)
        forged[forged.count - 20] ^= 1
        let first: [[UInt8]] = [
            forged, Array("GET / HTTP/1.1\r\n\r\n".utf8), [0xFF, 0xFF], StreamScene.frame([22, 254, 253, 0]),
            StreamScene.frame([0x40, 0, 0, 4, 1, 2, 3, 4]),
        ]
        for bytes in first {
            let stranger = try TCPClient(address)
            stranger.send(bytes)
            #expect(stranger.receive() == [])
        }
        let member = try TCPClient(address)
        member.send(Self.check(node, client.credentials))
        #expect(member.receivePacket() != nil)
        let metrics = try #require(await media.metrics().tcp)
        #expect(metrics.ended == [.notAuthenticated: 3, .malformed: 2] && metrics.connections == 1)
        await media.shutdown()
        while let bytes = member.receive(), !bytes.isEmpty {}
        #expect(member.receive() == [])
        await client.stop()
    }

    @Test func `two loops share the limits of their node`() async throws {
        let admission = TCPAdmission(TCPLimits(connectionsMax: 1))
        let loops = [
            try await MediaBench.makeLoop(tcp: admission), try await MediaBench.makeLoop(loop: 1, tcp: admission),
        ]
        let addresses = try loops.map { try #require($0.transport.tcpCandidates.first) }
        let first = try TCPClient(addresses[0])
        try await eventually("the first loop has the connection") { await loops[0].metrics().tcp?.connections == 1 }
        let second = try TCPClient(addresses[1])
        #expect(second.receive() == [])
        #expect(await loops[1].metrics().tcp?.refused == [.nodeLimit: 1])
        await loops[0].shutdown()
        #expect(first.receive() == [])
        let third = try TCPClient(addresses[1])
        try await eventually("the second loop has the connection") { await loops[1].metrics().tcp?.connections == 1 }
        _ = third
        await loops[1].shutdown()
    }
}
