import Synchronization
import Testing

@testable import Load

@Suite(.serialized, .timeLimit(.minutes(2)))
struct LoadRunTests {
    private func configuration(publishers: Int, subscribers: Int, seconds: Double = 3) -> LoadConfiguration {
        var configuration = LoadConfiguration()
        configuration.publishers = publishers
        configuration.subscribers = subscribers
        configuration.videoBitsPerSecond = 500_000
        configuration.sendsAudio = true
        configuration.durationSeconds = seconds
        configuration.joinRate = 200
        return configuration
    }

    @Test func `twenty subscribers of one publisher lose nothing, and every packet's way is timed`() async throws {
        let node = try await InProcessNode.start()
        let lines = Mutex(0)
        let run = try LoadRun(configuration(publishers: 1, subscribers: 20), signaling: node) { _ in
            lines.withLock { $0 += 1 }
        }
        let report = try await run.run()
        #expect(report.publishersConnected == 1)
        #expect(report.subscribersConnected == 20)
        #expect(report.failedClients == 0)
        #expect(report.isLossless, "\(report.table)")
        #expect(!report.isInterrupted)
        let window = try #require(report.window)
        let video = try #require(window.video)
        let audio = try #require(window.audio)
        #expect(video.packetsDuplicated == 0)
        #expect(audio.packetsDuplicated == 0)
        #expect(video.packetsUnreadable + audio.packetsUnreadable == 0)
        // A publisher makes 50 audio packets a second, and each goes to every subscriber.
        #expect(audio.packetsSent > 50)
        #expect(audio.packetsReceived >= audio.packetsSent * 20)
        #expect(video.packetsReceived >= video.packetsSent * 20)
        #expect(window.subscribers == 20)
        let latency = try #require(video.latencyMilliseconds)
        #expect(latency.p50 > 0)
        #expect(latency.p50 <= latency.p95 && latency.p95 <= latency.p99)
        #expect(latency.p99 <= latency.p999 && latency.p999 <= latency.max)
        #expect(report.connectMilliseconds != nil)
        #expect(lines.withLock { $0 } >= 3)
        #expect(await node.sessionsOpen == 0)
        #expect(await node.ended == 21)
        await node.shutdown()
    }

    @Test func `several publishers share the subscribers, each of which watches one`() async throws {
        let node = try await InProcessNode.start()
        let run = try LoadRun(configuration(publishers: 3, subscribers: 6, seconds: 1), signaling: node)
        let report = try await run.run()
        #expect(report.isLossless, "\(report.table)")
        let audio = try #require(report.window?.audio)
        // Each of the three sources goes to two subscribers.
        #expect(audio.packetsReceived >= audio.packetsSent * 2)
        await node.shutdown()
    }

    @Test func `a ramp measures each of its steps`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 5, seconds: 1)
        configuration.ramp = LoadConfiguration.Ramp(subscribers: 2, seconds: 1)
        let report = try await LoadRun(configuration, signaling: node).run()
        #expect(report.steps.map(\.subscribers) == [2, 4, 5])
        #expect(report.window?.subscribers == 5)
        #expect(report.isLossless, "\(report.table)")
        await node.shutdown()
    }

    @Test func `a client that is refused is counted with its reason, and the others go on`() async throws {
        let node = try await InProcessNode.start(refusing: 1)
        let run = try LoadRun(configuration(publishers: 2, subscribers: 2, seconds: 1), signaling: node)
        let report = try await run.run()
        #expect(report.failures == ["The node is full.": 1])
        #expect(report.publishersConnected == 1)
        #expect(report.subscribersConnected == 2)
        #expect(await node.sessionsOpen == 0)
        await node.shutdown()
    }

    @Test func `without a publisher the run ends with the server's reason`() async throws {
        let node = try await InProcessNode.start(refusing: 1)
        let run = try LoadRun(configuration(publishers: 1, subscribers: 2), signaling: node)
        await #expect(throws: LoadError.failed("No publisher could connect. The node is full.")) {
            try await run.run()
        }
        #expect(await node.sessionsOpen == 0)
        await node.shutdown()
    }

    @Test func `a cancelled run reports what it has and ends every session`() async throws {
        let node = try await InProcessNode.start()
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self)
        let run = try LoadRun(configuration(publishers: 1, subscribers: 3, seconds: 600), signaling: node) { progress in
            if progress.connected == 4 { tick.yield() }
        }
        let task = Task { try await run.run() }
        for await _ in ticks { break }
        task.cancel()
        let report = try await task.value
        #expect(report.isInterrupted)
        #expect(report.subscribersConnected == 3)
        #expect(report.failedClients == 0)
        let window = try #require(report.window)
        #expect(window.packetsLost == 0)
        #expect(await node.sessionsOpen == 0)
        #expect(await node.ended == 4)
        await node.shutdown()
    }
}
