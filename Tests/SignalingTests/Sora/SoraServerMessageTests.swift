import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Room
@testable import Sora
@testable import Web

/// The server's messages, compared with the members that each SDK needs.
@Suite struct SoraServerMessageTests {
    private static func settings(
        _ members: String = "",
        client: String = "Sora Python SDK 2025.4.0",
        role: Role = .sendrecv,
        grants: Grants = Grants(),
        configuration: SoraConfiguration = SoraConfiguration()
    ) throws -> SoraSettings {
        let rest = members.isEmpty ? "" : ",\(members)"
        let head = #""type":"connect","role":"\#(role.rawValue)","channel_id":"room""#
        let text = #"{\#(head),"sora_client":"\#(client)"\#(rest)}"#
        guard case .connect(let connect) = try SoraClientMessage(decoding: text) else { throw SoraClose.stopping }
        return try SoraSettings(connect, id: SoraBench.id, grants: grants, configuration: configuration)
    }

    private static func offer(
        _ settings: SoraSettings,
        mids: (String?, String?) = ("audio_a", "video_b"),
        configuration: SoraConfiguration = SoraConfiguration(),
        turn: TURNAccess? = nil
    ) throws -> JSONValue {
        var reservation = SoraBench.reservation
        reservation.turn = turn
        let text = SoraServerMessage.offer(
            settings,
            reservation: reservation,
            sdp: "v=0\r\n",
            mids: (mids.0.flatMap { MID($0) }, mids.1.flatMap { MID($0) }),
            configuration: configuration
        )
        return try JSONValue(parsing: text)
    }

    private static var withTURN: SoraConfiguration {
        var configuration = SoraConfiguration()
        configuration.turn = SoraConfiguration.TURN(
            urls: [
                "turn:192.0.2.1:3478?transport=udp", "turn:192.0.2.1:3478?transport=tcp",
                "turns:example.com:443?transport=tcp",
            ],
            username: "u",
            credential: "p"
        )
        return configuration
    }

