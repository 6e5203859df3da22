import Base
import CDatagram
import EventLoop
import Foundation
import Testing
import Wire

@Suite(.timeLimit(.minutes(10)))
struct LifecycleTests {
    @Test func `stopping a loop runs its queued jobs`() async throws {
        let host = try LoopHost()
        let count = 2 * LoopExecutor.jobsPerTurnMax
        let tasks = await host.run { host in
            (0..<count).map { number in Task { host.append(number) } }
        }
        await host.loop.stop()
        for task in tasks { await task.value }
        #expect(await host.numbers == Array(0..<count))
    }

    @Test func `concurrent calls of stop all return`() async throws {
        let host = try LoopHost()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { await host.loop.stop() }
                group.addTask { await host.stopFromInside() }
            }
        }
        await host.loop.stop()
        #expect(await host.numbers.count == 8)
    }

    @Test func `an actor of a stopped loop still runs its jobs, one at a time`() async throws {
        let host = try LoopHost()
        await host.loop.stop()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 { group.addTask { await host.append(number) } }
        }
        #expect(await host.numbers.sorted() == Array(0..<500))
    }

    @Test func `a stopped loop opens no socket, sends nothing and cannot start again`() async throws {
        let host = try LoopHost()
        let local = try await host.open().local
        await host.loop.stop()
        await #expect(throws: EventLoopError.stopped) { try await host.open() }
        #expect(throws: EventLoopError.stopped) { try host.loop.start() }
        await host.send([[1]], to: local)
        await host.run { $0.loop.setTimer(at: EventLoop.now()) }
        #expect(await host.statistics.datagramsSent == 0)
        #expect(await host.statistics.sendQueueDrops == 1)
    }

    @Test func `a loop that never started can be stopped`() async throws {
        let host = try LoopHost(isStarted: false)
        let task = Task.immediate { await host.append(1) }
        await host.loop.stop()
        await task.value
        #expect(await host.numbers == [1])
    }

    @Test func `a loop has the slice that it asks for, where the kernel keeps slices of threads`() async throws {
        let asking = try LoopHost(slice: .microseconds(300))
        let other = try LoopHost()
        let slices = await (asking.run { _ in nagare_slice() }, other.run { _ in nagare_slice() })
        // Linux 6.12 is the first to keep them. Earlier ones say 0.
        if try keepsSlices() {
            #expect(slices.0 == 300_000 && slices.1 != 300_000)
        } else {
            #expect(slices == (0, 0))
        }
        for host in [asking, other] { await host.loop.stop() }
    }

    @Test func `a loop starts once`() async throws {
        let host = try LoopHost()
        #expect(throws: EventLoopError.alreadyStarted) { try host.loop.start() }
        await host.loop.stop()
    }

    @Test func `stopping releases the port and the memory`() async throws {
        weak var loop: EventLoop?
        let local: TransportAddress
        do {
            let host = try LoopHost()
            loop = host.loop
            local = try await host.open().local
            _ = await host.arrivals()
            await host.loop.stop()
        }
        #expect(loop == nil)
        let next = try LoopHost()
        #expect(try await next.open("\(local)").local == local)
        await next.loop.stop()
    }

    /// In a process of its own: tests beside it open files too.
    @Test func `stopped loops leave no open files`() async {
        await #expect(processExitsWith: .success) {
            var before = 0
            for number in 0...200 {
                let host = try LoopHost()
                _ = try await host.open()
                await host.loop.stop()
                // The first loop opens what the process keeps.
                if number == 0 { before = try openFiles() }
            }
            #expect(try openFiles() == before)
        }
    }
}

/// Whether the kernel is Linux 6.12 or later.
private func keepsSlices() throws -> Bool {
    let release = try String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)
    let version = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return version.count == 2 && (version[0], version[1]) >= (6, 12)
}

/// The open files of the process, but for timers: libdispatch opens one when its threads get no processor for a while, and
/// no loop has one.
private func openFiles() throws -> Int {
    let directory = "/proc/self/fd"
    return try FileManager.default.contentsOfDirectory(atPath: directory)
        .filter { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(number)")
            return target != "anon_inode:[timerfd]"
        }
        .count
}
