import Base
import Foundation
import JSON
import MediaTypes
import Testing
import Wire

@testable import ChannelTypes
@testable import History
@testable import Room

@Suite struct ConnectionHistoryTests {
    private static let start: Int64 = 1_700_000_000_000_000_000

    private static func connection(
        channel: String = "lobby",
        user: String = "alice",
        createdAt: Int64 = start,
        isConnected: Bool = true,
        role: Role = .sendrecv
    ) -> Connection {
        var generator = SystemRandomNumberGenerator()
        return Connection(
            member: Member(
                id: ParticipantID(using: &generator),
                clientID: user,
                bundleID: "b",
                role: role,
                sendsAudio: true,
                sendsVideo: true,
                transport: .udp
            ),
            channel: ChannelName(channel)!,
            session: ChannelSessionID(using: &generator),
            node: .standalone,
            agent: ClientAgent(signaling: .sora, name: "sdk"),
            displayName: "Alice",
            createdAt: createdAt,
            connectedAt: isConnected ? createdAt + 200_000_000 : nil,
            setupTime: isConnected ? .milliseconds(200) : nil,
            isSimulcast: false,
            spotlight: nil,
            publications: [],
            channelRole: .host,
            source: .camera,
            muted: [],
            eventMetadataJSON: nil,
            receiveBitsPerSecondMax: nil,
            user: nil,
            expiry: nil
        )
    }

    private static func report(_ connection: Connection, seconds: Int64 = 0) -> ConnectionReport {
        ConnectionReport(
            connection: connection,
            duration: .seconds(seconds),
            counts: ChannelCounts(),
            unixNanoseconds: connection.createdAt + seconds * 1_000_000_000
        )
    }

    private static func instant(_ seconds: Int) -> Instant { Instant(nanoseconds: 0) + .seconds(seconds) }

    private static func history(directory: String? = nil) throws -> ConnectionHistory {
        try ConnectionHistory(
            node: "n1",
            directory: directory,
            now: { start / 1_000_000 },
            onFailure: { Issue.record("\($0)") }
        )
    }

    private static func statistics(sent: UInt32, lost: Int, port: UInt16 = 5_000) -> PeerStatistics {
        PeerStatistics(
            isConnected: true,
            path: NetworkPath(
                socket: SocketIndex(rawValue: 0),
                remote: TransportAddress(ip: .loopbackV4, port: port)
            ),
            roundTrip: .milliseconds(80),
            sent: [
                PeerStatistics.Sent(
                    mid: MID("0")!,
                    kind: .audio,
                    ssrc: SSRC(rawValue: 1),
                    bitsPerSecond: 32_000,
                    packets: sent,
                    bytes: UInt64(sent) * 100,
                    packetsLost: lost
                )
            ]
        )
    }

