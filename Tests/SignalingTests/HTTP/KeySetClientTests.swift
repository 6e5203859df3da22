import Access
import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import Webhooks

/// Fetching the keys of tokens from a server.
@Suite(.timeLimit(.minutes(5)))
struct KeySetClientTests {
    private static let set =
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus"}]}"#

    private static func withKeySet(
        at url: String,
        _ body: (RemoteKeySet) async throws -> Void
    ) async throws {
        let client = KeySetClient()
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(client.keySet(at: url, logger: SignalingBench.quiet)))
        } catch {
            result = .failure(error)
        }
        await client.shutdown()
        try result.get()
    }

    @Test func `keys are asked for without a body, and the URL's query is not for the log`() async throws {
        try await HookServer { _, _ in HookServer.json(Self.set) }.run { url, seen in
            try await Self.withKeySet(at: "\(url)?tenant=hidden") { keys in
                #expect(keys.url == url)
                let failure = await keys.refresh()
                #expect(failure == nil && keys.keys.map(\.algorithm) == [.edDSA])
            }
            let request = try #require(seen().first)
            #expect(request.bytes.isEmpty && request.headers[.accept]?.contains("jwk-set+json") == true)
        }
    }

    @Test(arguments: [
        (HTTPResponse.Status.notFound, set, "status 404"), (.serviceUnavailable, set, "status 503"),
        (.found, set, "status 302"), (.ok, "<html>", "no JSON Web Key Set"), (.ok, "", "no JSON Web Key Set"),
        (.ok, String(repeating: " ", count: JSONWebKeySet.bytesMax) + set, "too long"),
    ])
    func `an answer that is no key set leaves the keys in hand in use`(
        status: HTTPResponse.Status,
        body: String,
        reason: String
    ) async throws {
        try await HookServer { index, _ in
            guard index > 0 else { return HookServer.json(Self.set) }
            var response = HookServer.json(body, status: status)
            response.headers[.location] = "/elsewhere"
            return response
        }
        .run { url, seen in
            try await Self.withKeySet(at: url) { keys in
                let first = await keys.refresh()
                let second = await keys.refresh()
                #expect(first == nil && second?.message.contains(reason) == true, "\(second?.message ?? "")")
                let counts = await keys.counts
                #expect(keys.keys.count == 1 && counts.failed == 1 && counts.fetched == 1)
            }
            #expect(seen().count == 2)
        }
    }

    @Test func `a server that is not there is a failure`() async throws {
        // Port 1 has no server.
        try await Self.withKeySet(at: "http://127.0.0.1:1/keys") { keys in
            let failure = await keys.refresh()
            #expect(failure?.message.hasPrefix("The connection failed") == true && keys.keys.isEmpty)
        }
    }
}
