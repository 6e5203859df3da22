import Base
import ChannelTypes
import HTTPTypes
import History
import HummingbirdTesting
import JSON
import MediaTypes
import Pages
import Room
import Testing

@testable import Ayame
@testable import Operators
@testable import Signaling
@testable import Sora
@testable import Web
@testable import Webhooks

@Suite(.timeLimit(.minutes(10)))
struct ConnectionsAPITests {
    @Test func `connections are listed and looked up, also after their end`() async throws {
        let history = try ConnectionHistory(node: "n", directory: nil, hours: 48, now: { 0 })
        try await OperatorsBench.run(history: history) { api in
            let empty = try await api.call(.get, "/v1/connections")
            #expect(empty["connections"] == [] && empty["hours"] == 48 && empty["node"]?.string?.isEmpty == false)
            let (one, two) = (RoomFixtures.report(channel: "one"), RoomFixtures.report(channel: "two", minutes: 2))
            for report in [one, two] { history.take(.connectionCreated(report), at: Instant(nanoseconds: 0)) }
            history.take(.connectionDestroyed(two, .transport(.consentExpired)), at: Instant(nanoseconds: 0))
            let all = try await api.call(.get, "/v1/connections")["connections"]?.array
            #expect(all?.count == 2)
            let live = try await api.call(.get, "/v1/connections?outcome=live")["connections"]?.array
            #expect(live?.map { $0["channel"] } == ["one"])
            let ended = try await api.call(.get, "/v1/connections?channel=two&limit=1")["connections"]?.array?.first
            let id = try #require(ended?["connection_id"]?.string)
            let detail = try await api.call(.get, "/v1/connections/\(id)")
            #expect(detail["reason"] == "TRANSPORT-CONSENT-EXPIRED" && detail["duration_s"] == 120)
            #expect(detail["events"]?.array?.map { $0["event"] } == ["connected", "ended"])
            #expect(try await api.call(.get, "/v1/connections?channel=..") == empty)
            let unknown = try await api.send(.get, "/v1/connections/nobody")
            #expect(try api.problem(unknown) == .connectionUnknown && unknown.text.contains("48 hours ago"))
            #expect(try api.problem(await api.send(.get, "/v1/connections?outcome=bad")) == .invalidRequest)
            #expect(try api.problem(await api.send(.get, "/v1/connections", token: nil)) == .unauthenticated)
        }
        try await OperatorsBench.run { api in
            let none = try await api.call(.get, "/v1/connections")
            #expect(none["connections"] == [] && none["hours"] == 0)
            let unknown = try await api.send(.get, "/v1/connections/nobody")
            #expect(try api.problem(unknown) == .connectionUnknown && unknown.text.contains("--history-hours"))
        }
    }

    @Test func `the operators' page says what each word for an end means`() async throws {
        let reasons: [EndReason] = [
            .left, .shutdown, .setupFailed, .unanswered, .unreachable, .evicted, .disconnectedByOperator, .kicked,
            .banned,
            .channelTerminated, .channelExpired, .madeAudience, .lifetimeExpired, .tokenExpired, .sessionTerminated,
            .tooSlow, .replaced, .signalingLost, .pongTimedOut,
        ]
        let words = reasons.map(\.name) + PeerCloseReason.allCases.map { EndReason.transport($0).name }
        try await OperatorsBench.run { api in
            let page = try await api.send(.get, "/ui/verdict.js", token: nil).text
            for word in words { #expect(page.contains("'\(word)': '"), "\(word)") }
        }
    }

    @Test func `the operators' page may change what its token permits, and pages of other origins may not`()
        async throws
    {
        try await OperatorsBench.run { api in
            _ = try await api.publish(as: "alice")
            let path = "/v1/channels/lobby/members/alice/mute"
            for origin in ["http://evil.example", "http://localhost.evil.example", "null"] {
                #expect(try await api.send(.post, path, ["muted": true], origin: origin).status == .forbidden)
            }
            #expect(try await api.send(.post, path, ["muted": true], origin: "http://localhost").status == .ok)
        }
    }

    @Test func `whoever asks learns what its token permits`() async throws {
        try await OperatorsBench.run(readToken: OperatorsBench.readToken) { api in
            let operating = try await api.call(.get, "/v1/operator")
            #expect(operating["role"] == "operate" && operating["node"]?.string != nil)
            let reading = try await api.send(.get, "/v1/operator", token: OperatorsBench.readToken)
            #expect(try JSONValue(parsing: reading.text)["role"] == "read")
            #expect(try await api.send(.get, "/v1/operator", token: nil).status == .unauthorized)
        }
    }

    @Test func `browsers get the operators' page, and clients of the API do not`() async throws {
        try await OperatorsBench.run { api in
            let browser = try await api.send(.get, "/", token: nil, accept: "text/html,*/*;q=0.8")
            #expect(browser.status == .found && browser.headers[.location] == "/ui/")
            #expect(try await api.send(.get, "/", token: nil).status == .methodNotAllowed)
            #expect(try await api.send(.get, "/ui", token: nil).headers[.location] == "/ui/")
            #expect(try await api.send(.get, "/ui/", token: nil).text.contains("<title>"))
            for file in OperatorsPage.allCases {
                let response = try await api.send(.get, "/ui/\(file.rawValue)", token: nil)
                #expect(response.status == .ok && response.headers[.xContentTypeOptions] == "nosniff")
                #expect(response.headers[.contentSecurityPolicy]?.contains("unsafe") == false)
                // A policy without inline code forbids these.
                #expect(!response.text.contains("style=\"") && !response.text.contains("onclick="))
                for path in response.text.matches(of: /from '\.\/([^']+)'/).map({ String($0.1) }) {
                    #expect(OperatorsPage(name: path) != nil, "\(file.rawValue) imports \(path)")
                }
            }
            #expect(try await api.send(.get, "/ui/other.js", token: nil).status == .notFound)
            #expect(try await api.send(.post, "/ui/", token: nil).status == .methodNotAllowed)
        }
    }

    @Test(
        arguments: [
            (#"[]"#, nil), (#"[{"type":"inbound-rtp","kind":"audio"}]"#, nil),
            (
                #"[{"type":"inbound-rtp","kind":"video","freezeCount":2,"totalFreezesDuration":1.5},{"type":"inbound-rtp","kind":"video","freezeCount":1}]"#,
                ClientPlayback(freezes: 3, frozen: 1_500)
            ),
            (
                #"[{"type":"inbound-rtp","kind":"video","freezeCount":-2,"totalFreezesDuration":1e300}]"#,
                ClientPlayback(freezes: 0, frozen: 1_000_000_000_000)
            ),
            (
                #"[{"type":"inbound-rtp","kind":"video","freezeCount":"x","totalFreezesDuration":-1}]"#,
                ClientPlayback()
            ),
        ] as [(String, ClientPlayback?)]
    )
    func `freezes are read from what clients report`(text: String, playback: ClientPlayback?) throws {
        let reports = try #require(try JSONValue(parsing: text).array)
        #expect(ClientPlayback(reports: reports) == playback)
    }
}
