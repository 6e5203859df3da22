import Base
import Glibc
import NIOCore
import Wire

/// TURN over TLS on the port of the HTTPS listener.
package struct SharedTURN: Sendable {
    let router: SharedPortRouter
    let take: @Sendable (_ descriptor: Int32, _ received: [UInt8]) -> Void

    /// - Parameters:
    ///   - name: The host in the `turns:` URLs.
    ///   - take: Gets the connections for TURN: each a socket, which it owns, and the bytes that were read of it.
    package init(name: String, take: @escaping @Sendable (_ descriptor: Int32, _ received: [UInt8]) -> Void) {
        router = SharedPortRouter(turnName: name)
        self.take = take
    }
}

/// Tells by the first bytes of a connection whether it is for HTTPS or for TURN. What is for TURN leaves this server.
final class SharedPortHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The time for a ClientHello.
    private static let timeout = TimeAmount.seconds(5)

    private let turn: SharedTURN
    private var opening: SharedPortOpening
    private var deadline: Scheduled<Void>?
    private var isDone = false

    init(_ turn: SharedTURN) {
        self.turn = turn
        opening = SharedPortOpening(turn.router)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let bound = context.loopBound
        deadline = context.eventLoop.scheduleTask(in: Self.timeout) { bound.value.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        let bytes = Array(Self.unwrapInboundIn(data).readableBytesView)
        let route = opening.append(unsafe bytes.span.bytes)
        guard route != .undecided else { return }
        isDone = true
        switch route {
        case .undecided: break
        case .turnTLS:
            // The copy of the descriptor keeps the connection when this server closes its own.
            if let descriptor = Self.descriptor(of: context.channel) { turn.take(descriptor, opening.bytes) }
            context.close(promise: nil)
        case .refused: context.close(promise: nil)
        // Whatever is not TLS gets the answer that it gets on a port for HTTPS alone.
        case .web, .turn, .iceTCP:
            context.fireChannelRead(Self.wrapInboundOut(ByteBuffer(bytes: opening.bytes)))
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }

    /// A copy of the socket's descriptor; `nil` when it is closed, or too many files are open.
    private static func descriptor(of channel: any Channel) -> Int32? {
        let copy = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            fcntl(socket, F_DUPFD_CLOEXEC, 0)
        }
        guard let copy, copy >= 0 else { return nil }
        return copy
    }
}
