internal import NIOCore

/// One end of a link's connection: frames in and out, the hello first.
final class LinkHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What a connection tells its owner, on the connection's event loop.
    struct Owner {
        /// The other side said hello.
        let connected: (any Channel, LinkHello) -> Void
        let received: (LinkFrame) -> Void
        /// Bytes arrived after the hello, perhaps only a part of a frame.
        let heard: () -> Void
        /// A frame that ends the connection.
        let refused: (LinkFrameError) -> Void
        let closed: () -> Void
        /// An error that ends the connection, such as that of its handshake.
        var failed: (any Error) -> Void = { _ in }
    }

    private let owner: Owner
    /// From the connection to the other side's hello.
    private let helloTimeout: TimeAmount
    private var reader = LinkFrameReader()
    private var hasHello = false
    private var isRefused = false
    private var timeout: Scheduled<Void>?

    init(_ owner: Owner, helloTimeout: TimeAmount) {
        self.owner = owner
        self.helloTimeout = helloTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: helloTimeout) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // TLS takes its time to close.
        guard !isRefused else { return }
        if hasHello { owner.heard() }
        reader.feed(unwrapInboundIn(data).readableBytesView)
        do throws(LinkFrameError) {
            while let frame = try reader.next() { try take(frame, context) }
        } catch {
            isRefused = true
            owner.refused(error)
            context.close(promise: nil)
        }
    }

    private func take(_ frame: LinkFrame, _ context: ChannelHandlerContext) throws(LinkFrameError) {
        if case .hello(let hello) = frame {
            guard !hasHello else { throw .unexpected }
            hasHello = true
            timeout?.cancel()
            reader.bytesMax = LinkFrame.bytesMax
            owner.connected(context.channel, hello)
        } else {
            guard hasHello else { throw .unexpected }
            owner.received(frame)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        timeout?.cancel()
        owner.closed()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        owner.failed(error)
        context.close(promise: nil)
    }
}
