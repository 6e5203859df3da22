import ChannelTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOWebSocket
import Synchronization
import Testing

@testable import Web

/// Frames of a client against the handler, over a channel without sockets and with a clock of its own.
@Suite struct WebSocketHandlerTests {
    static let mask: WebSocketMaskingKey = [1, 2, 3, 4]

    struct Bench {
        let channel: EmbeddedChannel
        let loop = EmbeddedEventLoop()
        let statistics = SignalingStatistics()
        let writer: WebSocketWriter

        init(
            _ limits: WebSocketLimits = WebSocketLimits(),
            network: ClientNetwork = .unknown,
            outbound: WaitingBudget? = nil,
            inbound: WaitingBudget? = nil
        ) throws {
            channel = EmbeddedChannel(loop: loop)
            writer = WebSocketWriter(
                to: channel,
                of: network,
                in: outbound ?? WaitingBudget(bytesMax: .max, refusal: .slowReader, statistics: statistics)
            )
            let arrived = ArrivedBytes()
            if inbound != nil {
                let decoder = WebSocketFrameDecoder(maxFrameSize: limits.messageBytesMax)
                try channel.pipeline.syncOperations.addHandlers(arrived, ByteToMessageHandler(decoder))
            }
            try channel.pipeline.syncOperations.addHandler(
                WebSocketHandler(
                    limits: limits,
                    network: network,
                    statistics: statistics,
                    writer: writer,
                    inbound: inbound ?? WaitingBudget(bytesMax: .max, refusal: .slowSender, statistics: statistics),
                    arrived: arrived
                )
            )
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func receive(_ opcode: WebSocketOpcode, _ bytes: [UInt8], fin: Bool = true, isMasked: Bool = true) throws {
            var data = ByteBuffer(bytes: bytes)
            if isMasked { data.webSocketMask(mask) }
            try channel.writeInbound(
                WebSocketFrame(fin: fin, opcode: opcode, maskKey: isMasked ? mask : nil, data: data)
            )
        }

        func input() throws -> WebSocketInput? { try channel.readInbound() }

        func frame() throws -> (opcode: WebSocketOpcode, bytes: [UInt8])? {
            guard let frame: WebSocketFrame = try channel.readOutbound() else { return nil }
            return (frame.opcode, Array(frame.unmaskedData.readableBytesView))
        }

        /// The code and the reason of the Close frame that is due.
        func close() throws -> WebSocketClose {
            let frame = try #require(try frame())
            #expect(frame.opcode == .connectionClose)
            let code = UInt16(frame.bytes[0]) << 8 | UInt16(frame.bytes[1])
            return WebSocketClose(code, String(decoding: frame.bytes.dropFirst(2), as: UTF8.self))
        }
    }

    @Test func `what has not arrived whole is bounded for all, and waits no more when it has, or its client has gone`()
        throws
    {
        let statistics = SignalingStatistics()
        let inbound = WaitingBudget(bytesMax: 100_000, refusal: .slowSender, statistics: statistics)
        let benches = try (0..<3).map { _ in try Bench(inbound: inbound) }
        // The header of a frame of 50,000 bytes without a mask's bits: 2, 2 and 4 bytes.
        let header: [UInt8] = [0x81, 0xFE, 0xC3, 0x50, 0, 0, 0, 0]
        func send(_ bytes: [UInt8], to index: Int) throws {
            try benches[index].channel.writeInbound(ByteBuffer(bytes: bytes))
            benches[index].loop.run()
        }
        try send(header + Array(repeating: 32, count: 40_000), to: 0)
        #expect(inbound.waitingBytes == 40_008)
        try send(Array(repeating: 32, count: 10_000), to: 0)
        #expect(inbound.waitingBytes == 0)
        #expect(try benches[0].input() == .text(String(repeating: " ", count: 50_000)))
        // A fragment waits for the rest of its message.
        try send([0x01] + header.dropFirst() + Array(repeating: 32, count: 50_000), to: 1)
        let fragment = inbound.waitingBytes
        #expect((50_000...65_536).contains(fragment))
        try send(header + Array(repeating: 32, count: 30_000), to: 2)
        #expect(benches.allSatisfy { $0.channel.isActive })
        try send(header + Array(repeating: 32, count: 30_000), to: 0)
        for bench in benches { bench.loop.run() }
        #expect(benches.map(\.channel.isActive) == [true, false, true])
        #expect(statistics.counts.refusals == [.slowSender: 1])
        #expect(inbound.waitingBytes == 60_016)
        for bench in benches { _ = try? bench.channel.finish(acceptAlreadyClosed: true) }
        #expect(inbound.waitingBytes == 0)
    }

