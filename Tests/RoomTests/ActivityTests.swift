import Base
import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// What metrics tell of single channels.
@Suite(.timeLimit(.minutes(10)))
struct ActivityTests {
    private func join(_ bench: RoomsBench, _ roles: [Role], in name: String) async throws -> [ChannelDirectory.Resource]
    {
        let channel = try #require(ChannelName(name))
        var members: [ChannelDirectory.Resource] = []
        for role in roles {
            let (_, member) = try await bench.join(role, in: channel)
            await bench.report(.connected(over: .udp), from: member.peer)
            members.append(member)
        }
        return members
    }

    @Test func `the channels with the most connected members are told, with what they carry`() async throws {
        let bench = RoomsBench()
        let small = try await join(bench, [.sendonly], in: "small")
        let large = try await join(bench, [.sendonly, .recvonly, .recvonly], in: "large")
        _ = try await join(bench, [.recvonly, .recvonly], in: "middle")
        // Those that are not connected do not count.
        for _ in 0..<4 { _ = try await bench.join(.recvonly, in: try #require(ChannelName("waiting"))) }
        let video = PeerStatistics.Received(
            mid: RoomsBench.mid,
            kind: .video,
            ssrc: SSRC(rawValue: 1),
            bitsPerSecond: 800_000
        )
        await bench.plane.setStatistics(
            PeerStatistics(isConnected: true, roundTrip: .milliseconds(20), received: [video]),
            of: large[0].peer
        )
        for (peer, loss) in [(large[1].peer, 0.25), (large[2].peer, nil)] {
            let slot = PeerStatistics.Sent(
                mid: RoomsBench.mid,
                kind: .video,
                ssrc: SSRC(rawValue: 2),
                bitsPerSecond: 400_000,
                fractionLost: loss
            )
            await bench.plane.setStatistics(PeerStatistics(isConnected: true, sent: [slot]), of: peer)
        }
        await bench.report(.qualityChanged(LinkQuality(uplink: .good, downlink: .bad)), from: large[1].peer)

        let busiest = await bench.directory.busiestChannels(2)
        #expect(busiest.map(\.channel.value) == ["large", "middle"])
        #expect(busiest.first?.counts == ChannelCounts(sendonly: 1, recvonly: 2))
        #expect(busiest.first?.poorUplinks == 0 && busiest.first?.poorDownlinks == 1)
        var media = ChannelActivity.Media()
        (media.receivedBytesPerSecond, media.sentBytesPerSecond) = (100_000, 100_000)
        (media.roundTripMax, media.lossMax) = (0.02, 0.25)
        #expect(busiest.first?.media == media)
        #expect(await bench.directory.busiestChannels(0).isEmpty)
        #expect(await bench.directory.busiestChannels(9).last?.channel.value == "small")
        _ = small
    }

    @Test func `the media of too many members is not measured`() async throws {
        let bench = RoomsBench()
        let members = try await join(bench, [.sendonly, .recvonly], in: "c")
        let actor = try #require(bench.directory.node.actor(of: members[0].participant))
        #expect(await actor.activity(membersMax: 1)?.media == nil)
        #expect(await actor.activity(membersMax: 2)?.media == ChannelActivity.Media())
    }
}
