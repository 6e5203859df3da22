import ArgumentParser
import ClientEngine
import Foundation
import Glibc
import NagareClient
import TestSupport
import Testing

@testable import nagare

/// The Swift client with its Linux engine against the program.
@Suite(.timeLimit(.minutes(10)))
struct ClientCallTests {
    private static let appKey = "an-applications-key-for-tests-only-0123"

    private func start(_ arguments: [String] = [], port: UInt16 = 0) async throws -> (
        RunningNode, page: UInt16, admin: UInt16
    ) {
        let ports = [
            "--http", "127.0.0.1:\(port)", "--admin", "127.0.0.1:0", "--media", "127.0.0.1:0", "--loops", "2",
        ]
        let node = try RunningNode(["serve"] + (arguments.isEmpty ? ["--dev"] : arguments) + ports)
        let (page, admin) = try await node.ready()
        return (node, page, admin)
    }

    /// Runs a call on a loop of media, which ends with it.
    private func onLoop(_ body: (EngineLoop) async throws -> Void) async throws {
        let loop = try await EngineLoop.start()
        do {
            try await body(loop)
        } catch {
            await loop.shutdown()
            throw error
        }
        await loop.shutdown()
    }

    private func post(_ path: String, _ body: String, method: String = "POST", port: UInt16) throws {
        let connection = try Connection(port: port)
        connection.write(
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
        )
        let answer = connection.readAll()
        #expect(answer.hasPrefix("HTTP/1.1 2"), "\(answer.prefix(300))")
    }

    private func token(_ user: String, seconds: Int = 3_600) throws -> ChannelToken {
        let arguments = [
            "--app", "live:\(Self.appKey)", "--channel", "room", "--user", user, "--expires", "\(seconds)s",
        ]
        let now = Int64(Date().timeIntervalSince1970)
        return .token(try TokenCommand.parse(arguments).token(environment: [:], now: now, id: "t"))
    }

