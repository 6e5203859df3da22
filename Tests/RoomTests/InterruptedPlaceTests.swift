import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing

@testable import Admission
@testable import ChannelTypes
@testable import Room

/// What operators see and do while a member's connection is lost and its place is kept.
struct InterruptedPlaceTests {
    private func moment(_ second: Int64) -> RoomTime {
        RoomTime(
            instant: Instant(nanoseconds: second * 1_000_000_000),
            unixNanoseconds: (second + 1_000) * 1_000_000_000
        )
    }

    private func bench() -> ModelBench {
        var bench = ModelBench(limits: RoomLimits(resumeGrace: .seconds(15)))
        bench.model.codesChannels = true
        bench.model.now = moment(100)
        return bench
    }

    private func member(_ bench: inout ModelBench, _ user: String = "alice") throws -> ParticipantID {
        try bench.member(.sendrecv) {
            $0.user = UserIdentity(user, .authorized)
            $0.keepsPlace = true
        }
    }

    private func request(_ token: String?, _ user: String = "alice") -> JoinRequest {
        var request = JoinRequest(
            channel: ModelBench.channel,
            role: .sendrecv,
            following: .everyone,
            user: UserIdentity(user, .authorized)
        )
        request.keepsPlace = true
        request.resumeToken = token
        return request
    }

    private func channel(_ bench: ModelBench) throws -> ChannelModel {
        try #require(bench.model.channels[ModelBench.channel])
    }

    @Test func `an interrupted member is listed with the end of its place until it is back or the end has come`() throws
    {
        var bench = bench()
        let (id, other) = (try member(&bench), try member(&bench, "bob"))
        #expect(try channel(bench).places == channel(bench).connections)
        #expect(try channel(bench).places.map(\.state) == [.connected, .connected])
        let token = try #require(try channel(bench).resumeToken(of: id))
        _ = bench.model.left(id, reason: .signalingLost)
        bench.model.now = moment(107)
        #expect(try channel(bench).connections.map(\.member.id) == [other])
        let places = try channel(bench).places
        #expect(places.map(\.member.id) == [id, other] && places.map(\.state) == [.interrupted, .connected])
        #expect(places.map(\.placeEndsAt) == [1_115, nil])

        let place = try bench.model.joinRequested(
            request(token),
            id: ParticipantID(using: &bench.generator),
            session: ChannelSessionID(using: &bench.generator)
        )
        #expect(try channel(bench).places.first?.state == .interrupted)
        _ = try bench.model.setupCompleted(id, publications: [], slots: [])
        #expect(try channel(bench).places.first?.state == .interrupted, "its transport is not up yet")
        _ = bench.model.received(.connected(over: .udp), from: place.peer)
        #expect(try channel(bench).places.map(\.state) == [.connected, .connected])

        _ = bench.model.left(id, reason: .pongTimedOut)
        _ = bench.model.tick(at: moment(122))
        #expect(try channel(bench).places.map(\.member.id) == [other])
    }

    @Test(arguments: [
        EndReason.kicked, .disconnectedByOperator, .channelTerminated, .sessionTerminated,
    ])
    func `a place that an operator ended cannot be taken again for the grace time, but its user may join`(
        reason: EndReason
    ) throws {
        var bench = bench()
        let id = try member(&bench)
        let token = try #require(try channel(bench).resumeToken(of: id))
        _ = bench.model.left(id, reason: .signalingLost)
        let (ended, effects) = bench.model.end(in: ModelBench.channel, reason: reason)
        #expect(ended == [id] && effects.contains(.ended(id, reason)) && bench.model.isEmpty)
        #expect(throws: RoomError.placeEnded(reason)) { try bench.reserve(request(token)) }
        #expect(throws: RoomError.placeEnded(reason)) { try bench.reserve(request(token, "bob")) }
        _ = try bench.reserve(request(nil))
        bench.model.now = moment(114)
        #expect(throws: RoomError.placeEnded(reason)) { try bench.reserve(request(token)) }
        bench.model.now = moment(115)
        #expect(try bench.reserve(request(token)) != id, "it joins as a newcomer")
    }

    @Test(arguments: [EndReason.left, .banned, .tokenExpired, .replaced])
    func `a token of a place that ended otherwise admits a newcomer`(reason: EndReason) throws {
        var bench = bench()
        let id = try member(&bench)
        let token = try #require(try channel(bench).resumeToken(of: id))
        _ = bench.model.left(id, reason: reason)
        #expect(try bench.reserve(request(token)) != id)
    }

    @Test func `the number of ended places is bounded, and the oldest is forgotten first`() {
        var (places, generator) = (RecentlyEnded(), SeededGenerator(seed: 3))
        let ids = (0...RecentlyEnded.countMax * 3).map { _ in ParticipantID(using: &generator) }
        for id in ids { places.insert(id, reason: .kicked, at: moment(1), seconds: 10) }
        #expect(places.count == RecentlyEnded.countMax)
        #expect(places.reason(of: ids[ids.count - 1], at: moment(10)) == .kicked)
        let oldest = ids.count - RecentlyEnded.countMax
        #expect(places.reason(of: ids[oldest], at: moment(10)) == .kicked)
        #expect(places.reason(of: ids[oldest - 1], at: moment(10)) == nil)
        #expect(places.reason(of: ids[oldest], at: moment(11)) == nil && places.count == 0)
    }
}
