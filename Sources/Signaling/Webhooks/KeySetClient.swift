package import Access
internal import AsyncHTTPClient
package import Logging
internal import NIOHTTP1
package import Web

/// Fetches the public keys of tokens from the operator's server, for ``RemoteKeySet``. It follows no redirects.
package final class KeySetClient: Sendable {
    /// Clients whose tokens need another key wait for so long at most.
    private static let timeout = Duration.seconds(5)

    private let client: HTTPClient

    /// Call ``shutdown()`` at the end.
    package init(trusting authorities: TrustedAuthorities = .system) {
        client = HTTPClient(
            eventLoopGroupProvider: .singleton,
            configuration: HTTPClient.Configuration(trusting: authorities)
        )
    }

    /// The keys at `url`, which are not fetched yet.
    package func keySet(at url: String, logger: Logger) -> RemoteKeySet {
        let client = client
        let place = String(url.prefix { $0 != "?" })
        return RemoteKeySet(
            url: place,
            logger: logger,
            now: { DeadlineTimer.now },
            fetch: { () throws(KeySetFailure) in try await Self.fetch(url, client) }
        )
    }

    /// Closes all connections. Call it once, at the end.
    package func shutdown() async { try? await client.shutdown() }

    private static func fetch(_ url: String, _ client: HTTPClient) async throws(KeySetFailure) -> FetchedKeySet {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "Accept", value: "application/jwk-set+json, application/json")
        request.headers.add(name: "User-Agent", value: "Nagare")
        do throws(WebhookFailure) {
            let answer = try await client.answer(to: request, within: timeout, bytesMax: JSONWebKeySet.bytesMax)
            let cacheControl = answer.headers[canonicalForm: "Cache-Control"].joined(separator: ",")
            return FetchedKeySet(body: answer.body, cacheControl: cacheControl)
        } catch {
            throw KeySetFailure(message: error.message)
        }
    }
}
