import Base
internal import Forwarding
internal import MediaTypes
internal import TURN
internal import Wire

/// How a client's datagrams reach the forwarder: from its own address, or through a channel of its allocation.
struct ClientRoute {
    /// Where the forwarder's socket sees datagrams come from.
    let source: NetworkPath
    /// Where the client's peer sees them come from.
    let path: NetworkPath
    private let isRelayed: Bool

    init(_ source: NetworkPath) {
        self.source = source
        path = source
        isRelayed = false
    }

    init(_ source: NetworkPath, through relayed: TransportAddress) {
        self.source = source
        path = NetworkPath(local: LocalEndpoint(.relayed, index: 0), remote: relayed)
        isRelayed = true
    }

    /// A datagram as it leaves the client.
    func wrapped(_ bytes: [UInt8]) -> [UInt8] {
        guard isRelayed else { return bytes }
        var message: [UInt8] = []
        message.reserveCapacity(bytes.count + 4)
        message.append(bigEndian: TURNClient.channel)
        message.append(bigEndian: UInt16(bytes.count))
        return message + bytes
    }
}

/// Writes the requests of one TURN client, and reads the responses.
final class TURNClient {
    static let channel: UInt16 = 0x4000
    /// An Allocate request that gets the nonce, and one with credentials.
    static let allocationRoundTrips = 2
    private static let realm = "nagare"

    let source: NetworkPath
    private let credentials: TURNCredentials
    private let key: [UInt8]
    private var nonce = ""
    private var transactions: UInt64 = 0
    private(set) var relayed: TransportAddress?
    /// Of the last response; `nil` for a success.
    private(set) var errorCode: Int?

    /// A client with credentials for `peer`, which may join later.
    init(_ peer: PeerID, of forwarder: Forwarder, from source: NetworkPath, at now: Instant) throws {
        guard let credentials = forwarder.openTURN(for: peer, at: now) else { throw CallError.broken("no credentials") }
        self.source = source
        self.credentials = credentials
        key = credentials.key(realm: Self.realm)
    }

    func makeAllocate() -> [UInt8] { request(.allocate) { $0.append(.requestedTransport, 17 << 24 as UInt32) } }

    /// The end of the allocation.
    func makeRelease() -> [UInt8] { request(.refresh) { $0.append(.lifetime, 0 as UInt32) } }

    func bind(to media: TransportAddress) -> [UInt8] {
        request(.channelBind) { request in
            request.append(.channelNumber, UInt32(Self.channel) << 16)
            request.appendXORAddress(.xorPeerAddress, media)
        }
    }

    /// The next request with a nonce of the server comes from a client that has none.
    func forgetNonce() { nonce = "" }

    /// Without a nonce, the request has no credentials.
    private func request(_ method: STUNMethod, _ extend: (inout STUNMessageBuilder) -> Void) -> [UInt8] {
        transactions += 1
        var builder = STUNMessageBuilder(.request, method: method, transactionID: .init(high: 3, low: transactions))
        extend(&builder)
        if !nonce.isEmpty {
            builder.append(.username, credentials.username)
            builder.append(.realm, Self.realm)
            builder.append(.nonce, nonce)
            builder.appendMessageIntegrity(key: key)
        }
        return builder.bytes
    }

    /// Takes a response.
    func receive(_ bytes: RawSpan) {
        guard let message = try? STUNMessageView(bytes) else { return }
        errorCode = message.errorCode
        if let nonce = message.nonce { self.nonce = nonce }
        var cursor = message.attributes
        while let (type, value) = cursor.next() {
            if type == .xorRelayedAddress { relayed = message.xorAddress(at: value) }
        }
    }

    /// Makes the allocation.
    /// - Returns: the way through a channel, which is yet to be bound.
    func allocate(from forwarder: Forwarder, through batch: DatagramBatch, at now: Instant) throws -> ClientRoute {
        for _ in 0..<Self.allocationRoundTrips {
            deliver(makeAllocate(), from: source, to: forwarder, at: now, into: batch)
            for index in 0..<batch.count { batch.withDatagram(index) { bytes, _ in receive(bytes) } }
            batch.removeAll()
        }
        guard let relayed else { throw CallError.broken("no allocation: \(errorCode ?? 0)") }
        return ClientRoute(source, through: relayed)
    }
}
