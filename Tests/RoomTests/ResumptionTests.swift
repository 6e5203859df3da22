import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// Members whose connections are lost, and that take their places again.
struct ResumptionTests {
    private static let alice = UserIdentity("alice", .authorized)

    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(instant: Instant(nanoseconds: second * 1_000_000_000), unixNanoseconds: second * 1_000_000_000)
    }

    private func bench(grace: Int64 = 15, policy: DuplicateUserPolicy = .allow) -> ModelBench {
        var bench = ModelBench(limits: RoomLimits(duplicateUsers: policy, resumeGrace: .seconds(grace)))
        bench.model.codesChannels = true
        bench.model.now = moment(100)
        return bench
    }

    private func resumable(_ role: Role, token: String? = nil, user: UserIdentity? = Self.alice) -> JoinRequest {
        var request = JoinRequest(channel: ModelBench.channel, role: role, following: .everyone, user: user)
        request.keepsPlace = true
        request.resumeToken = token
        return request
    }

    private func member(_ bench: inout ModelBench, _ role: Role = .sendrecv) throws -> ParticipantID {
        try bench.member(role) {
            $0.user = Self.alice
            $0.keepsPlace = true
        }
    }

    private func token(_ id: ParticipantID, _ bench: ModelBench) throws -> String {
        try #require(bench.model.channels[ModelBench.channel]?.resumeToken(of: id))
    }

    /// A new connection, which is set up afterwards.
    private func begin(_ bench: inout ModelBench, _ request: JoinRequest) throws -> ParticipantLocation {
        try bench.model.joinRequested(
            request,
            id: ParticipantID(using: &bench.generator),
            session: ChannelSessionID(using: &bench.generator)
        )
    }

    /// A member that lost its connection, and has begun another one at a later second.
    private func returning(
        _ bench: inout ModelBench,
        at second: Int64
    ) throws -> (id: ParticipantID, place: ParticipantLocation) {
        let id = try member(&bench)
        let token = try token(id, bench)
        _ = bench.model.left(id, reason: .signalingLost)
        bench.model.now = moment(second)
        let place = try begin(&bench, resumable(.sendrecv, token: token))
        #expect(place.participant == id)
        return (id, place)
    }

    /// A new connection with the token, up to its transport.
    private func rejoin(
        _ bench: inout ModelBench,
        _ request: JoinRequest,
        mids: [MID] = [ModelBench.audio, ModelBench.video]
    ) throws -> (id: ParticipantID, effects: [ChannelModel.Effect]) {
        let place = try begin(&bench, request)
        let id = place.participant
        bench.peers[id] = place.peer
        bench.locations[place.peer] = place.location
        var effects = try bench.model.setupCompleted(
            id,
            publications: zip(mids, [MediaKind.audio, .video]).map { Publication(mid: $0, kind: $1) },
            slots: []
        )
        effects += bench.model.received(.connected(over: .udp), from: place.peer)
        return (id, effects)
    }

    @Test(arguments: [EndReason.signalingLost, .transport(.consentExpired)])
    func `a member that loses its connection keeps its place for the grace time`(reason: EndReason) throws {
        var bench = bench()
        let other = try bench.member(.sendrecv) { $0.options = MemberOptions() }
        let plain = try bench.member(.sendrecv)
        let id = try member(&bench)
        let lost = bench.model.left(id, reason: reason)
        #expect(lost.contains(.interrupted(id, reason)) && !lost.contains(.ended(id, reason)))
        #expect(lost.notifications.map(\.to) == [[other, plain]])
        #expect(lost.reports.count == 1)
        #expect(bench.model.left(id, reason: reason).isEmpty)
        #expect(bench.model.visibleStreams(to: plain).map(\.sender).contains(id))
        #expect(bench.model.tick(at: moment(114)).isEmpty)
        let ended = bench.model.tick(at: moment(115))
        #expect(ended.contains(.ended(id, reason)))
        _ = (bench.model.left(other, reason: .left), bench.model.left(plain, reason: .left))
        #expect(bench.model.isEmpty)
    }

    @Test func `everybody who was told that media stopped is told that it comes again after a resumption`() throws {
        var bench = bench()
        let plain = try bench.member(.sendrecv)
        let id = try member(&bench)
        func told(_ effects: [ChannelModel.Effect]) -> [Bool] {
            effects.notifications.filter { $0.to.contains(plain) }
                .compactMap { if case .tracksChanged(let tracks) = $0.content { tracks.audio } else { nil } }
        }
        func isReported(_ effects: [ChannelModel.Effect]) -> Bool {
            effects.reports.contains { if case .flowChanged = $0 { true } else { false } }
        }
        let start = PeerEvent.trackStarted(mid: ModelBench.audio, codec: .opus)
        #expect(told(bench.model.received(start, from: bench.peers[id]!)).isEmpty)
        let token = try token(id, bench)
        _ = bench.model.left(id, reason: .signalingLost)
        let (again, effects) = try rejoin(&bench, resumable(.sendrecv, token: token))
        #expect(again == id && told(effects) == [false] && isReported(effects))
        let back = bench.model.received(start, from: bench.peers[id]!)
        #expect(told(back) == [true] && isReported(back))
    }

    @Test(arguments: [
        EndReason.left, .disconnectedByOperator, .tokenExpired, .replaced, .transport(.closedByPeer), .tooSlow,
    ])
    func `a member that leaves or is ended keeps no place`(reason: EndReason) throws {
        var bench = bench()
        let id = try member(&bench)
        #expect(bench.model.left(id, reason: reason).contains(.ended(id, reason)))
        #expect(bench.model.isEmpty)
        let other = try member(&bench)
        _ = bench.model.left(other, reason: .signalingLost)
        if !reason.isOfTransport {
            #expect(bench.model.left(other, reason: reason).contains(.ended(other, reason)))
            #expect(bench.model.isEmpty)
        }
    }

    @Test(arguments: ClientAgent.Signaling.allCases)
    func `a member of Sora's signaling that only closes DTLS keeps its place`(signaling: ClientAgent.Signaling) throws {
        var bench = bench()
        let viewer = try bench.member(.recvonly) { $0.options = MemberOptions() }
        let id = try bench.member(.sendrecv) { request in
            request.user = Self.alice
            request.keepsPlace = true
            request.agent = ClientAgent(signaling: signaling)
        }
        let closed = bench.model.received(.closed(.closedByPeer), from: bench.peers[id]!)
        let told = closed.notifications.filter { $0.to.contains(viewer) }.map(\.content)
        if signaling == .sora {
            #expect(told.contains { if case .interrupted(let member) = $0 { member.id == id } else { false } })
            let left = bench.model.left(id, reason: .left)
            #expect(left.contains(.ended(id, .left)), "a leave that comes later is one")
        } else {
            #expect(closed.contains(.ended(id, .transport(.closedByPeer))))
        }
    }

    @Test func `without a grace time, or the wish to keep its place, a member leaves at once`() throws {
        var bench = bench(grace: 0)
        let id = try member(&bench)
        #expect(bench.model.left(id, reason: .signalingLost).contains(.ended(id, .signalingLost)))
        bench = self.bench()
        let plain = try bench.member(.sendrecv) { $0.user = Self.alice }
        #expect(bench.model.left(plain, reason: .signalingLost).contains(.ended(plain, .signalingLost)))
    }

    @Test func `slots wait for a sender and follow it to its new connection`() throws {
        var bench = bench()
        let viewer = try bench.member(.recvonly)
        let id = try member(&bench)
        let (audio, video, _) = try bench.see(id, by: viewer)
        #expect(bench.slot(video)?.source == bench.track(id, ModelBench.video))
        let token = try token(id, bench)
        _ = bench.model.left(id, reason: .signalingLost)
        #expect(bench.slot(video)?.source == nil && bench.slot(audio)?.source == nil)
        let streams = bench.model.visibleStreams(to: viewer)
        // The new connection may use other MIDs.
        let mids = [MID("x")!, MID("y")!]
        let (again, effects) = try rejoin(&bench, resumable(.sendrecv, token: token), mids: mids)
        #expect(again == id && effects.contains(.connected(id)))
        #expect(bench.slot(video)?.source == bench.track(id, mids[1]))
        #expect(bench.slot(audio)?.source == bench.track(id, mids[0]))
        #expect(bench.model.visibleStreams(to: viewer).map(\.sender) == streams.map(\.sender))
        #expect(
            bench.model.visibleStreams(to: viewer).flatMap(\.tracks).map(\.track) == [
                ModelBench.audio, ModelBench.video,
            ]
        )
        #expect(effects.reports.count == 1)
        #expect(bench.model.tick(at: moment(159)).isEmpty, "its grace time is cancelled")
    }

    @Test func `a token is valid once, for its own user and role`() throws {
        var bench = bench()
        let id = try member(&bench)
        let token = try token(id, bench)
        let wrong = [
            resumable(.sendrecv, token: token, user: UserIdentity("alice", .chosen)),
            resumable(.sendrecv, token: token, user: nil), resumable(.recvonly, token: token),
            resumable(.sendrecv, token: token + "x"), resumable(.sendrecv, token: String(token.dropLast())),
            resumable(.sendrecv, token: "x"), resumable(.sendrecv, token: "."), resumable(.sendrecv, token: ""),
        ]
        for request in wrong { #expect(bench.model.channels[ModelBench.channel]?.resumable(by: request) == nil) }
        // The client may notice the loss before the node does.
        let (again, effects) = try rejoin(&bench, resumable(.sendrecv, token: token))
        #expect(again == id && effects.contains(.connected(id)))
        #expect(bench.model.trace.joined().contains(.interrupted(id, .replaced)))
        #expect(bench.model.channels[ModelBench.channel]?.resumable(by: resumable(.sendrecv, token: token)) == nil)
        #expect(try self.token(id, bench) != token)
        _ = bench.model.left(id, reason: .left)
        #expect(bench.model.isEmpty)
    }

    @Test func `a connection that fails leaves the place to the next one until the grace time ends`() throws {
        var bench = bench()
        let (id, _) = try returning(&bench, at: 105)
        #expect(bench.model.left(id, reason: .setupFailed).contains(.interrupted(id, .setupFailed)))
        #expect(bench.model.tick(at: moment(114)).isEmpty)
        #expect(bench.model.tick(at: moment(115)).contains(.ended(id, .signalingLost)))
        #expect(bench.model.isEmpty)
    }

    @Test func `a connection under way at the end of the grace time takes the place, but no later one`() throws {
        var bench = bench()
        let (id, place) = try returning(&bench, at: 114)
        #expect(bench.model.tick(at: moment(115)).isEmpty)
        // Otherwise each connection that is not completed would keep the place for one more.
        let late = try rejoin(&bench, resumable(.sendrecv, token: try token(id, bench)))
        try #require(late.id != id)
        _ = try bench.model.setupCompleted(id, publications: [], slots: [])
        #expect(bench.model.received(.connected(over: .udp), from: place.peer).contains(.connected(id)))
        #expect(Set(bench.model.participants.keys) == [id, late.id])
    }

    @Test func `the expiry of an interrupted member's token ends it`() throws {
        var bench = bench()
        let id = try bench.member(.sendrecv) {
            $0.keepsPlace = true
            $0.expiry = AccessExpiry(unixSeconds: 105)
        }
        _ = bench.model.left(id, reason: .signalingLost)
        #expect(bench.model.tick(at: moment(105)).contains(.ended(id, .tokenExpired)))
        #expect(bench.model.isEmpty)
    }

    private func whip(user: UserIdentity?) -> JoinRequest {
        var request = JoinRequest(channel: ModelBench.channel, role: .sendonly, user: user)
        request.agent = ClientAgent(signaling: .whip)
        request.keepsPlace = user != nil
        return request
    }

    @Test(arguments: [DuplicateUserPolicy.allow, .replace])
    func `a WHIP publisher of the same user takes its place again without a token`(policy: DuplicateUserPolicy) throws {
        var bench = bench(policy: policy)
        let viewer = try bench.viewer()
        let (first, _) = try rejoin(&bench, whip(user: Self.alice))
        if policy == .allow { _ = bench.model.left(first, reason: .transport(.consentExpired)) }
        let (second, _) = try rejoin(&bench, whip(user: Self.alice), mids: [MID("a")!, MID("b")!])
        #expect(second == first)
        #expect(bench.model.slots(of: viewer)?.map(\.source?.mid.value) == ["a", "b"])
        let (third, _) = try rejoin(&bench, whip(user: UserIdentity("bob", .authorized)))
        let (fourth, _) = try rejoin(&bench, whip(user: nil))
        #expect(Set([first, third, fourth]).count == 3)
    }

    @Test func `viewers of the current publisher see another one while it is interrupted`() throws {
        var bench = bench()
        let viewer = try bench.viewer()
        let other = try bench.livePublisher()
        let (id, _) = try rejoin(&bench, whip(user: Self.alice))
        #expect(bench.sources(of: viewer) == [id, id])
        _ = bench.model.left(id, reason: .transport(.consentExpired))
        #expect(bench.sources(of: viewer) == [other, other])
        _ = try rejoin(&bench, whip(user: Self.alice))
        #expect(bench.sources(of: viewer) == [id, id])
    }

    @Test(arguments: 0..<20)
    func `whatever happens, a member is ended at most once and nothing is left behind`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bench = bench()
        var members: [ParticipantID] = []
        for second in Int64(101)...160 {
            for case .ended(let id, _) in bench.model.tick(at: moment(second)) { members.removeAll { $0 == id } }
            let id = members.randomElement(using: &random)
            switch (Int.random(in: 0..<6, using: &random), id) {
            case (0, _), (_, nil): members.append(try member(&bench))
            case (1, let id?):
                if bench.model.left(id, reason: .left).contains(.ended(id, .left)) { members.removeAll { $0 == id } }
            case (2, let id?): _ = bench.model.left(id, reason: .signalingLost)
            case (3, let id?):
                _ = bench.model.received(.closed(.consentExpired), from: bench.peers[id]!)
            case (4, let id?):
                let (again, _) = try rejoin(&bench, resumable(.sendrecv, token: try token(id, bench)))
                #expect(again == id)
            default: break
            }
            #expect(Set(members) == Set(bench.model.participants.keys), "second \(second)")
        }
        for id in members { _ = bench.model.left(id, reason: .left) }
        #expect(bench.model.isEmpty)
    }
}
