import Base
import Client
import EventLoop
import Foundation
import Testing

@testable import Load

@Suite struct LoadReportTests {
    private func window(
        subscribers: Int = 10,
        lost: Int = 0,
        p99: Int = 5,
        _ change: (inout LoadTally) -> Void = { _ in }
    ) -> LoadReport.Window {
        var start = LoadTally()
        start.takenAt = Instant(nanoseconds: 0)
        var end = start
        end.takenAt = Instant(nanoseconds: 0) + .seconds(1)
        end.video.packets = 1_000
        end.video.lost = lost
        end.video.delays.observe(.milliseconds(p99))
        end.turns.observe(.microseconds(100))
        change(&end)
        return LoadReport.Window(
            from: LoadSnapshot(tally: start, server: ServerUsage()),
            to: LoadSnapshot(tally: end, server: ServerUsage()),
            settled: end,
            WindowContext(hasVideo: true, hasAudio: false, subscribers: subscribers, streams: subscribers)
        )
    }

    private let goals = LoadConfiguration.Ramp(step: 10, lossPercentMax: 0.1, p99MillisecondsMax: 20)

    @Test(arguments: [(0, 5, 0), (1, 20, 0), (2, 5, 1), (0, 25, 1), (100, 100, 2)])
    func `a step misses the goals that it exceeds`(lost: Int, p99: Int, missed: Int) {
        #expect(window(lost: lost, p99: p99).missed(goals).count == missed)
    }

    @Test func `a subscriber without packets is a missed goal, whatever the others received`() {
        #expect(window { $0.video.silentTracks = 1 }.missed(goals).count == 1)
    }

    @Test func `a ramp goes on while the goals are met, and says what reached its limit and where`() {
        var ramp = LoadReport.Ramp(goals)
        var step = window(subscribers: 10)
        step.goalsMissed = step.missed(goals)
        let goesOn = ramp.take(step, failed: 0, goals)
        #expect(goesOn)
        #expect(ramp.subscribersSustained == 10)
        #expect(ramp.message.hasPrefix("All 10 subscribers"))
        step = window(subscribers: 20, lost: 50)
        step.goalsMissed = step.missed(goals)
        let goesOnAgain = ramp.take(step, failed: 0, goals)
        #expect(!goesOnAgain)
        #expect(ramp.subscribersSustained == 10)
        #expect(ramp.subscribersAtBreak == 20)
        #expect(!ramp.isGeneratorsLimit)
        #expect(ramp.message.hasPrefix("The server missed the goals"))
        #expect(ramp.message.hasSuffix("10 were served within them."))
    }

    @Test func `a client that does not connect ends a ramp`() {
        var ramp = LoadReport.Ramp(goals)
        let goesOn = ramp.take(window(), failed: 2, goals)
        #expect(!goesOn)
        #expect(ramp.reasons == ["2 subscribers did not connect"])
        #expect(ramp.subscribersSustained == 0)
    }

    @Test func `a generator at its limit ends a ramp without blame for the server`() {
        var ramp = LoadReport.Ramp(goals)
        var step = window(subscribers: 30) { $0.busy = .milliseconds(900) }
        step.goalsMissed = step.missed(goals)
        #expect(step.goalsMissed == [])
        let goesOn = ramp.take(step, failed: 0, goals)
        #expect(!goesOn)
        #expect(ramp.isGeneratorsLimit)
        #expect(ramp.subscribersSustained == 30)
        #expect(ramp.message.hasPrefix("The generator reached its limit at 30 subscribers"))
    }

    /// Problems of the generator, and the words that the warning must have.
    static let troubles: [(String, @Sendable (inout LoadTally) -> Void)] = [
        ("fewer publishers", { $0.batchDrops = 3 }),
        ("fewer publishers", { $0.sockets.sendQueueDrops = 3 }),
        ("fewer subscribers", { $0.sockets.kernelReceiveDrops = 3 }),
        ("busy 90 %", { $0.busy = .milliseconds(900) }),
        ("for a turn", { $0.turns.observe(.milliseconds(50)) }),
        ("late (p99)", { $0.lateness.observe(.milliseconds(50)) }),
    ]

