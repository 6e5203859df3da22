package import NIOCore

/// Lets a listener rest for a second after a failed accept.
///
/// A process without file descriptors cannot accept the connections that wait, and its listener stays readable: without a rest it
/// would take a whole processor. NIO's own `AcceptBackoffHandler` delays the next read only, while the listener stays registered
/// for the events that fail.
package final class AcceptRestHandler: ChannelInboundHandler {
    package typealias InboundIn = any Channel

    private static let rest = TimeAmount.seconds(1)

    package init() {}

    /// Lets a listener that runs already rest. No handler before this one learns of failed accepts.
    /// - Throws: `ChannelError` when the listener is closed.
    package static func add(to listener: any Channel) async throws {
        try await listener.eventLoop.submit {
            try listener.pipeline.syncOperations.addHandler(AcceptRestHandler(), position: .first)
        }.get()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is IOError else { return context.fireErrorCaught(error) }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: Self.rest) { channel.setOption(.autoRead, value: true) }
        }
    }
}