    @Test func `an offer has the members that every SDK needs`() throws {
        let offer = try Self.offer(Self.settings())
        #expect(offer["type"] == "offer")
        for key in ["version", "channel_id", "session_id", "client_id", "bundle_id", "connection_id", "sdp"] {
            #expect(offer[key]?.string?.isEmpty == false, "\(key)")
        }
        #expect(offer["connection_id"] == .string(SoraBench.id.value))
        #expect(offer["client_id"] == offer["connection_id"] && offer["bundle_id"] == offer["connection_id"])
        for key in [
            "simulcast", "simulcast_multicodec", "spotlight", "data_channel_signaling", "ignore_disconnect_websocket",
        ] { #expect(offer[key] == false, "\(key)") }
        #expect(offer["mid"] == ["audio": "audio_a", "video": "video_b"])
        #expect(offer["audio_codec_type"] == "OPUS" && offer["video_codec_type"] == "VP9")
        for key in ["data_channels", "rpc_methods", "encodings", "metadata", "video_bit_rate"] {
            #expect(offer[key] == nil, "\(key)")
        }
    }

    @Test func `mid names only sections that the client sends in`() throws {
        #expect(try Self.offer(Self.settings(), mids: (nil, nil))["mid"] == nil)
        #expect(try Self.offer(Self.settings(), mids: ("a", nil))["mid"] == ["audio": "a"])
    }

    /// The native SDKs abort on an entry without all three, iOS fails on any policy but relay.
    @Test func `config matches the client's SDK`() throws {
        let native = try Self.offer(Self.settings())["config"]
        #expect(native == ["iceServers": [], "iceTransportPolicy": "all"])
        let withTURN = try Self.offer(Self.settings(), configuration: Self.withTURN)["config"]
        #expect(withTURN?["iceTransportPolicy"] == "all")
        let entries = try #require(withTURN?["iceServers"]?.array)
        #expect(entries.count == 1)
        for entry in entries {
            #expect(entry["urls"]?.array?.count == 3 && entry["username"] == "u" && entry["credential"] == "p")
        }
        let iOS = try Self.settings(client: "Sora iOS SDK 2025.2.0")
        #expect(try Self.offer(iOS)["config"] == nil)
        let relayed = try Self.offer(iOS, configuration: Self.withTURN)["config"]
        #expect(relayed?["iceTransportPolicy"] == "relay" && relayed?["iceServers"]?.array?.count == 1)
    }

    private static let embedded = TURNAccess(
        urls: ["turn:192.0.2.9:7000?transport=udp"],
        username: "own",
        password: "secret"
    )

    @Test func `the node's own TURN server comes first, with the session's credentials`() throws {
        let both = try Self.offer(Self.settings(), configuration: Self.withTURN, turn: Self.embedded)["config"]
        let entries = try #require(both?["iceServers"]?.array)
        #expect(entries.count == 2 && both?["iceTransportPolicy"] == "all")
        #expect(entries[0]["urls"] == ["turn:192.0.2.9:7000?transport=udp"])
        #expect(entries[0]["username"] == "own" && entries[0]["credential"] == "secret")
        let iOS = try Self.settings(client: "Sora iOS SDK 2025.2.0")
        let relayed = try Self.offer(iOS, turn: Self.embedded)["config"]
        #expect(relayed?["iceTransportPolicy"] == "relay" && relayed?["iceServers"]?.array?.count == 1)
        var grants = Grants()
        grants.turnTLSOnly = true
        let tls = try Self.offer(Self.settings(grants: grants), turn: Self.embedded)["config"]
        #expect(tls?["iceServers"] == [])
        #expect(!"\(Self.embedded)".contains("secret") && !String(reflecting: Self.embedded).contains("secret"))
    }

    @Test(arguments: [
        (TURNAnnouncement.off, false, false, false), (.off, true, false, false), (.auto, false, false, false),
        (.auto, true, false, true), (.auto, true, true, false), (.on, false, false, true), (.on, true, true, true),
    ])
    func `the setting and the SDK decide who is told of the node's own TURN server`(
        announcement: TURNAnnouncement,
        isIOS: Bool,
        hasExternal: Bool,
        isTold: Bool
    ) throws {
        var configuration = hasExternal ? Self.withTURN : SoraConfiguration()
        configuration.embeddedTURN = announcement
        let settings = try isIOS ? Self.settings(client: "Sora iOS SDK 2025.2.0") : Self.settings()
        #expect(configuration.announcesEmbeddedTURN(to: settings) == isTold)
    }

    @Test func `grants choose among the TURN servers' URLs`() throws {
        func urls(_ change: (inout Grants) -> Void) throws -> Int? {
            var grants = Grants()
            change(&grants)
            let offer = try Self.offer(Self.settings(grants: grants), configuration: Self.withTURN)
            return offer["config"]?["iceServers"]?.array?.first?["urls"]?.array?.count
        }
        #expect(try urls { $0.turnTCPOnly = true } == 2)
        #expect(try urls { $0.turnTLSOnly = true } == 1)
    }

    @Test(arguments: ["VP8", "VP9", "AV1", "H264", "H265"])
    func `simulcast is offered with all layers, lowest first`(codec: String) throws {
        let settings = try Self.settings(#""simulcast":true,"video":{"codec_type":"\#(codec)","bit_rate":3000}"#)
        let offer = try Self.offer(settings)
        #expect(offer["simulcast"] == true && offer["video_bit_rate"] == 3000)
        let encodings = try #require(offer["encodings"]?.array)
        #expect(encodings.map { $0["rid"] } == ["r0", "r1", "r2"])
        #expect(encodings.map { $0["scaleResolutionDownBy"]?.double } == [4, 2, 1])
        #expect(encodings.allSatisfy { $0["active"] == true })
        #expect(encodings.allSatisfy { $0["scalabilityMode"] == "L1T1" })
        #expect(settings.clientMedia.layers.map(\.rid.value) == ["r0", "r1", "r2"])
        #expect(settings.clientMedia.videoKbps == 3000)
    }

    @Test func `granted encodings replace the default ones and name the layers`() throws {
        var grants = Grants()
        grants.isSimulcast = true
        grants.simulcastEncodings = [
            ["rid": "r2", "active": false], ["rid": "r0", "maxBitrate": 100_000, "scalabilityMode": "L1T2"],
        ]
        let settings = try Self.settings(grants: grants)
        let encodings = try #require(try Self.offer(settings)["encodings"]?.array)
        #expect(
            encodings == [
                ["rid": "r0", "active": true, "maxBitrate": 100_000, "scalabilityMode": "L1T2"],
                ["rid": "r2", "active": false, "scalabilityMode": "L1T1"],
            ]
        )
        #expect(settings.clientMedia.layers.map(\.isActive) == [true, false])
    }

    @Test func `an empty list of encodings turns simulcast off`() throws {
        var grants = Grants()
        grants.simulcastEncodings = []
        let settings = try Self.settings(#""simulcast":true"#, grants: grants)
        let offer = try Self.offer(settings)
        #expect(offer["simulcast"] == false && offer["encodings"] == nil && settings.clientMedia.layers.isEmpty)
    }

    @Test func `grants override the client's options`() throws {
        var grants = Grants()
        grants.clientID = "granted"
        grants.audio.isEnabled = true
        grants.audio.bitRate = 32
        grants.video.isEnabled = false
        grants.metadata = ["hello": [1, 2]]
        grants.notifyMetadata = ["rank": 1]
        grants.eventMetadata = "event"
        grants.requestedRID = .r0
        grants.notifies = false
        grants.permissions.lifetime = .seconds(60)
        let settings = try Self.settings(#""client_id":"c","bundle_id":"b","audio":false"#, grants: grants)
        #expect(settings.clientID == "granted" && settings.bundleID == "b")
        let media = settings.clientMedia
        #expect(media.audio?.name == .opus && media.audioKbps == 32 && media.video == nil)
        #expect(settings.kinds == [.audio])
        let offer = try Self.offer(settings)
        #expect(offer["metadata"] == ["hello": [1, 2]] && offer["video"] == false && offer["video_codec_type"] == nil)
        let request = settings.joinRequest(id: SoraBench.id)
        #expect(request.id == SoraBench.id && request.following == .everyone)
        #expect(request.authorizedMetadataJSON == #"{"rank":1}"# && request.eventMetadataJSON == #""event""#)
        #expect(request.layer == .level(0) && request.lifetime == .seconds(60))
        #expect(!request.receivesNotifications && !request.announces)
        #expect(request.sendsAudio == true && request.sendsVideo == false)
    }

    @Test func `the name that a client chose is another user's than the one that its token names`() throws {
        let chosen = try Self.settings(#""client_id":"c""#)
        #expect(chosen.joinRequest(id: SoraBench.id).user == UserIdentity("c", .chosen))
        #expect(try Self.settings().joinRequest(id: SoraBench.id).user == nil)
        var grants = Grants()
        grants.clientID = "c"
        for members in ["", #""client_id":"c""#, #""client_id":"d""#] {
            let granted = try Self.settings(members, grants: grants)
            #expect(granted.joinRequest(id: SoraBench.id).user == UserIdentity("c", .authorized))
        }
    }

    @Test func `a client's bundle_id applies only if permitted`() throws {
        var configuration = SoraConfiguration()
        configuration.acceptsBundleID = false
        let settings = try Self.settings(#""bundle_id":"b""#, configuration: configuration)
        #expect(settings.bundleID == SoraBench.id.value)
    }

    @Test func `a recvonly client sends nothing and has spotlight`() throws {
        let settings = try Self.settings(
            #""spotlight":true,"spotlight_number":2,"spotlight_unfocus_rid":"none""#,
            role: .recvonly
        )
        let media = settings.clientMedia
        #expect(media.audio == nil && media.video == nil && media.layers.isEmpty)
        let said = Spotlight(number: 2, defaultNumber: 8, focus: .level(1), unfocus: .nothing)
        #expect(settings.spotlight == said)
        #expect(try Self.settings(#""spotlight":true"#).spotlight?.number == nil, "it leaves the number to others")
        #expect(try Self.offer(settings)["spotlight"] == true)
    }

    @Test func `a client without audio and video is refused`() throws {
        let error = try #require(throws: SoraClose.self) { try Self.settings(#""audio":false,"video":false"#) }
        #expect(error.word == "INVALID-MESSAGE")
        var grants = Grants()
        grants.video.isEnabled = true
        grants.video.codec = "MPEG2"
        let other = try #require(throws: SoraClose.self) { try Self.settings(grants: grants) }
        #expect(other.close.reason == "AUTHENTICATION-INTERNAL-ERROR")
    }

    @Test func `re-offer, ping and push messages have their members`() throws {
        #expect(SoraServerMessage.ping(wantsStatistics: false) == #"{"type":"ping"}"#)
        #expect(SoraServerMessage.ping(wantsStatistics: true) == #"{"type":"ping","stats":true}"#)
        #expect(SoraServerMessage.push(#"{"a":[1]}"#) == #"{"type":"push","data":{"a":[1]}}"#)
        let offer = try JSONValue(parsing: SoraServerMessage.reoffer(sdp: "v=0\r\na=\"\r\n"))
        #expect(offer == ["type": "re-offer", "sdp": "v=0\r\na=\"\r\n"])
    }

    // MARK: Notifications

    private static let member = Member(
        id: SoraBench.id,
        clientID: "alice",
        bundleID: "bundle",
        role: .sendrecv,
        sendsAudio: true,
        sendsVideo: false,
        notifyMetadataJSON: #"{"name":"Alice"}"#,
        authorizedMetadataJSON: "[1]"
    )
    private static let counts = ChannelCounts(sendrecv: 2, sendonly: 1, recvonly: 4)

    private static func notify(_ content: Notification.Content) throws -> JSONValue {
        try JSONValue(
            parsing: SoraServerMessage.notify(Notification(content, timestamp: 1_735_787_045_678_901_234))
        )
    }

    @Test func `a new client is notified of itself and of present members`() throws {
        let session = SoraBench.reservation.session
        let message = try Self.notify(
            .created(Self.member, minutes: 0, session: session, counts: Self.counts, others: [Self.member])
        )
        let expected: JSONValue = [
            "type": "notify", "event_type": "connection.created", "timestamp": "2025-01-02T03:04:05.678901Z",
            "role": "sendrecv", "session_id": .string(session.value), "client_id": "alice", "bundle_id": "bundle",
            "connection_id": .string(SoraBench.id.value), "audio": true, "video": false, "minutes": 0,
            "channel_connections": 7, "channel_sendrecv_connections": 2, "channel_sendonly_connections": 1,
            "channel_recvonly_connections": 4, "turn_transport_type": "udp", "authn_metadata": ["name": "Alice"],
            "authz_metadata": [1], "metadata": ["name": "Alice"],
            "data": [
                [
                    "client_id": "alice", "bundle_id": "bundle", "connection_id": .string(SoraBench.id.value),
                    "authn_metadata": ["name": "Alice"], "authz_metadata": [1], "metadata": ["name": "Alice"],
                ]
            ],
        ]
        #expect(message == expected)
        let alone = try Self.notify(
            .created(Self.member, minutes: 0, session: session, counts: Self.counts, others: [])
        )
        #expect(alone["data"] == [])
        for content: Notification.Content in [
            .created(Self.member, minutes: 0, session: session, counts: Self.counts, others: nil),
            .updated(Self.member, minutes: 3, session: session, counts: Self.counts),
            .destroyed(Self.member, minutes: 3, session: session, counts: Self.counts),
        ] { #expect(try Self.notify(content)["data"] == nil) }
    }

    @Test func `a member that is connected over TCP is announced so`() throws {
        let member = Member(
            id: SoraBench.id,
            clientID: "alice",
            bundleID: "bundle",
            role: .recvonly,
            sendsAudio: false,
            sendsVideo: false,
            transport: .tcp
        )
        let session = SoraBench.reservation.session
        for content: Notification.Content in [
            .created(member, minutes: 0, session: session, counts: Self.counts, others: []),
            .updated(member, minutes: 1, session: session, counts: Self.counts),
            .destroyed(member, minutes: 2, session: session, counts: Self.counts),
        ] { #expect(try Self.notify(content)["turn_transport_type"] == "tcp") }
    }

    @Test func `codec.unsupported names the codec and the sender`() throws {
        let message = try Self.notify(
            .codecUnsupported(.h265, source: SoraBench.other, destination: SoraBench.id)
        )
        #expect(message["event_type"] == "codec.unsupported" && message["kind"] == "video")
        #expect(message["codec_type"] == "H265")
        #expect(message["source_connection_id"] == .string(SoraBench.other.value))
        #expect(message["destination_connection_id"] == .string(SoraBench.id.value))
        #expect(message["message"]?.string?.contains("cannot play H265") == true)
    }

    @Test func `any string survives JSON serialization`() throws {
        let texts = ["", "plain", "v=0\r\no=- 1\r\n", "\u{0}\u{1F}\u{7F}\t\"\\/", "流れ\u{1F600}"]
        for text in texts + [texts.joined()] {
            #expect(try JSONValue(parsing: "[\(jsonString(text))]") == [.string(text)])
        }
    }

    @Test func `omitted metadata is omitted in notifications`() throws {
        let plain = Member(
            id: SoraBench.id,
            clientID: "a",
            bundleID: "b",
            role: .recvonly,
            sendsAudio: false,
            sendsVideo: false
        )
        let message = try Self.notify(
            .destroyed(plain, minutes: 9, session: SoraBench.reservation.session, counts: Self.counts)
        )
        #expect(message["event_type"] == "connection.destroyed" && message["minutes"] == 9)
        for key in ["authn_metadata", "authz_metadata", "metadata"] { #expect(message[key] == nil) }
    }

    @Test func `the metadata of present members is bounded`() throws {
        let crowd = (0..<600).map { index in
            Member(
                id: SoraBench.id,
                clientID: "\(index)",
                bundleID: "b",
                role: .recvonly,
                sendsAudio: false,
                sendsVideo: false,
                notifyMetadataJSON: "\"\(String(repeating: "x", count: 4000))\""
            )
        }
        let text = SoraServerMessage.notify(
            Notification(
                .created(
                    Self.member,
                    minutes: 0,
                    session: SoraBench.reservation.session,
                    counts: Self.counts,
                    others: crowd
                ),
                timestamp: 0
            )
        )
        #expect(text.utf8.count < 2 * SoraServerMessage.memberMetadataBytesMax)
        #expect(try JSONValue(parsing: text)["data"]?.array?.count == 600)
    }

    @Test func `spotlight and filter notifications have their members`() throws {
        let focused = try Self.notify(.spotlightFocused(Self.member, isFixed: true))
        let expected: JSONValue = [
            "type": "notify", "event_type": "spotlight.focused", "timestamp": "2025-01-02T03:04:05.678901Z",
            "client_id": "alice", "connection_id": .string(SoraBench.id.value), "audio": true, "video": false,
            "fixed": true,
        ]
        #expect(focused == expected)
        let unfocused = try Self.notify(.spotlightUnfocused(Self.member, isFixed: false))
        #expect(unfocused["event_type"] == "spotlight.unfocused" && unfocused["fixed"] == false)
        let blocked = try Self.notify(
            .forwarding(isBlocked: true, kind: .audio, source: SoraBench.id, destination: SoraBench.other)
        )
        #expect(blocked["event_type"] == "forwarding.blocked" && blocked["kind"] == "audio")
        #expect(blocked["source_connection_id"] == .string(SoraBench.id.value))
        #expect(blocked["destination_connection_id"] == .string(SoraBench.other.value))
        let allowed = try Self.notify(
            .forwarding(isBlocked: false, kind: .video, source: SoraBench.id, destination: SoraBench.other)
        )
        #expect(allowed["event_type"] == "forwarding.allowed" && allowed["kind"] == "video")
    }

    @Test func `notifications of the client's own connection have the protocol's members only`() throws {
        var network = try #require(try Self.notify(.networkStatus(unstableLevel: 3)).object)
        let time = network.removeValue(forKey: "timestamp")
        #expect(network == ["type": "notify", "event_type": "network.status", "unstable_level": 3])
        var ice = try #require(try Self.notify(.iceStateChanged(current: .connected, previous: .checking)).object)
        #expect(ice.removeValue(forKey: "timestamp") == time && time != nil)
        #expect(
            ice == [
                "type": "notify", "event_type": "ice-connection-state.changed", "current_state": "connected",
                "previous_state": "checking",
            ]
        )
        var expiry = try #require(try Self.notify(.accessExpires(unixSeconds: 1_700_000_000)).object)
        #expect(expiry.removeValue(forKey: "timestamp") == time)
        #expect(expiry == ["type": "notify", "event_type": "token.expiring", "expires_at": 1_700_000_000])
    }

    static let guestTracks = PublishedTracks(
        user: "guest",
        connection: SoraBench.other,
        source: .screen,
        audio: true,
        video: false,
        isAudioMuted: true,
        isVideoMuted: false
    )
    private static let ended = {
        var tracks = guestTracks
        tracks.hasEnded = true
        return tracks
    }()
    private static let someMember = Member(
        id: SoraBench.other,
        clientID: "c",
        bundleID: "b",
        role: .sendrecv,
        sendsAudio: true,
        sendsVideo: true
    )
    static let guest = ChannelUser(
        id: "guest",
        displayName: "G",
        role: .host,
        notifyMetadataJSON: #"{"name":"G"}"#
    )
    static let userEvents: [(Notification.Content, JSONValue)] = [
        (
            .channelJoined(
                JoinedChannel(
                    user: "me",
                    connection: SoraBench.id,
                    profile: .interactive,
                    role: .audience,
                    resumeToken: "token",
                    graceSeconds: 20,
                    elapsedMilliseconds: 321,
                    mayModerate: true,
                    users: [
                        .init(
                            user: guest,
                            connections: [
                                .init(
                                    tracks: guestTracks,
                                    isInterrupted: true,
                                    notifyMetadataJSON: "1",
                                    quality: LinkQuality(uplink: .bad)
                                )
                            ]
                        )
                    ],
                    hands: [Hand(user: "guest", displayName: "G", isRaised: true)]
                )
            ),
            [
                "event_type": "channel.joined", "user_id": "me", "connection_id": .string(SoraBench.id.value),
                "profile": "interactive", "role": "audience", "resume_token": "token", "grace": 20, "elapsed": 321,
                "users": [
                    [
                        "user_id": "guest", "display_name": "G", "role": "host",
                        "connections": [
                            [
                                "connection_id": .string(SoraBench.other.value), "source": "screen", "audio": true,
                                "video": false, "audio_muted": true, "video_muted": false, "interrupted": true,
                                "uplink": 4, "downlink": 0, "metadata": 1,
                            ]
                        ],
                    ]
                ],
                "moderator": true, "hands": [["user_id": "guest", "display_name": "G"]],
            ]
        ),
        (
            .handChanged(Hand(user: "h", displayName: nil, isRaised: true)),
            ["event_type": "hand.changed", "user_id": "h", "raised": true]
        ),
        (
            .chatHistory([ChatMessage(user: "h", displayName: "H", text: "a\"b", unixSeconds: 7)]),
            [
                "event_type": "chat.history",
                "messages": [["user_id": "h", "display_name": "H", "text": "a\"b", "sent_at": 7]],
            ]
        ),
        (
            .userOnline(guest),
            [
                "event_type": "user.online", "user_id": "guest", "display_name": "G", "role": "host",
                "metadata": ["name": "G"],
            ]
        ),
        (
            .userOffline("guest", .becameAudience),
            ["event_type": "user.offline", "user_id": "guest", "reason": "became-audience"]
        ),
        (
            .tracksChanged(guestTracks),
            [
                "event_type": "track.changed", "user_id": "guest",
                "connection_id": .string(SoraBench.other.value), "source": "screen", "audio": true, "video": false,
                "audio_muted": true, "video_muted": false,
            ]
        ),
        (
            .tracksChanged(ended),
            [
                "event_type": "track.changed", "user_id": "guest", "connection_id": .string(SoraBench.other.value),
                "source": "screen", "audio": true, "video": false, "audio_muted": true, "video_muted": false,
                "ended": true,
            ]
        ),
        (
            .firstFrame(someMember, elapsedMilliseconds: 42),
            [
                "event_type": "track.first_frame", "user_id": "c", "connection_id": .string(SoraBench.other.value),
                "elapsed": 42,
            ]
        ),
        (
            .othersQuality(someMember, LinkQuality(uplink: .good, downlink: .poor)),
            [
                "event_type": "user.network_quality", "user_id": "c", "connection_id": .string(SoraBench.other.value),
                "uplink": 2, "downlink": 3,
            ]
        ),
        (.roleChanged(.host, by: .member), ["event_type": "role.changed", "role": "host", "by": "self"]),
        (
            .muted(.video, isMuted: true, by: .operator),
            ["event_type": "muted", "kind": "video", "muted": true, "by": "operator"]
        ),
        (
            .networkQuality(LinkQuality(uplink: .good, downlink: .disconnected)),
            ["event_type": "network.quality", "uplink": 2, "downlink": 6]
        ),
    ]
    @Test(arguments: userEvents.indices) func `events of users have the members of the extension`(row: Int) throws {
        let (content, expected) = Self.userEvents[row]
        var event = try #require(try Self.notify(content).object)
        #expect(event.removeValue(forKey: "timestamp") != nil && event.removeValue(forKey: "type") == "notify")
        #expect(.object(event) == expected)
    }

    @Test(arguments: [nil, false, true])
    func `a client is notified of its ICE state only if granted`(isGranted: Bool?) throws {
        var grants = Grants()
        grants.notifiesICEState = isGranted
        #expect(
            try Self.settings(grants: grants).joinRequest(id: SoraBench.id).notifiesICEState == (isGranted ?? false)
        )
    }
}
