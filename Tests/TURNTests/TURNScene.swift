import Base
import TURN
import TestSupport
import Testing
import Wire

/// A server with sessions, and clients that talk to it in virtual time.
struct TURNScene {
    static let start = Instant(nanoseconds: 5_000_000_000)
    static let mediaV4 = TransportAddress(ip: IPAddress(v4: 0xCB00_7101), port: 40_000)
    static let otherMediaV4 = TransportAddress(ip: IPAddress(v4: 0xCB00_7102), port: 40_000)
    static let mediaV6 = TransportAddress(ip: IPAddress(high: 0x2001_0DB8 << 32, low: 1), port: 40_000)
    static let reservedPorts: Set<UInt16> = [3_478, 5_349, 8_080, 40_000, 40_001]

    var server: TURNServer
    var now = start
    private var generator = SeededGenerator(seed: 1)
    let batch = DatagramBatch(capacity: 16)

    init(_ change: (inout TURNConfiguration) -> Void = { _ in }, seed: UInt64 = 7) {
        var configuration = TURNConfiguration(
            addresses: [Self.mediaV4.ip, Self.mediaV6.ip],
            reservedPorts: Self.reservedPorts
        )
        change(&configuration)
        var source = SeededGenerator(seed: seed)
        server = TURNServer(configuration, using: &source)
    }

    /// What a message led to.
    struct Outcome {
        var event: TURNEvent?
        var dropped: TURNDropReason?
        var responses: [[UInt8]] = []
        var destinations: [NetworkPath] = []

        /// The relayed datagram's path and place.
        var relayed: (path: NetworkPath, payload: Range<Int>)? {
            guard case .relayed(_, let path, let payload) = event else { return nil }
            return (path, payload)
        }
        var response: Response? { responses.first.flatMap { try? Response($0) } }
        /// ERROR-CODE of the response; 0 for a success.
        var code: Int? { response.map { $0.code ?? 0 } }
    }

    /// A response's content.
    struct Response {
        var code: Int?
        var realm: String?
        var nonce: String?
        var lifetime: UInt32?
        var relayed: TransportAddress?
        var mapped: TransportAddress?
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) throws(STUNParseError) {
            self.bytes = bytes
            let message = try STUNMessageView(unsafe bytes.span.bytes)
            code = message.errorCode
            realm = message.realm
            nonce = message.nonce
            mapped = message.xorMappedAddress
            var cursor = message.attributes
            while let (type, value) = cursor.next() {
                if type == .lifetime { lifetime = message.bytes.bigEndianUInt32(at: value.lowerBound) }
                if type == .xorRelayedAddress { relayed = message.xorAddress(at: value) }
            }
        }

        /// Whether MESSAGE-INTEGRITY and FINGERPRINT are right.
        func isSigned(_ client: TURNClient) -> Bool {
            guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return false }
            return message.hasValidIntegrity(key: client.key) && message.hasValidFingerprint()
        }
    }

    mutating func send(_ bytes: [UInt8], from path: NetworkPath) -> Outcome {
        batch.removeAll()
        var outcome = Outcome()
        do throws(TURNDropReason) {
            outcome.event = try server.handle(unsafe bytes.span.bytes, from: path, at: now, into: batch)
        } catch {
            outcome.dropped = error
        }
        for index in 0..<batch.count {
            batch.withDatagram(index) { datagram, destination in
                outcome.responses.append(datagram.array())
                outcome.destinations.append(destination)
            }
        }
        return outcome
    }

    /// A session with a client that knows its credentials.
    mutating func addSession(
        _ number: UInt64,
        peers: [TransportAddress] = [mediaV4, otherMediaV4, mediaV6],
        over kind: LocalEndpoint.Kind = .udp
    ) -> TURNClient {
        let credentials = TURNCredentials(username: "session\(number)", using: &generator)
        server.addSession(TURNSessionID(rawValue: number), credentials: credentials, peers: peers, at: now)
        let address = TransportAddress(ip: IPAddress(v4: 0xC633_6400 + UInt32(number)), port: 50_000)
        return TURNClient(credentials, path: NetworkPath(local: LocalEndpoint(kind, index: 0), remote: address))
    }

    /// A client with an allocation.
    mutating func allocated(_ number: UInt64, over kind: LocalEndpoint.Kind = .udp) -> TURNClient {
        var client = addSession(number, over: kind)
        let outcome = client.allocate(in: &self)
        #expect(outcome.code == 0, "the allocation succeeds")
        return client
    }

    /// The events of all deadlines up to `now`.
    mutating func timeouts() -> [TURNEvent] {
        var events: [TURNEvent] = []
        while let event = server.handleTimeout(at: now) { events.append(event) }
        return events
    }

    /// What a datagram from a media address looks like to the client; `nil` when it is dropped.
    mutating func deliver(_ payload: [UInt8], over path: NetworkPath) -> (bytes: [UInt8], route: TURNRoute)? {
        guard var route = try? server.route(over: path, at: now) else { return nil }
        var slot = [UInt8](repeating: 0xEE, count: 1_536)
        let start = TURNRoute.headerBytesMax
        slot.replaceSubrange(start..<start + payload.count, with: payload)
        var range: Range<Int>?
        unsafe slot.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            range = route.frame(start..<start + payload.count, in: &span)
        }
        return range.map { (Array(slot[$0]), route) }
    }

    /// A datagram from a media address that must reach the client.
    mutating func receive(_ payload: [UInt8], over path: NetworkPath) throws -> (bytes: [UInt8], route: TURNRoute) {
        let delivered = deliver(payload, over: path)
        return try #require(delivered)
    }
}

