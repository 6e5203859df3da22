import Base
import EventLoop
import Media
import MediaTypes
import TLS
import Testing
import Wire

/// Bytes to and from a node, with blocking calls.
protocol ByteStream: AnyObject {
    var local: TransportAddress { get }
    func send(_ bytes: [UInt8])
    /// The next bytes; empty at the end of the connection, `nil` when nothing comes for ten seconds.
    func receive() -> [UInt8]?
}

extension TCPClient: ByteStream {}

/// A TLS client that trusts any certificate.
final class TLSClient: ByteStream {
    private let tcp: TCPClient
    private let tls: TLSStream
    private var received: [UInt8] = []

    var local: TransportAddress { tcp.local }

    /// Makes the handshake.
    init(_ tcp: TCPClient) throws {
        self.tcp = tcp
        tls = try TLSStream.client(name: "localhost")
        while tls.status == .handshaking {
            tcp.send(tls.takeOutput())
            let bytes = try #require(tcp.receive())
            try #require(!bytes.isEmpty)
            tls.receive(unsafe bytes.span.bytes) { received += $0.array() }
        }
        tcp.send(tls.takeOutput())
    }

    func send(_ bytes: [UInt8]) {
        _ = tls.send(unsafe bytes.span.bytes)
        tcp.send(tls.takeOutput())
    }

    func receive() -> [UInt8]? {
        while received.isEmpty {
            guard let bytes = tcp.receive() else { return nil }
            guard !bytes.isEmpty, tls.status == .open else { return [] }
            tls.receive(unsafe bytes.span.bytes) { received += $0.array() }
        }
        defer { received = [] }
        return received
    }
}

/// A TURN client on a connection.
final class TURNConnection {
    private static let channel: UInt16 = 0x4000

    let stream: any ByteStream
    private let access: TURNAccess
    private var nonce = ""
    private var transaction: UInt64 = 0
    private var buffered: [UInt8] = []

    init(_ stream: any ByteStream, _ access: TURNAccess) {
        self.stream = stream
        self.access = access
    }

    /// What the server answered.
    struct Answer {
        /// ERROR-CODE; 0 for a success.
        let code: Int
        let mapped: TransportAddress?
        let relayed: TransportAddress?
    }

    /// A message of the server; `nil` at the end of the connection.
    func message() -> [UInt8]? {
        while true {
            if let bytes = takeMessage() { return bytes }
            guard let more = stream.receive(), !more.isEmpty else { return nil }
            buffered += more
        }
    }

    private func takeMessage() -> [UInt8]? {
        guard buffered.count >= 4 else { return nil }
        let length = Int(buffered[2]) << 8 + Int(buffered[3])
        let total = buffered[0] & 0xC0 == 0x40 ? 4 + length : 20 + length
        let padded = (total + 3) & ~3
        guard buffered.count >= padded else { return nil }
        defer { buffered.removeFirst(padded) }
        return Array(buffered[..<total])
    }

    /// Waits for the end of the connection; whatever comes before it is dropped.
    func waitForEnd() -> Bool {
        while let bytes = stream.receive() { if bytes.isEmpty { return true } }
        return false
    }

    func request(_ method: STUNMethod, _ extend: (inout STUNMessageBuilder) -> Void = { _ in }) -> [UInt8] {
        transaction += 1
        var builder = STUNMessageBuilder(.request, method: method, transactionID: .init(high: 3, low: transaction))
        extend(&builder)
        guard !nonce.isEmpty else { return builder.bytes }
        builder.append(.username, access.username)
        builder.append(.realm, "nagare")
        builder.append(.nonce, nonce)
        builder.appendMessageIntegrity(
            key: MD5.digest(of: Array("\(access.username):nagare:\(access.password)".utf8))
        )
        return builder.bytes
    }

    func exchange(_ bytes: [UInt8]) throws -> Answer {
        let answer = try #require(exchangeRaw(bytes))
        return try parse(answer)
    }

    func exchangeRaw(_ bytes: [UInt8]) -> [UInt8]? {
        stream.send(bytes)
        return message()
    }

    @inline(never)
    private func parse(_ bytes: [UInt8]) throws -> Answer {
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        if let nonce = message.nonce { self.nonce = nonce }
        var relayed: TransportAddress?
        var cursor = message.attributes
        while let (type, value) = cursor.next() {
            if type == .xorRelayedAddress { relayed = message.xorAddress(at: value) }
        }
        return Answer(code: message.errorCode ?? 0, mapped: message.xorMappedAddress, relayed: relayed)
    }

    func allocateRequest() -> [UInt8] { request(.allocate) { $0.append(.requestedTransport, 17 << 24 as UInt32) } }

    /// Makes an allocation, with the challenge before it.
    func allocate() throws -> Answer {
        #expect(try exchange(allocateRequest()).code == 401)
        return try exchange(allocateRequest())
    }

    func permit(_ peer: TransportAddress) -> [UInt8] {
        request(.createPermission) { $0.appendXORAddress(.xorPeerAddress, peer) }
    }

    func bind(_ peer: TransportAddress) -> [UInt8] {
        request(.channelBind) { request in
            request.append(.channelNumber, UInt32(Self.channel) << 16)
            request.appendXORAddress(.xorPeerAddress, peer)
        }
    }

    /// A datagram for a media address in a Send indication.
    func indication(_ data: [UInt8], to peer: TransportAddress) -> [UInt8] {
        transaction += 1
        var builder = STUNMessageBuilder(.indication, method: .send, transactionID: .init(high: 4, low: transaction))
        builder.appendXORAddress(.xorPeerAddress, peer)
        builder.append(.data, data)
        return builder.bytes
    }

    /// A datagram for the media address of the channel, padded.
    func channelData(_ data: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: Self.channel)
        bytes.append(bigEndian: UInt16(data.count))
        return bytes + data + [UInt8](repeating: 0, count: -data.count & 3)
    }

    /// The datagram in a message of the server: of an indication, or of the channel.
    @inline(never)
    func datagram(in bytes: [UInt8]) -> [UInt8]? {
        if bytes[0] & 0xC0 == 0x40 { return Array(bytes[4...]) }
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes), message.method == .data else { return nil }
        var cursor = message.attributes
        while let (type, value) = cursor.next() {
            if type == .data { return Array(bytes[value]) }
        }
        return nil
    }
}
