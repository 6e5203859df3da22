import Testing

@testable import Load

private func configuration(_ server: SoraServer) -> LoadConfiguration {
    var configuration = LoadConfiguration()
    configuration.url = "http://127.0.0.1:\(server.port)"
    configuration.signaling = .sora
    configuration.videoBitsPerSecond = 300_000
    configuration.sendsAudio = true
    configuration.durationSeconds = 1
    configuration.joinRate = 200
    return configuration
}

private func run(
    _ configuration: LoadConfiguration,
    onProgress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
) async throws -> LoadReport {
    let web = WebSignaling(configuration)
    let run = try LoadRun(configuration, signaling: web, onProgress: onProgress)
    do {
        let report = try await run.run()
        await web.shutdown()
        return report
    } catch {
        await web.shutdown()
        throw error
    }
}

@Suite(.serialized, .timeLimit(.minutes(10)))
struct SoraRunTests {
    @Test func `each receiver gets every sender of its channel over one transport`() async throws {
        let (room, server) = try await InProcessRoom.start()
        var configuration = configuration(server)
        configuration.publishers = 4
        configuration.subscribers = 4
        configuration.channels = 2
        let report = try await run(configuration)
        #expect(report.isLossless, "\(report.table)")
        #expect(report.publishersConnected == 4 && report.subscribersConnected == 4)
        #expect(report.signaling == "sora" && report.tracksMissing == 0)
        let audio = try #require(report.window?.audio)
        // Each of the four sources goes to the two receivers of its channel.
        #expect(audio.packetsReceived >= audio.packetsSent * 2)
        #expect(audio.subscribersSilent == 0)
        #expect(report.connectMilliseconds != nil)
        await room.empty()
        #expect(await room.goodbyes == 8)
        #expect(await room.pongs >= 8)
        await server.stop()
        await room.shutdown()
    }

    @Test func `the members of a conference receive each other in any order of joining`() async throws {
        let (room, server) = try await InProcessRoom.start()
        var configuration = configuration(server)
        configuration.conferenceMembers = 4
        configuration.loops = 2
        let report = try await run(configuration)
        #expect(report.isLossless, "\(report.table)")
        #expect(report.publishersConnected == 4 && report.subscribersConnected == 12)
        #expect(report.tracksMissing == 0)
        let video = try #require(report.window?.video)
        // One pair that does not see each other would be a twelfth. The two loops are counted one after the other: what went from
        // one to the other between both counts was received and not yet made.
        #expect(video.packetsReceived * 20 >= video.packetsSent * 3 * 19)
        #expect(await room.renegotiations > 0)
        await room.empty()
        #expect(await room.goodbyes == 4)
        await server.stop()
        await room.shutdown()
    }

    @Test func `a refused member is counted with the server's reason`() async throws {
        let (room, server) = try await InProcessRoom.start(refusing: 1)
        var configuration = configuration(server)
        configuration.publishers = 2
        configuration.subscribers = 1
        let report = try await run(configuration)
        #expect(report.failures.count == 1)
        #expect(report.failures.keys.first?.contains("4490 AUTHENTICATION-FAILURE") == true)
        #expect(report.publishersConnected == 1 && report.subscribersConnected == 1)
        await server.stop()
        await room.shutdown()
    }

    @Test func `clients whose node sends them away return to another one`() async throws {
        let (first, firstServer) = try await InProcessRoom.start()
        let (second, secondServer) = try await InProcessRoom.start()
        var configuration = configuration(firstServer)
        configuration.publishers = 1
        configuration.subscribers = 2
        configuration.durationSeconds = 5
        // The second of three is not there.
        configuration.rejoinURLs = ["http://127.0.0.1:1", "http://127.0.0.1:\(secondServer.port)"]
        let report = try await run(configuration) { progress in
            guard progress.connected == 3 else { return }
            Task { await first.sendAway() }
        }
        #expect(report.returned == 3 && report.returnMilliseconds != nil, "\(report.table)")
        #expect(report.disconnections.values.reduce(0, +) == 3 && report.failures.isEmpty, "\(report.table)")
        #expect(report.disconnections.keys.allSatisfy { $0.contains("4490 SERVER-SHUTDOWN") })
        #expect(report.table.contains("returned     3 times"))
        await first.empty()
        await second.empty()
        #expect(await second.goodbyes == 3)
        for server in [firstServer, secondServer] { await server.stop() }
        for room in [first, second] { await room.shutdown() }
    }

    @Test func `a member whose signaling and media end is counted once, for its signaling`() async throws {
        let (room, server) = try await InProcessRoom.start(spoiling: 1)
        var configuration = configuration(server)
        configuration.conferenceMembers = 2
        let report = try await run(configuration)
        let ends = report.disconnections
        #expect(ends.values.reduce(0, +) == 1, "\(ends)")
        #expect(ends.keys.first?.hasPrefix("A later offer of the server cannot be used: ") == true, "\(ends)")
        await server.stop()
        await room.shutdown()
    }
}
