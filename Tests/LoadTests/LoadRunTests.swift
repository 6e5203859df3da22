import Base
import Glibc
import Impairment
import Synchronization
import Testing
import Wire

@testable import Load

@Suite(.serialized, .timeLimit(.minutes(10)))
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

    @Test func `twenty subscribers of one publisher lose nothing, and every latency is measured`() async throws {
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

    @Test func `each subscriber receives through a link of its own`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 2, seconds: 2)
        configuration.viewerLink = try LinkConditions(parsing: "rate=300k,delay=20ms,queue=200ms")
        configuration.viewerUplink = try LinkConditions(parsing: "delay=20ms")
        let report = try await LoadRun(configuration, signaling: node).run()
        let viewers = try #require(report.window?.viewers)
        #expect(viewers.map(\.number) == [1, 2])
        for viewer in viewers {
            #expect(viewer.kilobitsPerSecond > 100 && viewer.kilobitsPerSecond < 300, "\(report.table)")
            #expect(viewer.linkDrops > 0)
            #expect(viewer.queueMillisecondsMax > 100 && viewer.queueMillisecondsMax < 250, "\(report.table)")
        }
        #expect(try #require(report.window?.audio?.latencyMilliseconds).p50 >= 20)
        #expect(report.table.contains("queue max ms"))
        await node.shutdown()
    }

    @Test func `only what was to be sent of simulcast counts as lost`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 2, seconds: 3)
        configuration.videoBitsPerSecond = 1_600_000
        configuration.sendsSimulcast = true
        // It carries the lowest layer only, whose packets are a part of those that the publisher makes.
        configuration.viewerLink = try LinkConditions(parsing: "rate=700k,delay=10ms,queue=500ms")
        let report = try await LoadRun(configuration, signaling: node).run()
        let window = try #require(report.window)
        let dropped = try #require(window.viewers).reduce(0) { $0 + $1.linkDrops }
        #expect(try #require(window.video).packetsReceived > 0)
        #expect(window.packetsLost <= dropped, "\(report.table)")
        await node.shutdown()
    }

    @Test func `a link that is wide enough loses nothing`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 2, seconds: 1)
        configuration.viewerLink = try LinkConditions(parsing: "rate=10M,delay=10ms")
        let report = try await LoadRun(configuration, signaling: node).run()
        #expect(report.isLossless, "\(report.table)")
        let window = try #require(report.window)
        let viewers = try #require(window.viewers)
        #expect(viewers.map(\.number) == [1, 2])
        #expect(viewers.allSatisfy { $0.linkDrops == 0 && $0.kilobitsPerSecond > 0 }, "\(report.table)")
        // A generator without a free processor takes frames late.
        let isBusy = window.generator.waitingShare.map { $0 > 0.1 } ?? false
        #expect(isBusy || viewers.allSatisfy { $0.freezes == 0 }, "\(report.table)")
        #expect(window.packetsLost == 0)
        await node.shutdown()
    }

    @Test func `a ramp measures each of its steps`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 5, seconds: 1)
        configuration.ramp = LoadConfiguration.Ramp(step: 2, p99MillisecondsMax: 100_000)
        let report = try await LoadRun(configuration, signaling: node).run()
        let ramp = try #require(report.ramp)
        // Every step that was measured met the goals. Nothing but the limit of a generator without a processor ends the
        // ramp before its last step, and that is in the report.
        let steps = report.steps.map(\.subscribers)
        #expect(!steps.isEmpty && steps == Array([2, 4, 5].prefix(steps.count)))
        #expect(report.steps.allSatisfy { $0.goalsMissed == [] }, "\(report.table)")
        #expect(ramp.subscribersSustained == steps.last)
        let limits = report.steps.last?.generatorLimits ?? []
        #expect(ramp.reasons == limits && ramp.isGeneratorsLimit == !limits.isEmpty)
        #expect(ramp.subscribersAtBreak == (limits.isEmpty ? nil : steps.last))
        #expect(steps.count == 3 || !limits.isEmpty, "\(report.table)")
        #expect(report.window?.subscribers == report.steps.last?.subscribers)
        #expect(report.isLossless, "\(report.table)")
        await node.shutdown()
    }

    @Test func `a ramp ends at the step that misses a goal twice`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 5, seconds: 1)
        // No packet is that fast.
        configuration.ramp = LoadConfiguration.Ramp(step: 2, p99MillisecondsMax: 1e-6)
        let report = try await LoadRun(configuration, signaling: node).run()
        #expect(report.steps.map(\.subscribers) == [2, 2])
        #expect(report.subscribersConnected == 2)
        let ramp = try #require(report.ramp)
        #expect(ramp.subscribersSustained == 0)
        #expect(ramp.subscribersAtBreak == 2)
        #expect(ramp.reasons.first?.hasPrefix("p99 of ") == true)
        #expect(report.table.contains("at 2 subscribers: p99 of "))
        await node.shutdown()
    }

    @Test func `in a conference all members receive all others`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 0, subscribers: 0, seconds: 1)
        configuration.conferenceMembers = 3
        configuration.loops = 2
        let report = try await LoadRun(configuration, signaling: node).run()
        #expect(report.publishersConnected == 3)
        #expect(report.subscribersConnected == 6)
        #expect(report.isLossless, "\(report.table)")
        let window = try #require(report.window)
        let audio = try #require(window.audio)
        // Each of the three sources goes to two members: one pair that does not hear each other would be a sixth. The two loops
        // are counted one after the other, so what goes from one to the other meanwhile may be missing.
        #expect(audio.packetsReceived * 20 >= audio.packetsSent * 2 * 19)
        #expect(window.generator.threads == 2)
        await node.shutdown()
    }

    @Test(arguments: SRTPProfile.allCases)
    func `media flows with the one profile that is offered`(profile: SRTPProfile) async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 1, seconds: 1)
        configuration.srtpProfiles = [profile]
        let report = try await LoadRun(configuration, signaling: node).run()
        #expect(report.isLossless, "\(report.table)")
        #expect(report.srtpProfiles == [profile.loadName])
        await node.shutdown()
    }

    @Test func `the server's CPU time and memory are measured from its process, and what it sent from its page`()
        async throws
    {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 2, seconds: 1)
        configuration.serverPID = Int(getpid())
        configuration.metricsURL = "http://127.0.0.1:3000/metrics"
        let reads = Mutex(0)
        let page = { @Sendable (url: String) async throws(LoadError) -> String in
            #expect(url == "http://127.0.0.1:3000/metrics")
            let count = reads.withLock { reads in
                reads += 1
                return reads
            }
            return "nagare_packets_sent_total{protocol=\"rtp\"} \(count * 100)\n"
        }
        let run = try LoadRun(configuration, signaling: node, readMetrics: page)
        let report = try await run.run()
        let server = try #require(report.window?.server)
        #expect(server.cpuSeconds > 0)
        #expect(server.packetsForwarded == 100)
        #expect(server.cpuMicrosecondsPerPacket == server.cpuSeconds * 1e6 / 100)
        #expect(server.residentBytes > 0)
        #expect(server.residentBytesPerSubscriber != nil)
        #expect(reads.withLock { $0 } == 4, "once to check, once before the subscribers, and around the window")
        await node.shutdown()
    }

    @Test func `a metrics page without CPU time is refused before clients join`() async throws {
        let node = try await InProcessNode.start()
        var configuration = configuration(publishers: 1, subscribers: 1)
        configuration.metricsURL = "http://127.0.0.1:3000"
        let page = { @Sendable (_: String) async throws(LoadError) -> String in "up 1\n" }
        let run = try LoadRun(configuration, signaling: node, readMetrics: page)
        let error = await #expect(throws: LoadError.self) { try await run.run() }
        #expect(error?.message.contains("process_cpu_seconds_total") == true)
        #expect(await node.ended == 0)
        await node.shutdown()
    }

    @Test func `a refused client is counted with its reason, and the others continue`() async throws {
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

    @Test func `a cancelled run reports its results and disconnects all clients`() async throws {
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
