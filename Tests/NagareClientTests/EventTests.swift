import Foundation
import Testing

@testable import NagareClient

/// What the server announces, as events.
@Suite struct EventTests {
    private static let you =
        #"{"user_id":"you","role":"host","connections":[{"connection_id":"C1","audio":true,"video":true}]}"#

    /// A client in a channel with one other user.
    private func rig() -> Rig { Rig.joined(message: Rig.joinedMessage(users: "[\(Self.you)]")) }

    private func user(_ edit: (inout RemoteUser) -> Void = { _ in }) -> RemoteUser {
        var connection = RemoteConnection(id: "C1")
        connection.audio = true
        connection.video = true
        var user = RemoteUser(id: "you")
        user.connections = [connection]
        edit(&user)
        return user
    }

    @Test func `a user comes, changes and goes`() throws {
        var rig = Rig.joined()
        rig.pass(.seconds(2))
        rig.event("user.online", #""user_id":"you","display_name":"Ken","role":"audience","metadata":{"a":1}"#)
        var ken = RemoteUser(id: "you")
        ken.name = "Ken"
        ken.role = .audience
        ken.metadata = ["a": 1]
        #expect(rig.events() == [.userOnline(ken, elapsed: .seconds(2))])
        rig.event("user.online", #""user_id":"me""#)
        #expect(rig.events().isEmpty, "the client itself is no other user")
        rig.event("user.offline", #""user_id":"you","reason":"timed-out""#)
        #expect(rig.events() == [.userOffline(ken, .timedOut)])
        rig.event("user.offline", #""user_id":"you","reason":"timed-out""#)
        #expect(rig.events().isEmpty && rig.machine.users.isEmpty)
    }

    @Test(arguments: [
        ("left", OfflineReason.quit, 0), ("timed-out", .timedOut, 1), ("became-audience", .becameAudience, 2),
        ("kicked", .kicked, 0), ("replaced", .replaced, 0), ("token-expired", .tokenExpired, 0),
        ("a later one", .ended, 0),
    ])
    func `a user goes for a reason`(word: String, reason: OfflineReason, code: Int) {
        var rig = rig()
        rig.event("user.offline", #""user_id":"you","reason":"\#(word)""#)
        #expect(rig.events() == [.userOffline(user(), reason)])
        #expect(reason.code == code)
    }

    @Test func `a lost connection interrupts a user`() {
        var rig = rig()
        rig.event("user.interrupted", #""user_id":"you","connection_id":"C1""#)
        #expect(rig.events() == [.userInterrupted(user { $0.isInterrupted = true })])
        rig.event("user.resumed", #""user_id":"you","connection_id":"C1""#)
        #expect(rig.events() == [.userResumed(user())])
        rig.event("user.resumed", #""user_id":"you","connection_id":"C1""#)
        #expect(rig.events().isEmpty)
    }

    @Test func `tracks come and go as they flow, and a mute is no end`() throws {
        var rig = rig()
        let quiet = #""user_id":"you","connection_id":"C1","source":"camera","audio":true,"video":false"#
        rig.event("track.changed", "\(quiet),\"audio_muted\":false,\"video_muted\":false")
        let stopped = try #require(rig.machine.users.first)
        #expect(rig.events() == [.trackAvailable(stopped, stopped.connections[0])])
        #expect(!stopped.connections[0].video)
        rig.event("track.changed", "\(quiet),\"audio_muted\":true,\"video_muted\":false")
        let muted = try #require(rig.machine.users.first)
        #expect(rig.events() == [.remoteMuted(muted, muted.connections[0], .audio, isMuted: true)])
        rig.event(
            "track.changed",
            #""user_id":"you","connection_id":"C2","source":"screen","audio":false,"video":true"#
        )
        let sharing = try #require(rig.machine.users.first)
        #expect(rig.events() == [.trackAvailable(sharing, sharing.connections[1])])
        #expect(sharing.connections.map(\.source) == [.camera, .screen])
        rig.event("track.changed", #""user_id":"you","connection_id":"C2","ended":true"#)
        guard case .trackAvailable(_, let gone)? = rig.events().first else {
            Issue.record("the end of the screen is not told")
            return
        }
        #expect(gone.hasEnded && !gone.video && rig.machine.users.first?.connections.map(\.id) == ["C1"])
    }

    @Test func `a received track is announced with its user, in either order`() {
        var rig = rig()
        rig.media(.trackAdded(ReceivedTrack(mid: "1", kind: .video, streamID: "C1")))
        let camera = RemoteTrack(user: "you", connectionID: "C1", source: .camera, kind: .video, mid: "1")
        #expect(rig.events() == [.trackReceived(camera)])
        rig.media(.firstFrame(mid: "1"))
        rig.media(.firstFrame(mid: "1"))
        #expect(rig.events() == [.firstFrameReceived(camera)])
        // The engine is faster than the announcement.
        rig.media(.trackAdded(ReceivedTrack(mid: "2", kind: .video, streamID: "C2")))
        rig.media(.firstFrame(mid: "2"))
        #expect(rig.events().isEmpty)
        rig.event(
            "track.changed",
            #""user_id":"you","connection_id":"C2","source":"screen","audio":false,"video":true"#
        )
        let screen = RemoteTrack(user: "you", connectionID: "C2", source: .screen, kind: .video, mid: "2")
        #expect(rig.events().suffix(2) == [.trackReceived(screen), .firstFrameReceived(screen)])
    }

    @Test(arguments: [
        (#""token.expiring","expires_at":1700000000"#, ChannelEvent.tokenExpires(unixSeconds: 1_700_000_000)),
        (#""network.quality","uplink":1,"downlink":6"#, .networkQuality(NetworkQuality(uplink: 1, downlink: 6))),
        (#""network.quality","uplink":-4,"downlink":99"#, .networkQuality(NetworkQuality(uplink: 0, downlink: 6))),
        (#""muted","kind":"video","muted":true,"by":"operator""#, .muted(.video, isMuted: true, by: .operator)),
        (
            #""muted","kind":"audio","muted":false,"by":"moderator""#,
            .muted(.audio, isMuted: false, by: .other("moderator"))
        ),
    ])
    func `an event about the client itself`(members: String, event: ChannelEvent) {
        var rig = rig()
        rig.say(#"{"type":"notify","event_type":\#(members)}"#)
        #expect(rig.events() == [event])
    }

    @Test func `the first picture and the quality of others`() {
        var rig = rig()
        rig.event("track.first_frame", #""user_id":"you","connection_id":"C1","elapsed":80"#)
        #expect(rig.events() == [.firstFrameSent(user(), connectionID: "C1")])
        rig.event("user.network_quality", #""user_id":"you","connection_id":"C1","uplink":3,"downlink":4"#)
        guard case .userNetworkQuality(_, let connection)? = rig.events().first else {
            Issue.record("the quality is not told")
            return
        }
        #expect(connection.networkQuality == NetworkQuality(uplink: 3, downlink: 4))
    }

    @Test func `an operator's message is handed over as it is`() {
        var rig = rig()
        rig.say(#"{"type":"push","data":{"a":[1,null,"x",true,{"b":0.5}]}}"#)
        #expect(rig.events() == [.pushed(["a": [1, .null, "x", true, ["b": .number(0.5)]]])])
    }

    @Test(arguments: [
        (1000, "KICKED", ByeReason.kicked, 1), (1000, "DISCONNECTED-API", .kicked, 1), (4490, "BANNED", .banned, 1),
        (1000, "CHANNEL-TERMINATED", .channelTerminated, 2), (1000, "CHANNEL-EXPIRED", .channelTerminated, 2),
        (1000, "USER-REPLACED", .replaced, 3),
    ])
    func `a bye ends the membership for good`(code: Int, reason: String, bye: ByeReason, number: Int) {
        var rig = rig()
        rig.close(code, reason)
        let actions = rig.take()
        guard case .bye(bye, let error)? = actions.events.last else {
            Issue.record("there is no bye")
            return
        }
        #expect(error.reason == reason && bye.code == number)
        #expect(actions.events.contains(.userOffline(user(), .ended)))
        #expect(rig.machine.status == .disconnected && rig.machine.nextDeadline == nil)
        rig.pass(.seconds(60))
        #expect(rig.urls.count == 1, "it does not return by itself")
    }

    @Test func `an expired token ends the membership, and is told`() {
        var rig = rig()
        rig.close(1000, "TOKEN-EXPIRED")
        guard case .tokenExpired(let error)? = rig.events().last else {
            Issue.record("the expiry is not told")
            return
        }
        #expect(error.code == 0x0201_0205 && rig.machine.status == .failed)
    }

    @Test func `the numbers of states are those of the reference`() {
        let states: [ConnectionStatus] = [.initial, .disconnected, .connecting, .connected, .reconnecting, .failed]
        #expect(states.map(\.rawValue) == [0, 1, 2, 3, 4, 5])
    }
}
