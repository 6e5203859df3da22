internal import NIOCore

/// A command with the promise of its reply.
struct RedisRequest: Sendable {
    var bytes: [UInt8]
    var isHeartbeat: Bool
    /// From now until the promise fails.
    var deadline: TimeAmount
    var reply: EventLoopPromise<RESPValue>
}

/// Sends commands in one pipeline, and gives each reply to the command that it belongs to.
///
/// A command that was not answered in time keeps its place, because its reply comes before those of later commands.
final class RedisHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = RedisRequest
    typealias OutboundOut = ByteBuffer

    private struct Pending {
        var reply: EventLoopPromise<RESPValue>?
        let isHeartbeat: Bool
        let timeout: Scheduled<Void>
    }

    /// The most commands besides heartbeats that wait for replies.
    static let scriptsMax = 256
    private static let heartbeatsMax = 1

    private let reader: RESPReader
    private var pending = CircularBuffer<Pending>()
    /// The number of the first command in ``pending``.
    private var firstNumber = 0
    private var heartbeats = 0
    private var isOpen = true

    init(_ reader: RESPReader) { self.reader = reader }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let request = unwrapOutboundIn(data)
        promise?.succeed()
        guard isOpen else { return request.reply.fail(StoreError.unavailable) }
        let isFull =
            request.isHeartbeat
            ? heartbeats >= Self.heartbeatsMax : pending.count - heartbeats >= Self.scriptsMax
        guard !isFull else { return request.reply.fail(StoreError.busy) }
        let number = firstNumber + pending.count
        let timeout = context.eventLoop.assumeIsolated().scheduleTask(in: request.deadline) { self.timedOut(number) }
        pending.append(Pending(reply: request.reply, isHeartbeat: request.isHeartbeat, timeout: timeout))
        if request.isHeartbeat { heartbeats += 1 }
        context.write(wrapOutboundOut(ByteBuffer(bytes: request.bytes)), promise: nil)
    }

    private func timedOut(_ number: Int) {
        let index = number - firstNumber
        guard index >= 0, index < pending.count else { return }
        let position = pending.index(pending.startIndex, offsetBy: index)
        let reply = pending[position].reply
        pending[position].reply = nil
        reply?.fail(StoreError.timedOut)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        reader.feed(buffer.readableBytesSpan)
        do throws(RESPError) {
            while let reply = try reader.next() {
                // A reply that nobody asked for: the stream is out of step.
                guard let first = pending.popFirst() else { return context.close(promise: nil) }
                firstNumber += 1
                if first.isHeartbeat { heartbeats -= 1 }
                first.timeout.cancel()
                first.reply?.succeed(reply)
            }
        } catch {
            fail(.malformed)
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.unavailable)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(.unavailable)
        context.close(promise: nil)
    }

    private func fail(_ error: StoreError) {
        isOpen = false
        let failed = pending
        pending.removeAll()
        heartbeats = 0
        for request in failed {
            request.timeout.cancel()
            request.reply?.fail(error)
        }
    }
}