    @Test func `messages wait from when they are written, before the channel's loop takes them`() async throws {
        let statistics = SignalingStatistics()
        let outbound = WaitingBudget(bytesMax: 80_000, refusal: .slowReader, statistics: statistics)
        // Its loop runs what it is given only when it is told to.
        let channel = NIOAsyncTestingChannel()
        let writer = WebSocketWriter(to: channel, of: .unknown, in: outbound)
        for _ in 0..<100 { writer.write(.text(ByteBuffer(repeating: 32, count: 20_000))) }
        #expect(statistics.counts.refusals == [.slowReader: 1] && outbound.waitingBytes == 0)
        await channel.testingEventLoop.run()
        #expect(!channel.isActive)
    }

    @Test func `what waits for a client that is cut goes at once, although its channel closes later`() throws {
        let statistics = SignalingStatistics()
        let outbound = WaitingBudget(bytesMax: 80_000, refusal: .slowReader, statistics: statistics)
        let bench = try Bench(outbound: outbound)
        let socket = SlowSocket()
        socket.holdsClose = true
        try bench.channel.pipeline.syncOperations.addHandler(socket, position: .first)
        let failures = Mutex(0)
        func write() {
            let written = bench.loop.makePromise(of: Void.self)
            written.futureResult.whenFailure { _ in failures.withLock { $0 += 1 } }
            bench.writer.write(.text(ByteBuffer(repeating: 32, count: 20_000)), promise: written)
            bench.loop.run()
        }
        // The first one is the socket's, and the second one waits. The third one is too much, and the fourth one comes after the cut.
        for _ in 0..<2 { write() }
        #expect(failures.withLock(\.self) == 0)
        for count in 1...2 {
            write()
            #expect(statistics.counts.refusals == [.slowReader: 1] && bench.channel.isActive)
            #expect(failures.withLock(\.self) == 1 + count && socket.texts.count == 1 && outbound.waitingBytes == 0)
        }
        socket.holdsClose = false
        _ = try? bench.channel.finish(acceptAlreadyClosed: true)
        #expect(failures.withLock(\.self) == 4)
    }

    @Test func `fragments become one message, with control frames between them`() throws {
        let bench = try Bench()
        try bench.receive(.text, Array("{\"a\":".utf8), fin: false)
        try bench.receive(.ping, [7, 8])
        try bench.receive(.continuation, Array("\"ü".utf8.dropLast()), fin: false)
        try bench.receive(.continuation, Array("ü".utf8.dropFirst()) + Array("\"}".utf8))
        #expect(try bench.input() == .text("{\"a\":\"ü\"}"))
        let pong = try #require(try bench.frame())
        #expect(pong.opcode == .pong && pong.bytes == [7, 8])
        #expect(try bench.frame() == nil)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let opcode: WebSocketOpcode
        var bytes: [UInt8] = []
        var fin = true
        var isMasked = true
        let close: WebSocketClose
    }
    static let refused = [
        Row(testDescription: "binary", opcode: .binary, bytes: [1], close: .binaryRefused),
        Row(testDescription: "not UTF-8", opcode: .text, bytes: [0xC3, 0x28], close: .invalidText),
        Row(testDescription: "no mask", opcode: .text, bytes: [0x7B], isMasked: false, close: .protocolError),
        Row(testDescription: "continues nothing", opcode: .continuation, bytes: [1], close: .protocolError),
        Row(
            testDescription: "unknown opcode",
            opcode: WebSocketOpcode(encodedWebSocketOpcode: 3)!,
            close: .protocolError
        ),
        Row(testDescription: "too long", opcode: .text, bytes: Array(repeating: 32, count: 101), close: .tooLong),
        Row(testDescription: "Close of one byte", opcode: .connectionClose, bytes: [3], close: .protocolError),
        Row(testDescription: "Close with 1005", opcode: .connectionClose, bytes: [3, 0xED], close: .protocolError),
        Row(
            testDescription: "Close whose reason is not UTF-8",
            opcode: .connectionClose,
            bytes: [3, 0xE8, 0xFF],
            close: .protocolError
        ),
    ]

