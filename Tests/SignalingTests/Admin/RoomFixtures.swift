import ChannelTypes
import MediaTypes
import Testing

@testable import Room

/// Reports of rooms that no test has to bring about.
enum RoomFixtures {
    static func connection(
        channel: String = "lobby",
        role: Role = .sendonly,
        agent: ClientAgent = ClientAgent(signaling: .sora),
        transport: TransportProtocol = .udp
    ) -> Connection {
        var generator = SystemRandomNumberGenerator()
        return Connection(
            member: Member(
                id: ParticipantID(using: &generator),
                clientID: "c",
                bundleID: "b",
                role: role,
                sendsAudio: true,
                sendsVideo: false,
                transport: transport
            ),
            channel: ChannelName(channel)!,
            session: ChannelSessionID(using: &generator),
            node: .standalone,
            agent: agent,
            displayName: nil,
            createdAt: 1_700_000_000_000_000_000,
            connectedAt: 1_700_000_000_200_000_000,
            setupTime: .milliseconds(200),
            isSimulcast: false,
            spotlight: nil,
            publications: [],
            channelRole: .host,
            source: .camera,
            muted: [],
            eventMetadataJSON: #"{"k":1}"#,
            receiveBitsPerSecondMax: nil,
            user: nil,
            expiry: nil
        )
    }

    static func report(
        channel: String = "lobby",
        minutes: Int64 = 0,
        role: Role = .sendonly,
        agent: ClientAgent = ClientAgent(signaling: .sora),
        transport: TransportProtocol = .udp,
        hasPublished: Bool = true,
        milliseconds: Int64 = 0
    ) -> ConnectionReport {
        var connection = connection(channel: channel, role: role, agent: agent, transport: transport)
        connection.hasPublished = hasPublished
        return ConnectionReport(
            connection: connection,
            duration: .seconds(60 * minutes),
            counts: ChannelCounts(sendonly: 1),
            unixNanoseconds: 1_700_000_000_000_000_000 + milliseconds * 1_000_000
        )
    }

    static func session(channel: String = "lobby") -> ChannelSession {
        var generator = SystemRandomNumberGenerator()
        return ChannelSession(id: ChannelSessionID(using: &generator), channel: ChannelName(channel)!, createdAt: 0)
    }
}
