import NIOCore
import NIOWebSocket
import Room

/// One WebSocket's protocol (RFC 6455) on the server's side: frames below, whole text messages above.
///
/// Fragments are put together, pings are answered, both sides' closing handshakes are done, and a client that breaks
/// the protocol or reads nothing is let go of. Whatever arrives behind the beginning of the end is dropped.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketInput
    typealias OutboundIn = WebSocketOutput
    typealias OutboundOut = WebSocketFrame

    private let limits: WebSocketLimits
    private let network: ClientNetwork
    private let statistics: SignalingStatistics
    private let outbound: OutboundBudget
    private var outboundID: OutboundBudget.ID?
    /// `nil` until the first frame comes.
    private var budget: FrameBudget?
    /// Set once a Close frame went out.
    private var isClosing = false
    /// Set once more frames came than the budget permits.
    private var hasFlooded = false
    /// The fragments of a message so far.
    private var message: ByteBuffer?
    /// What was handed to the socket and is not written yet, in bytes.
    private var waitingBytes = 0
    /// All that was written in whole frames, in bytes with what they take beside.
    private var writtenBytes = 0
    /// All that was handed to the socket, in bytes.
    private var handedBytes = 0
    private var writeDeadline: Scheduled<Void>?
    private var closeDeadline: Scheduled<Void>?

    /// What a frame that waits takes beside its bytes.
    private static let frameOverheadBytes = 256

    /// - Parameters:
    ///   - network: where the client comes from.
    ///   - statistics: counts WebSockets that are closed for what they cost.
    ///   - outbound: bounds what waits for all WebSockets together.
    init(
        limits: WebSocketLimits,
        network: ClientNetwork,
        statistics: SignalingStatistics,
        outbound: OutboundBudget
    ) {
        self.limits = limits
        self.network = network
        self.statistics = statistics
        self.outbound = outbound
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        outboundID = outbound.add(from: network) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        writeDeadline?.cancel()
        closeDeadline?.cancel()
        if let outboundID { outbound.remove(outboundID) }
    }

    // MARK: Inbound

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        guard !isCheap(frame) || takeFrame(context) else { return tooManyFrames(context) }
        guard frame.maskKey != nil, frame.reservedBits.isEmpty else { return refuse(.protocolError, context) }
        if frame.opcode == .connectionClose { return receivedClose(frame.unmaskedData, context) }
        guard !isClosing else { return }
        switch frame.opcode {
        case .text where message == nil: received(frame.unmaskedData, isLast: frame.fin, context)
        case .continuation where message != nil: received(frame.unmaskedData, isLast: frame.fin, context)
        case .binary where message == nil: refuse(.binaryRefused, context)
        case .ping:
            // A later ping is answered in place of one that cannot be (RFC 6455 §5.5.3).
            guard context.channel.isWritable else { return }
            write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData), context, promise: nil)
        case .pong: break
        default: refuse(.protocolError, context)
        }
    }

    /// Whether a frame carries next to nothing, however many of them come.
    private func isCheap(_ frame: WebSocketFrame) -> Bool {
        switch frame.opcode {
        case .text, .continuation: isClosing || !frame.fin && frame.length < limits.fragmentBytesMin
        default: true
        }
    }

    private func takeFrame(_ context: ChannelHandlerContext) -> Bool {
        let now = context.eventLoop.now
        var budget =
            budget ?? FrameBudget(burst: limits.cheapFrameBurst, perSecond: limits.cheapFramesPerSecond, at: now)
        let isPermitted = budget.take(at: now)
        self.budget = budget
        return isPermitted
    }

    /// The closing handshake is not waited for: the client's Close stands behind all the frames that it sent.
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
            // The decoder is of no use any more, so the other side's Close cannot be waited for.
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
            // No bytes came with it, so nothing else would pass it on.
            context.fireChannelReadComplete()
        // A WebSocket has no half-closed state.
        case ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Outbound

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosing else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch Self.unwrapOutboundIn(data) {
        case .text(let bytes):
            write(WebSocketFrame(fin: true, opcode: .text, data: bytes), context, promise: promise)
        case .close(let close): begin(close, context, promise: promise)
        }
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

    private func write(_ frame: WebSocketFrame, _ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let count = frame.length + Self.frameOverheadBytes
        waitingBytes += count
        handedBytes &+= frame.length
        if let outboundID { outbound.change(outboundID, by: count) }
        guard waitingBytes <= limits.waitingBytesMax else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            context.close(promise: nil)
            return
        }
        let written = promise ?? context.eventLoop.makePromise(of: Void.self)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        written.futureResult.whenComplete { [outbound, outboundID] _ in
            bound.value.wrote(count)
            if let outboundID { outbound.change(outboundID, by: -count) }
        }
        context.writeAndFlush(Self.wrapOutboundOut(frame), promise: written)
        if waitingBytes > 0, writeDeadline == nil { armWriteDeadline(context) }
    }

    private func wrote(_ count: Int) {
        waitingBytes -= count
        writtenBytes &+= count
        guard waitingBytes == 0 else { return }
        writeDeadline?.cancel()
        writeDeadline = nil
    }

    /// Closes the channel unless the client reads until then what waits for it now, or enough of it: one that reads slowly
    /// takes longer for a large message.
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

    /// What the system took of all that was handed to the socket, in bytes.
    private func takenBytes(_ channel: any Channel) -> Int {
        let buffered = try? channel.syncOptions?.getOption(.bufferedWritableBytes)
        return handedBytes &- (buffered ?? 0)
    }
}