    @Test(arguments: refused)
    func `a protocol violation closes the WebSocket with its code`(row: Row) throws {
        var limits = WebSocketLimits()
        limits.messageBytesMax = 100
        let bench = try Bench(limits)
        try bench.receive(row.opcode, row.bytes, fin: row.fin, isMasked: row.isMasked)
        #expect(try bench.input() == .refused(row.close))
        #expect(try bench.close() == row.close)
        try bench.receive(.text, [0x7B])
        #expect(try bench.input() == nil, "nothing is delivered behind the end")
        #expect(bench.channel.isActive)
        bench.loop.advanceTime(by: limits.closeTimeout)
        #expect(!bench.channel.isActive)
    }

    @Test func `a fragmented message has the same limit as one frame`() throws {
        var limits = WebSocketLimits()
        limits.messageBytesMax = 100
        let bench = try Bench(limits)
        for _ in 0..<5 { try bench.receive(.continuation, [], fin: false) }
        _ = try bench.input()
        let other = try Bench(limits)
        try other.receive(.text, Array(repeating: 32, count: 60), fin: false)
        try other.receive(.continuation, Array(repeating: 32, count: 60), fin: false)
        #expect(try other.input() == .refused(.tooLong))
        #expect(try other.close() == .tooLong)
    }

    @Test func `a new message within an unfinished one is an error`() throws {
        let bench = try Bench()
        try bench.receive(.text, [32], fin: false)
        try bench.receive(.text, [32])
        #expect(try bench.close() == .protocolError)
    }

    @Test(arguments: [[], [0x03, 0xE8], [0x0F, 0xA0] + Array("bye".utf8)] as [[UInt8]])
    func `the client's Close is echoed and ends the connection`(bytes: [UInt8]) throws {
        let bench = try Bench()
        try bench.receive(.connectionClose, bytes)
        let code = bytes.isEmpty ? nil : UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        let reason = String(decoding: bytes.dropFirst(2), as: UTF8.self)
        #expect(try bench.input() == .closed(code: code, reason: reason))
        let frame = try #require(try bench.frame())
        #expect(frame.opcode == .connectionClose && frame.bytes == Array(bytes.prefix(2)))
        #expect(!bench.channel.isActive)
    }

    @Test func `the server's Close waits for the client's until the timeout`() throws {
        for answers in [true, false] {
            let bench = try Bench()
            bench.writer.write(.close(WebSocketClose(1000, "TYPE-DISCONNECT")))
            bench.writer.write(.text(ByteBuffer(string: "late")))
            #expect(try bench.close() == WebSocketClose(1000, "TYPE-DISCONNECT"))
            #expect(try bench.frame() == nil, "nothing follows a Close")
            #expect(bench.channel.isActive)
            if answers {
                try bench.receive(.connectionClose, [0x03, 0xE8])
            } else {
                bench.loop.advanceTime(by: WebSocketLimits().closeTimeout)
            }
            #expect(!bench.channel.isActive)
        }
    }

    @Test func `a client that reads nothing is closed`() throws {
        let bench = try Bench()
        try bench.channel.pipeline.syncOperations.addHandler(SlowSocket(), position: .first)
        bench.writer.write(.text(ByteBuffer(repeating: 32, count: 100)))
        #expect(bench.channel.isWritable)
        bench.loop.advanceTime(by: WebSocketLimits().writeTimeout)
        #expect(!bench.channel.isActive)
    }

    @Test func `pings of a client that does not read are not answered`() throws {
        let bench = try Bench()
        bench.channel.isWritable = false
        try bench.receive(.ping, [1])
        #expect(try bench.frame() == nil)
    }

    @Test func `a client that reads its unsent data in time stays connected, whatever is written meanwhile`() throws {
        let bench = try Bench()
        let socket = SlowSocket()
        try bench.channel.pipeline.syncOperations.addHandler(socket, position: .first)
        for _ in 0..<10 {
            bench.writer.write(.text(ByteBuffer(repeating: 32, count: 100)))
            bench.loop.advanceTime(by: .seconds(19))
            bench.writer.write(.text(ByteBuffer(repeating: 32, count: 100)))
            socket.takeFirst()
            bench.loop.advanceTime(by: .seconds(1))
            #expect(bench.channel.isActive)
            socket.takeFirst()
        }
        bench.loop.advanceTime(by: .seconds(1_000))
        #expect(bench.channel.isActive, "nothing waits")
    }

