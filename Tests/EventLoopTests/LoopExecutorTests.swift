import Base
import Foundation
import TestSupport
import Testing
import Wire

@testable import EventLoop

private func enter(_ host: LoopHost) { host.assumeIsolated { $0.append(1) } }

@Suite(.timeLimit(.minutes(10)))
struct LoopExecutorTests {
    @Test func `jobs run in the order in which they were enqueued, with a limit per turn`() async throws {
        let host = try LoopHost()
        let count = 3 * LoopExecutor.jobsPerTurnMax + 7
        let tasks = await host.run { host in
            host.loop.onTurnEnd = { _ in host.assumeIsolated { $0.noteTurn() } }
            return (0..<count).map { number in Task { host.append(number) } }
        }
        for task in tasks { await task.value }
        #expect(await host.numbers == Array(0..<count))
        let turns = await host.turnSizes
        #expect(turns.reduce(0, +) <= count)
        #expect(turns.allSatisfy { $0 <= LoopExecutor.jobsPerTurnMax })
        await host.loop.stop()
    }

    @Test func `jobs that take long do not all run in one turn`() async throws {
        let host = try LoopHost()
        // Half a second of them, and fewer than one turn may run by their number.
        let count = LoopExecutor.jobsPerTurnMax - 1
        let tasks = await host.run { host in
            host.loop.onTurnEnd = { _ in host.assumeIsolated { $0.noteTurn() } }
            return (0..<count).map { number in
                Task {
                    let end = EventLoop.now() + LoopExecutor.jobTimePerTurn * 4
                    while EventLoop.now() < end {}
                    host.append(number)
                }
            }
        }
        for task in tasks { await task.value }
        #expect(await host.numbers == Array(0..<count))
        #expect(await host.turnSizes.allSatisfy { $0 < count })
        await host.loop.stop()
    }

    @Test func `a burst of jobs wakes the loop once`() async throws {
        let host = try LoopHost()
        let (held, hold) = AsyncStream.makeStream(of: Void.self)
        let release = DispatchSemaphore(value: 0)
        let holding = Task {
            await host.run { _ in
                hold.finish()
                release.wait()
            }
        }
        for await _ in held {}
        let before = host.loop.executor.wakeUps
        // Each task runs up to its hop to the loop, which is busy, so the jobs accumulate.
        let jobs = (0..<100).map { number in Task.immediate { await host.append(number) } }
        release.signal()
        for job in jobs { await job.value }
        await holding.value
        #expect(host.loop.executor.wakeUps - before == 1)
        #expect(await host.numbers == Array(0..<100))
        await host.loop.stop()
    }

    @Test func `jobs before the start wait for it`() async throws {
        let host = try LoopHost(isStarted: false)
        let task = Task.immediate { await host.append(1) }
        try host.loop.start()
        await task.value
        #expect(await host.numbers == [1])
        await host.loop.stop()
    }

    @Test func `a callback of the loop can enter an actor of the loop`() async throws {
        let host = try LoopHost()
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        let local = try await host.open().local
        await host.run { isolated in
            isolated.loop.onDatagram = { _, length, _, _ in
                let isOnLoop = host.loop.executor.isIsolatingCurrentContext() == true
                host.assumeIsolated { $0.append(length) }
                continuation.yield(isOnLoop)
            }
        }
        await host.send([[1, 2, 3]], to: local)
        #expect(try await stream.collect(1) == [true])
        #expect(await host.numbers == [3])
        await host.loop.stop()
    }

    @Test func `another thread is not on the loop`() async throws {
        let host = try LoopHost()
        #expect(host.loop.executor.isIsolatingCurrentContext() == false)
        await host.loop.stop()
        #expect(host.loop.executor.isIsolatingCurrentContext() == false)
    }

    @Test func `entering an actor off its loop traps`() async {
        await #expect(processExitsWith: .failure) {
            let host = try LoopHost()
            enter(host)
        }
    }

    @Test func `opening a socket off the loop traps`() async {
        await #expect(processExitsWith: .failure) {
            let loop = EventLoop(name: "test")
            try loop.start()
            try loop.addSocket(bind: TransportAddress(ip: .loopbackV4, port: 0))
        }
    }
}
