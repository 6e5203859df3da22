import MediaTypes
import Room
import RoomTestSupport
import Testing

@testable import ChannelTypes

/// Users that join a channel again.
struct DuplicateUserTests {
    private static let alice = UserIdentity("alice", .authorized)

    private func bench(_ policy: DuplicateUserPolicy, participantsPerChannelMax: Int = 100) -> ModelBench {
        ModelBench(limits: RoomLimits(participantsPerChannelMax: participantsPerChannelMax, duplicateUsers: policy))
    }

    private func isPresent(_ id: ParticipantID, in bench: ModelBench) -> Bool { bench.model.participants[id] != nil }

    @Test(
        arguments: [
            ("allowed by the node", .allow, nil, true), ("replaced by the node", .replace, nil, false),
            ("allowed by the grant", .replace, .allow, true), ("replaced by the grant", .allow, .replace, false),
        ] as [(String, DuplicateUserPolicy, DuplicateUserPolicy?, Bool)]
    )
    func `the newer connection wins once it is connected`(
        name: String,
        policy: DuplicateUserPolicy,
        grant: DuplicateUserPolicy?,
        stays: Bool
    ) throws {
        var bench = bench(policy)
        let other = try bench.member(.sendrecv) { $0.user = UserIdentity("bob", .authorized) }
        let first = try bench.member(.sendrecv) { $0.user = Self.alice }
        let request = request(.sendrecv) { $0.duplicateUsers = grant }
        let second = try bench.reserve(request)
        _ = try bench.activate(second)
        #expect(isPresent(first, in: bench), "a newcomer that does not connect replaces nobody")
        let effects = bench.receive(.connected(over: .udp), from: second)
        #expect(effects.contains(.ended(first, .replaced)) != stays)
        #expect(isPresent(first, in: bench) == stays && isPresent(second, in: bench) && isPresent(other, in: bench))
    }

    private func request(_ role: Role, _ configure: (inout JoinRequest) -> Void = { _ in }) -> JoinRequest {
        var request = JoinRequest(channel: ModelBench.channel, role: role, following: .everyone, user: Self.alice)
        configure(&request)
        return request
    }

    @Test(arguments: [UserIdentity.Origin.authorized, .stream])
    func `the policy holds for users of tokens, webhooks and signed URLs`(origin: UserIdentity.Origin) throws {
        var bench = bench(.replace)
        let first = try bench.member(.sendonly) { $0.user = UserIdentity("alice", origin) }
        let second = try bench.member(.sendonly) { $0.user = UserIdentity("alice", origin) }
        #expect(!isPresent(first, in: bench) && isPresent(second, in: bench))
    }

    @Test func `a user may be refused while it is there`() throws {
        var bench = bench(.refuse)
        let first = try bench.reserve(request(.sendrecv))
        #expect(throws: RoomError.userPresent) { _ = try bench.reserve(request(.sendrecv)) }
        _ = bench.model.left(first, reason: .left)
        _ = try bench.reserve(request(.sendrecv))
    }

    @Test(
        arguments: [
            (.sendonly, .recvonly, false), (.recvonly, .sendonly, false), (.sendonly, .sendonly, true),
            (.recvonly, .recvonly, true), (.sendrecv, .recvonly, true), (.sendonly, .sendrecv, true),
        ] as [(Role, Role, Bool)]
    )
    func `sending and receiving connections are halves of one presence`(
        first: Role,
        second: Role,
        isReplaced: Bool
    ) throws {
        var bench = bench(.replace)
        let one = try bench.member(first) { $0.user = Self.alice }
        _ = try bench.member(second) { $0.user = Self.alice }
        #expect(isPresent(one, in: bench) != isReplaced)
    }

    @Test(arguments: [UserIdentity("alice", .chosen), UserIdentity("alice", .stream), nil])
    func `who only chooses the name of an authorized user does not replace it`(user: UserIdentity?) throws {
        var bench = bench(.replace)
        let first = try bench.member(.sendrecv) { $0.user = Self.alice }
        let second = try bench.member(.sendrecv) {
            $0.user = user
            $0.clientID = "alice"
        }
        #expect(isPresent(first, in: bench) && isPresent(second, in: bench))
    }

    @Test(arguments: [DuplicateUserPolicy.replace, .refuse])
    func `who chooses the name that another client chose neither puts it out nor is kept out`(
        policy: DuplicateUserPolicy
    ) throws {
        var bench = bench(policy)
        let copied = { (request: inout JoinRequest) in
            request.user = UserIdentity("alice", .chosen)
            request.clientID = "alice"
        }
        let first = try bench.member(.sendrecv, copied)
        let second = try bench.member(.sendrecv, copied)
        #expect(isPresent(first, in: bench) && isPresent(second, in: bench))
        let waiting = try bench.reserve(request(.sendrecv, copied))
        _ = try bench.reserve(request(.sendrecv, copied))
        #expect(isPresent(waiting, in: bench), "nor does a newcomer put out one that has not connected")
    }

    @Test func `who chooses the name of a client in a full channel gets no place for it`() throws {
        var bench = bench(.replace, participantsPerChannelMax: 1)
        let first = try bench.member(.sendrecv) { $0.user = UserIdentity("alice", .chosen) }
        #expect(throws: RoomError.channelFull) {
            _ = try bench.reserve(request(.sendrecv) { $0.user = UserIdentity("alice", .chosen) })
        }
        #expect(isPresent(first, in: bench))
    }

    @Test(arguments: [("b", VideoSource.screen, true), ("b", .camera, false), ("c", .screen, false)])
    func `a user's camera and screen in one bundle do not replace each other`(
        bundle: String,
        source: VideoSource,
        stays: Bool
    ) throws {
        var bench = bench(.replace)
        let camera = try bench.member(.sendrecv) {
            $0.user = Self.alice
            $0.bundleID = "b"
        }
        let other = try bench.member(.sendonly) {
            $0.user = Self.alice
            $0.bundleID = bundle
            $0.options = MemberOptions(source: source)
        }
        #expect(isPresent(camera, in: bench) == stays && isPresent(other, in: bench))
    }

    @Test func `a user has one newcomer at a time, and a full channel has room for it`() throws {
        var bench = bench(.replace, participantsPerChannelMax: 1)
        let first = try bench.member(.sendrecv) { $0.user = Self.alice }
        #expect(throws: RoomError.channelFull) {
            _ = try bench.reserve(request(.sendrecv) { $0.user = UserIdentity("bob", .authorized) })
        }
        var newcomers: [ParticipantID] = []
        for _ in 0..<3 { newcomers.append(try bench.reserve(request(.sendrecv))) }
        #expect(newcomers.map { isPresent($0, in: bench) } == [false, false, true] && isPresent(first, in: bench))
        _ = try bench.activate(newcomers[2])
        _ = bench.receive(.connected(over: .udp), from: newcomers[2])
        #expect(!isPresent(first, in: bench) && bench.model.participants.count == 1)
    }
}
