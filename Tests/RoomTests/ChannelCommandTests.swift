import Foundation
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

@Suite struct ChannelCommandTests {
    private static let own = ParticipantID("00000000000000000000000001")!
    private static let other = ParticipantID("00000000000000000000000002")!
    private static let layers = SpotlightLayers(focus: .richest, unfocus: .nothing)
    private static let filter = ForwardingFilter(rules: [])

    /// Every command, and who may ask for it besides operators: members for themselves or as moderators, and other nodes.
    private static let commands: [(command: ChannelCommand, isForMember: Bool, isForNodes: Bool)] = [
        (.setRole(.host, of: .participant(own)), true, true),
        (.setMuted(true, kinds: [.audio], of: .participant(own)), true, true),
        (.subscribe(true, to: SubscriptionSelection(), receiver: .participant(own)), true, true),
        (.requestLayer(.richest, receiver: own, sender: other), true, true),
        (.requestHeight(360, receiver: own, sender: nil), true, true),
        (.requestSpotlightLayers(layers, receiver: own, sender: nil), true, true),
        (.setMetadata(json: "1", of: own, push: nil), true, false),
        (.extendAccess(of: own, until: AccessExpiry(unixSeconds: 1)), true, true),
        (.end(.participants([own]), .kicked), false, true),
        (.push(json: "1", to: .participants([own])), false, true),
        (.limitSending(to: own, bitsPerSecond: 100_000), false, true),
        (.requestKeyFrames(of: own), false, true),
        (.focus(own, isFixed: true), false, true),
        (.unfocus(own), false, true),
        (.end(.all, .channelTerminated), false, false),
        (.end(.role(.sendonly), .banned), false, false),
        (.end(.user("anna"), .kicked), true, false),
        (.end(.user("anna"), .banned), false, false),
        (.mute(.participants([own]), kinds: [.audio]), false, true),
        (.mute(.user("anna"), kinds: [.audio]), true, false),
        (.mute(.all, kinds: [.audio]), true, false),
        (.mute(.role(.sendonly), kinds: [.audio]), false, false),
        (.raiseHand(true, of: own), true, false),
        (.push(json: "1", to: .all), false, false),
        (.push(json: "1", to: .user("anna")), false, false),
        (.setRole(.audience, of: .user("anna")), true, false),
        (.setMuted(true, kinds: [.video], of: .user("anna")), false, false),
        (.subscribe(false, to: SubscriptionSelection(user: "ben"), receiver: .user("anna")), false, false),
        (.setSpotlightNumber(2), false, false),
        (.createFilter(filter, scope: .channel), false, false),
        (.updateFilter(filter, scope: .participant(own), expected: "1"), false, false),
        (.deleteFilter(name: "a", scope: .channel, expected: nil), false, false),
    ]

    private static func refusal(_ command: ChannelCommand, by initiator: Initiator) -> RoomError? {
        var model = ChannelModel(name: ModelBench.channel)
        do {
            _ = try model.perform(command, by: initiator)
            return nil
        } catch {
            return error
        }
    }

    @Test func `each command is for operators, and for members and nodes where that is written`() {
        for (command, isForMember, isForNodes) in Self.commands {
            #expect(Self.refusal(command, by: .operator) != .forbidden, "\(command)")
            #expect((Self.refusal(command, by: .member(Self.own)) != .forbidden) == isForMember, "\(command)")
            let isForModerators = command.permission.contains(.moderators)
            let refusal = isForModerators ? RoomError.moderatorsOnly : .forbidden
            #expect(Self.refusal(command, by: .member(Self.other)) == refusal, "of another: \(command)")
            #expect((Self.refusal(command, by: .node) != .forbidden) == isForNodes, "\(command)")
        }
    }

    @Test func `nodes send each other commands as they are`() throws {
        for (command, _, _) in Self.commands {
            let bytes = try JSONEncoder().encode(command)
            #expect(try JSONDecoder().decode(ChannelCommand.self, from: bytes) == command)
            #expect(!command.name.isEmpty && command.name.allSatisfy(\.isLetter), "\(command.name)")
        }
    }

    @Test func `another node's command is for participants of this one`() async throws {
        let bench = RoomsBench()
        let member = try await bench.member(.sendonly)
        let unknown = ChannelCommand.setMuted(true, kinds: [.audio], of: .participant(Self.other))
        await #expect(throws: RoomError.participantUnknown) {
            try await bench.directory.perform(unknown, in: RoomsBench.channel, by: .node)
        }
        let ids = [member.id, Self.other]
        let end = ChannelCommand.end(.participants(ids), .kicked)
        let ended = try await bench.directory.perform(end, in: RoomsBench.channel, by: .node).participants
        #expect(ended == [member.id])
        await bench.expectNothingLeft()
    }

    @Test func `a push is for those who are connected`() async throws {
        let bench = RoomsBench()
        _ = try await bench.member(.sendonly)
        let (_, connecting) = try await bench.join(.recvonly)
        await #expect(throws: RoomError.participantUnknown) {
            let push = ChannelCommand.push(json: "1", to: .participants([connecting.participant]))
            try await bench.directory.perform(push, in: RoomsBench.channel)
        }
        await bench.directory.shutdown()
        await bench.expectNothingLeft()
    }

    @Test func `whom an operator makes host counts among the node's publishers`() async throws {
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], limits: RoomLimits(publishersMax: 1))
        var audience = JoinRequest(channel: ModelBench.channel, role: .sendrecv, following: .everyone)
        audience.options = MemberOptions(profile: .interactive, role: .audience)
        audience.clientID = "anna"
        let place = try await directory.reserve(audience)
        _ = try await directory.activate(place, remote: RoomsBench.remote, firstMediaKind: .audio, mids: [])
        let hall = JoinRequest(channel: try #require(ChannelName("hall")), role: .sendonly)
        let publisher = try await directory.reserve(hall)
        let promote = ChannelCommand.setRole(.host, of: .user("anna"))
        await #expect(throws: RoomError.nodePublishersFull) {
            try await directory.perform(promote, in: ModelBench.channel)
        }
        await directory.cancel(publisher)
        #expect(try await directory.perform(promote, in: ModelBench.channel).participants == [place.participant])
        await #expect(throws: RoomError.nodePublishersFull) { try await directory.reserve(hall) }
        let demote = ChannelCommand.setRole(.audience, of: .user("anna"))
        try await directory.perform(demote, in: ModelBench.channel)
        _ = try await directory.reserve(hall)
        await directory.shutdown()
        #expect(await directory.isEmpty)
    }
}
