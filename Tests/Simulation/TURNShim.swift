import Base
import TURN
import Wire

/// A TURN client between a host and the network: what the host sends goes through an allocation on the node, and what
/// comes back is unwrapped.
final class TURNShim {
    private let credentials: TURNCredentials
    /// The media address that the allocation's datagrams go to.
    private let peer: TransportAddress
    private static let channel: UInt16 = 0x4000
    private var nonce = ""
    private var transaction: UInt64 = 0
    /// Of the last response: 0 for a success.
    private(set) var code: Int?
    private(set) var relayed: TransportAddress?
    /// Datagrams go over a channel instead of in indications.
    var isBound = false
    private(set) var channelDataReceived = 0
    private(set) var indicationsReceived = 0
    /// The datagrams that came through the allocation.
    private(set) var received: [[UInt8]] = []

    init(_ credentials: TURNCredentials, peer: TransportAddress) {
        self.credentials = credentials
        self.peer = peer
    }

    /// A request, with credentials once there is a nonce.
    func request(_ method: STUNMethod, _ extend: (inout STUNMessageBuilder) -> Void = { _ in }) -> [UInt8] {
        transaction += 1
        var builder = STUNMessageBuilder(.request, method: method, transactionID: .init(high: 5, low: transaction))
        extend(&builder)
        if !nonce.isEmpty {
            builder.append(.username, credentials.username)
            builder.append(.realm, "nagare")
            builder.append(.nonce, nonce)
            builder.appendMessageIntegrity(key: credentials.key(realm: "nagare"))
        }
        return builder.bytes
    }

    func allocate() -> [UInt8] { request(.allocate) { $0.append(.requestedTransport, 17 << 24 as UInt32) } }

    func permit(_ address: TransportAddress? = nil) -> [UInt8] {
        request(.createPermission) { $0.appendXORAddress(.xorPeerAddress, address ?? peer) }
    }

    func bind(_ address: TransportAddress? = nil) -> [UInt8] {
        request(.channelBind) { request in
            request.append(.channelNumber, UInt32(Self.channel) << 16)
            request.appendXORAddress(.xorPeerAddress, address ?? peer)
        }
    }

    func wrap(_ bytes: [UInt8], to address: TransportAddress? = nil) -> [UInt8] {
        guard isBound, address == nil else {
            transaction += 1
            var builder = STUNMessageBuilder(
                .indication,
                method: .send,
                transactionID: .init(high: 6, low: transaction)
            )
            builder.appendXORAddress(.xorPeerAddress, address ?? peer)
            builder.append(.data, bytes)
            return builder.bytes
        }
        var message: [UInt8] = []
        message.append(bigEndian: Self.channel)
        message.append(bigEndian: UInt16(bytes.count))
        return message + bytes
    }

    /// The datagram in what came from the node; `nil` for a response.
    func unwrap(_ bytes: [UInt8]) -> [UInt8]? {
        if bytes[0] & 0xC0 == 0x40 {
            channelDataReceived += 1
            return note(Array(bytes[4..<4 + Int(bytes[2]) << 8 + Int(bytes[3])]))
        }
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return nil }
        if message.method == .data {
            indicationsReceived += 1
            var cursor = message.attributes
            while let (type, value) = cursor.next() {
                if type == .data { return note(Array(bytes[value])) }
            }
            return nil
        }
        code = message.errorCode ?? 0
        if let nonce = message.nonce { self.nonce = nonce }
        var cursor = message.attributes
        while let (type, value) = cursor.next() {
            if type == .xorRelayedAddress { relayed = message.xorAddress(at: value) }
        }
        return nil
    }

    private func note(_ bytes: [UInt8]) -> [UInt8] {
        received.append(bytes)
        return bytes
    }
}
