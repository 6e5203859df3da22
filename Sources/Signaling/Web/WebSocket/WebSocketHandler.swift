import Base
package import ChannelTypes
import NIOCore
import NIOWebSocket
import Room

/// The server side of one WebSocket (RFC 6455): frames to and from the socket, whole text messages to and from the owner.
///
/// It assembles fragments, answers pings, performs the closing handshake, and closes the connection of a client that
/// violates the protocol or does not read. It drops frames that arrive while it closes.
///
/// What a client does not read waits here, where its memory is known: the channel has one unsent frame at most. With TLS it
/// has a buffer of its own for each unsent write, as large as the largest write so far and at least 16 KiB.
package final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketInput
    typealias OutboundIn = WebSocketOutput
    typealias OutboundOut = WebSocketFrame

    private let limits: WebSocketLimits
    private let network: ClientNetwork
    private let statistics: SignalingStatistics
    private let writer: WebSocketWriter
    private let inbound: WaitingBudget
    private var inboundID: WaitingBudget.ID?
    private let arrived: ArrivedBytes
    /// The bytes of the frames that were decoded.
    private var decodedBytes = 0
    /// The bytes of a frame or message that has not arrived whole, as ``inbound`` knows them.
    private var incompleteBytes = 0
    /// For the cheap frames: pings, pongs, small fragments, and frames after a Close. Each costs the node as much as a whole message,
    /// also before authentication.
    private var cheapFrames: TokenBucket
    /// Whether a Close frame was sent.
    private var isClosing = false
    /// The channel is being closed.
    private var hasEnded = false
    /// Whether the client exceeded the frame budget.
    private var hasFlooded = false
    /// The fragments of a message so far.
    private var message: ByteBuffer?
    /// The frames that wait for the channel, in order.
    private var queue = CircularBuffer<WaitingFrame>(initialCapacity: 1)
    private var isSendingQueue = false
    /// Whether the channel has an unsent frame.
    private var isWriting = false
    /// The memory of all unsent frames.
    private var waitingBytes = 0
    /// The total memory of the frames that were completely written.
    private var writtenBytes = 0
    /// The total bytes passed to the channel.
    private var handedBytes = 0
    private var writeDeadline: Scheduled<Void>?
    private var closeDeadline: Scheduled<Void>?

    /// An unsent frame, and its memory in bytes.
    private struct WaitingFrame {
        let frame: WebSocketFrame
        let bytes: Int
        let promise: EventLoopPromise<Void>?

        init(_ frame: WebSocketFrame, promise: EventLoopPromise<Void>?) {
            self.frame = frame
            bytes = WebSocketHandler.memory(of: frame.data)
            self.promise = promise
        }
    }

    /// The memory of an unsent frame besides its buffer: the objects of the frame, the buffer and the promise, and two places
    /// in queues.
    private static let frameOverheadBytes = 512

    /// The memory of an unsent frame with this data, in bytes. A buffer has up to twice the bytes of its message, as buffers have a
    /// power of two.
    static func memory(of data: ByteBuffer) -> Int { data.storageCapacity + frameOverheadBytes }

    /// - Parameters:
    ///   - network: The client's network.
    ///   - statistics: Counts WebSockets closed because of a limit.
    ///   - writer: Counts the unsent bytes. The handler ends it.
    ///   - inbound: Bounds the bytes of incomplete messages of all connections.
    ///   - arrived: What arrived at the decoder in front of this handler.
    package init(
        limits: WebSocketLimits,
        network: ClientNetwork,
        statistics: SignalingStatistics,
        writer: WebSocketWriter,
        inbound: WaitingBudget,
        arrived: ArrivedBytes
    ) {
        self.limits = limits
        self.network = network
        self.statistics = statistics
        self.writer = writer
        self.inbound = inbound
        self.arrived = arrived
        cheapFrames = TokenBucket(max(limits.cheapFramesPerSecond, 1), burst: limits.cheapFrameBurst)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        inboundID = inbound.add(from: network) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        writeDeadline?.cancel()
        closeDeadline?.cancel()
        writer.remove()
        if let inboundID { inbound.remove(inboundID) }
        discardQueue()
    }

    // MARK: Inbound

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        decodedBytes &+= frame.headerBytes &+ frame.length
        guard !isCheap(frame) || takeFrame(context) else { return tooManyFrames(context) }
        guard frame.maskKey != nil, frame.reservedBits.isEmpty else { return refuse(.protocolError, context) }
        if frame.opcode == .connectionClose { return receivedClose(frame.unmaskedData, context) }
        guard !isClosing else { return }
        switch frame.opcode {
        case .text where message == nil: received(frame.unmaskedData, isLast: frame.fin, context)
        case .continuation where message != nil: received(frame.unmaskedData, isLast: frame.fin, context)
        case .binary where message == nil: refuse(.binaryRefused, context)
        case .ping:
            // A pong may be omitted when a later ping is answered (RFC 6455 §5.5.3).
            guard context.channel.isWritable, queue.isEmpty else { return }
            write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData), context, promise: nil)
        case .pong: break
        default: refuse(.protocolError, context)
        }
    }

    /// Tells the budget what waits for more of it to arrive. Messages that arrive in one piece cost nothing.
    func channelReadComplete(context: ChannelHandlerContext) {
        let bytes = max(0, arrived.count &- decodedBytes) + (message?.storageCapacity ?? 0)
        if bytes != incompleteBytes, let inboundID {
            let change = bytes - incompleteBytes
            incompleteBytes = bytes
            inbound.change(inboundID, by: change)
        }
        context.fireChannelReadComplete()
    }

    /// Whether a frame counts against ``cheapFrames``.
    private func isCheap(_ frame: WebSocketFrame) -> Bool {
        switch frame.opcode {
        case .text, .continuation: isClosing || !frame.fin && frame.length < limits.fragmentBytesMin
        default: true
        }
    }

    private func takeFrame(_ context: ChannelHandlerContext) -> Bool {
        cheapFrames.take(at: Instant(context.eventLoop.now))
    }

    /// Closes without waiting for the client's Close, which follows all the frames that it already sent.
    private func tooManyFrames(_ context: ChannelHandlerContext) {
        guard !hasFlooded else { return }
        hasFlooded = true
        statistics.refused(.frameFlood)
        let wasClosing = isClosing
        refuse(.tooManyFrames, context)
        if wasClosing {
            context.close(promise: nil)
        } else {
            closeAfterWriting(context)
        }
    }

    private func received(_ bytes: ByteBuffer, isLast: Bool, _ context: ChannelHandlerContext) {
        var whole = message ?? ByteBuffer()
        message = nil
        guard whole.readableBytes + bytes.readableBytes <= limits.messageBytesMax else {
            return refuse(.tooLong, context)
        }
        if whole.readableBytes == 0 {
            whole = bytes
        } else {
            whole.writeImmutableBuffer(bytes)
        }
        guard isLast else {
            message = whole
            return
        }
        guard let text = String(validating: whole.readableBytesView, as: UTF8.self) else {
            return refuse(.invalidText, context)
        }
        context.fireChannelRead(Self.wrapInboundOut(.text(text)))
    }

    private func receivedClose(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        guard !isClosing else {
            context.close(promise: nil)
            return
        }
        var bytes = bytes
        var code: UInt16?
        var reason = ""
        if bytes.readableBytes > 0 {
            guard let given: UInt16 = bytes.readInteger(), WebSocketClose.isLegal(given),
                let text = String(validating: bytes.readableBytesView, as: UTF8.self)
            else { return refuse(.protocolError, context) }
            code = given
            reason = text
        }
        context.fireChannelRead(Self.wrapInboundOut(.closed(code: code, reason: reason)))
        isClosing = true
        var data = ByteBuffer()
        if let code { data.writeInteger(code) }
        let bound = context.loopBound
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in bound.value.close(promise: nil) }
        write(WebSocketFrame(fin: true, opcode: .connectionClose, data: data), context, promise: written)
        armCloseDeadline(context)
    }

    private func refuse(_ close: WebSocketClose, _ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        context.fireChannelRead(Self.wrapInboundOut(.refused(close)))
        begin(close, context, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? NIOWebSocketError {
            // The decoder has failed, so the client's Close cannot be received.
            refuse(error == .invalidFrameLength ? .tooLong : .protocolError, context)
            context.fireChannelReadComplete()
            closeAfterWriting(context)
        } else {
            context.close(promise: nil)
        }
    }

    private func closeAfterWriting(_ context: ChannelHandlerContext) {
        let bound = context.loopBound
        context.eventLoop.scheduleTask(in: .milliseconds(100)) { bound.value.close(promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent:
            context.fireChannelRead(Self.wrapInboundOut(.stopping))
            // No read completes after this event, so this flushes the input.
            context.fireChannelReadComplete()
        // A WebSocket has no half-closed state.
        case ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Outbound

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let output = Self.unwrapOutboundIn(data)
        guard !isClosing else {
            if case .text(let bytes) = output { writer.removed(Self.memory(of: bytes)) }
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch output {
        case .text(let bytes):
            write(WebSocketFrame(fin: true, opcode: .text, data: bytes), context, isCounted: true, promise: promise)
        case .close(let close): begin(close, context, promise: promise)
        }
    }

    /// The channel is being closed. Over TLS that takes a while with a client that reads nothing.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        isClosing = true
        hasEnded = true
        discardQueue()
        context.close(mode: mode, promise: promise)
    }

    private func discardQueue() {
        let frames = queue
        queue.removeAll()
        let bytes = frames.reduce(0) { $0 + $1.bytes }
        waitingBytes -= bytes
        writer.removed(bytes)
        for frame in frames { frame.promise?.fail(ChannelError.ioOnClosedChannel) }
    }

    private func begin(_ close: WebSocketClose, _ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        isClosing = true
        message = nil
        var data = ByteBuffer(integer: close.code)
        data.writeString(close.reason)
        write(WebSocketFrame(fin: true, opcode: .connectionClose, data: data), context, promise: promise)
        armCloseDeadline(context)
    }

    private func armCloseDeadline(_ context: ChannelHandlerContext) {
        let bound = context.loopBound
        closeDeadline = context.eventLoop.scheduleTask(in: limits.closeTimeout) { bound.value.close(promise: nil) }
    }

    /// - Parameter isCounted: The writer has counted it as waiting.
    private func write(
        _ frame: WebSocketFrame,
        _ context: ChannelHandlerContext,
        isCounted: Bool = false,
        promise: EventLoopPromise<Void>?
    ) {
        let next = WaitingFrame(frame, promise: promise)
        waitingBytes += next.bytes
        // To count it may close the channel, now or in a moment.
        let mayWait = isCounted || writer.mayWait(next.bytes)
        guard mayWait, !hasEnded, waitingBytes <= limits.waitingBytesMax else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            if !hasEnded { context.close(promise: nil) }
            return
        }
        if queue.isEmpty, !isWriting {
            pass(next, context)
        } else {
            queue.append(next)
        }
        if waitingBytes > 0, writeDeadline == nil { armWriteDeadline(context) }
    }

    /// Gives a frame to the channel.
    private func pass(_ next: WaitingFrame, _ context: ChannelHandlerContext) {
        let bytes = next.bytes
        isWriting = true
        handedBytes &+= next.frame.length
        let written = next.promise ?? context.eventLoop.makePromise(of: Void.self)
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { [writer] result in
            writer.removed(bytes)
            let (handler, context) = bound.value
            handler.wrote(bytes)
            if case .success = result { handler.sendQueue(context) }
        }
        context.writeAndFlush(Self.wrapOutboundOut(next.frame), promise: written)
    }

    /// Gives waiting frames to the channel, as long as the socket takes them.
    private func sendQueue(_ context: ChannelHandlerContext) {
        // The end of a write that the socket takes at once calls this again.
        guard !isSendingQueue, !queue.isEmpty else { return }
        isSendingQueue = true
        defer { isSendingQueue = false }
        while !isWriting, let next = queue.popFirst() { pass(next, context) }
        // Otherwise it keeps the memory that it had when it was longest.
        if queue.isEmpty { queue.removeAll() }
    }

    private func wrote(_ bytes: Int) {
        isWriting = false
        waitingBytes -= bytes
        writtenBytes &+= bytes
        guard waitingBytes == 0 else { return }
        writeDeadline?.cancel()
        writeDeadline = nil
    }

    /// Closes the channel unless the client reads all data that is unsent now, or the minimum progress, within the write
    /// timeout. A slow client needs several timeouts for a large message.
    private func armWriteDeadline(_ context: ChannelHandlerContext) {
        let taken = takenBytes(context.channel)
        let (written, waiting) = (writtenBytes, waitingBytes)
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        writeDeadline = context.eventLoop.scheduleTask(in: limits.writeTimeout) {
            let (handler, context) = bound.value
            let hasRead =
                handler.writtenBytes &- written >= waiting
                || handler.takenBytes(context.channel) &- taken >= handler.limits.progressBytesMin
            if hasRead {
                handler.armWriteDeadline(context)
            } else {
                context.close(promise: nil)
            }
        }
    }

    /// The total bytes that the kernel accepted.
    private func takenBytes(_ channel: any Channel) -> Int {
        let buffered = try? channel.syncOptions?.getOption(.bufferedWritableBytes)
        return handedBytes &- (buffered ?? 0)
    }
}

/// Counts the bytes of a connection that arrived.
package final class ArrivedBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private(set) var count = 0

    package init() {}

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count &+= Self.unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}

extension WebSocketFrame {
    /// The bytes before the payload, as RFC 6455 §5.2 has a sender write them.
    fileprivate var headerBytes: Int {
        let lengthBytes = length < 126 ? 0 : length <= 0xFFFF ? 2 : 8
        return 2 + lengthBytes + (maskKey == nil ? 0 : 4)
    }
}
