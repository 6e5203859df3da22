import Testing
import Wire

struct TransportTests {
    @Test func `the first byte tells the protocol`() {
        let table: [(ClosedRange<UInt8>, PacketProtocol?)] = [
            (0...3, .stun), (4...15, nil), (16...19, .zrtp), (20...63, .dtls), (64...79, .turnChannel),
            (80...127, .quic), (128...191, .rtp), (192...207, .quic), (208...223, .relay), (224...255, .quic),
        ]
        #expect(table.reduce(0) { $0 + $1.0.count } == 256)
        for (bytes, expected) in table {
            for byte in bytes { #expect(PacketProtocol(firstByte: byte) == expected, "first byte \(byte)") }
        }
    }

    @Test func `endpoints of different kinds or indices differ`() {
        var seen: Set<LocalEndpoint> = []
        for kind in LocalEndpoint.Kind.allCases {
            for index in [0, 1, 65_535, 65_536, LocalEndpoint.indexMax] {
                let endpoint = LocalEndpoint(kind, index: index)
                #expect(endpoint.kind == kind)
                #expect(endpoint.index == index)
                #expect(seen.insert(endpoint).inserted)
            }
        }
        #expect(Set(seen.map(\.rawValue)).count == seen.count)
    }

    @Test func `only a UDP endpoint has a socket`() {
        #expect(LocalEndpoint.udp(SocketIndex(rawValue: 7)).socket == SocketIndex(rawValue: 7))
        #expect(LocalEndpoint(.udp, index: 65_536).socket == nil)
        #expect(LocalEndpoint(.tcp, index: 7).socket == nil)
        #expect(LocalEndpoint(.relayed, index: 7).socket == nil)
    }

    @Test func `a path is four words with room to spare, whatever its endpoint`() {
        #expect(MemoryLayout<NetworkPath>.size == 26)
        #expect(MemoryLayout<NetworkPath>.stride == 32)
        let remote = TransportAddress(ip: .loopbackV4, port: 9)
        let paths = LocalEndpoint.Kind.allCases.map { NetworkPath(local: LocalEndpoint($0, index: 3), remote: remote) }
        #expect(Set(paths).count == 3)
        #expect(paths.first == NetworkPath(socket: SocketIndex(rawValue: 3), remote: remote))
        #expect(paths.map(\.description) == ["udp", "tcp", "relayed"].map { "127.0.0.1:9 on \($0) 3" })
    }
}