    @Test func `a slow client stays connected while it makes progress`() throws {
        let bench = try Bench()
        let encoder = SlowSocket()
        try bench.channel.pipeline.syncOperations.addHandler(encoder, position: .first)
        bench.writer.write(.text(ByteBuffer(repeating: 32, count: 600_000)))
        for _ in 0..<5 {
            encoder.take(40_000)
            bench.loop.advanceTime(by: WebSocketLimits().writeTimeout)
            #expect(bench.channel.isActive)
        }
        encoder.take(10_000)
        bench.loop.advanceTime(by: WebSocketLimits().writeTimeout)
        #expect(!bench.channel.isActive, "too little")
    }

    @Test func `what a client does not read waits outside of the channel, and follows in order`() throws {
        let bench = try Bench()
        let socket = SlowSocket()
        try bench.channel.pipeline.syncOperations.addHandler(socket, position: .first)
        let texts = (0..<100).map { "\($0)" + String(repeating: " ", count: 1_000) }
        for text in texts { bench.writer.write(.text(ByteBuffer(string: text))) }
        #expect(socket.texts == [texts[0]], "the channel has one unsent frame")
        try bench.receive(.ping, [1])
        socket.takeFirst()
        #expect(socket.texts == Array(texts.prefix(2)))
        while socket.hasWrites { socket.takeFirst() }
        #expect(socket.texts == texts, "a client that does not read gets no pong")
        try bench.receive(.ping, [1])
        #expect(socket.texts.count == 101)
    }

    @Test func `a close reason is truncated between characters`() {
        let close = WebSocketClose(4490, String(repeating: "é", count: 100))
        #expect(close.reason.utf8.count == 122 && close.reason.allSatisfy { $0 == "é" })
    }

    @Test func `a shutdown and a half-closed connection are distinguished`() throws {
        let bench = try Bench()
        let counter = ReadCompleteCounter()
        try bench.channel.pipeline.syncOperations.addHandler(counter)
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(try bench.input() == .stopping)
        #expect(counter.count == 1, "an asynchronous channel passes on what it read when the reading is complete")
        #expect(bench.channel.isActive)
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!bench.channel.isActive)
    }

    @Test(arguments: [NIOWebSocketError.invalidFrameLength, .fragmentedControlFrame, .multiByteControlFrameLength])
    func `an invalid frame closes the WebSocket`(error: NIOWebSocketError) throws {
        let bench = try Bench()
        bench.channel.pipeline.fireErrorCaught(error)
        #expect(try bench.close() == (error == .invalidFrameLength ? .tooLong : .protocolError))
        bench.loop.advanceTime(by: .seconds(1))
        #expect(!bench.channel.isActive)
    }
}

private final class ReadCompleteCounter: ChannelInboundHandler {
    typealias InboundIn = WebSocketInput
    var count = 0
    func channelReadComplete(context: ChannelHandlerContext) {
        count += 1
        context.fireChannelReadComplete()
    }
}

/// Queues writes until they are taken, as a socket with a slow reader does.
private final class SlowSocket: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame
    typealias OutboundOut = ByteBuffer
    private var context: ChannelHandlerContext?
    private var heldBytes = 0
    private var promises: [EventLoopPromise<Void>] = []
    /// The contents of all frames so far.
    private(set) var texts: [String] = []
    /// Whether there are writes that it did not take.
    var hasWrites: Bool { !promises.isEmpty }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.context = context
        if let promise { promises.append(promise) }
        let frame = Self.unwrapOutboundIn(data)
        texts.append(String(buffer: frame.data))
        heldBytes += frame.length
        take(0)
    }
    func flush(context: ChannelHandlerContext) {}

    /// As over TLS, whose end waits for the other side.
    var holdsClose = false
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if holdsClose {
            promise?.fail(ChannelError.ioOnClosedChannel)
        } else {
            context.close(mode: mode, promise: promise)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        for promise in promises { promise.fail(ChannelError.ioOnClosedChannel) }
        promises = []
    }

    /// Takes the whole of the first write.
    func takeFirst() { promises.removeFirst().succeed() }

    func take(_ count: Int) {
        context?.flush()
        heldBytes -= count
        context?.write(Self.wrapOutboundOut(ByteBuffer(repeating: 0, count: heldBytes)), promise: nil)
    }
}
