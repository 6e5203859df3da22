import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

@testable import Web

extension WebSocketHandlerTests {
    private func smallBudget(perSecond: Int = 1) -> WebSocketLimits {
        var limits = WebSocketLimits()
        limits.cheapFrameBurst = 10
        limits.cheapFramesPerSecond = perSecond
        return limits
    }

    @Test(arguments: [WebSocketOpcode.ping, .pong, .text])
    func `more cheap frames than the budget end the WebSocket`(opcode: WebSocketOpcode) throws {
        let bench = try Bench(smallBudget())
        for index in 0..<50 {
            let isFragment = opcode == .text
            try bench.receive(isFragment && index > 0 ? .continuation : opcode, [], fin: !isFragment)
        }
        #expect(try bench.input() == .refused(.tooManyFrames))
        #expect(try bench.input() == nil)
        var pongs = 0
        while let frame = try bench.frame(), frame.opcode != .connectionClose {
            #expect(frame.opcode == .pong)
            pongs += 1
        }
        #expect(pongs == (opcode == .ping ? 10 : 0))
        #expect(bench.statistics.counts.refusals == [.frameFlood: 1])
        bench.loop.advanceTime(by: .milliseconds(100))
        #expect(!bench.channel.isActive, "the client's Close is not waited for")
    }

    @Test(arguments: [1, 0])
    func `pings and small fragments at a normal rate are always permitted, and a rate of zero counts as one`(
        rate: Int
    ) throws {
        let bench = try Bench(smallBudget(perSecond: rate))
        for _ in 0..<200 {
            try bench.receive(.ping, [1])
            bench.loop.advanceTime(by: .seconds(1))
            let pong = try #require(try bench.frame())
            #expect(pong.opcode == .pong)
        }
        #expect(bench.channel.isActive && bench.statistics.counts.refusals.isEmpty)
    }

    @Test func `large fragments and whole messages are not counted`() throws {
        let bench = try Bench(smallBudget())
        let piece = Array(repeating: UInt8(ascii: " "), count: 1_024)
        for _ in 0..<50 {
            try bench.receive(.text, piece, fin: false)
            try bench.receive(.continuation, [], fin: true)
            let input = try bench.input()
            #expect(input == .text(String(decoding: piece, as: UTF8.self)))
        }
        #expect(bench.channel.isActive)
    }

    @Test func `a flood after a Close closes the connection at once`() throws {
        let bench = try Bench(smallBudget())
        try bench.receive(.binary, [1])
        #expect(try bench.close() == .binaryRefused)
        for _ in 0..<20 { try bench.receive(.text, Array(repeating: 32, count: 2_000)) }
        #expect(!bench.channel.isActive)
        #expect(bench.statistics.counts.refusals == [.frameFlood: 1])
    }

    private func send(_ count: Int, to bench: Bench) {
        bench.writer.write(.text(ByteBuffer(repeating: 32, count: count)))
    }

    @Test func `the slowest WebSocket is closed when the total of unsent bytes exceeds its limit`() throws {
        let statistics = SignalingStatistics()
        let outbound = WaitingBudget(bytesMax: 120_000, refusal: .slowReader, statistics: statistics)
        let benches = try (0..<3).map { _ in try Bench(outbound: outbound) }
        for bench in benches { try bench.channel.pipeline.syncOperations.addHandler(Unread(), position: .first) }
        send(20_000, to: benches[0])
        send(60_000, to: benches[1])
        send(15_000, to: benches[2])
        #expect(benches.allSatisfy { $0.channel.isActive })
        send(20_000, to: benches[2])
        for bench in benches { bench.loop.run() }
        #expect(benches.map(\.channel.isActive) == [true, false, true])
        #expect(statistics.counts.refusals == [.slowReader: 1])
        #expect(outbound.waitingBytes == 2 * (32_768 + 512) + 16_384 + 512)
        for bench in benches { _ = try? bench.channel.finish(acceptAlreadyClosed: true) }
        #expect(outbound.waitingBytes == 0, "what waited for closed WebSockets waits no more")
    }

    @Test func `an unsent message counts with the memory of its buffer, and short ones with their objects`() throws {
        let outbound = WaitingBudget(bytesMax: .max, refusal: .slowReader, statistics: SignalingStatistics())
        let bench = try Bench(outbound: outbound)
        try bench.channel.pipeline.syncOperations.addHandler(Unread(), position: .first)
        send(4_600, to: bench)
        #expect(outbound.waitingBytes == 8_192 + 512)
        send(30, to: bench)
        #expect(outbound.waitingBytes == 8_192 + 512 + 32 + 512)
    }

    @Test func `a WebSocket with more unsent memory than one may have is closed and freed`() throws {
        var limits = WebSocketLimits()
        limits.waitingBytesMax = 100_000
        let outbound = WaitingBudget(bytesMax: .max, refusal: .slowReader, statistics: SignalingStatistics())
        let bench = try Bench(limits, outbound: outbound)
        try bench.channel.pipeline.syncOperations.addHandler(Unread(), position: .first)
        for _ in 0..<5 { send(15_000, to: bench) }
        #expect(bench.channel.isActive && outbound.waitingBytes == 5 * (16_384 + 512))
        send(15_000, to: bench)
        #expect(!bench.channel.isActive)
        bench.loop.run()
        #expect(outbound.waitingBytes == 0)
    }
}

/// A socket whose other side reads nothing.
private final class Unread: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame
    private var promises: [EventLoopPromise<Void>] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if let promise { promises.append(promise) }
    }
    func flush(context: ChannelHandlerContext) {}
    func handlerRemoved(context: ChannelHandlerContext) {
        for promise in promises { promise.fail(ChannelError.ioOnClosedChannel) }
        promises = []
    }
}
