import Base
import MediaTypes
import RoomTestSupport
import Synchronization
import Testing

@testable import Admission
@testable import ChannelTypes
@testable import Room

@Suite struct BlockTests {
    private static let lobby = ChannelName("lobby")!
    private static let hall = ChannelName("hall")!
    private static func time(_ seconds: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: seconds * 1_000_000_000), unixNanoseconds: seconds * 1_000_000_000)
    }

    @Test(arguments: [
        (Block.Subject.user("eve"), "eve", "lobby", Role.recvonly, true),
        (.user("eve"), "eve", "hall", .sendonly, true),
        (.user("eve"), "bob", "lobby", .sendonly, false),
        (.member("eve", of: lobby), "eve", "lobby", .recvonly, true),
        (.member("eve", of: lobby), "eve", "hall", .recvonly, false),
        (.stream(lobby), "eve", "lobby", .sendonly, true), (.stream(lobby), "eve", "lobby", .sendrecv, true),
        (.stream(lobby), "eve", "lobby", .recvonly, false), (.stream(lobby), "eve", "hall", .sendonly, false),
    ])
    func `a block refuses whom it names`(
        subject: Block.Subject,
        user: String,
        channel: String,
        role: Role,
        isRefused: Bool
    ) throws {
        var table = BlockTable()
        let request = JoinRequest(channel: try #require(ChannelName(channel)), role: role, clientID: user)
        #expect(table.refusal(of: request, at: Self.time(10)) == nil)
        try table.set(Block(subject, untilUnixSeconds: 20), at: Self.time(10))
        let isStream = if case .stream = subject { true } else { false }
        let refusal: RoomError = isStream ? .streamBlocked(untilUnixSeconds: 20) : .banned(untilUnixSeconds: 20)
        #expect(table.refusal(of: request, at: Self.time(19)) == (isRefused ? refusal : nil))
        #expect(table.refusal(of: request, at: Self.time(20)) == nil, "it has expired")
    }

    @Test func `of two blocks of one user the longer one is named`() throws {
        var table = BlockTable()
        let request = JoinRequest(channel: Self.lobby, role: .recvonly, clientID: "eve")
        try table.set(Block(.user("eve"), untilUnixSeconds: 20), at: Self.time(10))
        try table.set(Block(.member("eve", of: Self.lobby), untilUnixSeconds: 30), at: Self.time(10))
        #expect(table.refusal(of: request, at: Self.time(10)) == .banned(untilUnixSeconds: 30))
        try table.set(Block(.user("eve")), at: Self.time(10))
        #expect(table.refusal(of: request, at: Self.time(10)) == .banned(untilUnixSeconds: nil))
    }

    @Test func `a lifted block and an expired one are gone`() throws {
        var table = BlockTable()
        try table.set(Block(.user("eve"), untilUnixSeconds: 20), at: Self.time(10))
        try table.set(Block(.user("bob")), at: Self.time(10))
        #expect(table.all(at: Self.time(10)).count == 2)
        #expect(table.all(at: Self.time(20)) == [Block(.user("bob"))])
        let lifted = ["eve", "bob", "bob"].map { table.lift(.user($0), at: Self.time(20)) }
        #expect(lifted == [false, true, false])
        #expect(table.block(of: .user("bob"), at: Self.time(20)) == nil)
    }

    @Test func `a full table takes a new block only for an expired one`() throws {
        var table = BlockTable()
        for index in 0..<BlockTable.countMax {
            try table.set(Block(.user("\(index)"), untilUnixSeconds: index == 0 ? 20 : nil), at: Self.time(10))
        }
        #expect(throws: RoomError.blocksFull) { try table.set(Block(.user("eve")), at: Self.time(19)) }
        try table.set(Block(.user("1"), untilUnixSeconds: 30), at: Self.time(19))
        try table.set(Block(.user("eve")), at: Self.time(20))
        #expect(table.all(at: Self.time(20)).count == BlockTable.countMax)
    }

    @Test func `the node refuses a banned user, counts it, and says until when`() throws {
        var node = NodeModel(locations: .loops(1))
        try node.blocked(Block(.user("eve"), untilUnixSeconds: 20), at: Self.time(10))
        var generator = SystemRandomNumberGenerator()
        let request = JoinRequest(channel: Self.lobby, role: .sendonly, clientID: "eve")
        let refused = node.admit(request, id: ParticipantID(using: &generator), at: Self.time(10)).result
        #expect(throws: RoomError.banned(untilUnixSeconds: 20)) { try refused.get() }
        #expect(node.admissions.refused == [.banned: 1])
        #expect(node.isEmpty)
        let admitted = node.admit(request, id: ParticipantID(using: &generator), at: Self.time(20)).result
        #expect((try? admitted.get()) != nil)
    }

    @Test func `a full table of own blocks takes those of another node`() async throws {
        let directory = ChannelDirectory(planes: [FakeMediaPlane()])
        for index in 0..<BlockTable.countMax { try await directory.block(Block(.user("\(index)"))) }
        let taken = Block(.user("eve"))
        #expect(await directory.take(taken, of: taken.subject))
        #expect(directory.blockRefusal(of: "eve", in: Self.lobby, as: .recvonly) == .banned(untilUnixSeconds: nil))
        await #expect(throws: RoomError.blocksFull) { try await directory.block(Block(.user("bob"))) }
        for index in 1..<BlockTable.countMax {
            let block = Block(.user("other \(index)"))
            #expect(await directory.take(block, of: block.subject))
        }
        let last = Block(.user("bob"))
        #expect(await !directory.take(last, of: last.subject), "there is a limit to those, too")
    }

    @Test func `a block of another node refuses and ends here, and is not told again`() async throws {
        let decisions = Mutex<[OperatorDecision]>([])
        let changes = Mutex<[Block?]>([])
        var observers = ChannelDirectory.Observers()
        observers.decision = { decision in
            decisions.withLock { $0.append(decision) }
            return []
        }
        observers.block = { _, block in changes.withLock { $0.append(block) } }
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], observers: observers)
        let block = Block(.user("eve"))
        for _ in 0..<2 { #expect(await directory.take(block, of: block.subject)) }
        #expect(directory.blockRefusal(of: "eve", in: Self.lobby, as: .recvonly) == .banned(untilUnixSeconds: nil))
        #expect(decisions.withLock { $0 } == [.blocked(block)], "once")
        #expect(await directory.take(Block(block.subject, untilUnixSeconds: 1), of: block.subject))
        #expect(await directory.blocks.isEmpty, "it was over")
        #expect(await directory.take(nil, of: block.subject))
        #expect(changes.withLock { $0.isEmpty })
        try await directory.block(block)
        let lifted = [await directory.liftBlock(of: block.subject), await directory.liftBlock(of: block.subject)]
        #expect(lifted == [true, false] && changes.withLock { $0 } == [block, nil])
    }
}