/// A TURN client with the long-term credentials of a session.
struct TURNClient {
    let credentials: TURNCredentials
    var path: NetworkPath
    var realm = "nagare"
    var nonce = ""
    var lastTransaction: UInt64 = 100

    init(_ credentials: TURNCredentials, path: NetworkPath) {
        self.credentials = credentials
        self.path = path
    }

    var key: [UInt8] {
        MD5.digest(of: Array("\(credentials.username):\(realm):\(credentials.password)".utf8))
    }

    /// A request with the credentials and their integrity.
    func request(
        _ method: STUNMethod,
        _ transaction: UInt64,
        _ extend: (inout STUNMessageBuilder) -> Void = { _ in }
    ) -> [UInt8] {
        var builder = STUNMessageBuilder(.request, method: method, transactionID: .init(high: 9, low: transaction))
        extend(&builder)
        builder.append(.username, credentials.username)
        builder.append(.realm, realm)
        builder.append(.nonce, nonce)
        builder.appendMessageIntegrity(key: key)
        return builder.bytes
    }

    /// What libwebrtc sends first.
    static func bareAllocate(_ transaction: UInt64 = 1) -> [UInt8] {
        var builder = STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 9, low: transaction))
        builder.append(.requestedTransport, 17 << 24 as UInt32)
        return builder.bytes
    }

    /// Asks for a nonce, as every client does first.
    mutating func challenge(in scene: inout TURNScene) {
        let outcome = scene.send(Self.bareAllocate(), from: path)
        if let nonce = outcome.response?.nonce { self.nonce = nonce }
    }

    mutating func perform(
        _ method: STUNMethod,
        in scene: inout TURNScene,
        _ extend: (inout STUNMessageBuilder) -> Void = { _ in }
    ) -> TURNScene.Outcome {
        if nonce.isEmpty { challenge(in: &scene) }
        lastTransaction += 1
        let outcome = scene.send(request(method, lastTransaction, extend), from: path)
        if outcome.code == 438, let nonce = outcome.response?.nonce {
            self.nonce = nonce
            lastTransaction += 1
            return scene.send(request(method, lastTransaction, extend), from: path)
        }
        return outcome
    }

    mutating func allocate(in scene: inout TURNScene, lifetime: UInt32? = nil) -> TURNScene.Outcome {
        perform(.allocate, in: &scene) { request in
            request.append(.requestedTransport, 17 << 24 as UInt32)
            if let lifetime { request.append(.lifetime, lifetime) }
        }
    }

    mutating func refresh(in scene: inout TURNScene, lifetime: UInt32) -> TURNScene.Outcome {
        perform(.refresh, in: &scene) { $0.append(.lifetime, lifetime) }
    }

    mutating func permit(_ peers: [TransportAddress], in scene: inout TURNScene) -> TURNScene.Outcome {
        perform(.createPermission, in: &scene) { request in
            for peer in peers { request.appendXORAddress(.xorPeerAddress, peer) }
        }
    }

    mutating func bind(_ channel: UInt16, to peer: TransportAddress, in scene: inout TURNScene) -> TURNScene.Outcome {
        perform(.channelBind, in: &scene) { request in
            request.append(.channelNumber, UInt32(channel) << 16)
            request.appendXORAddress(.xorPeerAddress, peer)
        }
    }

    func indicate(_ data: [UInt8], to peer: TransportAddress, in scene: inout TURNScene) -> TURNScene.Outcome {
        var builder = STUNMessageBuilder(.indication, method: .send, transactionID: .init(high: 9, low: 3))
        builder.appendXORAddress(.xorPeerAddress, peer)
        builder.append(.data, data)
        return scene.send(builder.bytes, from: path)
    }

    func channelData(_ data: [UInt8], _ channel: UInt16, in scene: inout TURNScene) -> TURNScene.Outcome {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: channel)
        bytes.append(bigEndian: UInt16(data.count))
        return scene.send(bytes + data, from: path)
    }
}
