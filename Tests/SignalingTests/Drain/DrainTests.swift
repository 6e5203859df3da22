import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Room
import Synchronization
import Testing

@testable import Ayame
@testable import Operators
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct DrainTests {
    /// The reasons of a client's closes.
    private final class Closes: Sendable {
        private let reasons = Mutex<[String]>([])
        var all: [String] { reasons.withLock { $0 } }
        func add(_ reason: String) { reasons.withLock { $0.append(reason) } }
    }

    /// Registers a client at the 1:1 relay.
    private static func register(in api: OperatorsBench) async throws -> Closes {
        let closes = Closes()
        let member = AyameRooms.Member(
            connectionID: ParticipantID.random().value,
            identity: nil,
            isStandalone: true,
            user: "u",
            app: nil,
            registeredAt: 7,
            origin: .here { notice in
                if case .ended(let close) = notice { closes.add(close.close.reason) }
            }
        )
        let room = try #require(ChannelName("call"))
        #expect(await api.bench.relayCalls.join(room, member) == .joined(.direct))
        return closes
    }

    @Test func `a drain by the API refuses newcomers in stages, and is taken back`() async throws {
        try await OperatorsBench.run(keys: AccessKeys()) { api in
            let present = try await api.clients.publish()
            let draining = try await api.call(.put, "/v1/drain", ["deadline_seconds": 30, "admit_seconds": 5])
            #expect(draining["state"] == "draining" && draining["phase"] == "new_channels")
            #expect(draining["shuts_down"] == false && draining["remaining_seconds"] == 30)
            let refused = try await api.clients.post("/whip/other", Offers.publish)
            #expect(refused.status == .serviceUnavailable && refused.headers[.retryAfter] == "5")
            let viewer = try await api.clients.watch()
            api.clock.advance(seconds: 5)
            await api.drain.tick()
            #expect(try await api.call(.get, "/v1/drain")["phase"] == "newcomers")
            #expect(try await api.clients.post("/whep/lobby", Offers.watch).status == .serviceUnavailable)
            let events = try await api.clients.send(.get, "/api/channels/lobby/events")
            #expect(events.status == .serviceUnavailable)
            #expect(try await api.clients.send(.delete, viewer.path).status == .ok)
            let ready = try await api.call(.delete, "/v1/drain")
            #expect(ready["state"] == "ready" && ready["phase"] == nil)
            #expect(try await api.clients.post("/whip/other", Offers.publish).status == .created)
            _ = try await api.clients.watch()
            api.clock.advance(seconds: 100)
            await api.drain.tick()
            #expect(try await api.clients.send(.get, present.path).status == .noContent)
        }
    }

    @Test func `at the deadline clients are told to leave, and the node stays`() async throws {
        try await OperatorsBench.run(keys: AccessKeys()) { api in
            let present = try await api.clients.publish()
            let closes = try await Self.register(in: api)
            try await api.call(.put, "/v1/drain", ["deadline_seconds": 30])
            #expect(try await api.call(.get, "/v1/drain")["clients"] == 2)
            api.clock.advance(seconds: 29)
            await api.drain.tick()
            #expect(try await api.clients.send(.get, present.path).status == .noContent)
            api.clock.advance(seconds: 1)
            await api.drain.tick()
            #expect(try await api.clients.send(.get, present.path).status == .notFound)
            #expect(closes.all == ["SERVER-SHUTDOWN"])
            let report = try await api.call(.get, "/v1/drain")
            #expect(report["phase"] == "closing" && report["clients"] == 0 && report["remaining_seconds"] == 0)
            #expect(try await api.call(.delete, "/v1/drain")["state"] == "ready")
            _ = try await api.clients.publish()
        }
    }

    @Test func `nothing takes back what comes before a shutdown`() async throws {
        try await OperatorsBench.run(keys: AccessKeys()) { api in
            try await api.drain.start(DrainRequest(by: .shutdown, deadline: .seconds(30), admission: .zero))
            #expect(try await api.call(.get, "/v1/drain")["shuts_down"] == true)
            for method in [HTTPRequest.Method.delete, .put] {
                let body: JSONValue? = method == .put ? [:] : nil
                #expect(try api.problem(try await api.send(method, "/v1/drain", body)) == .stopping)
            }
            await api.drain.stop()
            #expect(try await api.call(.get, "/v1/drain")["state"] == "stopping")
        }
    }

    @Test func `a mode of the node that admits more than its drain is refused`() async throws {
        try await OperatorsBench.run(keys: AccessKeys()) { api in
            func mode(_ mode: String?) async throws -> (status: Int, mode: String?) {
                let operation = mode == nil ? "GetMode" : "ChangeMode"
                let answer = await api.admin.answer(
                    target: "Sora_20260101.\(operation)",
                    body: mode.map { JSONValue.object(["mode": .string($0)]).bytes } ?? []
                )
                return (answer.status, answer.body["mode"]?.string)
            }
            try await api.call(.put, "/v1/drain", ["admit_seconds": 10])
            #expect(try await mode(nil).mode == "block_new_session")
            #expect(try await mode("normal").status == 409)
            #expect(try await mode("block_new_connection").status == 200)
            #expect(try await mode(nil).mode == "block_new_connection")
            #expect(try await mode("block_new_session").status == 200)
            try await api.call(.put, "/v1/drain", ["admit_seconds": 0])
            #expect(try await mode(nil).mode == "block_new_connection")
            #expect(try await mode("block_new_session").status == 409)
            try await api.call(.delete, "/v1/drain")
            #expect(try await mode(nil).mode == "block_new_session")
            #expect(try await mode("normal").status == 200)
        }
    }

    @Test(
        arguments: [
            ["deadline_seconds": -1], ["deadline_seconds": 86_401], ["admit_seconds": "1"], ["x": 1],
        ] as [JSONValue]
    )
    func `an invalid request changes nothing`(body: JSONValue) async throws {
        try await OperatorsBench.run { api in
            let refused = try await api.send(.put, "/v1/drain", body)
            #expect(try api.problem(refused) == .invalidRequest)
            #expect(try await api.call(.get, "/v1/drain")["state"] == "ready")
        }
    }
}
