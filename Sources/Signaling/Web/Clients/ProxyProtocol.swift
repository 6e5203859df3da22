import NIOCore
package import Wire

/// The header of the PROXY protocol, versions 1 and 2 (HAProxy's specification).
enum ProxyProtocolHeader: Hashable, Sendable {
    /// More bytes are needed.
    case incomplete
    case invalid
    /// The whole header. `client` is `nil` for the proxy's own connections, and when the proxy does not know the client.
    case complete(client: IPAddress?, byteCount: Int)

    /// The maximum length of a version 1 header with its line end, in bytes.
    private static let textBytesMax = 107
    /// The maximum length of an accepted version 2 header, in bytes: 36 for addresses, and extensions, which are skipped.
    static let bytesMax = 16 + 1_024
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let textStart = Array("PROXY ".utf8)

    /// - Parameter bytes: All bytes received on the connection so far.
    init(_ bytes: ArraySlice<UInt8>) {
        if bytes.prefix(Self.signature.count).elementsEqual(Self.signature.prefix(bytes.count)) {
            self = bytes.count < 16 ? .incomplete : Self.binary(bytes)
        } else if bytes.prefix(Self.textStart.count).elementsEqual(Self.textStart.prefix(bytes.count)) {
            self = Self.text(bytes)
        } else {
            self = .invalid
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> Self {
        guard let end = bytes.prefix(textBytesMax).firstIndex(of: 0x0A) else {
            return bytes.count < textBytesMax ? .incomplete : .invalid
        }
        guard end > bytes.startIndex, bytes[end - 1] == 0x0D else { return .invalid }
        let count = end + 1 - bytes.startIndex
        let words = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
            .split(separator: " ", omittingEmptySubsequences: false)
        guard words.count >= 2 else { return .invalid }
        if words[1] == "UNKNOWN" { return .complete(client: nil, byteCount: count) }
        guard words.count == 6, let client = IPAddress(words[2]), IPAddress(words[3]) != nil,
            // A proxy that listens on both families writes IPv4 clients as TCP6 ::ffff:192.0.2.1.
            words[1] == (words[2].contains(":") ? "TCP6" : "TCP4"), UInt16(words[4]) != nil, UInt16(words[5]) != nil
        else { return .invalid }
        return .complete(client: client, byteCount: count)
    }

    private static func binary(_ bytes: ArraySlice<UInt8>) -> Self {
        let start = bytes.startIndex
        let (command, family) = (bytes[start + 12], bytes[start + 13])
        let count = 16 + Int(bytes[start + 14]) << 8 + Int(bytes[start + 15])
        guard count <= bytesMax, command >> 4 == 2, command & 0xF <= 1 else { return .invalid }
        guard bytes.count >= count else { return .incomplete }
        let body = bytes[(start + 16)..<(start + count)]
        // LOCAL: the proxy's own health checks.
        guard command & 0xF == 1 else { return .complete(client: nil, byteCount: count) }
        switch family >> 4 {
        case 1:
            guard body.count >= 12 else { return .invalid }
            let address = body.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            return .complete(client: IPAddress(v4: address), byteCount: count)
        case 2:
            guard body.count >= 36 else { return .invalid }
            let high = body.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let low = body.dropFirst(8).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return .complete(client: IPAddress(high: high, low: low), byteCount: count)
        default: return .complete(client: nil, byteCount: count)
        }
    }
}

/// Removes the PROXY protocol header from the start of a trusted proxy's connection.
package final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Called once with the client. Returns whether to keep the connection.
    private let onClient: (IPAddress?) -> Bool
    private let onInvalid: () -> Void
    private let statistics: SignalingStatistics
    private var received = ByteBuffer()
    private var isDone = false

    /// - Parameter onInvalid: Called once for a connection without a valid header, which closes.
    package init(
        statistics: SignalingStatistics,
        onInvalid: @escaping () -> Void = {},
        onClient: @escaping (IPAddress?) -> Bool
    ) {
        self.statistics = statistics
        self.onInvalid = onInvalid
        self.onClient = onClient
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        received.writeImmutableBuffer(Self.unwrapInboundIn(data))
        let head = received.getBytes(
            at: received.readerIndex,
            length: min(received.readableBytes, ProxyProtocolHeader.bytesMax)
        )
        switch ProxyProtocolHeader((head ?? [])[...]) {
        case .incomplete: return
        case .invalid:
            isDone = true
            statistics.refused(.proxyHeader)
            onInvalid()
            context.close(promise: nil)
        case .complete(let client, let byteCount):
            isDone = true
            guard onClient(client) else { return context.close(promise: nil) }
            received.moveReaderIndex(forwardBy: byteCount)
            if received.readableBytes > 0 { context.fireChannelRead(Self.wrapInboundOut(received)) }
            received = ByteBuffer()
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }
}
