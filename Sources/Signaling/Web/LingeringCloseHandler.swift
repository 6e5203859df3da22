import Glibc
package import NIOCore

/// Reads on for a moment before it closes a connection of which bytes are unread (RFC 9112, 9.6).
///
/// The kernel answers unread bytes with a reset, and a client that is still sending sees that instead of the answer that says why the
/// server closes, such as 400 or 413.
package final class LingeringCloseHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The time until the connection closes whatever the client does.
    private static let timeout = TimeAmount.seconds(2)

    /// The most that is read and thrown away, in bytes.
    private static let bytesMax = 256 * 1024

    /// Fulfilled when the connection is closed; `nil` before the server closes.
    private var closed: EventLoopPromise<Void>?
    private var deadline: Scheduled<Void>?
    private var discarded = 0

    package init() {}

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if let closed { return closed.futureResult.cascade(to: promise) }
        guard mode == .all, Self.hasUnreadBytes(context.channel) else {
            return context.close(mode: mode, promise: promise)
        }
        let closed = context.eventLoop.makePromise(of: Void.self)
        closed.futureResult.cascade(to: promise)
        self.closed = closed
        let bound = context.loopBound
        deadline = context.eventLoop.scheduleTask(in: Self.timeout) { bound.value.close(promise: nil) }
        context.close(mode: .output, promise: nil)
        context.read()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard closed != nil else { return context.fireChannelRead(data) }
        discarded += Self.unwrapInboundIn(data).readableBytes
        if discarded > Self.bytesMax { context.close(promise: nil) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        guard closed != nil else { return context.fireChannelReadComplete() }
        context.read()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if closed != nil, case .inputClosed? = event as? ChannelEvent { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        closed?.succeed()
        context.fireChannelInactive()
    }

    /// Whether the kernel holds bytes of the client; `false` when the socket is closed.
    private static func hasUnreadBytes(_ channel: any Channel) -> Bool {
        let count = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            var unread: CInt = 0
            return unsafe ioctl(socket, UInt(FIONREAD), &unread) == 0 ? unread : 0
        }
        return (count ?? 0) > 0
    }
}
