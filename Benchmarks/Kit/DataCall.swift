import Base
internal import Counters
internal import DTLS
internal import Forwarding
internal import MediaTypes
internal import SRTP
internal import Wire

/// A forwarder with clients that have one data channel each, in memory and in virtual time.
///
/// It measures what the forwarder does. The clients run the same SCTP and DTLS, so the sum is what both ends of a connection
/// take.
final class DataCall {
    /// CPU time of this thread in nanoseconds.
    struct Times {
        var node = 0.0
        var clients = 0.0
    }

    private static let turnInterval = Interval.milliseconds(1)
    private static let turnsMax = 100_000

    let forwarder: Forwarder
    private(set) var clients: [DataClient] = []
    private(set) var addresses: [DataAddress] = []
    private(set) var times = Times()
    private var now = Instant(nanoseconds: 1_000_000_000)
    private let batch = DatagramBatch(capacity: 1_024)
    private var places: [NetworkPath: Int] = [:]
    /// What the clients sent to the forwarder.
    private let inbox = Inbox(capacity: 4_096)

    /// - Parameters:
    ///   - opens: whether the node opens a channel to each client.
    init(clients count: Int, hasData: Bool = true, opens: Bool = true) throws {
        let certificates = (node: try DTLSCertificate.generate(), client: try DTLSCertificate.generate())
        forwarder = makeForwarder(certificates.node, .preferred, isEstimating: false, seed: 11)
        var environment = RemotePeer.Environment(
            node: certificates.node,
            client: certificates.client,
            profile: .aeadAES128GCM,
            engine: try SRTPEngine(.openssl),
            generator: SplitMix64(seed: 12)
        )
        for number in 1...count {
            let client = try DataClient(
                UInt64(number),
                joining: forwarder,
                hasData: hasData,
                in: &environment,
                through: batch,
                at: now
            )
            places[client.path] = clients.count
            clients.append(client)
        }
        guard hasData, opens else {
            for _ in 0..<1_000 { turn() }
            _ = forwarder.takeEvents()
            return
        }
        let parameters = DataChannelParameters(label: "#x")
        forwarder.perform(clients.map { .open($0.id, parameters) }, at: now, into: batch)
        var opened: [PeerID: DataChannelID] = [:]
        for _ in 0..<1_000 where opened.count < count {
            turn()
            for case (let peer, .data(.opened(let id, _, _, _))) in forwarder.takeEvents() { opened[peer] = id }
        }
        guard opened.count == count else { throw CallError.broken("\(opened.count) of \(count) channels open") }
        addresses = clients.compactMap { client in
            opened[client.id].map { DataAddress(peer: client.id, channel: $0) }
        }
    }

    func resetTimes() { times = Times() }

    /// Frees the clients, so that the heap has only the forwarder's part.
    func removeClients() { clients = [] }

    /// The bytes of messages that arrived at all clients.
    var bytesReceived: Int { clients.reduce(0) { $0 + $1.bytes } }
    var messagesReceived: Int { clients.reduce(0) { $0 + $1.messages } }

    /// Sends a message to every client, and continues until all of them have acknowledged it or the next one is due.
    func send(_ message: [UInt8]) {
        let commands = makeCommands(message)
        times.node += Self.nanoseconds { perform(commands) }
    }

    /// The commands that send a message to every client.
    func makeCommands(_ message: [UInt8]) -> [DataCommand] {
        [.send(DataMessage(message, isText: false), to: addresses)]
    }

    @inline(never)
    func perform(_ commands: [DataCommand]) { forwarder.perform(commands, at: now, into: batch) }

    /// Bytes that wait at the first client's association.
    var queuedBytes: Int { Int(forwarder.counters.data.bytesSent) - bytesReceived }

    /// One turn of the loop: what arrived, timers, and what leaves; then a turn of each client.
    func turn() {
        times.node += Self.nanoseconds { turnForwarder() }
        turnClients()
    }

    /// The forwarder's part of a turn.
    @inline(never)
    func turnForwarder() {
        inbox.deliver(to: forwarder, at: now, into: batch)
        if let deadline = forwarder.nextDeadline, deadline <= now { forwarder.handleTimeout(at: now, into: batch) }
        forwarder.endTurn(at: now, into: batch)
    }

    /// The clients' part of a turn, after the forwarder's.
    func turnClients() {
        inbox.removeAll()
        times.clients += Self.nanoseconds {
            for index in 0..<batch.count {
                batch.withDatagram(index) { datagram, path in
                    if let place = places[path], place < clients.count { clients[place].receive(datagram, at: now) }
                }
            }
            for client in clients {
                for datagram in client.takeDatagrams(at: now) { inbox.append(datagram, from: client.path) }
            }
        }
        batch.removeAll()
        now += Self.turnInterval
    }

    /// Turns until `isDone`.
    func run(until isDone: () -> Bool) throws {
        for _ in 0..<Self.turnsMax {
            if isDone() { return }
            turn()
        }
        throw CallError.broken("\(messagesReceived) messages arrived, and no more do")
    }

    private static func nanoseconds(_ body: () -> Void) -> Double {
        let start = nagare_thread_nanoseconds()
        body()
        return Double(nagare_thread_nanoseconds() - start)
    }
}
