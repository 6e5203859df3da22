import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

/// A counter that threads share.
private final class Tally: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .acquiring) }
    func add() { count.add(1, ordering: .releasing) }
}

@Suite(.timeLimit(.minutes(10)))
struct SignalTests {
    @Test func `a signal from another thread calls the callback on the loop, within a turn`() async throws {
        let host = try LoopHost()
        let (events, continuation) = AsyncStream.makeStream(of: String.self)
        await host.run { host in
            let loop = host.loop
            var isSignalled = false
            loop.onSignal = { _ in
                isSignalled = true
                continuation.yield(loop.executor.isIsolatingCurrentContext() == true ? "signal" : "elsewhere")
            }
            loop.onTurnEnd = { _ in
                if isSignalled { continuation.yield("end") }
                isSignalled = false
            }
        }
        host.loop.signal()
        #expect(try await events.collect(2) == ["signal", "end"])
        await host.loop.stop()
    }

    @Test func `signals from many threads while the loop is busy coalesce`() async throws {
        let host = try LoopHost()
        let signals = Tally()
        let calls = Tally()
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        await host.run { host in
            host.loop.onSignal = { _ in
                calls.add()
                continuation.yield(calls.value)
            }
            // Blocks the loop until all threads have signalled.
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                for _ in 0..<1_000 {
                    host.loop.signal()
                    signals.add()
                }
            }
        }
        #expect(signals.value == 8_000)
        #expect(try await stream.collect(1) == [1])
        for _ in 0..<3 { #expect(await host.run { _ in calls.value } == 1) }
        host.loop.signal()
        #expect(try await stream.collect(1) == [2])
        #expect(await host.statistics.wakeUps < 20)
        await host.loop.stop()
    }

    @Test func `no signal is lost, at any time`() async throws {
        let host = try LoopHost()
        let count = 4 * 5_000
        let sent = Tally()
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        // The call after the last signal must see everything counted before it.
        await host.run { host in
            host.loop.onSignal = { _ in
                let seen = sent.value
                if seen == count { continuation.yield(seen) }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<count / 4 {
                        sent.add()
                        host.loop.signal()
                    }
                }
            }
        }
        #expect(try await stream.collect(1) == [count])
        await host.loop.stop()
    }

    @Test func `a signal in the callback causes another call, in another turn`() async throws {
        let host = try LoopHost()
        let (events, continuation) = AsyncStream.makeStream(of: String.self)
        await host.run { host in
            let loop = host.loop
            var left = 3
            var isSignalled = false
            loop.onSignal = { _ in
                isSignalled = true
                continuation.yield("signal")
                left -= 1
                if left > 0 { loop.signal() }
            }
            loop.onTurnEnd = { _ in
                if isSignalled { continuation.yield("end") }
                isSignalled = false
            }
        }
        host.loop.signal()
        #expect(try await events.collect(6) == ["signal", "end", "signal", "end", "signal", "end"])
        await host.loop.stop()
    }

    @Test func `a signal before the start takes effect at the start`() async throws {
        let loop = EventLoop(name: "test")
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        loop.onSignal = { _ in continuation.yield(true) }
        loop.signal()
        try loop.start()
        #expect(try await stream.collect(1) == [true])
        await loop.stop()
    }

    @Test func `signals during and after the stop are ignored`() async throws {
        for _ in 0..<20 {
            let host = try LoopHost()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for _ in 0..<2_000 { host.loop.signal() } }
                group.addTask { await host.loop.stop() }
            }
            host.loop.signal()
        }
    }
}
