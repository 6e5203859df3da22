import Base
internal import Counters
internal import DTLS
internal import Forwarding
internal import MediaTypes
internal import SRTP
internal import Wire

/// A forwarder with a TURN server, and clients at addresses of their own that only allocate.
final class TURNLoad {
    /// The clients whose requests come in one turn of the loop.
    static let clientsPerTurn = 250

    private let forwarder: Forwarder
    private var clients: [TURNClient] = []
    private let batch = DatagramBatch(capacity: clientsPerTurn)
    private let inbox = Inbox(capacity: clientsPerTurn)
    private var now = Instant(nanoseconds: 1_000_000_000)

    init(clients count: Int) throws {
        forwarder = makeForwarder(try DTLSCertificate.generate(), .preferred, isEstimating: false, seed: 21)
        forwarder.startTURN(at: Session.mediaAddress)
        for number in 1...count {
            let remote = TransportAddress(ip: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 40_000)
            let source = NetworkPath(socket: SocketIndex(rawValue: 0), remote: remote)
            clients.append(
                try TURNClient(PeerID(rawValue: UInt64(number)), of: forwarder, from: source, at: now)
            )
        }
    }

    /// Frees what is not the forwarder's, so that the heap has only its part.
    func removeClients() { clients = [] }

    /// Every client sends a request, and must get a response.
    /// - Returns: the forwarder's CPU time in nanoseconds.
    private func exchange(_ code: Int?, _ make: (TURNClient) -> [UInt8]) throws -> Double {
        var time = 0.0
        for start in stride(from: 0, to: clients.count, by: Self.clientsPerTurn) {
            let turn = clients[start..<min(start + Self.clientsPerTurn, clients.count)]
            ask(turn, make)
            let began = nagare_thread_nanoseconds()
            answer()
            time += Double(nagare_thread_nanoseconds() - began)
            try check(turn, code)
        }
        return time
    }

    private func ask(_ turn: ArraySlice<TURNClient>, _ make: (TURNClient) -> [UInt8]) {
        inbox.removeAll()
        for client in turn { inbox.append(make(client), from: client.source) }
    }

    private func check(_ turn: ArraySlice<TURNClient>, _ code: Int?) throws {
        guard batch.count == turn.count else { throw CallError.broken("\(batch.count) responses") }
        for (index, client) in turn.enumerated() {
            batch.withDatagram(index) { bytes, _ in client.receive(bytes) }
            guard client.errorCode == code else { throw CallError.broken("error \(client.errorCode ?? 0)") }
        }
        batch.removeAll()
    }

    // MARK: - One request of every client, in one turn

    /// Requests of a client, in their order.
    enum Request: String, CaseIterable {
        case challenge, allocation, end

        /// Of the response.
        fileprivate var code: Int? { self == .challenge ? 401 : nil }
    }

    /// Puts a request of every client into the inbox.
    func prepare(_ request: Request) {
        ask(clients[...]) { client in
            switch request {
            case .challenge:
                client.forgetNonce()
                return client.makeAllocate()
            case .allocation: return client.makeAllocate()
            case .end: return client.makeRelease()
            }
        }
    }

    /// The forwarder's work for what is in the inbox.
    @inline(never)
    func answer() {
        inbox.deliver(to: forwarder, at: now, into: batch)
        forwarder.endTurn(at: now, into: batch)
    }

    /// Lets the clients take the responses.
    func finish(_ request: Request) throws {
        try check(clients[...], request.code)
        if request == .end { now += .seconds(301) }
    }

    /// Every client makes an allocation, as a new client does.
    /// - Returns: nanoseconds for each.
    func allocate() throws -> Double {
        for client in clients { client.forgetNonce() }
        let challenge = try exchange(401) { $0.makeAllocate() }
        return (challenge + (try exchange(nil) { $0.makeAllocate() })) / Double(clients.count)
    }

    /// Every client binds a channel.
    func bind() throws { _ = try exchange(nil) { $0.bind(to: Session.mediaAddress) } }

    /// Every client ends its allocation, and time passes until its port may be used again.
    /// - Returns: nanoseconds for each.
    func release() throws -> Double {
        defer { now += .seconds(301) }
        return try exchange(nil) { $0.makeRelease() } / Double(clients.count)
    }
}