    @Test func `two users see, hear, mute and leave each other`() async throws {
        let (node, page, _) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)])
            let ben = try Member("ben", on: loop, ports: [Int(page)]) { $0.displayName = "Ben" }
            let first = try await anna.client.join()
            #expect(first.elapsed > .zero && !first.isReturn && first.users.isEmpty && first.connectionID.count == 26)
            let second = try await ben.client.join()
            #expect(second.users.map(\.id) == ["anna"])
            let again = await #expect(throws: NagareError.self) { try await ben.client.join() }
            #expect(again?.code == 16_843_521)
            try await anna.sees("Ben is online") { $0.isOnline("ben") }
            #expect(await anna.client.users.first?.name == "Ben")
            for (one, other) in [(anna, "ben"), (ben, "anna")] {
                try await one.sees("\(other) flows") { $0.isFlow(of: other, audio: true, video: true) }
                try await one.sees("a picture of \(other)") { $0.isFirstFrame(of: other, .video) }
                try await one.sees("the sound of \(other)") { $0.isFirstFrame(of: other, .audio) }
                try await eventually("the media of \(other) flows") {
                    let (frames, packets) = (await one.frames(), await one.audioPackets())
                    return frames > 10 && packets > 10
                }
                try await one.sees("the own quality") { $0.quality != nil }
            }
            #expect(await anna.client.status == .connected)
            #expect(try await anna.client.listMembers().map(\.id).contains("ben"))
            #expect(try await anna.client.serverStatistics() != .null)

            try await ben.client.setMuted(.video, true)
            try await anna.sees("the mute") { $0.isMute(of: "ben", .video, true) }
            try await ben.client.setMuted(.video, false)
            try await anna.sees("the unmute") { $0.isMute(of: "ben", .video, false) }
            // The end of a device is told as it flows, and is no mute.
            try await eventually("the picture flows again") {
                await anna.client.users.first?.connections.first?.video == true
            }
            anna.clear()
            await ben.client.unpublish(.camera)
            try await anna.sees("the end of the picture") { $0.isFlow(of: "ben", audio: true, video: false) }
            let hasMuted = anna.hasSeen { $0.isMute(of: "ben", .video, true) }
            #expect(!hasMuted)
            try await ben.client.publish(.camera)
            try await anna.sees("the picture again") { $0.isFlow(of: "ben", audio: true, video: true) }

            await ben.client.leave()
            try await ben.sees("the own leave") { $0 == .left }
            try await anna.sees("Ben's leave") { $0.isOffline("ben", .quit) }
            await anna.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a screen is a second connection of its user`() async throws {
        let (node, page, _) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)])
            let ben = try Member("ben", on: loop, ports: [Int(page)])
            try await anna.client.join()
            try await ben.client.join()
            try await ben.client.publish(.screen)
            try await anna.sees("the screen") { $0.isFlow(of: "ben", source: .screen, audio: false, video: true) }
            try await anna.sees("its picture") { $0.isFirstFrame(of: "ben", .video, .screen) }
            await ben.client.unpublish(.screen)
            try await eventually("the screen is gone") {
                await anna.client.users.first?.connections.map(\.source) == [.camera]
            }
            #expect(await anna.client.users.map(\.id) == ["ben"])
            await ben.client.leave()
            await anna.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `roles change in the call, by the user and by operators`() async throws {
        let (node, page, admin) = try await start()
        try await onLoop { loop in
            let host = try Member("host", on: loop, ports: [Int(page)]) { $0.profile = .interactive }
            let guest = try Member("guest", on: loop, ports: [Int(page)]) {
                $0.profile = .interactive
                $0.role = .audience
            }
            try await host.client.join()
            let joined = try await guest.client.join()
            #expect(joined.role == .audience && joined.profile == .interactive)
            try await guest.sees("the host's picture") { $0.isFirstFrame(of: "host", .video) }
            await #expect(throws: NagareError.self) { try await guest.client.publish(.camera) }
            let isAnnounced = host.hasSeen { $0.isOnline("guest") }
            #expect(!isAnnounced, "the audience is not announced")
            try await guest.client.setRole(.host)
            try await guest.sees("the own role") { $0 == .roleChanged(.host, by: .`self`) }
            try await host.sees("the guest on the stage") { $0.isOnline("guest") }
            try await host.sees("the guest's picture") { $0.isFirstFrame(of: "guest", .video) }
            try post("/v1/channels/room/members/guest/role", #"{"role":"audience"}"#, port: admin)
            try await guest.sees("the operator's decision") { $0 == .roleChanged(.audience, by: .operator) }
            try await host.sees("the guest off the stage") { $0.isOffline("guest", .becameAudience) }
            let error = await #expect(throws: NagareError.self) { try await guest.client.setRole(.host) }
            #expect(error?.reason == "ROLE-SET-BY-OPERATOR" && error?.code == 0x0102_0201)
            #expect(await guest.client.published.isEmpty)
            await guest.client.leave()
            await host.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `operators mute, kick and close`() async throws {
        let (node, page, admin) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)])
            let ben = try Member("ben", on: loop, ports: [Int(page)])
            try await anna.client.join()
            try await ben.client.join()
            try post("/v1/channels/room/members/ben/mute", #"{"muted":true,"kind":"audio"}"#, port: admin)
            try await ben.sees("the mute") { $0 == .muted(.audio, isMuted: true, by: .operator) }
            let error = await #expect(throws: NagareError.self) { try await ben.client.setMuted(.audio, false) }
            #expect(error?.reason == "MUTED-BY-OPERATOR")
            #expect(await ben.client.isMuted(.audio))
            try post("/v1/channels/room/kick", #"{"users":["ben"]}"#, port: admin)
            try await ben.sees("the kick") { $0.isBye(.kicked) }
            try await anna.sees("Ben's kick") { $0.isOffline("ben", .kicked) }
            #expect(await ben.client.status == .disconnected)
            // A kick is no ban.
            try await ben.client.join()
            try post("/v1/channels/room", "", method: "DELETE", port: admin)
            try await anna.sees("the end of the channel") { $0.isBye(.channelTerminated) }
            try await ben.sees("the end of the channel") { $0.isBye(.channelTerminated) }
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `unsubscribing ends what is received, per user and kind`() async throws {
        let (node, page, _) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)]) { $0.subscribes = [.audio] }
            let ben = try Member("ben", on: loop, ports: [Int(page)])
            try await ben.client.join()
            try await anna.client.join()
            try await anna.sees("Ben's sound") { $0.isFirstFrame(of: "ben", .audio) }
            let hasPicture = anna.hasSeen { $0.isFirstFrame(of: "ben", .video) }
            #expect(!hasPicture)
            try await anna.client.subscribe(user: "ben", kind: .video)
            try await anna.sees("Ben's picture") { $0.isFirstFrame(of: "ben", .video) }
            try await anna.client.unsubscribe(user: "ben", kind: .video, source: .camera)
            try await eventually("the picture is not received any more") {
                let before = await anna.frames()
                let packets = await anna.audioPackets()
                try await eventually("audio goes on") { await anna.audioPackets() > packets + 10 }
                return await anna.frames() == before
            }
            await anna.client.leave()
            await ben.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a token is checked, told to expire, replaced, and ends`() async throws {
        let (node, page, _) = try await start(["--app", "live:\(Self.appKey)"])
        try await onLoop { loop in
            let stranger = try Member(
                "eve",
                on: loop,
                ports: [Int(page)],
                token: .app(id: "live", timestamp: 4_000_000_000, token: String(repeating: "0", count: 64))
            )
            let refusal = await #expect(throws: NagareError.self) { try await stranger.client.join() }
            #expect(refusal?.code == 0x0201_0205)

            let anna = try Member("anna", on: loop, ports: [Int(page)], token: try token("anna", seconds: 5))
            let ben = try Member("ben", on: loop, ports: [Int(page)], token: try token("ben", seconds: 8))
            try await anna.client.join()
            try await ben.client.join()
            for member in [anna, ben] {
                try await member.sees("the warning") { if case .tokenWillExpire = $0 { true } else { false } }
            }
            let expiry = try await anna.client.refreshToken(try token("anna", seconds: 600))
            #expect(try #require(expiry) > Int(Date().timeIntervalSince1970) + 500)
            let wrong = await #expect(throws: NagareError.self) {
                try await anna.client.refreshToken(try token("anna", seconds: 60))
            }
            #expect(wrong?.reason == "TOKEN-INVALID" && wrong?.code == 0x0201_0205)
            try await ben.sees("the expiry") { if case .tokenExpired = $0 { true } else { false } }
            #expect(await ben.client.status == .failed)
            try await anna.sees("Ben's expiry") { $0.isOffline("ben", .tokenExpired) }
            // Anna's first token has expired before Ben's.
            #expect(await anna.client.status == .connected)
            let wasDisconnected = anna.hasSeen {
                if case .connectionStatus(.disconnected, _) = $0 { true } else { false }
            }
            #expect(!wasDisconnected)
            try await ben.client.join(token: try token("ben"))
            await ben.client.leave()
            await anna.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `the second device of a user replaces the first`() async throws {
        let (node, page, _) = try await start(["--app", "live:\(Self.appKey)"])
        try await onLoop { loop in
            let phone = try Member("anna", on: loop, ports: [Int(page)], token: try token("anna"))
            let tablet = try Member("anna", on: loop, ports: [Int(page)], token: try token("anna"))
            try await phone.client.join()
            try await tablet.client.join()
            try await phone.sees("the replacement") { $0.isBye(.replaced) }
            #expect(await tablet.client.status == .connected)
            #expect(await phone.client.status == .disconnected)
            await tablet.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a lost connection is resumed before others miss the user`() async throws {
        let (node, page, _) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)])
            let ben = try Member("ben", on: loop, ports: [Int(page)])
            try await anna.client.join()
            let joined = try await ben.client.join()
            #expect(joined.grace > .zero)
            try await anna.sees("Ben's picture") { $0.isFirstFrame(of: "ben", .video) }
            ben.transport.cut()
            try await ben.sees("the return") { $0.isReturn }
            #expect(ben.events.compactMap(\.joined).last?.connectionID == joined.connectionID, "the same place")
            try await anna.sees("the interruption") { if case .userInterrupted = $0 { true } else { false } }
            try await anna.sees("the resumption") { if case .userResumed = $0 { true } else { false } }
            let frames = await anna.frames()
            try await eventually("Ben's picture goes on") { await anna.frames() > frames + 10 }
            let hasMissedBen = anna.hasSeen { if case .userOffline = $0 { true } else { false } }
            #expect(!hasMissedBen)
            await ben.client.leave()
            await anna.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a node that is killed and started again has its users back`() async throws {
        let (node, page, _) = try await start()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [Int(page)])
            let ben = try Member("ben", on: loop, ports: [Int(page)])
            try await anna.client.join()
            try await ben.client.join()
            try await anna.sees("Ben's picture") { $0.isFirstFrame(of: "ben", .video) }
            anna.clear()
            node.send(SIGKILL)
            #expect(await node.exitStatus() == 128 + SIGKILL)
            try await anna.sees("the loss") {
                if case .connectionStatus(.disconnected, _?) = $0 { true } else { false }
            }
            let (again, _, _) = try await start(port: page)
            try await anna.sees("the return") { $0.isReturn }
            try await ben.sees("the return") { $0.isReturn }
            try await anna.sees("Ben's picture") { $0.isFirstFrame(of: "ben", .video) }
            #expect(await anna.client.status == .connected)
            await ben.client.leave()
            await anna.client.leave()
            again.send(SIGTERM)
            #expect(await again.exitStatus() == 0)
        }
    }

    @Test func `the next address is tried when the first is dead`() async throws {
        let (node, page, _) = try await start()
        let dead = try RefusingPort()
        try await onLoop { loop in
            let anna = try Member("anna", on: loop, ports: [dead.port, Int(page)])
            let joined = try await anna.client.join()
            #expect(joined.user == "anna")
            let hasTold = anna.hasSeen {
                if case .connectionStatus(.disconnected, let error) = $0 {
                    error?.reason == "UNREACHABLE"
                } else {
                    false
                }
            }
            #expect(hasTold)
            await anna.client.leave()
        }
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }
}
