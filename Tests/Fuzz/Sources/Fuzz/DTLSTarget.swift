import Base
import DTLS
import Wire

/// One certificate for each side, generated once for all inputs.
enum Certificates {
    static let near = make()
    static let far = make()

    private static func make() -> DTLSCertificate {
        guard let certificate = try? DTLSCertificate.generate() else { fatalError("no certificate") }
        return certificate
    }
}

/// A connection with an honest peer over a hostile network: the script delivers, drops, duplicates, modifies and forges
/// flights in every stage of the handshake.
func fuzzDTLS(_ bytes: RawSpan, role: DTLSRole) {
    var input = FuzzInput(bytes)
    let run = DTLSRun(role: role)
    while !input.isAtEnd { run.step(&input) }
    run.finish()
}

private final class DTLSRun {
    private let victim: DTLSConnection
    private let peer: DTLSConnection
    private var now = Instant(nanoseconds: 1_000_000_000)
    /// Datagrams of the peer that are not delivered yet.
    private var waiting: [[UInt8]] = []
    private var victimKeys: SRTPKeyingMaterial?
    private var peerKeys: SRTPKeyingMaterial?
    private var ends = 0
    private static let waitingMax = 64

    init(role: DTLSRole) {
        func make(_ own: DTLSCertificate, _ other: DTLSCertificate, _ role: DTLSRole) -> DTLSConnection {
            guard
                let connection = try? DTLSConnection(
                    certificate: own,
                    role: role,
                    remoteFingerprints: [other.fingerprint]
                )
            else { fatalError("no connection") }
            return connection
        }
        victim = make(Certificates.near, Certificates.far, role)
        peer = make(Certificates.far, Certificates.near, role == .client ? .server : .client)
        victim.start(at: now)
        peer.start(at: now)
        flush()
    }

    func step(_ input: inout FuzzInput) {
        switch input.choice(12) {
        case 0, 1, 2: if !waiting.isEmpty { deliver(waiting.removeFirst()) }
        case 3: if let first = waiting.first { deliver(first) }
        case 4: if !waiting.isEmpty { waiting.removeFirst() }
        case 5: if !waiting.isEmpty { waiting.append(waiting.removeFirst()) }
        case 6:
            guard var first = waiting.first else { return }
            for _ in 0...input.choice(4) {
                let place = Int(input.uint16()) % first.count
                first[place] ^= input.byte()
            }
            deliver(first)
        case 7:
            guard let first = waiting.first else { return }
            deliver(Array(first.prefix(Int(input.uint16()) % first.count)) + input.chunk(max: 300))
        case 8: deliver(input.chunk())
        case 9: deliver(record(&input, input.chunk()))
        case 10: deliver(record(&input, message(&input)))
        default: pass(.milliseconds(20 * Int(input.byte())))
        }
    }

    /// Completes the handshake with the honest peer, if possible.
    func finish() {
        for _ in 0..<12 where !waiting.isEmpty { deliver(waiting.removeFirst()) }
        if victimKeys != nil, ends == 0 { require(victim.isEstablished, "a connection with keys is established") }
        if let victimKeys, let peerKeys {
            require(
                victimKeys.local == peerKeys.remote && victimKeys.remote == peerKeys.local,
                "both have the same keys"
            )
        }
        victim.close()
        victim.drainOutput { check($0) }
        require(victim.nextDeadline == nil, "a closed connection has no deadline")
    }

    private func deliver(_ datagram: [UInt8]) {
        withSpan(datagram) { note(victim.receive($0, at: now)) }
        flush()
    }

    private func pass(_ interval: Interval) {
        now += interval
        note(victim.handleTimeout(at: now))
        if case .connected(let keys) = peer.handleTimeout(at: now) { peerKeys = keys }
        flush()
    }

    private func note(_ event: DTLSEvent?) {
        switch event {
        case .connected(let keys):
            require(victimKeys == nil && ends == 0, "a connection is made once")
            victimKeys = keys
        case .closed, .failed:
            require(ends == 0, "a connection ends once")
            ends += 1
        case nil: break
        }
    }

    /// Delivers the victim's output to its peer, and queues the peer's answers.
    private func flush() {
        var sent: [[UInt8]] = []
        victim.drainOutput { datagram in
            check(datagram)
            sent.append(datagram.array())
        }
        for datagram in sent {
            withSpan(datagram) { bytes in
                if case .connected(let keys) = peer.receive(bytes, at: now) { peerKeys = keys }
            }
        }
        peer.drainOutput { datagram in
            if waiting.count < Self.waitingMax { waiting.append(datagram.array()) }
        }
    }

    private func check(_ datagram: RawSpan) {
        require((13...1_200).contains(datagram.byteCount), "a datagram is a record and fits the MTU")
        let isDTLS = PacketProtocol(firstByte: datagram.byte(at: 0)) == .dtls
        require(isDTLS, "a datagram is demultiplexed as DTLS (RFC 7983 §7)")
    }

    /// A record with `fragment`.
    private func record(_ input: inout FuzzInput, _ fragment: [UInt8]) -> [UInt8] {
        var record: [UInt8] = [20 + UInt8(input.choice(5)), 0xFE, input.flag() ? 0xFF : 0xFD]
        record.append(bigEndian: UInt16(input.choice(3)))
        record += [0, 0, 0, 0, 0, input.byte()]
        record.append(bigEndian: UInt16(fragment.count))
        return record + fragment
    }

    /// A handshake message, or a fragment of one.
    private func message(_ input: inout FuzzInput) -> [UInt8] {
        let kind = input.pick([1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 20, 22] as [UInt8])
        let sequence = UInt16(input.choice(8))
        let offset = input.flag() ? input.uint16() : 0
        let missing = input.flag() ? input.uint16() : 0
        let body = input.chunk()
        var message: [UInt8] = [kind, 0]
        message.append(bigEndian: UInt16(truncatingIfNeeded: Int(offset) + body.count + Int(missing)))
        message.append(bigEndian: sequence)
        message.append(0)
        message.append(bigEndian: offset)
        message.append(0)
        message.append(bigEndian: UInt16(body.count))
        return message + body
    }
}

/// Scripts: an honest handshake, one through loss, and real flights from another handshake.
func seedsDTLS() -> [(name: String, bytes: [UInt8])] {
    let honest = [UInt8](repeating: 0, count: 12)
    let lossy: [UInt8] = [4, 11, 10, 0, 0, 5, 0, 4, 11, 20, 3, 0, 0, 0, 0, 0]
    let changed: [UInt8] = [6, 0, 0, 60, 1, 0, 7, 0, 40, 0, 2, 1, 2, 0, 0, 0, 0, 6, 1, 0, 20, 0xFF, 0, 30, 1, 0]
    let alert = SeedWriter.make { seed in
        seed.byte(0)
        seed.byte(9)
        for value in [1, 0, 0, 3] { seed.byte(value) }
        seed.chunk([2, 40])
        seed.byte(10)
        for value in [2, 1, 0, 1, 9, 1, 0, 0] { seed.byte(value) }
        seed.chunk([UInt8](repeating: 7, count: 40))
    }
    return [("honest", honest), ("lossy", lossy), ("changed", changed), ("alert", alert)]
}
