import DTLS
import EventLoop
import Media
import MediaTypes
import Synchronization
import TLS
import TestSupport
import Testing
import Wire

/// What media loops reported of peers, without how far set-ups have come.
final class EventLog: PeerEventReceiver {
    private let events = Mutex<[(PeerID, PeerEvent)]>([])

    func receive(_ event: PeerEvent, from peer: PeerID) {
        if case .setupAdvanced = event { return }
        events.withLock { $0.append((peer, event)) }
    }

    var all: [(PeerID, PeerEvent)] { events.withLock { $0 } }
}

/// Real loops on loopback, and clients that are connected to them.
enum MediaBench {
    static func makeLoop(
        loop: UInt16 = 0,
        listeningOn texts: [String] = ["127.0.0.1:0"],
        turn: TURNSettings? = nil,
        turnTLS: TURNTLSSettings? = nil,
        tcp: TCPAdmission? = nil
    ) async throws -> MediaLoop {
        // The system picks UDP ports. Another program may have the TCP port of the same number, so a test picks again.
        for _ in 0..<20 {
            let media = try await MediaLoop.start(
                MediaLoopConfiguration(
                    name: "media",
                    certificate: DTLSCertificate.generate(),
                    location: MediaLocation(loop: LoopIndex(rawValue: loop)),
                    turn: turn,
                    turnTLS: turnTLS,
                    tcp: tcp
                ),
                listeningOn: texts.compactMap { TransportAddress($0) }
            )
            guard await !media.tcpFailures.isEmpty else { return media }
            await media.shutdown()
        }
        throw PortsTaken()
    }

    struct PortsTaken: Error {}

    /// Accepts TURN over TLS with the certificate of tests.
    static func makeAcceptor(_ admission: TCPAdmission) async throws -> TLSAcceptor {
        let certificate = try TLSCertificate(
            chain: Array(TestCertificate.chain.utf8),
            key: Array(TestCertificate.key.utf8)
        )
        return try await TLSAcceptor.start(certificate, admission)
    }

    /// Where the acceptor listens on loopback for the loop that made the credentials.
    static func tlsAddress(_ access: TURNAccess) throws -> TransportAddress {
        let url = try #require(access.urls.first { $0.hasPrefix("turns:turn.example:") })
        let port = try #require(UInt16(url.dropFirst(19).prefix { $0 != "?" }))
        return TransportAddress(ip: .loopbackV4, port: port)
    }

    /// A client that is connected to `media`.
    static func connect(
        _ number: UInt64,
        to media: MediaLoop,
        socket: Int = 0,
        publishing: [ReceiveTrackParameters] = [],
        playing: [SendTrackParameters] = [],
        log: EventLog? = nil
    ) async throws -> TestClient {
        let client = try TestClient(number)
        let node = NodePeer(of: client, receive: publishing, send: playing, events: log)
        try await media.addPeer(node.parameters)
        try await client.connect(
            to: media.sockets[socket].local,
            node: node.remote(of: media),
            receive: playing.map { track(mid: $0.mid, ssrc: $0.ssrc, kind: $0.kind) },
            send: publishing.map { slot(mid: $0.mid, ssrc: $0.ssrcs[0], kind: $0.kind) }
        )
        #expect(try await client.events.collect(1) == [.connected(over: .udp)])
        return client
    }

    private static func codec(_ kind: MediaKind) -> CodecParameters {
        let number: UInt8 = kind == .audio ? 111 : 96
        return CodecParameters(
            name: kind == .audio ? .opus : .vp8,
            payloadType: PayloadType(rawValue: number)!
        )
    }

    static func track(mid: MID, ssrc: SSRC, kind: MediaKind = .audio) -> ReceiveTrackParameters {
        ReceiveTrackParameters(mid: mid, kind: kind, codecs: [codec(kind)], ssrcs: [ssrc])
    }

    static func slot(mid: MID, ssrc: SSRC, kind: MediaKind = .audio) -> SendTrackParameters {
        SendTrackParameters(mid: mid, kind: kind, codecs: [codec(kind)], ssrc: ssrc, cname: "test")
    }
}
