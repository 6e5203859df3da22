internal import AsyncHTTPClient
internal import ClientEngine
internal import Foundation
internal import NIOCore
internal import NIOHTTP1

/// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep) over HTTP.
package final class WebSignaling: LoadSignaling {
    /// Longer answers are not SDP.
    private static let bodyBytesMax = 256 * 1024
    /// Ten times the page of a node with a hundred loops.
    private static let metricsBytesMax = 8 * 1024 * 1024
    private static let requestTimeout = TimeAmount.seconds(15)
    /// Attempts of a request that the server answers with 409, 425, 429 or 503.
    private static let attemptsMax = 5

    private let configuration: LoadConfiguration
    private let client: HTTPClient

    package init(_ configuration: LoadConfiguration) {
        self.configuration = configuration
        var settings = HTTPClient.Configuration()
        settings.timeout.connect = .seconds(5)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 32
        // An unreachable server is reported after one attempt.
        settings.connectionPool.retryConnectionEstablishment = false
        settings.httpVersion = .http1Only
        settings.tlsConfiguration = configuration.tls
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    }

    /// Closes the connections. To be called once.
    package func shutdown() async { try? await client.shutdown() }

    /// Fetches a server's Prometheus page.
    package func metrics(at url: String) async throws(LoadError) -> String {
        do {
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: Self.requestTimeout)
            let body = try await response.body.collect(upTo: Self.metricsBytesMax)
            guard response.status == .ok else {
                let status = "\(response.status.code) \(response.status.reasonPhrase)"
                throw LoadError.failed("GET \(url) was answered \(status).")
            }
            return String(buffer: body)
        } catch let error as LoadError {
            throw error
        } catch {
            throw .failed("GET \(url) failed: \(NetworkErrorMessage.message(for: error)).")
        }
    }

    package func publish(offer: String, number: Int) async throws(LoadError) -> CreatedResource {
        try await create(offer, at: url(configuration.publishPath, number: number, participant: nil))
    }

    package func watch(
        offer: String,
        number: Int,
        participant: String?
    ) async throws(LoadError) -> CreatedResource {
        let path = participant == nil ? configuration.watchPath : configuration.watchParticipantPath
        return try await create(offer, at: url(path, number: number, participant: participant))
    }

    package func end(_ resource: CreatedResource) async {
        guard let location = resource.location else { return }
        var request = HTTPClientRequest(url: location)
        request.method = .DELETE
        authorize(&request)
        let response = try? await client.execute(request, timeout: Self.requestTimeout)
        // Read to its end, so that the connection can be reused.
        _ = try? await response?.body.collect(upTo: Self.bodyBytesMax)
    }

    // MARK: Requests

    private func create(_ offer: String, at url: String) async throws(LoadError) -> CreatedResource {
        var attempt = 1
        while true {
            let (response, body) = try await post(offer, to: url)
            let status = Int(response.status.code)
            if status == 201 {
                let target = response.url ?? URL(string: url)
                let location = response.headers.first(name: "Location")
                return CreatedResource(
                    answer: body,
                    location: location.flatMap { URL(string: $0, relativeTo: target)?.absoluteString },
                    participant: response.headers.first(name: "Nagare-Participant")
                )
            }
            guard [409, 425, 429, 503].contains(status), attempt < Self.attemptsMax else {
                throw .failed(Self.refusal(url, response.status, body))
            }
            attempt += 1
            let seconds = response.headers.first(name: "Retry-After").flatMap { Double($0) } ?? 0.5
            guard (try? await Task.sleep(for: .seconds(min(max(seconds, 0.1), 5)))) != nil else {
                throw .failed("The run was interrupted.")
            }
        }
    }

    private func post(_ offer: String, to url: String) async throws(LoadError) -> (HTTPClientResponse, String) {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/sdp")
        request.headers.add(name: "Accept", value: "application/sdp")
        authorize(&request)
        request.body = .bytes(ByteBuffer(string: offer))
        do {
            let response = try await client.execute(request, timeout: Self.requestTimeout)
            let body = try await response.body.collect(upTo: Self.bodyBytesMax)
            return (response, String(buffer: body))
        } catch {
            throw .failed("POST \(url) failed: \(NetworkErrorMessage.message(for: error)).")
        }
    }

    private func authorize(_ request: inout HTTPClientRequest) {
        guard let token = configuration.token else { return }
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
    }

    private func url(_ path: String, number: Int, participant: String?) -> String {
        let base = configuration.url.hasSuffix("/") ? String(configuration.url.dropLast()) : configuration.url
        let channel = configuration.channel(ofPublisher: number - 1)
        let filled = path.replacing("{channel}", with: Self.escaped(channel))
            .replacing("{publisher}", with: "\(number)")
            .replacing("{participant}", with: Self.escaped(participant ?? ""))
        return base + (filled.hasPrefix("/") ? filled : "/" + filled)
    }

    private static func escaped(_ name: String) -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
        )
        return name.addingPercentEncoding(withAllowedCharacters: unreserved) ?? name
    }

    // MARK: Messages

    private struct Problem: Decodable {
        var title: String?
        var detail: String?
    }

    private static func refusal(_ url: String, _ status: HTTPResponseStatus, _ body: String) -> String {
        // RFC 9457.
        let problem = try? JSONDecoder().decode(Problem.self, from: Data(body.utf8))
        let text = problem?.detail ?? problem?.title ?? body
        let line = text.split(whereSeparator: \.isNewline).first.map { String($0.prefix(200)) } ?? ""
        let reason = line.isEmpty ? "" : ": \(line.hasSuffix(".") ? String(line.dropLast()) : line)"
        let hint =
            switch status.code {
            case 401, 403: "; give a token that the server accepts with --token"
            case 404 where line.isEmpty: "; check the URL and the channel"
            default: ""
            }
        return "POST \(url) was answered \(status.code) \(status.reasonPhrase)\(reason)\(hint)."
    }
}
