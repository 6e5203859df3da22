import MediaTypes
import RoomTestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Room

/// The limits on concurrent publishers of the node and of an app.
@Suite struct PublisherLimitTests {
    private static let lobby = ChannelName("lobby")!
    private static let hall = ChannelName("hall")!
    private static let studio = ChannelName("studio")!

    private func request(
        _ role: Role = .sendonly,
        app: String? = nil,
        in channel: ChannelName = Self.lobby,
        user: String? = nil,
        _ policy: DuplicateUserPolicy? = nil
    ) -> JoinRequest {
        var request = JoinRequest(channel: channel, role: role)
        request.app = app
        request.user = user.map { UserIdentity($0, .authorized) }
        request.duplicateUsers = policy
        return request
    }

    @Test func `the node refuses a publisher too many in any channel, until one leaves`() throws {
        var bench = ModelBench(limits: RoomLimits(publishersMax: 2))
        let first = try bench.reserve(request())
        _ = try bench.reserve(request(.sendrecv, app: "live", in: Self.hall))
        #expect(throws: RoomError.nodePublishersFull) { try bench.reserve(request()) }
        _ = try bench.reserve(request(.recvonly))
        #expect(bench.model.admissions.refused == [.nodePublishersFull: 1])
        _ = bench.model.left(first, reason: .left)
        _ = try bench.reserve(request())
    }

    @Test func `each app has a limit of its own, and clients of no app have none`() throws {
        var bench = ModelBench(limits: RoomLimits(publishersPerAppMax: 1))
        let first = try bench.reserve(request(app: "live"))
        #expect(throws: RoomError.appPublishersFull) { try bench.reserve(request(app: "live", in: Self.hall)) }
        _ = try bench.reserve(request(app: "studio", in: Self.studio))
        for _ in 0..<3 { _ = try bench.reserve(request()) }
        _ = try bench.reserve(request(.recvonly, app: "live"))
        #expect(bench.model.admissions.refused == [.appPublishersFull: 1])
        _ = bench.model.left(first, reason: .left)
        _ = try bench.reserve(request(app: "live"))
    }

    @Test func `a publisher that replaces its user's older one needs no place of its own`() throws {
        var bench = ModelBench(limits: RoomLimits(publishersMax: 1, publishersPerAppMax: 1))
        let first = try bench.reserve(request(app: "live", user: "alice", .replace))
        _ = try bench.activate(first)
        _ = bench.receive(.connected(over: .udp), from: first)
        #expect(throws: RoomError.appPublishersFull) { try bench.reserve(request(app: "live", user: "bob", .replace)) }
        let second = try bench.reserve(request(app: "live", user: "alice", .replace))
        _ = try bench.activate(second)
        #expect(bench.receive(.connected(over: .udp), from: second).contains(.ended(first, .replaced)))
        #expect(throws: RoomError.nodePublishersFull) { try bench.reserve(request()) }
    }

    @Test func `a member of the audience counts when it becomes host`() async throws {
        let directory = ChannelDirectory(planes: [FakeMediaPlane()], limits: RoomLimits(publishersMax: 1))
        var audience = JoinRequest(channel: Self.lobby, role: .sendrecv, following: .everyone)
        audience.options = MemberOptions(profile: .interactive, role: .audience)
        let reservation = try await directory.reserve(audience)
        _ = try await directory.activate(
            reservation,
            remote: RoomsBench.remote,
            firstMediaKind: .audio,
            mids: []
        )
        let id = reservation.participant
        let publisher = try await directory.reserve(request(in: Self.hall))
        await #expect(throws: RoomError.nodePublishersFull) {
            try await directory.perform(.setRole(.host, of: .participant(id)), by: id)
        }
        await directory.cancel(publisher)
        try await directory.perform(.setRole(.host, of: .participant(id)), by: id)
        try await directory.perform(.setRole(.host, of: .participant(id)), by: id)
        await #expect(throws: RoomError.nodePublishersFull) { try await directory.reserve(request(in: Self.hall)) }
        try await directory.perform(.setRole(.audience, of: .participant(id)), in: Self.lobby)
        _ = try await directory.reserve(request(in: Self.hall))
        await directory.shutdown()
        #expect(await directory.isEmpty)
    }

    @Test(arguments: [
        (Role.sendonly, Role.sendonly, RoomError.alreadyPublishing), (.sendrecv, .sendonly, .alreadyPublishing),
        (.sendonly, .sendrecv, .alreadyPublishing), (.sendrecv, .sendrecv, .userPresent),
        (.recvonly, .recvonly, .userPresent), (.sendrecv, .recvonly, .userPresent),
    ])
    func `a refused user learns whether it publishes or is there already`(
        present: Role,
        newcomer: Role,
        error: RoomError
    ) throws {
        var bench = ModelBench()
        _ = try bench.reserve(request(present, user: "alice", .refuse))
        #expect(throws: error) { try bench.reserve(request(newcomer, user: "alice", .refuse)) }
        #expect(bench.model.admissions.refused.values.reduce(0, +) == 1)
    }
}