    @Test(arguments: troubles.indices)
    func `a generator with a problem gives a warning that says what to do`(index: Int) {
        #expect(window().warnings == [])
        let (words, trouble) = Self.troubles[index]
        let warnings = window { trouble(&$0) }.warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains(words) == true)
        #expect(warnings.first?.hasSuffix(".") == true)
    }

    @Test func `reordered and restored packets are distinguished, and copies are counted`() throws {
        let window = window {
            $0.video.reordered = 3
            $0.video.restored = 2
            $0.video.duplicates = 4
            $0.copiesDropped = 5
        }
        let video = try #require(window.video)
        #expect(video.packetsReordered == 3)
        #expect(video.packetsRestored == 2)
        #expect(video.packetsLate == 5)
        #expect(video.packetsDuplicated == 4)
        #expect(window.copiesDropped == 5)
    }

    /// Programs rely on these fields: a change here is a change of `LoadReport.schema`.
    @Test func `the report's fields are those of its schema`() throws {
        var configuration = LoadConfiguration()
        configuration.conferenceMembers = 2
        var report = LoadReport(configuration)
        report.connectMilliseconds = .init(p50: 1, p95: 1, p99: 1, p999: 1, max: 1)
        report.ramp = .init(goals)
        report.ramp?.subscribersAtBreak = 1
        var window = window()
        window.audio = window.video
        window.goalsMissed = []
        window.server = .init(
            cpuSeconds: 1,
            cores: 1,
            cpuMicrosecondsPerPacket: 1,
            residentBytes: 1,
            residentBytesPerSubscriber: 1,
            packetsForwarded: 1,
            retransmissionsSent: 1,
            datagramsDropped: 1
        )
        window.generator.cpuSeconds = 1
        window.generator.residentBytes = 1
        window.generator.cpuMicrosecondsPerPacket = 1
        window.generator.waitingShare = 0
        window.generator.latenessMilliseconds = window.generator.turnMilliseconds
        window.viewers = [
            .init(
                number: 1,
                kilobitsPerSecond: 1,
                framesPerSecond: 1,
                freezes: 0,
                freezeSeconds: 0,
                layerChanges: 0,
                linkDrops: 0,
                queueMillisecondsMax: 0
            )
        ]
        report.window = window
        let data = try JSONEncoder().encode(report)
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(report.schema == "nagare-load/1")
        func keys(_ path: String...) throws -> Set<String> {
            var object = object
            for name in path { object = try #require(object[name] as? [String: Any], "\(name)") }
            return Set(object.keys)
        }
        #expect(
            try keys() == [
                "schema", "url", "signaling", "channel", "channels", "publishers", "subscribers", "conferenceMembers",
                "videoKilobitsPerSecond", "framesPerSecond", "hasAudio", "srtpProfiles", "publishersConnected",
                "subscribersConnected", "failures", "disconnections", "connectMilliseconds", "steps", "ramp", "window",
                "warnings", "isInterrupted",
            ]
        )
        #expect(
            try keys("window") == [
                "seconds", "subscribers", "packetsPerSecond", "megabitsPerSecond", "lossPercent", "video", "audio",
                "packetsRequestedAgain", "copiesDropped", "keyFrameRequests", "server", "generator", "goalsMissed",
                "viewers",
            ]
        )
        let windowObject = try #require(object["window"] as? [String: Any])
        let viewer = try #require((windowObject["viewers"] as? [[String: Any]])?.first)
        #expect(
            Set(viewer.keys) == [
                "number", "kilobitsPerSecond", "framesPerSecond", "freezes", "freezeSeconds", "layerChanges",
                "linkDrops",
                "queueMillisecondsMax",
            ]
        )
        #expect(
            try keys("window", "video") == [
                "packetsSent", "packetsReceived", "packetsLost", "packetsWithheld", "lossPercent", "packetsDuplicated",
                "packetsLate", "packetsReordered", "packetsRestored", "packetsUnreadable", "subscribersSilent",
                "framesPerSecond", "longestGapMilliseconds", "latencyMilliseconds",
            ]
        )
        #expect(try keys("window", "video", "latencyMilliseconds") == ["p50", "p95", "p99", "p999", "max"])
        #expect(
            try keys("window", "server") == [
                "cpuSeconds", "cores", "cpuMicrosecondsPerPacket", "residentBytes", "residentBytesPerSubscriber",
                "packetsForwarded", "retransmissionsSent", "datagramsDropped",
            ]
        )
        #expect(
            try keys("window", "generator") == [
                "threads", "cpuSeconds", "residentBytes", "cpuMicrosecondsPerPacket", "busyShare", "waitingShare",
                "turnMilliseconds",
                "latenessMilliseconds", "sendDrops", "receiveDrops",
            ]
        )
        #expect(
            try keys("ramp") == [
                "lossPercentMax", "p99MillisecondsMax", "subscribersSustained", "subscribersAtBreak", "reasons",
                "isGeneratorsLimit",
            ]
        )
        // And it can be read back.
        let again = try JSONDecoder().decode(LoadReport.self, from: data)
        #expect(again.table == report.table)
        #expect(again.table.contains("conference") || again.table.contains("2 publishers"))
    }
}
