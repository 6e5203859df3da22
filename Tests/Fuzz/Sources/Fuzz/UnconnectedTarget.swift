import Base
import DTLS
import Forwarding
import ICE
import MediaTypes
import Wire

/// The forwarding core without connected peers: datagrams of every kind from many addresses, two peers that are about
/// to connect, and sometimes an authentic check of one of them.
func fuzzUnconnected(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let run = UnconnectedRun()
    while !input.isAtEnd { run.step(&input) }
    run.finish()
}

/// The batch that all inputs share: an allocation would take longer than an input.
final class SharedBatch: Sendable {
    nonisolated(unsafe) private static let shared = DatagramBatch(capacity: 512)

    static func take() -> DatagramBatch {
        let batch = unsafe shared
        batch.removeAll()
        return batch
    }
}

/// A core with a fixed seed.
func makeCore() -> Forwarder {
    var generator = SeededGenerator(seed: 5)
    return Forwarder(
        ForwarderConfiguration(
            certificate: Certificates.near,
            unixNanosecondsAtZero: 1_700_000_000_000_000_000,
            peersMax: 4
        ) { generator.next() }
    )
}

private let nodeCredentials = (0..<2).map { Sample.credentials("nod\($0)", "the node's password") }
private let clientCredentials = (0..<2).map { Sample.credentials("cli\($0)", "the client's password") }

private final class UnconnectedRun {
    private let core = makeCore()
    private let batch = SharedBatch.take()
    private var now = Instant(nanoseconds: 1_000_000_000)
    /// The paths over which an authentic check arrived.
    private var authenticated: Set<NetworkPath> = []
    private var transactions: UInt64 = 0
    private var client: DTLSConnection?
    private var clientOutput: [[UInt8]] = []

    init() {
        for (index, role) in [DTLSRole.server, .client].enumerated() {
            let parameters = PeerParameters(
                id: PeerID(rawValue: UInt64(index)),
                localCredentials: nodeCredentials[index],
                remote: RemoteTransport(
                    credentials: clientCredentials[index],
                    fingerprints: [Certificates.far.fingerprint],
                    localRole: role
                ),
                receive: ConnectedMedia.receive
            )
            do { try core.addPeer(parameters, at: now) } catch { fatalError("no peer: \(error)") }
        }
    }

    func step(_ input: inout FuzzInput) {
        let path = samplePaths[input.choice(samplePaths.count)]
        switch input.choice(12) {
        case 0, 1, 2: deliver(input.chunk(), on: path)
        case 3, 4: check(&input, on: path)
        case 5: now += .milliseconds(Int(input.uint16()))
        case 6: core.endTurn(at: now, into: batch)
        case 7: deliver([20 + UInt8(input.choice(44))] + input.chunk(), on: path)
        case 8: deliver([0x80 | input.byte() & 0x3F, input.byte()] + input.chunk(), on: path)
        case 9: handshake(on: path)
        case 10:
            let index = input.choice(2)
            try? core.restartICE(
                PeerID(rawValue: UInt64(index)),
                local: nodeCredentials[index],
                remote: clientCredentials[index],
                at: now
            )
        default: forge(&input, on: path)
        }
        if let deadline = core.nextDeadline, deadline <= now { core.handleTimeout(at: now, into: batch) }
        // A turn makes one step of a handshake.
        if core.hasWaitingHandshakes { core.endTurn(at: now, into: batch) }
        drain()
    }

    /// A check with the right password for one of the peers.
    private func check(_ input: inout FuzzInput, on path: NetworkPath) {
        let index = input.choice(2)
        let nominating = input.flag()
        transactions += 1
        deliver(
            makeCheck(
                to: nodeCredentials[index],
                from: clientCredentials[index],
                id: STUNTransactionID(high: 7, low: transactions),
                nominating: nominating
            ),
            on: path
        )
    }

    /// The same with a wrong password.
    private func forge(_ input: inout FuzzInput, on path: NetworkPath) {
        let index = input.choice(2)
        var bytes = makeCheck(
            to: nodeCredentials[index],
            from: clientCredentials[index],
            id: STUNTransactionID(high: 8, low: UInt64(input.byte())),
            nominating: true
        )
        bytes[bytes.count - 20] ^= 0x55
        deliver(bytes, on: path)
    }

    /// The next flight of an honest client of the first peer.
    private func handshake(on path: NetworkPath) {
        if client == nil {
            client = try? DTLSConnection(
                certificate: Certificates.far,
                role: .client,
                remoteFingerprints: [Certificates.near.fingerprint]
            )
            client?.start(at: now)
            client?.drainOutput { clientOutput.append($0.array()) }
        }
        guard !clientOutput.isEmpty else { return }
        deliver(clientOutput.removeFirst(), on: path)
    }

    private func deliver(_ bytes: [UInt8], on path: NetworkPath) {
        withSpan(bytes) { span in
            let message: STUNMessageView
            do { message = try STUNMessageView(span) } catch { return }
            if nodeCredentials.contains(where: { message.hasValidIntegrity(key: Array($0.password.utf8)) }) {
                authenticated.insert(path)
            }
        }
        var buffer = bytes + [UInt8](repeating: 0, count: 32)
        var elements = buffer.mutableSpan
        var span = unsafe elements.mutableBytes
        core.receive(&span, length: bytes.count, path: path, at: now, into: batch)
    }

    private func drain() {
        for index in 0..<batch.count {
            batch.withDatagram(index) { datagram, path in
                require(authenticated.contains(path), "nothing is sent to unauthenticated addresses")
                if PacketProtocol(firstByte: datagram.byte(at: 0)) == .dtls, clientOutput.count < 32 {
                    _ = client?.receive(datagram, at: now)
                    client?.drainOutput { clientOutput.append($0.array()) }
                }
            }
        }
        batch.removeAll()
        _ = core.takeEvents()
        require(core.counters.rtpReceived == 0 || core.counters.dtlsConnected > 0, "media needs a handshake")
    }

    func finish() {
        require(core.peerCount <= 2, "datagrams create no peers")
        now += .seconds(100)
        for _ in 0..<4 { core.handleTimeout(at: now, into: batch) }
        require(core.peerCount == 0, "peers that do not connect are removed")
    }
}

func seedsUnconnected() -> [(name: String, bytes: [UInt8])] {
    let connecting = SeedWriter.make { seed in
        for value in [0, 3, 0, 1] { seed.byte(value) }
        for _ in 0..<8 { for value in [0, 9] { seed.byte(value) } }
        for value in [1, 4, 1, 1, 1, 6] { seed.byte(value) }
        seed.byte(0)
        seed.byte(5)
        seed.uint16(3_000)
    }
    let strangers = SeedWriter.make { seed in
        for (index, sample) in (seedsSTUN() + sampleRTCP(media: SSRC(rawValue: 5)) + seedsRTP()).enumerated() {
            seed.byte(index)
            seed.byte(0)
            seed.chunk(sample.bytes)
        }
    }
    let forged = SeedWriter.make { seed in
        for value in [0, 11, 0, 1, 2, 11, 1, 2] { seed.byte(value) }
        seed.byte(2)
        seed.byte(7)
        seed.byte(2)
        seed.chunk([0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3])
        for value in [2, 8, 0, 96] { seed.byte(value) }
        seed.chunk([UInt8](repeating: 1, count: 30))
        for value in [0, 3, 0, 0, 0, 10, 0] { seed.byte(value) }
    }
    return [("connecting", connecting), ("strangers", strangers), ("forged", forged)]
}