    @Test func `a connection has its samples and events while it lasts and after its end`() async throws {
        let history = try Self.history()
        let connection = Self.connection()
        let id = connection.member.id
        history.take(.connectionCreated(Self.report(connection)), at: Self.instant(0))
        #expect(history.due(at: Self.instant(4)).isEmpty)
        #expect(history.due(at: Self.instant(5)) == [id])
        let playback = ClientPlayback(freezes: 2, frozen: 700)
        for (seconds, sent, lost, port) in [(5, 100, 0, 5_000), (10, 300, 50, 5_000), (15, 500, 50, 6_000)] {
            history.sampled(
                id,
                Self.statistics(sent: UInt32(sent), lost: lost, port: UInt16(port)),
                playback: seconds == 5 ? nil : playback,
                unixNanoseconds: Self.start + Int64(seconds) * 1_000_000_000,
                at: Self.instant(seconds)
            )
        }
        #expect(history.due(at: Self.instant(19)).isEmpty)
        history.take(.connectionInterrupted(Self.report(connection, seconds: 16)), at: Self.instant(16))
        history.take(.connectionResumed(Self.report(connection, seconds: 17)), at: Self.instant(17))
        let live = try #require(await history.connection(id.value))
        #expect(live["outcome"] == "live" && live["ended_at"] == nil && live["duration_s"] == 15)
        let media = history.take(
            .connectionDestroyed(Self.report(connection, seconds: 20), .kicked),
            at: Self.instant(20)
        )
        #expect(media?["sent_loss"] == 0.1 && media?["freezes"] == 2 && media?["round_trip_ms"] == 80)
        let ended = try #require(await history.connection(id.value))
        #expect(ended["outcome"] == "ended" && ended["reason"] == "KICKED" && ended["duration_s"] == 20)
        #expect(ended["user_id"] == "alice" && ended["display_name"] == "Alice" && ended["node"] == "n1")
        #expect(ended["setup_ms"] == 200 && ended["sent_bytes"] == 50_000 && ended["sent_loss"] == 0.1)
        #expect(ended["remote_address"] == "127.0.0.1:6000" && ended["freezes"] == 2)
        #expect(ended["without_picture_ms"] == 700)
        let timeline = try #require(ended["timeline"])
        #expect(timeline["at_s"] == [5, 10, 15] && timeline["sent_loss"] == [0, 0.25, 0])
        #expect(timeline["freezes"] == [0, 2, 0] && timeline["frozen_ms"] == [0, 700, 0])
        #expect(timeline["round_trip_ms"] == [80, 80, 80] && timeline["sent_bps"] == [32_000, 32_000, 32_000])
        let events = try #require(ended["events"]?.array)
        #expect(
            events.map { $0["event"] } == ["connected", "path_changed", "interrupted", "resumed", "ended"]
        )
        #expect(events.last?["detail"] == "KICKED")
        #expect(history.counts == ConnectionHistory.Counts(live: 0, stored: 1, lost: 0))
        #expect(history.due(at: Self.instant(100)).isEmpty)
    }

    /// Statistics with a stream to the client for each count of bytes, with a packet per 100 bytes, and as many from it.
    private static func statistics(bytes: [UInt32: UInt64], lost: Int = 0) -> PeerStatistics {
        PeerStatistics(
            isConnected: true,
            received: bytes.map { number, bytes in
                PeerStatistics.Received(
                    mid: MID("\(number)")!,
                    kind: .video,
                    ssrc: SSRC(rawValue: number),
                    packets: Int64(bytes / 100),
                    bytes: bytes,
                    packetsLost: Int64(lost)
                )
            },
            sent: bytes.map { number, bytes in
                PeerStatistics.Sent(
                    mid: MID("\(number)")!,
                    kind: .video,
                    ssrc: SSRC(rawValue: number),
                    packets: UInt32(bytes / 100),
                    bytes: bytes,
                    packetsLost: lost
                )
            }
        )
    }

    @Test func `streams that end, come and begin anew are counted once`() async throws {
        let history = try Self.history()
        let connection = Self.connection()
        let id = connection.member.id
        history.take(.connectionCreated(Self.report(connection)), at: Self.instant(0))
        let samples: [PeerStatistics] = [
            Self.statistics(bytes: [1: 100_000, 2: 100_000, 3: 100_000, 4: 100_000], lost: 10),
            // A publisher leaves.
            Self.statistics(bytes: [1: 200_000, 2: 100_000, 3: 100_000], lost: 10),
            // A packet that counted as lost arrives.
            Self.statistics(bytes: [1: 200_000, 2: 100_000, 3: 100_000], lost: 9),
            // Another one comes, and one stream begins anew.
            Self.statistics(bytes: [1: 50_000, 2: 100_000, 3: 100_000, 5: 50_000], lost: 0),
        ]
        for (index, statistics) in samples.enumerated() {
            let seconds = (index + 1) * 5
            history.sampled(id, statistics, playback: nil, unixNanoseconds: 0, at: Self.instant(seconds))
        }
        let one = try #require(await history.connection(id.value))
        #expect(one["sent_bytes"] == 600_000 && one["received_bytes"] == 600_000)
        #expect(one["timeline"]?["sent_loss"] == [0.01, 0, 0, 0])
        #expect(one["timeline"]?["received_loss"] == [0.01, 0, 0, 0])
    }

    @Test func `a connection that failed is kept with its reason`() async throws {
        let history = try Self.history()
        let connection = Self.connection(isConnected: false)
        history.take(.connectionFailed(Self.report(connection, seconds: 15), .unreachable), at: Self.instant(15))
        let failed = try #require(await history.connection(connection.member.id.value))
        #expect(failed["outcome"] == "failed" && failed["reason"] == "CONNECTION-TIMEOUT")
        #expect(failed["protocol"] == nil && failed["connected_at"] == nil && failed["setup_ms"] == nil)
    }

    private static let complete = ConnectionSetup(
        authorization: .milliseconds(5),
        reservation: .milliseconds(2),
        negotiation: .milliseconds(3),
        media: PeerSetup(
            firstCheck: .milliseconds(20),
            iceConnected: .milliseconds(30),
            dtlsConnected: .milliseconds(50),
            firstPacketReceived: .milliseconds(60),
            firstFrameReceived: .milliseconds(65),
            firstPacketSent: .init(at: .milliseconds(900), waited: .milliseconds(100)),
            firstFrameSent: .init(at: .milliseconds(1_000), waited: .milliseconds(200))
        )
    )

    @Test func `the set-up has its phases from the request on`() async throws {
        let history = try Self.history()
        var connection = Self.connection()
        let id = connection.member.id.value
        history.take(.connectionCreated(Self.report(connection)), at: Self.instant(0))
        #expect(await history.connection(id)?["setup"] == ["phases": []])
        connection.setup = Self.complete
        history.take(.setupAdvanced(Self.report(connection)), at: Self.instant(1))
        let setup = try #require(await history.connection(id)?["setup"])
        let phases = try #require(setup["phases"]?.array)
        #expect(phases.map { $0["phase"]?.string } == ConnectionSetup.Phase.allCases.map(\.rawValue))
        #expect(phases.map { $0["start_ms"] } == [0, 5, 7, 10, 10, 40, 60, 70, 810, 810])
        #expect(phases.map { $0["duration_ms"] } == [5, 2, 3, 20, 30, 20, 10, 5, 100, 200])
        #expect(setup["finding"] == nil)
        history.take(.connectionDestroyed(Self.report(connection, seconds: 20), .left), at: Self.instant(20))
        #expect(await history.connection(id)?["setup"] == setup)
    }

    @Test(arguments: [
        (ConnectionSetup(), "never exchanged"),
        (ConnectionSetup(negotiation: .zero), "no connectivity check"),
        (ConnectionSetup(negotiation: .zero, media: PeerSetup(firstCheck: .zero)), "selected no pair"),
        (
            ConnectionSetup(negotiation: .zero, media: PeerSetup(firstCheck: .zero, iceConnected: .milliseconds(7))),
            "DTLS did not connect: ICE connected after 7 ms"
        ),
        (ConnectionSetup(negotiation: .zero, media: complete.media), "before the client had joined"),
    ])
    func `a failed connection says where its set-up stopped`(setup: ConnectionSetup, finding: String) async throws {
        let history = try Self.history()
        var connection = Self.connection(isConnected: false)
        connection.setup = setup
        history.take(.connectionFailed(Self.report(connection, seconds: 15), .unreachable), at: Self.instant(15))
        let failed = try #require(await history.connection(connection.member.id.value))
        #expect(failed["setup"]?["finding"]?.string?.contains(finding) == true)
    }

    @Test(
        arguments: [
            (.sendrecv, 20, PeerSetup(), "never sent"), (.sendonly, 20, PeerSetup(), "never sent"),
            (.recvonly, 20, PeerSetup(), "was never sent"), (.sendrecv, 9, PeerSetup(), nil),
            (.recvonly, 20, complete.media, nil), (.sendrecv, 20, PeerSetup(firstPacketReceived: .zero), nil),
        ] as [(Role, Int64, PeerSetup, String?)]
    )
    func `a connection without media says so after a while`(
        role: Role,
        seconds: Int64,
        media: PeerSetup,
        finding: String?
    ) async throws {
        let history = try Self.history()
        var connection = Self.connection(role: role)
        connection.setup = ConnectionSetup(negotiation: .zero, media: media)
        history.take(.connectionDestroyed(Self.report(connection, seconds: seconds), .left), at: Self.instant(0))
        let ended = try #require(await history.connection(connection.member.id.value))
        let found = ended["setup"]?["finding"]?.string
        #expect(finding.map { found?.contains($0) == true } ?? (found == nil))
    }

    @Test func `connections that last are saved, a part of them at once, and outlive the node`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            let history = try Self.history(directory: folder.path)
            for _ in 0..<250 { history.take(.connectionCreated(Self.report(Self.connection())), at: Self.instant(0)) }
            await history.save(unixNanoseconds: Self.start + 1_000_000_000, at: Self.instant(1))
            await history.flush()
        }
        let again = try Self.history(directory: folder.path)
        let ended = await again.page(ConnectionHistory.Query(limit: 300)).connections
        #expect(ended.count == 200)
        #expect(ended.allSatisfy { $0["reason"] == "NODE-CRASHED" && $0["outcome"] == "ended" })
        #expect(ended.first?["ended_at"] == .integer((Self.start + 1_000_000_000) / 1_000_000))
        let vanished = await again.takeVanishedSessions()
        #expect(vanished.count == 200 && vanished.allSatisfy { $0.seenAt == Self.start + 1_000_000_000 })
        #expect(Set(vanished.map(\.session.id.value)) == Set(ended.compactMap { $0["session_id"]?.string }))
        #expect(vanished.allSatisfy { $0.session.channel.value == "lobby" && $0.session.createdAt == Self.start })
        #expect(await again.takeVanishedSessions().isEmpty, "they are told once")
        #expect(try await Self.history(directory: folder.path).takeVanishedSessions().isEmpty, "by one run")
    }

    @Test func `a connection whose end could not be stored did not last until a crash`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (lost, lasting) = (Self.connection(), Self.connection())
        do {
            let history = try ConnectionHistory(node: "n1", directory: folder.path, now: { Self.start / 1_000_000 })
            for connection in [lost, lasting] {
                history.take(.connectionCreated(Self.report(connection)), at: Self.instant(0))
            }
            await history.save(unixNanoseconds: Self.start + 1_000_000_000, at: Self.instant(1))
            await history.flush()
            let database = try Database(path: folder.appending(path: "history-n1.sqlite").path)
            try database.run(
                """
                CREATE TRIGGER refuse BEFORE INSERT ON connections WHEN NEW.outcome = 'ended'
                BEGIN SELECT RAISE(FAIL, 'no'); END
                """
            )
            history.take(.connectionDestroyed(Self.report(lost, seconds: 5), .kicked), at: Self.instant(5))
            // The first save may come before the loss is known.
            for second in 5...6 {
                await history.save(
                    unixNanoseconds: Self.start + Int64(second) * 1_000_000_000,
                    at: Self.instant(second)
                )
                await history.flush()
            }
            #expect(history.counts == ConnectionHistory.Counts(live: 1, stored: 0, lost: 1))
            let entry = try #require(await history.connection(lost.member.id.value))
            #expect(entry["outcome"] == "ended" && entry["reason"] == "END-NOT-STORED")
            #expect(entry["ended_at"] == .integer((Self.start + 1_000_000_000) / 1_000_000))
        }
        let again = try Self.history(directory: folder.path)
        #expect(await again.connection(lost.member.id.value)?["reason"] == "END-NOT-STORED")
        #expect(await again.connection(lasting.member.id.value)?["reason"] == "NODE-CRASHED")
    }

    @Test func `live and ended connections are one list, page by page`() async throws {
        let history = try Self.history()
        var expected: [String] = []
        for number in 0..<7 {
            let connection = Self.connection(
                channel: number == 3 ? "other" : "lobby",
                user: number < 2 ? "bob" : "alice",
                createdAt: Self.start + Int64(number) * 1_000_000_000
            )
            expected.insert(connection.member.id.value, at: 0)
            history.take(.connectionCreated(Self.report(connection)), at: Self.instant(number))
            guard number % 2 == 0 else { continue }
            history.take(.connectionDestroyed(Self.report(connection, seconds: 1), .left), at: Self.instant(number))
        }
        func ids(_ page: ConnectionHistory.Page) -> [String?] { page.connections.map { $0["connection_id"]?.string } }
        var query = ConnectionHistory.Query(limit: 3)
        var found: [String?] = []
        repeat {
            let page = await history.page(query)
            #expect(page.connections.count <= 3)
            found += ids(page)
            query.after = page.next
        } while query.after != nil
        #expect(found == expected)
        query = ConnectionHistory.Query(limit: 10)
        query.outcome = .live
        #expect(await history.page(query).connections.count == 3)
        query.channel = ChannelName("other")
        #expect(await history.page(query).connections.count == 1)
        query = ConnectionHistory.Query(limit: 10)
        query.user = "bob"
        #expect(await history.page(query).connections.count == 2)
        query.after = "nonsense"
        #expect(await history.page(query).connections.count == 2)
    }

    @Test func `only a part of many connections is sampled at once, those that wait longest first`() throws {
        let history = try Self.history()
        for number in 0..<400 {
            history.take(.connectionCreated(Self.report(Self.connection())), at: Self.instant(number / 100))
        }
        let first = history.due(at: Self.instant(100))
        #expect(first.count == 116)
        for id in first {
            history.sampled(
                id,
                Self.statistics(sent: 1, lost: 0),
                playback: nil,
                unixNanoseconds: 0,
                at: Self.instant(100)
            )
        }
        #expect(Set(history.due(at: Self.instant(100))).isDisjoint(with: first))
    }

    @Test func `events are bounded, and the end is always among them`() async throws {
        let history = try Self.history()
        let connection = Self.connection()
        history.take(.connectionCreated(Self.report(connection)), at: Self.instant(0))
        for seconds in 1...200 {
            history.take(
                .connectionInterrupted(Self.report(connection, seconds: Int64(seconds))),
                at: Self.instant(seconds)
            )
        }
        history.take(.connectionDestroyed(Self.report(connection, seconds: 201), .left), at: Self.instant(201))
        let ended = try #require(await history.connection(connection.member.id.value))
        #expect(ended["events"]?.array?.count == 65 && ended["events_dropped"] == 137)
        #expect(ended["events"]?.array?.last?["event"] == "ended")
    }

    @Test func `a damaged file is replaced, and a folder that is missing is an error`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "history-n1.sqlite")
        try Data(repeating: 0x41, count: 8_192).write(to: file)
        let history = try ConnectionHistory(
            node: "n1",
            directory: folder.path,
            now: { Self.start / 1_000_000 },
            onFailure: { #expect($0.contains("damaged")) }
        )
        let connection = Self.connection(isConnected: false)
        history.take(.connectionFailed(Self.report(connection), .left), at: Self.instant(0))
        await history.flush()
        let again = try Self.history(directory: folder.path)
        #expect(await again.connection(connection.member.id.value)?["outcome"] == "failed")
        let permissions = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(permissions.map { $0 & 0o077 } == 0)
        #expect(FileManager.default.fileExists(atPath: file.path + ".damaged"))
        try ConnectionHistory.remove(node: "n1", directory: folder.path)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty,
            "nothing outlives the setting 0"
        )
        let missing = folder.appending(path: "none").path
        let failure = #expect(throws: ConnectionHistory.OpenFailure.self) { try Self.history(directory: missing) }
        #expect(failure?.message.contains("may write to it") == true)
    }
}
