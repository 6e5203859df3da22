import Base
import DTLS
import Wire

/// One certificate for each side, generated once for all tests.
enum Certificates {
    static let client = make()
    static let server = make()
    static let unannounced = make()

    private static func make() -> DTLSCertificate {
        guard let certificate = try? DTLSCertificate.generate() else { fatalError("no certificate") }
        return certificate
    }
}

/// Two connections and the network path between them, in virtual time.
final class Link {
    enum Side { case client, server }
    struct Delivery {
        var bytes: [UInt8]
        var delay: Interval
    }

    let client: DTLSConnection
    let server: DTLSConnection
    private(set) var now = Instant(nanoseconds: 0)
    /// What each side reported, in order.
    private(set) var events: [Side: [DTLSEvent]] = [.client: [], .server: []]
    /// Every datagram sent, by its sender.
    private(set) var sent: [Side: [[UInt8]]] = [.client: [], .server: []]
    /// The application data that each side received.
    private(set) var data: [Side: [[UInt8]]] = [.client: [], .server: []]
    /// The deliveries of a datagram, by its sender, its number from that sender and its bytes.
    var fate: (Side, Int, [UInt8]) -> [Delivery]
    private var inFlight: [(at: Instant, order: Int, to: Side, bytes: [UInt8])] = []
    private var order = 0

    static let oneWay = Interval.milliseconds(10)

    init(
        clientCertificate: DTLSCertificate = Certificates.client,
        serverCertificate: DTLSCertificate = Certificates.server,
        clientProfiles: [SRTPProfile] = DTLSConnection.profiles,
        serverProfiles: [SRTPProfile] = DTLSConnection.profiles,
        clientExpects: Fingerprint? = nil,
        serverExpects: Fingerprint? = nil,
        mtuBytes: Int = 1200,
        acceptsData: Bool = false,
        fate: @escaping (Side, Int, [UInt8]) -> [Delivery] = { _, _, bytes in
            [Delivery(bytes: bytes, delay: Link.oneWay)]
        }
    ) throws {
        client = try DTLSConnection(
            certificate: clientCertificate,
            role: .client,
            remoteFingerprints: [clientExpects ?? serverCertificate.fingerprint],
            mtuBytes: mtuBytes,
            profiles: clientProfiles,
            acceptsData: acceptsData
        )
        server = try DTLSConnection(
            certificate: serverCertificate,
            role: .server,
            remoteFingerprints: [serverExpects ?? clientCertificate.fingerprint],
            mtuBytes: mtuBytes,
            profiles: serverProfiles,
            acceptsData: acceptsData
        )
        self.fate = fate
    }

    subscript(_ side: Side) -> DTLSConnection { side == .client ? client : server }

    func start() {
        server.start(at: now)
        client.start(at: now)
        collect()
    }

    /// Injects a datagram that neither side sent.
    func inject(_ bytes: [UInt8], to side: Side, delay: Interval = .zero) {
        order += 1
        inFlight.append((now + delay, order, side, bytes))
    }

    /// Delivers datagrams and fires deadlines in order of time, until there are none left or `limit` is reached.
    func run(until limit: Instant = Instant(nanoseconds: 120_000_000_000), stopWhen isDone: () -> Bool = { false }) {
        collect()
        while !isDone() {
            let arrival = inFlight.map(\.at).min()
            let deadline = earliest(client.nextDeadline, server.nextDeadline)
            guard let next = earliest(arrival, deadline), next <= limit else { return }
            now = max(now, next)
            if let arrival, arrival <= now {
                let index = inFlight.indices.min {
                    (inFlight[$0].at, inFlight[$0].order) < (inFlight[$1].at, inFlight[$1].order)
                }
                guard let index else { return }
                let datagram = inFlight.remove(at: index)
                let event = self[datagram.to].receive(unsafe datagram.bytes.span.bytes, at: now) {
                    data[datagram.to, default: []].append($0.array())
                }
                note(event, datagram.to)
            } else {
                for side in [Side.client, .server] {
                    if let due = self[side].nextDeadline, due <= now { note(self[side].handleTimeout(at: now), side) }
                }
            }
            collect()
        }
    }

    /// - Returns: whether the data was encrypted.
    @discardableResult
    func send(_ bytes: [UInt8], from side: Side) -> Bool {
        defer { collect() }
        return self[side].send(unsafe bytes.span.bytes, at: now)
    }

    /// Sends the output of both sides.
    func collect() {
        for side in [Side.client, .server] {
            var datagrams: [[UInt8]] = []
            self[side].drainOutput { datagrams.append($0.array()) }
            for bytes in datagrams {
                let number = sent[side, default: []].count
                sent[side, default: []].append(bytes)
                for delivery in fate(side, number, bytes) {
                    inject(delivery.bytes, to: side == .client ? .server : .client, delay: delivery.delay)
                }
            }
        }
    }

    private func note(_ event: DTLSEvent?, _ side: Side) {
        if let event { events[side, default: []].append(event) }
    }

    func keys(_ side: Side) -> SRTPKeyingMaterial? {
        for case .connected(let keys) in events[side] ?? [] { return keys }
        return nil
    }
    func failure(_ side: Side) -> DTLSFailure? {
        for case .failed(let failure) in events[side] ?? [] { return failure }
        return nil
    }
    func isClosed(_ side: Side) -> Bool {
        for case .closed in events[side] ?? [] { return true }
        return false
    }
    var isConnected: Bool { keys(.client) != nil && keys(.server) != nil }
    /// Whether both sides exported matching keys and reported no other event.
    var isHealthy: Bool {
        guard let client = keys(.client), let server = keys(.server) else { return false }
        return client.profile == server.profile && client.local == server.remote && client.remote == server.local
            && events.values.allSatisfy { $0.count == 1 }
    }
}
