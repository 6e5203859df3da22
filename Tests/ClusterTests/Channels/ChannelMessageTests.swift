import ChannelTypes
import Foundation
import MediaTypes
import TestSupport
import Testing

@testable import Cluster
@testable import Room

@Suite(.timeLimit(.minutes(10))) struct ChannelMessageTests {
    private static let channel = ChannelName("lobby")!

    /// Two members of one node, the first of which publishes.
    private func records() async throws -> [MemberRecord] {
        let node = TestNodes().add("a", 1)
        for role in [Role.sendonly, .recvonly] {
            let request = JoinRequest(channel: Self.channel, role: role, following: .currentPublisher)
            _ = try await node.rooms.reserve(request)
        }
        let actor = try #require(node.rooms.node.actor(of: Self.channel))
        return await actor.model.ownMembers
    }

    @Test func `a message is decoded as it was encoded`() async throws {
        let records = try await records()
        let (register, others) = (ChannelRegister(version: 3), [records[1].id])
        let departed = ChannelUpdate.Departed(id: records[0].id, departure: .ended)
        let messages: [(ChannelMessage, [UInt8])] = [
            (.gone(Self.channel, ended: nil), []), (.want(Self.channel), []), (.keep([Self.channel]), []),
            (.command(Self.channel, .end(.participants([records[0].id]), .kicked)), []),
            (.refused(Self.channel, command: "end", reason: "participantUnknown"), []),
            (.news(Self.channel, .all(nil, records, register, labels: ["#a"])), []),
            (.news(Self.channel, .all(nil, [records[0]], register, labels: [], others: others)), []),
            (.news(Self.channel, .changed(records)), []), (.news(Self.channel, .left([departed])), []),
            (.news(Self.channel, .register(register)), []), (.news(Self.channel, .labels(["#a"])), []),
            (.data(Self.channel, sender: records[0].id, label: "#a", isText: true), [1, 2, 3]),
        ]
        for (message, attachment) in messages {
            let decoded = try #require(ChannelMessage.decode(message.encoded(with: attachment)))
            #expect(decoded.message == message && decoded.attachment == attachment && decoded.isWhole)
        }
    }

    @Test func `members that only a later version understands are left out alone`() async throws {
        let records = try await records()
        let news: [(ChannelUpdate, ChannelUpdate)] = [
            (.changed(records), .changed([records[1]])),
            (
                .all(nil, records, ChannelRegister(), labels: []),
                .all(nil, [records[1]], ChannelRegister(), labels: [])
            ),
        ]
        for (told, known) in news {
            let bytes = ChannelMessage.news(Self.channel, told).encoded().dropFirst(LengthPrefix.bytes)
            let text = String(decoding: bytes, as: UTF8.self).replacing("\"sendonly\"", with: "\"hologram\"")
            let decoded = try #require(ChannelMessage.decode(LengthPrefix.prepend(to: Array(text.utf8))))
            #expect(decoded.message == .news(Self.channel, known) && !decoded.isWhole)
        }
    }

    @Test func `a channel with as many members and as much metadata as may be fits a link`() async throws {
        var record = try await records()[0]
        record.member.notifyMetadataJSON = "\"" + String(repeating: "\\\"", count: 2_000) + "\""
        record.member.updatedMetadataJSON = record.member.notifyMetadataJSON
        let members = Array(repeating: record, count: 5_000)
        let news = ChannelUpdate.all(nil, members: members, ChannelRegister(), labels: [])
        var (told, bytes) = (0, 0)
        for item in news {
            let message = ChannelMessage.news(Self.channel, item).encoded()
            #expect(message.count < LinkFrame.bytesMax / 2)
            bytes += message.count
            switch item {
            case .all(_, let records, _, _, let others):
                #expect(others?.count == members.count - records.count)
                #expect(records[0] == record)
                told += records.count
            case .changed(let records): told += records.count
            case .left, .register, .labels: Issue.record("\(item)")
            }
        }
        #expect(told == members.count && news.count > 1)
        #expect(bytes < 24 << 20, "the queue of a link takes 32 MiB")
    }
}
