internal import NIOCore

/// Lets a listener rest for a second after a failed accept.
///
/// A process without file descriptors cannot accept the connections that wait, and its listener stays readable: without a rest it
/// would take a whole processor. NIO's own `AcceptBackoffHandler` delays the next read only, while the listener stays registered
/// for the events that fail.
final class AcceptRestHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let rest = TimeAmount.seconds(1)

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is IOError else { return context.fireErrorCaught(error) }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: Self.rest) { channel.setOption(.autoRead, value: true) }
        }
    }
}
